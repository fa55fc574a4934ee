//! The references of a heap, by a walk: it finds the addresses that objects refer to, and where objects start. Then each address becomes
//! the number of an object.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::described::{Described, Describing};
use super::edges::{ByType, Edges};
use super::graph::{Extra, MemoryLimit};
use super::{Error, Heap, note_unknown, note_walks};
use crate::base::cancel::check;
use crate::base::missed::Carried;
use crate::base::{Addr, Answer, Collector, Index, IndexVec, NoteKind, Notes, be, len64, plural};
use crate::gc::{Object, ObjectId, ObjectStarts, ObjectType, Piece, SegmentIndex, StartsVisitor, TypeIndex, Visitor, Walked};
use crate::graph::{Csr, CsrBuilder, GraphError, Lengths, check_edges};

/// Estimated bytes per object, including dominator tree and retained sizes: 50 measured on a heap with 1.1 references per
/// object; sized for three references.
const BYTES_PER_OBJECT: u64 = 64;

/// Stands for an address at which no object starts.
const DANGLING: u32 = u32::MAX;

/// What a walk for references finds, or an index kept of one.
pub(super) struct References {
    pub(super) edges: Edges,
    pub(super) types: IndexVec<TypeIndex, Arc<ObjectType>>,
    pub(super) described: Described,
    pub(super) by_type: OnceLock<ByType>,
    /// Of the walk.
    pub(super) notes: Notes,
}

/// What a visitor of a walk sees, piece after piece: in few large arrays, whose memory goes back at once. What is freed piece by piece
/// stays with the process.
struct Gather {
    /// Unless starts are known.
    starts: Option<StartsVisitor>,
    described: Describing,
    /// The number of references of each object.
    lengths: Lengths,
    targets: Vec<Addr>,
    pieces: Vec<Begin>,
}

/// Where a piece of the heap begins in the arrays of a visitor.
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
        object.references(|_, target| self.targets.push(target));
        self.lengths.push(self.targets.len().saturating_sub(before));
        self.described.push(object.ty.index, object.size);
        if let Some(starts) = &mut self.starts {
            starts.object(object);
        }
    }
}

/// The objects of a piece in the arrays of a visitor, and their references.
struct Part {
    place: (SegmentIndex, Addr),
    visitor: usize,
    objects: Range<usize>,
    targets: Range<usize>,
}

/// What a walk found.
pub(super) struct Gathered {
    visitors: Vec<Gather>,
    /// In heap order.
    parts: Vec<Part>,
    notes: Notes,
}

