//! An index file stores the results of a heap walk and the graph beside the dump, so that later commands need not compute them again.
//!
//! The index has the start, type and size of each object, the references in both directions, the dominator tree with retained sizes, and sums. The
//! file is mapped, so that a query reads only the parts that it needs. All other data (roots, names, fields, values) is still read from the dump.
//!
//! An index is optional, and it is checked before use. The dump must have the recorded length and sample of bytes, the recorded segments, and types
//! with the recorded data. A few chunks of the index must have the recorded checksums, and a sample of its objects must match the dump. The
//! dominator tree is used only if the roots, which are always read from the dump, hold the recorded objects. All accesses are bounds-checked, so
//! the worst effect of a forged index is a wrong answer.

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
use crate::gc::{ObjectId, ObjectStarts, ObjectType, SegmentIndex, SegmentObjects, Starts, TypeIndex, Walker};
use crate::graph::{Csr, Dominators};
use crate::model::Stacks;

/// Minimum number of objects that are compared with the dump when an index is opened. If the heap has fewer objects, all are compared. At most
/// twice this number is compared.
const SAMPLE: u32 = 64;

/// The index that answers may be read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IndexUse {
    /// No index.
    #[default]
    None,
    /// The index beside the dump, if one is there and matches.
    Auto,
    /// The index in this file, which must match.
    File(PathBuf),
    /// This file, which the caller has opened and which must match.
    Open(OpenIndex),
}

/// An open file that may be an index.
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
    /// Number of objects. [`HeapIndex::open`] has checked the lengths of all arrays against it.
    objects: u32,
}

impl HeapIndex {
    /// Opens the index in `file` if it belongs to the heap in `dump` that `walker` walks.
    ///
    /// # Errors
    /// [`IndexError`] with the reason why the index is not used.
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
        // Each entry of the list takes the memory of a type, so repeated types are refused. A forged list could repeat a type millions of times.
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

    /// Checks the lengths of all arrays against the numbers of objects and types. Data made from the arrays takes memory in proportion to these
    /// numbers.
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

    /// Compares a sample of objects with the dump.
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

    /// Reads the whole file and compares it with its checksums, to detect changes since it was created.
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
        let mut parts: IndexVec<SegmentIndex, SegmentObjects> = IndexVec::new();
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
                    // The bitmap has one set bit for each object.
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
            parts.push(SegmentObjects { start: segment.start.0, end: segment.end, first: segment.first, count: segment.count, starts });
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

    /// The object starts; `None` if their part of the file is damaged.
    pub(crate) fn starts(&self, walker: &Walker) -> Option<Answer<Arc<ObjectStarts>>> {
        Some(Answer::new(Arc::new(self.object_starts(walker).ok()?), self.kept.starts_notes.notes()))
    }

    /// The sums by type, with the current type indices of `walker`.
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

    /// The references of the graph; `None` if the edges in `extra` are not the same as when the index was created.
    pub(crate) fn graph(&self, extra: &Extra) -> Option<References> {
        let has = |table| self.types.as_slice().binary_search_by_key(&table, |ty| ty.method_table).is_ok();
        if self.kept.links != kept::links(extra.all(has)) {
            return None;
        }
        // Overlapping rows are refused, because a traversal of such rows could visit more edges than the file has.
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

    /// Whether the dominators of the index are valid for `graph`: it has the references of the index, and its roots hold the same objects.
    fn has_roots_of(&self, graph: &HeapGraph, stacks: Stacks) -> bool {
        graph.is_of_index && stacks == self.kept.stacks && self.kept.held == kept::held(graph, stacks)
    }

    /// The reachable objects, under the same condition as [`HeapIndex::dominators`].
    pub(crate) fn live(&self, graph: &HeapGraph, stacks: Stacks) -> Option<ObjectSet> {
        let words = self.sections.array("live").ok().filter(|_| self.has_roots_of(graph, stacks))?;
        Some(ObjectSet::of_words(graph.len(), &words))
    }

    /// The dominator tree of the index; `None` if the roots of `graph` hold other objects than when the index was created.
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

/// The default path of the index of the dump at `path`.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gcindex");
    name.into()
}
