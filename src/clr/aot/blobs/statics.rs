//! Static fields: the slots of all types, the blocks to which they point, and the types that own the blocks.

use super::Blobs;
use super::header::GC_STATIC_REGION;
#[cfg(feature = "internals")]
use super::header::THREAD_STATIC_REGION;
#[cfg(feature = "internals")]
use super::owners::Owned;
use super::owners::Owners;
use crate::base::missed::Kept;
use crate::base::{Addr, AddrRange, len64};

/// Maximum number of slots that are read. The limit is needed because a forged dump may map a few bytes to a large table.
const MAX_SLOTS: u64 = 1 << 20;
/// Flag in a slot whose block is not allocated yet. The slot then contains the address of the block's method table.
const NOT_INITIALIZED: u64 = 1;

/// The block that contains the static references of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcStatics {
    /// Address of the slot, the variable that points to the block.
    pub slot: Addr,
    /// The block: an object whose fields are the static fields. `None` if it has not been allocated or is not in the dump.
    pub block: Option<Addr>,
    /// Method table of the declaring type. The tables record it only for instances of generic types.
    pub owner: Option<Addr>,
}

impl Blobs {
    /// The blocks of static references, in the order of the module's slots. The list is incomplete if a part of the region is absent, or if there
    /// are more slots than the limit, which [`Blobs::note`] reports.
    pub fn gc_statics(&self) -> Vec<GcStatics> {
        self.slots().map(|slot| self.statics_of(slot, self.block(slot))).collect()
    }

    /// Like [`Blobs::gc_statics`], for dumps without the pages of the slots. The blocks come from the array that keeps them alive. The elements of
    /// this array begin at `first`, one for each slot. `None` if an element is not a block.
    pub fn gc_statics_in(&self, first: Addr) -> Option<Vec<GcStatics>> {
        let word = self.memory.ptr_bytes();
        let block = |i: u64| self.target(first.element(i, word)).filter(|block| self.is_block(*block));
        self.numbered_slots().map(|(i, slot)| Some(self.statics_of(slot, Some(block(i)?)))).collect()
    }

    /// The first place in the list of slots that is missing from a dump of a kind that contains the list, and the number of slots that are missing.
    pub(crate) fn lost_slots(&self) -> Option<(Addr, u64)> {
        let (at, region) = (self.sections.get(GC_STATIC_REGION)?.start, self.section(GC_STATIC_REGION)?);
        let unread = (0..self.slot_count()).filter(|i| region.relative(i.saturating_mul(4)).is_none());
        let mut lost = unread.map(|i| at.element(i, 4)).filter(|place| self.tables.is_lost(AddrRange::of(*place, 4)));
        Some((lost.next()?, len64(lost.count()).saturating_add(1)))
    }

    /// Number of slots, up to the limit.
    pub fn slot_count(&self) -> u64 {
        self.all_slots().min(MAX_SLOTS)
    }

    fn all_slots(&self) -> u64 {
        self.sections.get(GC_STATIC_REGION).map_or(0, |region| region.len() / 4)
    }

    /// Whether the module has more slots than are read.
    pub(super) fn has_more_slots(&self) -> bool {
        self.all_slots() > MAX_SLOTS
    }

    fn slots(&self) -> impl Iterator<Item = Addr> {
        self.numbered_slots().map(|(_, slot)| slot)
    }

    /// The slots whose place is in the dump, with their position in the list.
    fn numbered_slots(&self) -> impl Iterator<Item = (u64, Addr)> {
        let region = self.section(GC_STATIC_REGION);
        (0..self.slot_count()).filter_map(move |i| Some((i, region.as_ref()?.relative(i.saturating_mul(4))?)))
    }

    fn statics_of(&self, slot: Addr, block: Option<Addr>) -> GcStatics {
        GcStatics { slot, block, owner: self.owners().of_slots.get(&slot).copied() }
    }

    /// The target of the pointer at `at`; `None` if it is null, marked as not initialized, or absent.
    fn target(&self, at: Addr) -> Option<Addr> {
        self.memory.ptr(at).ok().filter(|t| !t.is_null() && t.0 & NOT_INITIALIZED == 0)
    }

    /// Whether the object at `at` is a block of static fields. The method table of a block is in the image, and its only flag may be
    /// `has_pointers`.
    fn is_block(&self, at: Addr) -> bool {
        let flags = |table: Addr| self.memory.u32(table).is_ok_and(|flags| flags & !self.has_pointers == 0);
        self.target(at).is_some_and(|table| self.image.range.contains(table) && flags(table))
    }

    /// The block of the slot at `slot`. Depending on the release, the slot points to the block, or to the element for the block in the
    /// array of all blocks.
    pub fn block(&self, slot: Addr) -> Option<Addr> {
        let first = self.target(slot)?;
        if self.is_block(first) { Some(first) } else { self.target(first).filter(|second| self.is_block(*second)) }
    }

    /// Method tables of the blocks of thread statics, by type index. The list ends at the first absent entry.
    #[cfg(feature = "internals")]
    pub fn thread_statics(&self) -> Vec<Addr> {
        let word = self.memory.ptr_bytes();
        let region = self.sections.get(THREAD_STATIC_REGION).unwrap_or_default();
        (0..region.len() / word).map_while(|i| self.tables.ptr(region.start.element(i, word)).ok()).collect()
    }

    /// The locations of static fields whose owner is known. The location of references is the slot, the location of other fields is the block, and
    /// the location of thread statics is the cell with the type index. Empty blocks may share a location.
    #[cfg(feature = "internals")]
    pub fn owned_statics(&self) -> &[(Addr, Owned)] {
        &self.owners().all
    }

    fn owners(&self) -> &Owners {
        &self.owners.get_or_init(|| Kept::of(|| Owners::read(&self.sections, &self.tables, &self.budget))).get().data
    }
}
