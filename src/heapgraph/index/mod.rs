//! An index: what a walk and the graph of a heap take, in a file beside the dump, so that the next command need not make it again.
//!
//! It has the object starts, type and size of each object, the references both ways, the dominator tree with retained sizes, and sums. It is
//! mapped, not read: a question touches what it needs. Everything else (roots, names, fields, values) is read from the dump as ever.
//!
//! It is never needed, and not believed unseen: it must be of this dump (length and a sample), of these segments, of types that look the
//! same, its bytes must have the checksums that it says where a few are looked at, and a sample of its objects must be in the dump as it has
//! them. Dominators are taken only if the roots, which are read anew, hold what they held. All accesses are checked, so that a forged one can
//! make answers wrong, and no more.

mod file;
mod kept;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use file::IndexError;
use file::Sections;
#[cfg(feature = "internals")]
pub use file::checksum;
use kept::{Identity, Kept};
pub(crate) use write::{Contents, write};

use super::described::{Described, TypeOf};
use super::dominators::{DominatorTree, Sums as Retained};
use super::edges::{ByType, Edges, ObjectSet};
use super::extra::Extra;
use super::graph::{HeapGraph, References};
use super::type_sums::{Sums, TypeSums};
use crate::base::{Answer, Index as _, IndexVec, Packed};
use crate::dump::DumpFile;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, Part, SegmentIndex, Starts, TypeIndex, Walker};
use crate::graph::{Csr, Dominators};
use crate::model::Stacks;

/// Objects that are looked up in the dump when an index is opened.
const SAMPLE: u32 = 64;

/// Which index answers may come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IndexUse {
    /// None.
    #[default]
    None,
    /// The one beside the dump, if there is one that fits.
    Auto,
    /// This file, which must fit.
    File(PathBuf),
    /// The one beside the dump, which is open already.
    Open(OpenIndex),
}

/// A file that is open, and may be an index.
#[derive(Clone, Debug)]
pub struct OpenIndex(pub Arc<File>);

impl PartialEq for OpenIndex {
    fn eq(&self, other: &OpenIndex) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OpenIndex {}

/// The index of one heap.
#[derive(Debug)]
pub(crate) struct HeapIndex {
    sections: Sections,
    kept: Kept,
    /// The types, in the order of the index.
    types: IndexVec<TypeIndex, Arc<ObjectType>>,
    /// Number of objects, with which the lengths of all arrays agree.
    objects: u32,
}

impl HeapIndex {
    /// The index in `file`, if it is of the heap in `dump` that `walker` walks.
    ///
    /// # Errors
    /// [`IndexError`], which says why it is not used.
    pub(crate) fn open(file: &File, dump: &DumpFile, walker: &Walker) -> Result<HeapIndex, IndexError> {
        let other = |what: &str| IndexError::Other(what.into());
        let (sections, kept): (Sections, Kept) = Sections::open(file)?;
        if kept.program != env!("CARGO_PKG_VERSION") {
            return Err(IndexError::Format);
        }
        if kept.dump != Identity::of(dump) {
            return Err(other("its contents differ"));
        }
        let segments = walker.segments();
        if segments.len() != kept.segments.len() || !segments.iter().zip(&kept.segments).all(|(now, then)| then.is(now)) {
            return Err(other("its segments differ"));
        }
        // Each of them takes what a type takes.
        if !kept.types.is_sorted_by(|one, next| one.method_table < next.method_table) {
            return Err(IndexError::Damaged("its types are not in order".into()));
        }
        let types = (0u32..).zip(&kept.types).map(|(index, then)| {
            let now = walker.type_at(then.method_table).filter(|now| then.is(now))?;
            let index = TypeIndex::from_u32(index);
            Some(if now.index == index { now } else { Arc::new(now.at(index)) })
        });
        let types = types.collect::<Option<_>>().ok_or_else(|| other("its types differ"))?;
        let mut index = HeapIndex { sections, kept, types, objects: 0 };
        index.objects = index.object_starts(walker)?.len();
        index.check_lengths()?;
        index.check_sample(walker)?;
        Ok(index)
    }

