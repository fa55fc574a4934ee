//! Whose the static fields are.

use std::sync::Arc;

use super::header::{NATIVE_REFERENCES, NATIVE_STATICS, STATICS_INFO, Sections};
use super::reader::{Section, Table};
use crate::base::hash::Map;
use crate::base::{Addr, Budget};
use crate::memory::Memory;

/// Most pairs of one type: it has one block of each kind.
const MAX_PAIRS: usize = 16;

/// Memory that each of them takes.
const BYTES_OF_AN_OWNER: u64 = 48;

/// Kinds of static fields, which have blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaticKind {
    /// References, and structures that have some.
    Gc,
    /// All others.
    Other,
    /// Thread statics.
    Thread,
}

impl StaticKind {
    /// Source: `BagElementKind` of the runtime.
    pub(super) fn of(kind: u32) -> Option<StaticKind> {
        match kind {
            0x43 => Some(StaticKind::Gc),
            0x42 => Some(StaticKind::Other),
            0x49 => Some(StaticKind::Thread),
            _ => None,
        }
    }
}

/// Whose static fields are somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Method table of the type.
    pub owner: Addr,
    /// Which of its static fields.
    pub kind: StaticKind,
}

/// What is known of the owners of static fields.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// By place; types without fields of a kind may share one.
    pub(super) all: Vec<(Addr, Owned)>,
    /// Owners of references by slot.
    pub(super) of_slots: Map<Addr, Addr>,
}

impl Owners {
    /// Reads the table of the module whose `sections` are in `tables`.
    pub(super) fn read(sections: &Sections, tables: &Arc<Memory>, budget: &Budget) -> Table<Owners> {
        let mut owners = Owners::default();
        let open = |id| sections.open(tables, id);
        let tables = (open(STATICS_INFO), open(NATIVE_REFERENCES), open(NATIVE_STATICS));
        let (Some(map), Some(types), Some(places)) = tables else { return Table { data: owners, whole: true } };
        let pointer = |table: &Section, index: u32| table.relative(u64::from(index).checked_mul(4)?);
        let mut whole = true;
        let all = map.entries(budget, |mut entry| {
            let mut read = || {
                let owner = pointer(&types, entry.unsigned()?)?;
                for _ in 0..MAX_PAIRS {
                    let kind = entry.unsigned()?;
                    if kind == 0 {
                        return Some(());
                    }
                    let place = pointer(&places, entry.unsigned()?)?;
                    if let Some(kind) = StaticKind::of(kind) {
                        budget.memory(BYTES_OF_AN_OWNER).then_some(())?;
                        owners.all.push((place, Owned { owner, kind }));
                        if kind == StaticKind::Gc {
                            owners.of_slots.insert(place, owner);
                        }
                    }
                }
                None
            };
            whole &= read().is_some();
        });
        Table { data: owners, whole: all && whole }
    }
}
