//! The table from which a program writes its own stack traces: a list of commands. Each sets the owning type, the name or the signature,
//! and has one method to which the current values apply.
//!
//! Source: `StackTraceMethodMappingNode.cs`, `StackTraceMetadata.cs` of the runtime.

use std::sync::Arc;

use super::header::{METADATA, STACK_TRACE_METADATA, STACK_TRACE_METHODS, Sections};
use super::metadata::{Handle, Metadata, Split};
use super::reader::{Section, Table};
use crate::base::{Addr, Budget};
use crate::memory::Memory;

// Bits of a command.
const OWNING_TYPE: u8 = 1;
const NAME: u8 = 2;
const SIGNATURE: u8 = 4;
const GENERIC_SIGNATURE: u8 = 8;
const HIDDEN: u8 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) start: Addr,
    pub(super) owner: Option<Handle>,
    pub(super) name: Option<u32>,
    pub(super) hidden: bool,
}

/// The methods of the module, sorted by address.
#[derive(Debug, Default)]
pub(super) struct Methods {
    pub(super) rows: Vec<Row>,
    pub(super) metadata: Option<Metadata>,
}

impl Methods {
    /// Reads the table of the module whose `sections` are in `tables`.
    pub(super) fn read(sections: &Sections, tables: &Arc<Memory>, budget: &Budget) -> Table<Methods> {
        let Some(section) = sections.open(tables, STACK_TRACE_METHODS) else { return Table { data: Methods::default(), whole: true } };
        let mut rows = Vec::new();
        let whole = read_rows(sections.split, &section, budget, &mut rows).is_some();
        rows.sort_unstable_by_key(|row| row.start);
        // Older modules have separate metadata for this table.
        let own = sections.open(tables, STACK_TRACE_METADATA).filter(|s| sections.get(METADATA) != Some(s.range));
        Table { data: Methods { rows, metadata: own.and_then(|s| Metadata::open(s, sections.split)) }, whole }
    }
}

/// Appends all methods to `rows`; `None` if there are fewer than the section announces.
fn read_rows(split: Split, section: &Section, budget: &Budget, rows: &mut Vec<Row>) -> Option<()> {
    let count = section.u32(0)?;
    let mut cursor = section.at(4);
    let (mut owner, mut name) = (None, None);
    for _ in 0..count {
        (budget.steps(1) && budget.memory(u64::try_from(size_of::<Row>()).ok()?)).then_some(())?;
        let command = cursor.u8()?;
        if command & OWNING_TYPE != 0 {
            owner = Some(split.of_token(cursor.u32()?));
        }
        if command & NAME != 0 {
            name = Some(cursor.unsigned()?);
        }
        if command & SIGNATURE != 0 {
            cursor.unsigned()?;
        }
        if command & GENERIC_SIGNATURE != 0 {
            cursor.unsigned()?;
            cursor.unsigned()?;
        }
        rows.push(Row { start: cursor.relative()?, owner, name, hidden: command & HIDDEN != 0 });
    }
    Some(())
}
