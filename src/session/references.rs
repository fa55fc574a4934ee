//! Finds the references between the objects of a heap. A heap walk collects the object starts and the addresses that objects refer to; then each
//! address is converted to an object id.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{Error, Heap};
use crate::base::cancel::check;
use crate::base::missed::Carried;
use crate::base::{Addr, Answer, Buffer, Collector, Index, IndexVec, NoteKind, Notes, Store, be, len64, plural};
use crate::dump::TempFiles;
use crate::gc::{
    Object, ObjectId, ObjectStarts, ObjectType, Piece, SegmentIndex, StartsVisitor, TypeIndex, Visitor, Walked, note_unknown, note_walks,
};
use crate::graph::{Csr, CsrBuilder, GraphError, Lengths, check_edges};
use crate::heapgraph::described::{Described, Describing};
use crate::heapgraph::{Extra, MemoryLimit, References};

/// Estimated bytes of memory per object for the graph, the dominator tree and the retained sizes. Measured: 50 with 1.1 references per object. The
/// estimate allows for three references per object.
const BYTES_PER_OBJECT: u64 = 64;

/// Bytes per object that stay in memory even if the arrays are in files, for some bit sets. The object starts are not included.
pub(super) const BYTES_IN_MEMORY: u64 = 1;

/// Marks a reference to an address where no object starts.
const DANGLING: u32 = u32::MAX;

/// The results of one visitor of the walk. The data of all pieces is in a few large arrays, because the allocator returns freed large arrays to the
/// system, but keeps freed small arrays.
struct Gather {
    /// `None` if the heap's object starts are known before the walk.
    starts: Option<StartsVisitor>,
    described: Describing,
    /// The number of references of each object.
    lengths: Lengths,
    /// The addresses that the references point to.
    targets: Buffer<u64>,
    pieces: Vec<Begin>,
}

/// The indices at which the data of a piece of the heap begins in the arrays of a visitor.
struct Begin {
    place: (SegmentIndex, Addr),
    object: usize,
    target: usize,
}

impl Visitor for Gather {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let place = (piece.index, piece.starts.start);
        self.pieces.push(Begin { place, object: self.lengths.len(), target: self.targets.len() });
        self.starts.as_mut().is_none_or(|starts| starts.piece(piece))
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_free {
            return;
        }
        let before = self.targets.len();
        object.references(|_, target| self.targets.push(target.0));
        self.lengths.push(self.targets.len().saturating_sub(before));
        self.described.push(object.ty.index, object.size);
        if let Some(starts) = &mut self.starts {
            starts.object(object);
        }
    }
}

/// The index ranges of a piece's objects and of their references in the arrays of a visitor.
struct PieceReferences {
    place: (SegmentIndex, Addr),
    visitor: usize,
    objects: Range<usize>,
    targets: Range<usize>,
}

/// The store for the graph of `heap`: temporary files if the estimated size of the graph exceeds the memory limit.
pub(super) fn store_of(heap: &Heap) -> Store {
    let needed = |allowed: &u64| u64::from(heap.starts().len()).saturating_mul(BYTES_PER_OBJECT) > *allowed;
    if heap.limits().max_memory.as_ref().is_some_and(needed) { Store::in_files(Arc::new(TempFiles::new())) } else { Store::default() }
}

/// The results of a walk.
pub(super) struct Gathered {
    store: Store,
    visitors: Vec<Gather>,
    /// The pieces of all visitors in heap order.
    parts: Vec<PieceReferences>,
    notes: Notes,
}

impl Gathered {
    /// Walks `heap` and caches its object starts. After an incomplete walk the object starts are not cached, because a walk for object starts only
    /// would report fewer losses.
    ///
    /// # Errors
    /// [`Error::Memory`] if even the data that stays in memory exceeds the limit.
    pub(super) fn walk(heap: &Heap) -> Result<Gathered, Error> {
        let store = store_of(heap);
        if let Some(allowed) = heap.limits().max_memory.filter(|_| store.is_in_files()) {
            let starts = heap.starts();
            let needed = starts.bytes().saturating_add(u64::from(starts.len()).saturating_mul(BYTES_IN_MEMORY));
            if needed > allowed {
                return Err(MemoryLimit { objects: starts.len(), needed, allowed }.into());
            }
        }
        let notes = Collector::new();
        let walker = heap.walker();
        let find_starts = !heap.knows_starts();
        let visitor = || Gather {
            starts: find_starts.then(|| StartsVisitor::new(walker)),
            described: Describing::new(&store),
            lengths: Lengths::new(&store),
            targets: Buffer::new(&store),
            pieces: Vec::new(),
        };
        let Walked { mut visitors, segments } = walker.walk_once(heap.progress(), visitor);
        note_walks(walker, &segments, &notes);
        let notes = notes.into_notes();
        let starts: Vec<StartsVisitor> = visitors.iter_mut().filter_map(|visitor| visitor.starts.take()).collect();
        if find_starts && notes.complete() {
            let Answer { data, notes: more } = ObjectStarts::new(walker, starts);
            let mut notes = notes.clone();
            notes.extend(&more);
            heap.keep_starts(Answer::new(Arc::new(data), notes));
        }
        let mut parts: Vec<PieceReferences> = visitors.iter().enumerate().flat_map(|(n, visitor)| visitor.parts(n)).collect();
        parts.sort_by_key(|part| part.place);
        Ok(Gathered { store, visitors, parts, notes })
    }

