//! GC handles: maps, buckets, tables, segments, blocks.
//!
//! Source: contract `GC`, `GetHandles`; `docs/internals/gc-structures.md#handles`. With server GC a bucket has one table per processor, not
//! per heap. The DAC of .NET 9 and 10, and therefore ClrMD and SOS, walk too few tables and miss handles (dotnet/runtime #124872; 4 of 4
//! DATAS dumps here). The last handle type is internal: its blocks hold secondary values. Every slot of a bucket has a table, and every
//! table has a segment. A table is created with a segment (`HndCreateHandleTable`), and its last segment is kept even if it is empty
//! (`FullSegmentIterator`).

use std::collections::HashSet;

use super::fields::HandleFields;
use super::{Carved, Gc, Reading};
use crate::base::{Addr, AddrRange, Answer, Count, Disjoint, Missing, NoteKind};
use crate::data::{Field, HandleTable, HandleTableBucket, HandleTableMap, Inline, TableSegment};
use crate::memory::ReadError;
use crate::model::{FeatureSource, HandleKind, HandleModel, RegionListModel, RegionModel};

/// Selects handles.
#[derive(Clone, Debug, Default)]
pub struct HandleFilter {
    /// Types to include; empty for all.
    pub kinds: Vec<HandleKind>,
}