    /// Holds the lengths of all arrays against the number of objects and of types: what is made from them takes memory for as many.
    fn check_lengths(&self) -> Result<(), IndexError> {
        let (objects, types, segments) = (self.objects, self.types.len(), self.kept.segments.len());
        let agree = |what: &str, agree: bool| match agree {
            true => Ok(()),
            false => Err(IndexError::Damaged(format!("its {what} do not fit its objects"))),
        };
        agree("types and sizes", self.described()?.is_of(objects))?;
        agree("sums", self.kept.sums.len() == types && self.kept.by_type.len() == types)?;
        agree("walks", self.kept.walks.len() <= segments && self.kept.walks.iter().all(|(at, _)| (*at as usize) < segments))?;
        agree("places", self.kept.places.iter().all(|(at, ty)| (*at as usize) < segments && (*ty as usize) < types))?;
        agree("largest", self.kept.largest.len() <= objects as usize && self.kept.largest.iter().all(|id| *id < objects))?;
        let counts = [self.sections.rows("references")?, self.sections.rows("reversed")?].map(|rows| (rows.len(), rows.item_count()));
        agree("references", counts.iter().all(|(rows, items)| *rows == objects && *items == counts[0].1))?;
        let by_type = self.sections.rows("by_type")?;
        agree("lists by type", by_type.len() as usize == types && by_type.item_count() == objects as usize)?;
        let (tree, retained) = self.tree()?;
        agree("dominators", tree.is_of(objects) && retained.is_of(tree.positions()))?;
        agree("live objects", self.sections.array::<u64>("live")?.len() == objects.div_ceil(64) as usize)
    }

    fn tree(&self) -> Result<(Dominators, Packed<u16>), IndexError> {
        let (position, order) = (self.sections.array("position")?, self.sections.array("order")?);
        let (below, up) = (self.sections.packed("below")?, self.sections.packed("up")?);
        Ok((Dominators::of_parts(position, order, below, up), self.sections.packed("retained")?))
    }

    /// Looks up some objects in the dump.
    fn check_sample(&self, walker: &Walker) -> Result<(), IndexError> {
        let (starts, described) = (self.object_starts(walker)?, self.described()?);
        let step = usize::try_from(starts.len() / SAMPLE).unwrap_or(1).max(1);
        for id in starts.ids().step_by(step) {
            let found = starts.address_of(id).and_then(|at| walker.object(at));
            let expected = described.type_of(id).and_then(|ty| self.types.get(ty));
            let same =
                found.zip(expected).is_some_and(|((ty, size), then)| ty.method_table == then.method_table && size == described.size(id));
            if !same {
                return Err(IndexError::Other("its objects differ".into()));
            }
        }
        Ok(())
    }

    /// Reads all of it, to see whether it was changed since it was made.
    pub(crate) fn check_all(&self) -> Result<(), IndexError> {
        self.sections.check_all()?;
        let rows = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let whole = |name: &str, n: usize| self.sections.rows(name).map(|all| all.is_of(rows(n)));
        let objects = self.objects as usize;
        match whole("references", objects)? && whole("reversed", objects)? && whole("by_type", self.types.len())? {
            true => Ok(()),
            false => Err(IndexError::Damaged("its rows do not follow each other".into())),
        }
    }

    fn object_starts(&self, walker: &Walker) -> Result<ObjectStarts, IndexError> {
        let (words, counted, listed) = (self.sections.array("words")?, self.sections.array("counted")?, self.sections.array("listed")?);
        let damaged = || IndexError::Damaged("its object starts do not fit".into());
        let (mut next_word, mut next_block, mut next_listed) = (0usize, 0usize, 0usize);
        let mut parts: IndexVec<SegmentIndex, Part> = IndexVec::new();
        let mut objects = 0u32;
        for segment in &self.kept.segments {
            if segment.first != objects {
                return Err(damaged());
            }
            if segment.end > segment.allocated.0 {
                return Err(damaged());
            }
            objects = objects.checked_add(segment.count).ok_or_else(damaged)?;
            let starts = match segment.words {
                Some(len) => {
                    // A bit each.
                    if u64::from(segment.count) > len.saturating_mul(64) {
                        return Err(damaged());
                    }
                    let len = usize::try_from(len).map_err(|_| damaged())?;
                    let end = next_word.checked_add(len).ok_or_else(damaged)?;
                    let end_block = next_block.checked_add(ObjectStarts::blocks(len)).ok_or_else(damaged)?;
                    let words = words.part(next_word..end).ok_or_else(damaged)?;
                    let blocks = counted.part(next_block..end_block).ok_or_else(damaged)?;
                    (next_word, next_block) = (end, end_block);
                    Starts::Bits { words, blocks }
                }
                None => {
                    let end = next_listed.checked_add(segment.count as usize).ok_or_else(damaged)?;
                    let list = listed.part(next_listed..end).ok_or_else(damaged)?;
                    next_listed = end;
                    Starts::List(list)
                }
            };
            parts.push(Part { start: segment.start.0, end: segment.end, first: segment.first, count: segment.count, starts });
        }
        if (next_word, next_block, next_listed) != (words.len(), counted.len(), listed.len()) {
            return Err(damaged());
        }
        Ok(ObjectStarts::of_parts(walker.memory().ptr_bytes(), parts))
    }

