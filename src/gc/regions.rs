//! GC memory outside the segments in use: free and freeable regions, bookkeeping, handle tables.
//!
//! Source: contract `GC` (`GetGCFreeRegions`, `GetGCBookkeepingMemoryRegions`, `GetHandleTableMemoryRegions`);
//! `docs/internals/gc-structures.md#free-regions-and-bookkeeping`.

use std::collections::HashSet;

use super::cards::LARGEST_HEADER;
use super::fields::card_table_info;
use super::{HeapId, Reading, names};
use crate::base::{Addr, AddrRange, NoteKind, PAGE};
use crate::data::{CardTableInfo, GCHeap, Offset, RegionFreeList, Structure, globals};
use crate::model::{RegionFields, RegionListModel, RegionModel, RegionSize};

/// Size classes of free regions, in list order (`free_region_kind`, gcpriv.h).
const SIZE_CLASSES: [RegionSize; 3] = [RegionSize::Basic, RegionSize::Large, RegionSize::Huge];

/// Layout of an array of `RegionFreeList`, one for each kind of region.
struct FreeLists {
    kinds: u64,
    /// Size of a list in bytes.
    stride: u64,
    head: Offset<RegionFreeList, Addr>,
}

impl Reading<'_> {
    /// The regions of all lists.
    pub(super) fn regions(&self) -> Vec<RegionModel> {
        let mut out = Vec::new();
        self.note_unusable(GCHeap::FreeableSohSegment);
        self.note_unusable(GCHeap::FreeableUohSegment);
        self.note_unusable(GCHeap::FreeRegions);
        let d = &self.descriptor;
        let kinds = d.number("CountFreeRegionKinds").unwrap_or(0).min(16);
        let stride = RegionFreeList::size(d).ok();
        let head = RegionFreeList::HeadFreeRegion.bind(d).ok();
        if let Some((stride, head)) = stride.zip(head) {
            let layout = FreeLists { kinds, stride, head };
            let huge = d.pointer("GlobalFreeHugeRegions").ok().filter(|a| !a.is_null());
            if let Some(list) = huge {
                self.free_list(RegionListModel::FreeHuge, None, Some(RegionSize::Huge), head.place(list), &mut out);
            }
            let decommit = d.pointer("GlobalRegionsToDecommit").ok().filter(|a| !a.is_null());
            self.free_lists(RegionListModel::Decommit, None, decommit, &layout, &mut out);
            for heap in &self.facts.heaps {
                let lists = self.places.at(*heap, GCHeap::FreeRegions);
                self.free_lists(RegionListModel::Free, Some(*heap), lists, &layout, &mut out);
            }
        }
        for heap in &self.facts.heaps {
            let chains =
                [(GCHeap::FreeableSohSegment, RegionListModel::FreeableSoh), (GCHeap::FreeableUohSegment, RegionListModel::FreeableUoh)];
            for (field, kind) in chains {
                if let Some(at) = self.places.at(*heap, field) {
                    self.free_list(kind, Some(*heap), None, at, &mut out);
                }
            }
        }
        self.bookkeeping(&mut out);
        out.extend(self.handle_memory());
        out
    }

    fn free_lists(&self, kind: RegionListModel, heap: Option<HeapId>, lists: Option<Addr>, layout: &FreeLists, out: &mut Vec<RegionModel>) {
        let Some(lists) = lists else { return };
        for i in 0..layout.kinds {
            let class = usize::try_from(i).ok().and_then(|i| SIZE_CLASSES.get(i)).copied();
            self.free_list(kind, heap, class, layout.head.place(lists.element(i, layout.stride)), out);
        }
    }

    /// Adds the regions of the `heap_segment` list whose head is stored at `at`.
    fn free_list(&self, list: RegionListModel, heap: Option<HeapId>, class: Option<RegionSize>, at: Addr, out: &mut Vec<RegionModel>) {
        let what = format!("list of {} regions", list.name());
        let Some(mut address) = self.needed(&what, self.memory.ptr(at)) else { return };
        let mut seen = HashSet::new();
        while !address.is_null() {
            if !seen.insert(address) || seen.len() > self.limits.segments_per_list {
                self.notes.add(NoteKind::LimitHit, address, format!("the {what} has a cycle or exceeds its limit"));
                return;
            }
            let Some(raw) = self.needed(&what, self.raw_segment(address)) else { return };
            if !raw.mem.is_null() {
                let range = AddrRange::new(raw.mem.align_down(PAGE), raw.committed);
                let segment = RegionFields {
                    start: raw.mem,
                    allocated: raw.allocated,
                    committed: raw.committed,
                    reserved: raw.reserved,
                    used: raw.used,
                    next: raw.next,
                    flags: names::segment_flags(raw.flags),
                    flags_value: raw.flags,
                };
                let (heap, bytes) = (heap.map(|h| h.index), range.len());
                out.push(RegionModel { list, heap, size_class: class, address, range, bytes, segment: Some(segment) });
            }
            address = raw.next;
        }
    }

    /// Adds the card tables and the structures allocated with them. `NextCardTable` points just *past* the header of the next region.
    fn bookkeeping(&self, out: &mut Vec<RegionModel>) {
        let Ok(info) = card_table_info(&self.descriptor) else { return };
        let Some(start) = globals::BookkeepingStart.of(&self.descriptor).ok().filter(|a| !a.is_null()) else { return };
        let Some(mut at) = self.needed("GC bookkeeping", self.memory.ptr(start)) else { return };
        let info_bytes = globals::CardTableInfoSize.of(&self.descriptor).unwrap_or(0);
        let mut seen = HashSet::new();
        while !at.is_null() {
            if !seen.insert(at) || seen.len() > self.limits.bookkeeping_regions {
                self.notes.add(NoteKind::LimitHit, at, "the list of bookkeeping regions has a cycle or exceeds its limit");
                return;
            }
            let recount = self.needed("GC bookkeeping", info.read(&self.memory, at, CardTableInfo::Recount));
            let size = self.needed("GC bookkeeping", info.read(&self.memory, at, CardTableInfo::Size));
            let (Some(recount), Some(size)) = (recount, size) else { return };
            if recount != 0 && size != 0 {
                out.push(RegionModel {
                    list: RegionListModel::Bookkeeping,
                    heap: None,
                    size_class: None,
                    address: at,
                    range: AddrRange::of(at, size),
                    bytes: size,
                    segment: None,
                });
            }
            let Some(next) = self.needed("GC bookkeeping", info.read(&self.memory, at, CardTableInfo::NextCardTable)) else { return };
            // The structure is at the start of a page; it is larger than the size that .NET 11 publishes.
            let page = next.align_down(PAGE);
            let is_header = |size: u64| (info_bytes..=LARGEST_HEADER).contains(&size);
            at = match next.minus(info_bytes) {
                Some(_) if next.since(page).is_some_and(is_header) => page,
                Some(info) if next.0 > info_bytes => info,
                _ => return,
            };
        }
    }
}
