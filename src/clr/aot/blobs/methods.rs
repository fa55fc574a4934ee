//! Methods by the address of their code: what a program's own stack traces are written from.
//!
//! The table is a list of commands that set the owning type, the name or the signature, each with one method that they hold for.
//! Source: `StackTraceMethodMappingNode.cs`, `StackTraceMetadata.cs` of the runtime.

use super::metadata::{Handle, Metadata};
use super::reader::Section;
use super::{Blobs, METADATA, STACK_TRACE_METADATA, STACK_TRACE_METHODS, Table};
use crate::base::Addr;
use crate::base::missed::Kept;
use crate::clr::aot::unwind;

// Bits of a command.
const OWNING_TYPE: u8 = 1;
const NAME: u8 = 2;
const SIGNATURE: u8 = 4;
const GENERIC_SIGNATURE: u8 = 8;
const HIDDEN: u8 = 16;

/// A method of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Full name of the type that has it, without generic arguments.
    pub owner: String,
    /// Its name, without generic arguments and parameters.
    pub name: String,
    /// Where its code begins.
    pub start: Addr,
    /// Whether stack traces leave it out: `[StackTraceHidden]`.
    pub hidden: bool,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    start: Addr,
    owner: Option<Handle>,
    name: Option<u32>,
    hidden: bool,
}

/// The methods of the module, by address.
#[derive(Debug, Default)]
pub(super) struct Methods {
    rows: Vec<Row>,
    metadata: Option<Metadata>,
}

impl Blobs {
    /// Number of methods that the module tells the names of.
    #[cfg(feature = "internals")]
    pub fn method_count(&self) -> usize {
        self.methods().rows.len()
    }

    /// Where the code of each of them begins, ascending.
    #[cfg(feature = "internals")]
    pub fn method_starts(&self) -> impl Iterator<Item = Addr> {
        self.methods().rows.iter().map(|row| row.start)
    }

    /// The method whose code is at `code`, anywhere in its body or in that of one of its handlers. `None` if the module does not tell:
    /// a method of the native runtime, a stub, or a module without stack trace data.
    pub fn method_at(&self, code: Addr) -> Option<Method> {
        let methods = self.methods();
        (!methods.rows.is_empty() && self.image.range.contains(code)).then_some(())?;
        let row = |start: Addr| {
            let index = methods.rows.binary_search_by_key(&start, |row| row.start).ok()?;
            methods.rows.get(index)
        };
        let start = unwind::method_start(&self.memory, &self.image, code)?;
        let row = row(start)?;
        let metadata = methods.metadata.as_ref().or(self.metadata.as_ref())?;
        Some(Method {
            owner: metadata.type_name(row.owner?, &self.budget)?.name,
            name: metadata.string(row.name?, &self.budget)?,
            start: row.start,
            hidden: row.hidden,
        })
    }

    fn methods(&self) -> &Methods {
        &self.methods.get_or_init(|| Kept::of(|| self.read_methods())).get().data
    }

    fn read_methods(&self) -> Table<Methods> {
        let Some(section) = self.section(STACK_TRACE_METHODS) else { return Table { data: Methods::default(), whole: true } };
        let mut rows = Vec::new();
        let whole = self.read_rows(&section, &mut rows).is_some();
        rows.sort_unstable_by_key(|row| row.start);
        // Older modules have metadata for this alone.
        let own = self.section(STACK_TRACE_METADATA).filter(|s| self.sections.get(METADATA) != Some(s.range));
        Table { data: Methods { rows, metadata: own.and_then(|s| Metadata::open(s, self.sections.split)) }, whole }
    }

    /// Appends all methods to `rows`; `None` if there are fewer than the section says.
    fn read_rows(&self, section: &Section, rows: &mut Vec<Row>) -> Option<()> {
        let count = section.u32(0)?;
        let mut cursor = section.at(4);
        let (mut owner, mut name) = (None, None);
        for _ in 0..count {
            (self.budget.steps(1) && self.budget.memory(u64::try_from(size_of::<Row>()).ok()?)).then_some(())?;
            let command = cursor.u8()?;
            if command & OWNING_TYPE != 0 {
                owner = Some(self.sections.split.of_token(cursor.u32()?));
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
}
