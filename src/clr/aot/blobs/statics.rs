//! Static fields: the slots that hold the blocks of types, and whose they are.

use super::Blobs;
use super::header::GC_STATIC_REGION;
#[cfg(feature = "internals")]
use super::header::THREAD_STATIC_REGION;
#[cfg(feature = "internals")]
use super::owners::Owned;
use super::owners::Owners;
use crate::base::Addr;
use crate::base::missed::Kept;

/// Most slots. The table may be mapped from few bytes.
const MAX_SLOTS: u64 = 1 << 20;
/// Bit of a slot whose block was not yet made: what it leads to is the block's type.
const NOT_INITIALISED: u64 = 1;

/// The references among the static fields of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcStatics {
    /// Address of the variable that leads to the block.
    pub slot: Addr,
    /// The block: an object whose fields are the static fields. `None` if it was not yet made, or is not in the dump.
    pub block: Option<Addr>,
    /// Method table of the type. The tables tell it of instances of generic types only.
    pub owner: Option<Addr>,
}

impl Blobs {
    /// The blocks of static fields that are references, in the order of the module. Fewer than there are slots if a part of the list is
    /// absent, which [`Blobs::note`] and the failed reads tell.
    pub fn gc_statics(&self) -> Vec<GcStatics> {
        self.slots().map(|slot| self.statics_of(slot, self.block(slot))).collect()
    }

    /// The same, with the blocks as the array has them that keeps all alive: its elements begin at `first`, and there are as many as
    /// slots. For dumps that lack the pages of the slots. `None` if any element is no block.
    pub fn gc_statics_in(&self, first: Addr) -> Option<Vec<GcStatics>> {
        let word = self.memory.ptr_bytes();
        let block = |i: u64| self.target(first.element(i, word)).filter(|block| self.is_block(*block));
        (0..).zip(self.slots()).map(|(i, slot)| Some(self.statics_of(slot, Some(block(i)?)))).collect()
    }

    /// Number of slots, those beyond a limit left out.
    pub fn slot_count(&self) -> u64 {
        self.all_slots().min(MAX_SLOTS)
    }

    fn all_slots(&self) -> u64 {
        self.sections.get(GC_STATIC_REGION).map_or(0, |region| region.len() / 4)
    }

    /// Whether there are more than are read.
    pub(super) fn has_more_slots(&self) -> bool {
        self.all_slots() > MAX_SLOTS
    }

    fn slots(&self) -> impl Iterator<Item = Addr> {
        let region = self.section(GC_STATIC_REGION);
        (0..self.slot_count()).map_while(move |i| region.as_ref()?.relative(i.saturating_mul(4)))
    }

    fn statics_of(&self, slot: Addr, block: Option<Addr>) -> GcStatics {
        GcStatics { slot, block, owner: self.owners().of_slots.get(&slot).copied() }
    }

    /// What the word at `at` leads to.
    fn target(&self, at: Addr) -> Option<Addr> {
        self.memory.ptr(at).ok().filter(|t| !t.is_null() && t.0 & NOT_INITIALISED == 0)
    }

    /// Whether a block is at `at`: an object whose type the compiler made, with no other flag than that it contains references.
    fn is_block(&self, at: Addr) -> bool {
        let flags = |table: Addr| self.memory.u32(table).is_ok_and(|flags| flags & !self.has_pointers == 0);
        self.target(at).is_some_and(|table| self.image.range.contains(table) && flags(table))
    }

    /// The block of the static fields whose slot is at `slot`. The slot leads to it, or, in other versions of the runtime, to the element
    /// that does in the array of all blocks.
    pub fn block(&self, slot: Addr) -> Option<Addr> {
        let first = self.target(slot)?;
        if self.is_block(first) { Some(first) } else { self.target(first).filter(|second| self.is_block(*second)) }
    }

    /// Method tables of the blocks of thread statics, by the number of their type. The list ends at the first that is absent.
    #[cfg(feature = "internals")]
    pub fn thread_statics(&self) -> Vec<Addr> {
        let word = self.memory.ptr_bytes();
        let region = self.sections.get(THREAD_STATIC_REGION).unwrap_or_default();
        (0..region.len() / word).map_while(|i| self.tables.ptr(region.start.element(i, word)).ok()).collect()
    }

    /// All static fields whose owner is known, with their place: the slot of references, the block of others, or the cell with the
    /// number of a type with thread statics. Blocks without fields share a place.
    #[cfg(feature = "internals")]
    pub fn owned_statics(&self) -> &[(Addr, Owned)] {
        &self.owners().all
    }

    fn owners(&self) -> &Owners {
        &self.owners.get_or_init(|| Kept::of(|| Owners::read(&self.sections, &self.tables, &self.budget))).get().data
    }
}
