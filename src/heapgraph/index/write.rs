//! Writes an index.

use std::fs::File;
use std::io;

use super::super::{DominatorTree, Extra, HeapGraph, Sums, TypeSums};
use super::file::Writer;
use super::kept::{Identity, Kept, KeptNotes, KeptSegment, KeptType, held, links};
use crate::base::rank::Counted;
use crate::base::{Addr, Answer, Index, IndexVec, len64};
use crate::dump::DumpFile;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, SegmentObjects, Starts, TypeIndex, Walker};
use crate::graph::Rows;
use crate::model::{SegmentModel, Stacks};

/// The types of objects in the order of their method tables. With this order, all index files of a heap are equal. The type indices of a walk, in
/// contrast, depend on the threads of the walk and on earlier queries.
struct Ordered {
    /// Types in the order of the index.
    types: Vec<std::sync::Arc<ObjectType>>,
    /// Maps type indices of the heap to type indices of the index file; `None` for types without objects.
    to: IndexVec<TypeIndex, Option<u32>>,
}

impl Ordered {
    fn of(walker: &Walker, sums: &Sums) -> Ordered {
        let list = walker.types().list();
        let has_objects = |ty: &TypeIndex| sums.get(*ty).is_some_and(|sum| sum.count > 0);
        let mut types: Vec<_> = list.iter().filter(|ty| has_objects(&ty.index)).cloned().collect();
        types.sort_by_key(|ty| ty.method_table);
        let mut to: IndexVec<TypeIndex, Option<u32>> = IndexVec::new();
        to.grow_to(list.len());
        for (new, ty) in (0u32..).zip(&types) {
            if let Some(slot) = to.get_mut(ty.index) {
                *slot = Some(new);
            }
        }
        Ordered { types, to }
    }

    fn place(&self, ty: TypeIndex) -> u32 {
        self.to.get(ty).copied().flatten().unwrap_or(u32::MAX)
    }

    fn has(&self, method_table: Addr) -> bool {
        self.types.binary_search_by_key(&method_table, |ty| ty.method_table).is_ok()
    }

    /// Reorders `items` from the type indices of the heap to the type indices of the index file.
    fn sorted<T: Clone + Default>(&self, items: &IndexVec<TypeIndex, T>) -> Vec<T> {
        self.types.iter().map(|ty| items.get(ty.index).cloned().unwrap_or_default()).collect()
    }
}

/// The contents of an index: the results of walks and the graph.
pub(crate) struct Contents<'c> {
    pub(crate) dump: &'c DumpFile,
    pub(crate) walker: &'c Walker,
    pub(crate) sums: &'c Answer<TypeSums>,
    pub(crate) starts: &'c Answer<std::sync::Arc<ObjectStarts>>,
    pub(crate) graph: &'c HeapGraph,
    /// Edges of the graph that are not references.
    pub(crate) extra: &'c Extra,
    /// The dominator tree with the default stack roots.
    pub(crate) tree: &'c DominatorTree,
}

/// Writes the index of a heap to `file`. Returns the length of the file in bytes.
///
/// # Errors
/// [`io::Error`] if the file cannot be written.
pub(crate) fn write(contents: &Contents<'_>, file: &File) -> io::Result<u64> {
    let Contents { dump, walker, sums, starts, graph, extra, tree } = contents;
    let stacks = Stacks::default();
    let types = Ordered::of(walker, &sums.sums);
    let mut places: Vec<(u32, u32)> = sums.places().map(|(at, ty)| (at.as_u32(), types.place(ty))).collect();
    places.sort_unstable();
    let kept = Kept {
        program: env!("CARGO_PKG_VERSION").into(),
        dump: Identity::of(dump),
        segments: walker.segments().iter().zip(starts.parts().iter()).map(|(segment, part)| kept_segment(segment, part)).collect(),
        types: types.types.iter().map(|ty| KeptType::of(ty)).collect(),
        starts_notes: KeptNotes::of(&starts.notes),
        sums_notes: KeptNotes::of(&sums.notes),
        graph_notes: KeptNotes::of(&graph.walk_notes),
        sums: types.sorted(&sums.sums),
        places,
        walks: sums.walks.iter().map(|(at, walk)| (at.as_u32(), walk.clone())).collect(),
        bytes: graph.bytes(),
        wide_types: u16::try_from(types.types.len()).is_err(),
        links: links(extra.all(|table| types.has(table))),
        stacks,
        held: held(graph, stacks),
        totals: tree.totals(graph).clone(),
        by_type: types.sorted(tree.by_type(graph)),
        largest: tree.most().iter().map(|id| id.as_u32()).collect(),
    };
    write_sections(&kept, &types, (starts, graph, tree), file)
}

fn kept_segment(segment: &SegmentModel, part: &SegmentObjects) -> KeptSegment {
    let words = if let Starts::Bits { words, .. } = &part.starts { Some(len64(words.len())) } else { None };
    KeptSegment { end: part.end, first: part.first, count: part.count, words, ..KeptSegment::of(segment) }
}

fn write_sections(
    kept: &Kept,
    types: &Ordered,
    (starts, graph, tree): (&ObjectStarts, &HeapGraph, &DominatorTree),
    file: &File,
) -> io::Result<u64> {
    let mut out = Writer::new(file)?;
    let (mut words, mut counted, mut listed): (Vec<u64>, Vec<Counted>, Vec<u64>) = Default::default();
    for part in starts.parts() {
        match &part.starts {
            Starts::Bits { words: bits, blocks } => {
                words.extend_from_slice(bits);
                counted.extend_from_slice(blocks);
            }
            Starts::List(list) => listed.extend_from_slice(list),
        }
    }
    out.put("words", &words)?;
    out.put("counted", &counted)?;
    out.put("listed", &listed)?;
    let type_of = |id: ObjectId| graph.type_index(id).map_or(u32::MAX, |ty| types.place(ty));
    if kept.wide_types {
        out.put("types", &graph.ids().map(type_of).collect::<Vec<u32>>())?;
    } else {
        let narrow = |id| u16::try_from(type_of(id)).unwrap_or(u16::MAX);
        out.put("types", &graph.ids().map(narrow).collect::<Vec<u16>>())?;
    }
    out.put_packed("sizes", &graph.described().sizes)?;
    out.put_rows("references", graph.edges.csr().rows())?;
    out.put_rows("reversed", graph.edges.reversed().rows())?;
    let rows = u32::try_from(types.types.len()).unwrap_or(0);
    let by_type = Rows::sorted(graph.edges.csr().store(), rows, (0..graph.len()).map(|node| (type_of(ObjectId::from_u32(node)), node)));
    out.put_rows("by_type", &by_type)?;
    let (dominators, retained) = tree.parts();
    let (position, order, below, up) = dominators.parts();
    out.put("position", position)?;
    out.put("order", order)?;
    out.put_packed("below", below)?;
    out.put_packed("up", up)?;
    out.put_packed("retained", retained)?;
    let mut live = graph.edges.no_objects();
    live.extend(tree.reached().map(|(id, _)| id));
    out.put("live", live.words())?;
    out.finish(kept)
}