    fn described(&self) -> Result<Described, IndexError> {
        let types =
            if self.kept.wide_types { TypeOf::Wide(self.sections.array("types")?) } else { TypeOf::Narrow(self.sections.array("types")?) };
        Ok(Described { types, sizes: self.sections.packed("sizes")?, bytes: self.kept.bytes })
    }

    /// The object starts.
    pub(crate) fn starts(&self, walker: &Walker) -> Option<Answer<Arc<ObjectStarts>>> {
        Some(Answer::new(Arc::new(self.object_starts(walker).ok()?), self.kept.starts_notes.notes()))
    }

    /// The objects by type, with indices as `walker` has them now.
    pub(crate) fn sums(&self, walker: &Walker) -> Answer<TypeSums> {
        let now: Vec<Option<TypeIndex>> = self.types.iter().map(|ty| Some(walker.type_at(ty.method_table)?.index)).collect();
        let now = |then: usize| now.get(then).copied().flatten();
        let mut sums = Sums::new();
        sums.grow_to(walker.types().list().len());
        for (index, sum) in self.kept.sums.iter().enumerate() {
            if let Some(slot) = now(index).and_then(|index| sums.get_mut(index)) {
                *slot = *sum;
            }
        }
        let places = self.kept.places.iter().filter_map(|(at, ty)| Some((SegmentIndex::from_u32(*at), now(*ty as usize)?)));
        let walks = self.kept.walks.iter().map(|(at, walk)| (SegmentIndex::from_u32(*at), walk.clone()));
        Answer::new(TypeSums::of(sums, places.collect(), walks.collect()), self.kept.sums_notes.notes())
    }

    /// The graph, if its edges that are no references are these.
    pub(crate) fn graph(&self, extra: &Extra) -> Option<References> {
        let has = |table| self.types.as_slice().binary_search_by_key(&table, |ty| ty.method_table).is_ok();
        if self.kept.links != kept::links(extra.all(has)) {
            return None;
        }
        // Rows that overlap are the one thing that makes more work than there are items.
        let whole = |name: &str, rows: u32| self.sections.rows(name).ok().filter(|all| all.is_of(rows));
        let (references, reversed) = (whole("references", self.objects)?, whole("reversed", self.objects)?);
        let by_type = whole("by_type", u32::try_from(self.types.len()).ok()?)?;
        let edges = Edges::with_reversed(Csr::of_rows(references), Csr::of_rows(reversed));
        Some(References {
            edges,
            types: self.types.clone(),
            described: self.described().ok()?,
            by_type: ByType::of_rows(by_type).into(),
            notes: self.kept.graph_notes.notes(),
            is_of_index: true,
        })
    }

    /// Whether its dominators are those of `graph` below what roots hold now.
    fn has_roots_of(&self, graph: &HeapGraph, stacks: Stacks) -> bool {
        graph.is_of_index && stacks == self.kept.stacks && self.kept.held == kept::held(graph, stacks)
    }

    /// The objects that something keeps alive.
    pub(crate) fn live(&self, graph: &HeapGraph, stacks: Stacks) -> Option<ObjectSet> {
        let words = self.sections.array("live").ok().filter(|_| self.has_roots_of(graph, stacks))?;
        Some(ObjectSet::of_words(graph.len(), &words))
    }

    /// The dominators of its graph below what `graph` says roots hold, if that is what they held.
    pub(crate) fn dominators(&self, graph: &HeapGraph, stacks: Stacks) -> Option<DominatorTree> {
        if !self.has_roots_of(graph, stacks) {
            return None;
        }
        let (tree, retained) = self.tree().ok()?;
        let sums = Retained::of(
            self.kept.totals.clone(),
            self.kept.by_type.iter().copied().collect(),
            self.kept.largest.iter().copied().map(ObjectId::from_u32).collect(),
        );
        Some(DominatorTree::of_parts(tree, retained, sums))
    }
}

/// Where the index of the dump at `path` is, unless another place is given.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gcindex");
    name.into()
}