    /// The references between the objects that `index` numbers, and the edges of `extra`.
    ///
    /// # Errors
    /// [`Error::Graph`] if there are too many references to index.
    pub(super) fn resolved(self, heap: &Heap, index: &ObjectStarts, extra: &Extra) -> Result<References, Error> {
        let Gathered { store, mut visitors, parts, mut notes } = self;
        let (numbers, dangling) = numbered(&store, &visitors, &parts, index)?;
        visitors.iter_mut().for_each(|visitor| visitor.targets = Buffer::default());
        if dangling > 0 {
            notes.add(
                NoteKind::Invalid,
                None,
                format!("{} to an address without an object {} ignored", plural(dangling, "reference"), be(dangling)),
            );
        }
        let of_parts = || parts.iter().filter_map(|part| Some((visitors.get(part.visitor)?, part.objects.clone())));
        let lengths = || of_parts().flat_map(|(visitor, objects)| visitor.lengths.part(objects));
        let objects = of_parts().map(|(_, objects)| objects.len()).sum();
        let csr = || if dangling == 0 { Csr::of_lengths(objects, lengths(), numbers) } else { without_dangling(lengths(), &numbers) };
        let describe = || Describing::joined(&store, of_parts().map(|(visitor, objects)| (&visitor.described, objects)));
        let (csr, described) = rayon::join(csr, describe);
        let types = heap.walker().types().list();
        notes.extend(&unknown(heap, index, &described, &types));
        let more = extra.of_objects(index.ids(), &described, &types);
        let csr = if more.is_empty() { csr? } else { csr?.with_edges(&more)? };
        Ok(References { edges: csr.into(), types, described, by_type: OnceLock::new(), notes, is_of_index: false })
    }
}

impl Gather {
    fn parts(&self, visitor: usize) -> impl Iterator<Item = PieceReferences> {
        let ends = self.pieces.iter().skip(1).map(|next| (next.object, next.target)).chain([(self.lengths.len(), self.targets.len())]);
        self.pieces.iter().zip(ends).map(move |(begin, (object, target))| PieceReferences {
            place: begin.place,
            visitor,
            objects: begin.object..object,
            targets: begin.target..target,
        })
    }
}

/// Returns a note on objects whose references are unknown, because the GCDesc of their type is damaged or exceeded the budget.
fn unknown(heap: &Heap, index: &ObjectStarts, described: &Described, types: &IndexVec<TypeIndex, Arc<ObjectType>>) -> Notes {
    let notes = Collector::new();
    let lost: IndexVec<TypeIndex, bool> = types.iter().map(|ty| ty.loses_references()).collect();
    if lost.iter().any(|lost| *lost) {
        let loses = |id: &ObjectId| described.type_of(*id).and_then(|ty| lost.get(ty)) == Some(&true);
        note_unknown(heap.walker(), len64(index.ids().filter(loses).count()), &notes);
    }
    notes.into_notes()
}

/// Returns the object id that each reference points to, or [`DANGLING`], in heap order, and the number of dangling references.
fn numbered(store: &Store, visitors: &[Gather], parts: &[PieceReferences], index: &ObjectStarts) -> Result<(Buffer<u32>, u64), GraphError> {
    let edges = parts.iter().map(|part| part.targets.len()).sum();
    check_edges(edges)?;
    let mut numbers = Buffer::zeroed(store, edges);
    let mut rest: &mut [u32] = &mut numbers;
    let mut tasks = Vec::with_capacity(parts.len());
    for part in parts {
        let targets = visitors.get(part.visitor).and_then(|visitor| visitor.targets.get(part.targets.clone())).unwrap_or_default();
        let Some((own, behind)) = std::mem::take(&mut rest).split_at_mut_checked(targets.len()) else { break };
        rest = behind;
        tasks.push((targets, own));
    }
    let carried = Carried::here();
    let number = |(targets, own): (&[u64], &mut [u32])| {
        carried.run(|| {
            check();
            let (mut dangling, mut hint) = (0u64, SegmentIndex::default());
            for (number, target) in own.iter_mut().zip(targets) {
                let id = index.id_near(Addr(*target), &mut hint);
                dangling = dangling.wrapping_add(id.is_none().into());
                *number = id.map_or(DANGLING, Index::as_u32);
            }
            dangling
        })
    };
    let dangling = tasks.into_par_iter().map(number).sum();
    Ok((numbers, dangling))
}

fn without_dangling(lengths: impl Iterator<Item = u32>, numbers: &Buffer<u32>) -> Result<Csr, GraphError> {
    let mut rows = CsrBuilder::with_capacity(numbers.store(), 0, numbers.len());
    let mut numbers = numbers.iter().copied();
    for length in lengths {
        numbers.by_ref().take(length as usize).filter(|number| *number != DANGLING).for_each(|number| rows.push_edge(number));
        rows.end_node()?;
    }
    rows.finish()
}
