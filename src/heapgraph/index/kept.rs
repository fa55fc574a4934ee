//! The part of an index file that is stored as JSON: the dump and heap that it belongs to, notes, and sums.

use serde::{Deserialize, Serialize};

use super::super::dominators::OfType;
use super::super::graph::HeapGraph;
use super::file::{checksum, digest};
use crate::base::{Addr, Note, Notes, at_even_distances};
use crate::dump::DumpFile;
use crate::gc::{GcDesc, ObjectId, ObjectType};
use crate::model::{Generation, ReachTotals, SegmentModel, Stacks, Sum, WalkModel};

/// Size in bytes of each piece of the sample that identifies a dump.
const PIECE: u64 = 4096;
/// Number of pieces of the sample.
const PIECES: u64 = 256;

/// Everything in an index that is not an array.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Version of the program that created the index. Another version may walk the heap differently.
    pub(super) program: String,
    pub(super) dump: Identity,
    pub(super) segments: Vec<KeptSegment>,
    pub(super) types: Vec<KeptType>,
    pub(super) starts_notes: KeptNotes,
    pub(super) sums_notes: KeptNotes,
    /// Notes of the walk for references.
    pub(super) graph_notes: KeptNotes,
    /// Number and bytes of the objects by type.
    pub(super) sums: Vec<Sum>,
    /// Pairs of a segment and a type of its objects.
    pub(super) places: Vec<(u32, u32)>,
    pub(super) walks: Vec<(u32, WalkModel)>,
    /// Size of all objects in bytes.
    pub(super) bytes: u64,
    /// Whether the type index of each object takes 32 bits instead of 16.
    pub(super) wide_types: bool,
    /// Digest of the edges that are not references: see [`links`].
    pub(super) links: u64,
    /// The stack values that are roots of the dominator tree.
    pub(super) stacks: Stacks,
    /// Digest of the objects that roots hold: see [`held`].
    pub(super) held: u64,
    pub(super) totals: ReachTotals,
    pub(super) by_type: Vec<OfType>,
    /// Objects with the largest retained sizes.
    pub(super) largest: Vec<u32>,
}

/// Identifies a dump without reading all of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    bytes: u64,
    /// Digest of the checksums of pieces at even distances.
    sample: u64,
}

impl Identity {
    pub(super) fn of(file: &DumpFile) -> Identity {
        let bytes = file.bytes.len() as u64;
        let pieces = at_even_distances(bytes, PIECE, PIECES).filter_map(|at| file.bytes.range(at, PIECE.min(bytes)));
        Identity { bytes, sample: digest(pieces.map(checksum)) }
    }
}

/// A segment, and the ids of its objects.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptSegment {
    pub(super) start: Addr,
    pub(super) allocated: Addr,
    pub(super) generation: Generation,
    /// End address of the walked objects.
    pub(super) end: u64,
    /// Id of the first object.
    pub(super) first: u32,
    /// Number of objects.
    pub(super) count: u32,
    /// Number of words of the segment's bitmap of object starts; `None` if its starts are listed instead.
    pub(super) words: Option<u64>,
}

impl KeptSegment {
    pub(super) fn of(segment: &SegmentModel) -> KeptSegment {
        let SegmentModel { start, allocated, generation, .. } = segment;
        KeptSegment { start: *start, allocated: *allocated, generation: *generation, end: 0, first: 0, count: 0, words: None }
    }

    /// Whether `segment` has the recorded bounds and generation.
    pub(super) fn is(&self, segment: &SegmentModel) -> bool {
        (self.start, self.allocated, self.generation) == (segment.start, segment.allocated, segment.generation)
    }
}

/// A type, by its method table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptType {
    pub(super) method_table: Addr,
    /// Digest of the data about the type that a walk uses.
    shape: u64,
}

impl KeptType {
    pub(super) fn of(ty: &ObjectType) -> KeptType {
        let flags = [ty.is_free, ty.is_string, ty.is_array, ty.is_collectible].map(u64::from);
        let fixed = [ty.base_size, ty.component_size].into_iter().chain(flags);
        let none: &[_] = &[];
        let (kind, series, items) = match &ty.gc_desc {
            GcDesc::None => ([0, 0], none, [].as_slice()),
            GcDesc::Unknown => ([1, 0], none, [].as_slice()),
            GcDesc::Series(list) => ([2, 0], list.as_slice(), [].as_slice()),
            GcDesc::ValueSeries { start, items, .. } => ([3, *start], none, items.as_slice()),
        };
        let series = series.iter().flat_map(|s| [s.start, s.size.cast_unsigned()]);
        let items = items.iter().flat_map(|i| [i.pointers, i.skip]);
        KeptType { method_table: ty.method_table, shape: digest(fixed.chain(kind).chain(series).chain(items)) }
    }

    /// Whether a walk would treat `ty` as it treated the recorded type.
    pub(super) fn is(&self, ty: &ObjectType) -> bool {
        self.shape == KeptType::of(ty).shape
    }
}

/// Notes, each with the number of times it was added.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptNotes(Vec<(Note, u64)>);

impl KeptNotes {
    pub(super) fn of(notes: &Notes) -> KeptNotes {
        KeptNotes(notes.counted().map(|(note, times)| (note.clone(), times)).collect())
    }

    pub(super) fn notes(&self) -> Notes {
        self.0.iter().cloned().collect()
    }
}

/// Digest of the edges of the graph that are not references: edges of dependent handles, and edges to loader allocators.
pub(super) fn links(edges: impl Iterator<Item = (u64, ObjectId)>) -> u64 {
    use crate::base::Index;
    let mut edges: Vec<(u64, u32)> = edges.map(|(from, to)| (from, to.as_u32())).collect();
    edges.sort_unstable();
    digest(edges.into_iter().flat_map(|(from, to)| [from, to.into()]))
}

/// Digest of the objects that determine the dominator tree: objects held by roots outside of stacks, objects held by all roots, and objects in
/// frozen segments.
pub(super) fn held(graph: &HeapGraph, stacks: Stacks) -> u64 {
    use crate::base::Index;
    let lists = [graph.rooted(Stacks::None), graph.rooted(stacks), graph.frozen.clone()];
    digest(lists.iter().flat_map(|ids| std::iter::once(u64::MAX).chain(ids.iter().map(|id| id.as_u32().into()))))
}