impl Gathered {
    /// Walks `heap`, which knows its object starts afterwards, unless the dump lacks something: what a walk for starts alone says about
    /// that is less.
    ///
    /// # Errors
    /// [`Error::Memory`]: where memory is limited, objects are counted first.
    pub(super) fn walk(heap: &Heap) -> Result<Gathered, Error> {
        if let Some(allowed) = heap.limits().max_memory {
            let objects = heap.starts().len();
            let needed = u64::from(objects).saturating_mul(BYTES_PER_OBJECT);
            if needed > allowed {
                return Err(MemoryLimit { objects, needed, allowed }.into());
            }
        }
        let notes = Collector::new();
        let walker = heap.walker();
        let find_starts = !heap.knows_starts();
        let visitor = || Gather {
            starts: find_starts.then(|| StartsVisitor::new(walker)),
            described: Describing::default(),
            lengths: Lengths::default(),
            targets: Vec::new(),
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
        let mut parts: Vec<Part> = visitors.iter().enumerate().flat_map(|(n, visitor)| visitor.parts(n)).collect();
        parts.sort_by_key(|part| part.place);
        Ok(Gathered { visitors, parts, notes })
    }

    /// The references between the objects that `index` numbers, and the edges of `extra`.
    ///
    /// # Errors
    /// [`Error::Graph`].
    pub(super) fn resolved(self, heap: &Heap, index: &ObjectStarts, extra: &Extra) -> Result<References, Error> {
        let Gathered { mut visitors, parts, mut notes } = self;
        let (numbers, dangling) = numbered(&visitors, &parts, index)?;
        visitors.iter_mut().for_each(|visitor| visitor.targets = Vec::new());
        if dangling > 0 {
            notes.add(NoteKind::Invalid, None, format!("{} to what is no object {} ignored", plural(dangling, "reference"), be(dangling)));
        }
        let of_parts = || parts.iter().filter_map(|part| Some((visitors.get(part.visitor)?, part.objects.clone())));
        let lengths = || of_parts().flat_map(|(visitor, objects)| visitor.lengths.part(objects));
        let objects = of_parts().map(|(_, objects)| objects.len()).sum();
        let csr = || if dangling == 0 { Csr::of_lengths(objects, lengths(), numbers) } else { without_dangling(lengths(), numbers) };
        let describe = || Describing::joined(of_parts().map(|(visitor, objects)| (&visitor.described, objects)));
        let (csr, described) = rayon::join(csr, describe);
        let types = heap.walker().types().list();
        notes.extend(&unknown(heap, index, &described, &types));
        let more = extra.of_objects(index.ids(), &described, &types);
        let csr = if more.is_empty() { csr? } else { csr?.with_edges(&more)? };
        Ok(References { edges: csr.into(), types, described, by_type: OnceLock::new(), notes })
    }
}

impl Gather {
    fn parts(&self, visitor: usize) -> impl Iterator<Item = Part> {
        let ends = self.pieces.iter().skip(1).map(|next| (next.object, next.target)).chain([(self.lengths.len(), self.targets.len())]);
        self.pieces.iter().zip(ends).map(move |(begin, (object, target))| Part {
            place: begin.place,
            visitor,
            objects: begin.object..object,
            targets: begin.target..target,
        })
    }
}

/// Notes the objects whose references are not known.
fn unknown(heap: &Heap, index: &ObjectStarts, described: &Described, types: &IndexVec<TypeIndex, Arc<ObjectType>>) -> Notes {
    let notes = Collector::new();
    let lost: IndexVec<TypeIndex, bool> = types.iter().map(|ty| ty.loses_references()).collect();
    if lost.iter().any(|lost| *lost) {
        let loses = |id: &ObjectId| described.type_of(*id).and_then(|ty| lost.get(ty)) == Some(&true);
        note_unknown(heap.walker(), len64(index.ids().filter(loses).count()), &notes);
    }
    notes.into_notes()
}

/// The numbers of the objects that references lead to, in heap order, [`DANGLING`] among them; and how many those are.
fn numbered(visitors: &[Gather], parts: &[Part], index: &ObjectStarts) -> Result<(Vec<u32>, u64), GraphError> {
    let edges = parts.iter().map(|part| part.targets.len()).sum();
    check_edges(edges)?;
    let mut numbers = vec![0u32; edges];
    let mut rest = numbers.as_mut_slice();
    let mut tasks = Vec::with_capacity(parts.len());
    for part in parts {
        let targets = visitors.get(part.visitor).and_then(|visitor| visitor.targets.get(part.targets.clone())).unwrap_or_default();
        let Some((own, behind)) = std::mem::take(&mut rest).split_at_mut_checked(targets.len()) else { break };
        rest = behind;
        tasks.push((targets, own));
    }
    let carried = Carried::here();
    let number = |(targets, own): (&[Addr], &mut [u32])| {
        carried.run(|| {
            check();
            let (mut dangling, mut hint) = (0u64, SegmentIndex::default());
            for (number, target) in own.iter_mut().zip(targets) {
                let id = index.id_near(*target, &mut hint);
                dangling = dangling.wrapping_add(id.is_none().into());
                *number = id.map_or(DANGLING, Index::as_u32);
            }
            dangling
        })
    };
    let dangling = tasks.into_par_iter().map(number).sum();
    Ok((numbers, dangling))
}

fn without_dangling(lengths: impl Iterator<Item = u32>, numbers: Vec<u32>) -> Result<Csr, GraphError> {
    let mut rows = CsrBuilder::with_capacity(0, numbers.len());
    let mut numbers = numbers.into_iter();
    for length in lengths {
        numbers.by_ref().take(length as usize).filter(|number| *number != DANGLING).for_each(|number| rows.push_edge(number));
        rows.end_node()?;
    }
    rows.finish()
}
