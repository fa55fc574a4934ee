//! The memory of handle tables: segments, their blocks by type, and slots without an object.
//!
//! Source: `docs/internals/gc-structures.md#handles`. A block belongs to one type until all its handles are freed
//! (`SegmentRemoveFreeBlocks`, `handletablecore.cpp`). A segment is freed when all its blocks are free, unless it is the last one of its
//! table (`FullSegmentIterator`, `handletablescan.cpp`). Since handles do not move, a single handle keeps its block and its segment
//! allocated. A slot without an object is free, or belongs to a handle whose object was collected or is not set yet.

use std::collections::{BTreeMap, HashSet};

use super::Reading;
use super::fields::HandleFields;
use super::handles::{HandleFilter, MAX_BLOCKS, MAX_PER_BLOCK};
use crate::base::{Addr, Count, Disjoint, Missing};
use crate::data::TableSegment;
use crate::model::{HandleBlocks, HandleKind, HandleMemory};

/// Counts for one or more blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    blocks: u64,
    /// Blocks for secondary values.
    secondary: u64,
    /// Blocks without an object in any slot.
    without: u64,
    handles: u64,
    empty: u64,
}

impl Reading<'_> {
    /// The memory of all handle tables.
    pub(super) fn handle_blocks_in_use(&self) -> HandleMemory {
        self.notes.extend(&self.handle_losses);
        let mut memory = HandleMemory::default();
        let Some(l) = &self.handles else { return memory };
        let (words, mut seen) = (self.words_of_handles(), HashSet::new());
        let per_segment = l.blocks.min(MAX_BLOCKS);
        let mut of: BTreeMap<HandleKind, Blocks> = BTreeMap::new();
        let (mut with_objects, mut free, mut whole) = (0u64, 0u64, true);
        for table in self.handle_tables(l, &words) {
            memory.tables.bump();
            for segment in self.handle_segments(l, table, &mut seen, &words) {
                memory.segments.bump();
                let (mut used, mut held) = (0u64, false);
                let read = self.handle_blocks(l, segment, &HandleFilter::default(), |kind, block, secondary| {
                    let Some((handles, empty)) = self.slots(l, segment, block, &words) else {
                        whole = false;
                        return words.take(1);
                    };
                    let blocks = of.entry(kind).or_default();
                    blocks.blocks.bump();
                    blocks.secondary.grow(u64::from(secondary.is_some()));
                    blocks.without.grow(u64::from(handles == 0));
                    blocks.handles.grow(handles);
                    blocks.empty.grow(empty);
                    used.grow(1u64.saturating_add(u64::from(secondary.is_some())));
                    held |= handles > 0;
                    true
                });
                match read {
                    Ok(()) => {
                        with_objects.grow(u64::from(held));
                        free.grow(per_segment.saturating_sub(used));
                    }
                    Err(e) => {
                        whole = false;
                        self.notes.add(Missing::Handles, segment, format!("handle table segment {segment}: {e}"));
                    }
                }
            }
        }
        words.note("reading handle tables", &self.notes);
        let block_bytes = l.per_block.saturating_mul(self.memory.ptr_bytes());
        (memory.segments_with_objects, memory.free_blocks) = (whole.then_some(with_objects), whole.then_some(free));
        memory.segment_bytes = l.segment_bytes;
        memory.bytes = memory.segments.saturating_mul(l.segment_bytes);
        memory.slots_per_block = l.per_block;
        let row = |(kind, b): (HandleKind, Blocks)| HandleBlocks {
            kind,
            blocks: b.blocks,
            secondary_blocks: b.secondary,
            blocks_without_objects: b.without,
            bytes: b.blocks.saturating_add(b.secondary).saturating_mul(block_bytes),
            slots: b.blocks.saturating_mul(l.per_block),
            handles: b.handles,
            empty_slots: b.empty,
        };
        memory.types = of.into_iter().map(row).collect();
        memory
    }

    /// Number of slots of a block with an object, and without one. `None` if a slot is not in the dump (which adds a note), or if `words`
    /// is used up.
    fn slots(&self, l: &HandleFields, segment: Addr, block: u8, words: &Disjoint) -> Option<(u64, u64)> {
        let word = self.memory.ptr_bytes();
        let count = l.per_block.min(MAX_PER_BLOCK);
        let values = self.needed("handle table segment", l.segment.at(segment, TableSegment::RgValue))?;
        let first = values.element(u64::from(block).saturating_mul(l.per_block), word);
        if !words.take(count) {
            return None;
        }
        let mut empty = 0u64;
        for k in 0..count {
            let object = self.needed("slots of handles", self.memory.ptr(first.element(k, word)))?;
            empty.grow(u64::from(object.is_null() || object.0 == l.destroyed));
        }
        Some((count.saturating_sub(empty), empty))
    }
}