impl HandleFilter {
    pub(super) fn wants(&self, kind: HandleKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Name of handle tables in notes.
pub(super) const HANDLE_TABLES: &str = "handle tables";
/// Maximum number of blocks per segment: block indices have 8 bits.
pub(super) const MAX_BLOCKS: u64 = 256;
/// Maximum number of handles per block that is accepted. The runtime has 64.
pub(super) const MAX_PER_BLOCK: u64 = 1024;

/// Types that every runtime supports (contract `GC`, `GetSupportedHandleTypes`).
const ALWAYS: [HandleKind; 6] = [
    HandleKind::WeakShort,
    HandleKind::WeakLong,
    HandleKind::Strong,
    HandleKind::Pinned,
    HandleKind::Dependent,
    HandleKind::WeakInteriorPointer,
];

impl Gc {
    /// Handle types that the handle tables have room for, used or not. Empty, with notes, if the descriptor does not describe the tables.
    pub fn handle_types(&self) -> Answer<Vec<HandleKind>> {
        Answer::new(self.types_of_handles().collect(), self.handle_losses.clone())
    }

    pub(super) fn types_of_handles(&self) -> impl Iterator<Item = HandleKind> {
        let types = self.handles.as_ref().map_or(0, |h| h.types.saturating_sub(1));
        let of_tables = HandleKind::ALL.into_iter().take(usize::try_from(types).unwrap_or(0)).filter(|kind| *kind != HandleKind::Unknown);
        of_tables.chain(self.carved().map(Carved::handle_kinds).unwrap_or_default())
    }

    /// Handle types that the runtime supports, and the source of the features that decide this.
    ///
    /// Ref-counted handles need COM, ComWrappers or Objective-C; cross-reference handles need the Java bridge (contract `GC`,
    /// `GetSupportedHandleTypes`). .NET 11 publishes the features that are on, and no others (contract `FeatureFlags`). Up to .NET 10 only
    /// `FeatureCOMInterop` is published; every build for Windows and Unix has ComWrappers, and only builds for Android have the Java bridge
    /// (`clrfeatures.cmake`).
    pub fn supported_handles(&self) -> Answer<(Vec<HandleKind>, FeatureSource)> {
        let d = self.descriptor.scope();
        let on = |names: &[&str]| names.iter().any(|name| d.number(name).is_ok_and(|n| n != 0));
        let later = ["FeatureComWrappers", "FeatureObjCMarshal", "FeatureJavaMarshal"];
        let published = d.contract("FeatureFlags").is_some() || later.iter().any(|name| d.number(name).is_ok());
        let (ref_counted, cross_reference, source) = if published {
            let ref_counted = on(&["FeatureCOMInterop", "FeatureComWrappers", "FeatureObjCMarshal"]);
            (ref_counted, on(&["FeatureJavaMarshal"]), FeatureSource::Descriptor)
        } else {
            (true, false, FeatureSource::Version)
        };
        let supported = |kind: &HandleKind| match kind {
            HandleKind::RefCounted => ref_counted,
            HandleKind::CrossReference => cross_reference,
            HandleKind::Unknown => true,
            kind => ALWAYS.contains(kind),
        };
        let kinds = self.types_of_handles().filter(supported).collect();
        Answer::new((kinds, source), d.losses())
    }
}

impl Reading<'_> {
    /// Calls `visit` for every selected handle, in table order. Returns the number of tables. The objects are not read, so the handles have
    /// no method tables.
    pub(super) fn walk_handles(&self, filter: &HandleFilter, mut visit: impl FnMut(HandleModel)) -> u64 {
        self.notes.extend(&self.handle_losses);
        let Some(fields) = &self.handles else { return 0 };
        for (declared, most, what) in
            [(fields.blocks, MAX_BLOCKS, "blocks per segment"), (fields.per_block, MAX_PER_BLOCK, "handles per block")]
        {
            self.capped(None, HANDLE_TABLES, (declared, most), what);
        }
        let words = self.words_of_handles();
        let (mut tables, mut seen) = (0, HashSet::new());
        for table in self.handle_tables(fields, &words) {
            tables += 1;
            for segment in self.handle_segments(fields, table, &mut seen, &words) {
                if let Err(e) = self.handle_segment(fields, segment, filter, &words, &mut visit) {
                    let what = format!("handle table segment {segment}: {e}");
                    self.notes.add(Missing::Handles, segment, what);
                }
            }
        }
        words.note("reading handle tables", &self.notes);
        if tables == 0 && self.notes.notes().complete() {
            self.notes.add(Missing::Handles, fields.map_at, "no handle table found");
        }
        tables
    }

    /// Budget for the words read from all handle tables, whose lists and blocks do not overlap.
    pub(super) fn words_of_handles(&self) -> Disjoint {
        Disjoint::new(self.memory.dump_bytes(), self.memory.ptr_bytes())
    }

    /// Every handle table of every bucket.
    pub(super) fn handle_tables(&self, l: &HandleFields, words: &Disjoint) -> Vec<Addr> {
        let word = self.memory.ptr_bytes();
        let per_map = self.capped(None, HANDLE_TABLES, (l.buckets_per_map, self.limits.handle_buckets), "buckets per map");
        let (mut out, mut known) = (Vec::new(), HashSet::new());
        let mut maps = HashSet::new();
        let mut map = l.map_at;
        while !map.is_null() {
            if !maps.insert(map) || maps.len() > self.limits.handle_maps {
                self.notes.add(NoteKind::LimitHit, map, "the list of handle table maps has a cycle or exceeds its limit");
                break;
            }
            let Some(buckets) = self.needed("handle table map", l.map.read(&self.memory, map, HandleTableMap::BucketsPtr)) else { break };
            if !buckets.is_null() {
                for i in 0..per_map {
                    if !words.take(1) {
                        return out;
                    }
                    let Some(bucket) = self.needed("handle table buckets", self.memory.ptr(buckets.element(i, word))) else { break };
                    if !bucket.is_null() {
                        self.tables_of(l, bucket, words, |table| {
                            let new = known.insert(table);
                            if new {
                                out.push(table);
                            }
                            new
                        });
                    }
                }
            }
            let Some(next) = self.needed("handle table map", l.map.read(&self.memory, map, HandleTableMap::Next)) else { break };
            map = next;
        }
        out
    }

    fn tables_of(&self, l: &HandleFields, bucket: Addr, words: &Disjoint, mut is_new: impl FnMut(Addr) -> bool) {
        let word = self.memory.ptr_bytes();
        let Some(array) = self.needed("handle table bucket", l.bucket.read(&self.memory, bucket, HandleTableBucket::Table)) else { return };
        if array.is_null() {
            self.notes.add(NoteKind::Invalid, bucket, format!("the handle table bucket at {bucket} has no tables"));
            return;
        }
        let slots = self.handle_slots();
        // In a forged bucket all slots may be wrong, so they share one note.
        let (mut wrong, mut first) = (0u64, None);
        for slot in (0..slots).take_while(|_| words.take(1)) {
            let at = array.element(slot, word);
            let Some(table) = self.needed("handle tables of a bucket", self.memory.ptr(at)) else { break };
            if table.is_null() || !is_new(table) {
                wrong.bump();
                first.get_or_insert((slot, at));
            }
        }
        if let Some((slot, at)) = first {
            let what = format!(
                "{wrong} of {slots} slots of the handle table bucket at {bucket} have no table, or the table of another slot; the first is slot {slot}"
            );
            self.notes.add(NoteKind::Invalid, at, what);
        }
    }

    /// Tables per bucket: 1 with workstation GC, one per processor with server GC.
    fn handle_slots(&self) -> u64 {
        if !self.facts.server {
            return 1;
        }
        // .NET 11 publishes the variable's address; the synthesized descriptor holds the probed value.
        let literal = self.descriptor.number("TotalCpuCount").ok();
        let variable = || self.descriptor.pointer("TotalCpuCount").ok().and_then(|a| self.memory.u32(a).ok()).map(u64::from);
        let slots = literal.or_else(variable).or(self.facts.heap_count).unwrap_or(1);
        // A GC never has more heaps than processors. A probe that stops at a bad slot may find too few slots.
        if let Some(heaps) = self.facts.heap_count.filter(|heaps| *heaps > slots) {
            self.notes.add(NoteKind::Invalid, None, format!("handle tables: {slots} per bucket are fewer than the {heaps} heaps"));
        }
        self.capped(None, HANDLE_TABLES, (slots, self.limits.handle_slots), "tables per bucket")
    }

    /// The segments of a table. `seen` has the segments of all tables read so far, since no two tables share a segment.
    pub(super) fn handle_segments(&self, l: &HandleFields, table: Addr, seen: &mut HashSet<Addr>, words: &Disjoint) -> Vec<Addr> {
        let mut out = Vec::new();
        let Some(mut segment) = self.needed("handle table", l.table.read(&self.memory, table, HandleTable::SegmentList)) else {
            return out;
        };
        if segment.is_null() {
            self.notes.add(NoteKind::Invalid, table, format!("the handle table at {table} has no segment"));
        }
        while !segment.is_null() && words.take(1) {
            if out.first() == Some(&segment) {
                break;
            }
            if out.len() >= self.limits.handle_segments || !seen.insert(segment) {
                self.notes.add(NoteKind::LimitHit, segment, "a list of handle table segments has a cycle or exceeds its limit");
                break;
            }
            out.push(segment);
            match l.segment.read(&self.memory, segment, TableSegment::NextSegment) {
                Ok(next) => segment = next,
                // The rest of the segment header is absent too; reading it adds the note.
                Err(_) => break,
            }
        }
        out
    }

    fn handle_segment(
        &self,
        l: &HandleFields,
        segment: Addr,
        filter: &HandleFilter,
        words: &Disjoint,
        visit: &mut impl FnMut(HandleModel),
    ) -> Result<(), ReadError> {
        let values = l.segment.at(segment, TableSegment::RgValue)?;
        self.handle_blocks(l, segment, filter, |kind, block, secondary| {
            self.handle_block(l, values, (kind, block, secondary), words, visit)
        })
    }

    /// Calls `each` for every block of the selected types in a segment and its block of secondary values, until `each` returns false.
    pub(super) fn handle_blocks(
        &self,
        l: &HandleFields,
        segment: Addr,
        filter: &HandleFilter,
        mut each: impl FnMut(HandleKind, u8, Option<u8>) -> bool,
    ) -> Result<(), ReadError> {
        let blocks = usize::try_from(l.blocks.min(MAX_BLOCKS)).unwrap_or(0);
        let table = |field: Field<TableSegment, Inline>, len: usize| {
            self.memory.bytes(l.segment.at(segment, field)?, u64::try_from(len).unwrap_or(0))
        };
        let next = table(TableSegment::RgAllocation, blocks)?;
        let user_data = table(TableSegment::RgUserData, blocks)?;
        let kinds: Vec<HandleKind> = self.types_of_handles().collect();
        let tails = table(TableSegment::RgTail, kinds.len())?;
        let invalid = |block: u8| u64::from(block) == l.block_invalid;
        // A block is in the list of one type.
        let mut listed = vec![false; blocks];
        for (kind, tail) in kinds.iter().zip(tails.iter()) {
            if invalid(*tail) || !filter.wants(*kind) {
                continue;
            }
            // The blocks of a type form a ring; the tail links to the head.
            let Some(head) = next.get(usize::from(*tail)).copied() else {
                self.bad_block(segment, *kind, *tail);
                continue;
            };
            let mut block = head;
            loop {
                let at = usize::from(block);
                let (Some(follower), Some(user), Some(listed)) = (next.get(at), user_data.get(at), listed.get_mut(at)) else {
                    self.bad_block(segment, *kind, block);
                    break;
                };
                // The block was listed by another type, or the list does not return to its head.
                if std::mem::replace(listed, true) {
                    self.bad_block(segment, *kind, block);
                    break;
                }
                let secondary = (kind.has_secondary() && !invalid(*user)).then_some(*user);
                if !each(*kind, block, secondary) {
                    return Ok(());
                }
                block = *follower;
                if block == head {
                    break;
                }
            }
        }
        Ok(())
    }

    fn bad_block(&self, segment: Addr, kind: HandleKind, block: u8) {
        let what = format!("handle table segment {segment}: the block list of type {kind} links to invalid block {block}");
        self.notes.add(NoteKind::Invalid, segment, what);
    }

    /// Visits the handles of a block of the segment with `values`. Returns false if `words` is used up.
    fn handle_block(
        &self,
        l: &HandleFields,
        values: Addr,
        (kind, block, secondary_block): (HandleKind, u8, Option<u8>),
        words: &Disjoint,
        visit: &mut impl FnMut(HandleModel),
    ) -> bool {
        let word = self.memory.ptr_bytes();
        let first = values.element(u64::from(block).saturating_mul(l.per_block), word);
        let count = l.per_block.min(MAX_PER_BLOCK);
        let all = AddrRange::new(first, first.element(count, word));
        if self.memory.captured(all) == 0 {
            self.needed(&format!("handles of type {kind}"), self.memory.bytes(first, all.len()));
            return words.take(1);
        }
        if !words.take(count) {
            return false;
        }
        for k in 0..count {
            let address = first.element(k, word);
            // A block is committed before it is added to the list of its type (`handletablecore.cpp`).
            let object = match self.memory.ptr(address) {
                Ok(object) => object,
                Err(e) => {
                    self.notes.add(Missing::Handles, address, format!("handles of type {kind}: {e}"));
                    continue;
                }
            };
            if object.is_null() || object.0 == l.destroyed {
                continue;
            }
            let secondary = match (kind.has_secondary(), secondary_block) {
                (false, _) => None,
                (true, None) => Some(Addr::NULL),
                (true, Some(b)) => {
                    let at = values.element(u64::from(b).saturating_mul(l.per_block).saturating_add(k), word);
                    self.needed(&format!("secondary value of handle {address}"), self.memory.ptr(at))
                }
            };
            visit(HandleModel {
                object_size: None,
                address,
                kind,
                object,
                object_type: None,
                method_table: None,
                strong: kind.keeps_alive(),
                used_for: None,
                ref_count: None,
                secondary,
                secondary_type: None,
            });
        }
        true
    }

    /// Memory of all handle table segments.
    pub(super) fn handle_memory(&self) -> Vec<RegionModel> {
        self.notes.extend(&self.handle_losses);
        let Some(l) = &self.handles else { return Vec::new() };
        let (words, mut seen) = (self.words_of_handles(), HashSet::new());
        let tables = self.handle_tables(l, &words);
        let segments: Vec<Addr> = tables.into_iter().flat_map(|t| self.handle_segments(l, t, &mut seen, &words)).collect();
        words.note("reading handle tables", &self.notes);
        let region = |s: Addr| RegionModel {
            list: RegionListModel::HandleTable,
            heap: None,
            size_class: None,
            address: s,
            range: AddrRange::of(s, l.segment_bytes),
            bytes: l.segment_bytes,
            segment: None,
        };
        segments.into_iter().map(region).collect()
    }
}
