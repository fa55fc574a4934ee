//! The types to which blocks of static fields belong.

use std::sync::Arc;

use super::header::{NATIVE_REFERENCES, NATIVE_STATICS, STATICS_INFO, Sections};
use super::reader::{Section, Table};
use crate::base::hash::Map;
use crate::base::{Addr, Budget};
use crate::memory::Memory;

/// Maximum number of blocks of a type; there is one of each kind.
const MAX_PAIRS: usize = 16;

/// Estimated memory of an entry of [`Owners`], in bytes.
const BYTES_OF_AN_OWNER: u64 = 48;

/// Kinds of static fields, each of which has separate blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaticKind {
    /// References, and structures that contain references.
    Gc,
    /// All other fields.
    Other,
    /// Thread statics.
    Thread,
}

impl StaticKind {
    /// Decodes the runtime's `BagElementKind`.
    pub(super) fn of(kind: u32) -> Option<StaticKind> {
        match kind {
            0x43 => Some(StaticKind::Gc),
            0x42 => Some(StaticKind::Other),
            0x49 => Some(StaticKind::Thread),
            _ => None,
        }
    }
}

/// The type and kind of a block of static fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Method table of the declaring type.
    pub owner: Addr,
    /// Kind of its static fields in the block.
    pub kind: StaticKind,
}

/// The owners of blocks of static fields.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Owners by location. Types that have no fields of a kind may share one.
    pub(super) all: Vec<(Addr, Owned)>,
    /// Owners of blocks of references, by slot.
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
