//! The heap without the GC's structures: it is found by the objects themselves, which begin with the address of a method table.
//!
//! A word that is the address of a method table may begin an object (`reader`). A long run, in which the size of each supposed object leads
//! to the next one, consists of objects ([`scan`]). The targets of references in these objects, and of words outside of them, are also
//! objects (`support`). Runs that nothing refers to are not part of the heap: they are arrays of method tables or remains of compacted
//! regions.
//!
//! Source: `docs/internals/carving.md`, which has the measurements.

mod areas;
pub(super) mod mono;
mod reader;
mod scan;
mod support;

use std::sync::Arc;

use super::walk::Walker;
use crate::base::missed::tried;
use crate::base::{
    Addr, AddrRange, Answer, Collector, Count, Limits, Missing, NoteKind, Notes, Progress, in_units, len64, plural, thousands, total,
};
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
use crate::model::{CarvedModel, Generation, SegmentModel};
use areas::Areas;
pub(in crate::gc) use areas::Run;
pub(crate) use mono::{SgenRoots, SgenSource};
use reader::{Kinds, Reader};
use support::Support;

/// A heap that was carved.
#[derive(Clone, Debug, Default)]
pub struct Carved {
    /// Ranges of objects, by address.
    ranges: Vec<Run>,
    /// Runs of objects that are left out because nothing refers to them.
    pub left_out: LeftOut,
    /// Why the GC's structures are not used, as a clause.
    why: String,
    /// The file of a standalone GC.
    collector: Option<String>,
    /// Number of searched bytes: writable memory without another known use.
    pub searched: u64,
    /// Number of references in the objects.
    pub references: u64,
    /// Number of references that point to the start of an object.
    pub hits: u64,
    /// The method table of free space, if it was found by its contents.
    pub(super) free: Option<Addr>,
    /// The structures that were read from Mono's collector.
    pub(super) sgen: Option<mono::Sgen>,
    /// Bytes in `ranges` between objects.
    gap_bytes: u64,
}

/// Memory to search, and the reason.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Writable memory without another known use, sorted and disjoint.
    pub ranges: Vec<AddrRange>,
    /// All writable memory, sorted and disjoint. Its words may refer to objects.
    pub writable: Vec<AddrRange>,
    /// Stacks, sorted and disjoint. A supposed object on a stack is accepted only if other objects follow or refer to it.
    pub stacks: Vec<AddrRange>,
    /// Why the GC's structures are not used, as a clause.
    pub why: String,
    /// The file of a standalone GC.
    pub collector: Option<String>,
}

/// Returns a note that the GC's data `what` is unknown because the heap was carved.
pub(super) fn lacks(code: Missing, what: &str) -> Notes {
    let mut notes = Notes::new();
    notes.add(code, None, format!("{what} are unknown: the heap was carved out of memory"));
    notes
}

/// Runs of objects that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of runs.
    pub runs: u64,
    /// Number of objects.
    pub objects: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl LeftOut {
    fn add(&mut self, run: &Run) {
        self.runs.bump();
        self.objects.grow(run.objects);
        self.bytes.grow(run.bytes());
    }
}

impl Carved {
    /// Bytes of the objects.
    pub fn bytes(&self) -> u64 {
        total(self.ranges.iter().map(Run::bytes)).saturating_sub(self.gap_bytes)
    }

    /// Number of objects, free blocks included.
    pub fn objects(&self) -> u64 {
        total(self.ranges.iter().map(|r| r.objects))
    }

    /// For answers.
    pub(super) fn model(&self) -> CarvedModel {
        CarvedModel {
            because: self.why.clone(),
            collector: self.collector.clone(),
            ranges: len64(self.ranges.len()),
            objects: self.objects(),
            bytes: self.bytes(),
            searched_bytes: self.searched,
            references: self.references,
            references_to_objects: self.hits,
            left_out_ranges: self.left_out.runs,
            left_out_objects: self.left_out.objects,
            left_out_bytes: self.left_out.bytes,
        }
    }

    /// Adds a note that the heap was carved, and why.
    pub(super) fn note(&self, notes: &Collector) {
        let LeftOut { runs, objects, .. } = self.left_out;
        let left_out = match runs {
            0 => String::new(),
            _ => format!("; left out are {} in {} that no reference points to", plural(objects, "object"), plural(runs, "range")),
        };
        let references = match self.references {
            0 => String::new(),
            all => format!(", {} of {} point to objects", thousands(self.hits), plural(all, "reference")),
        };
        let what = format!(
            "the heap was carved out of memory, because {}: {} in {}{references}{left_out}",
            self.why,
            in_units(self.bytes()),
            plural(len64(self.ranges.len()), "range"),
        );
        notes.add(Missing::Heap, None, what);
    }

    /// The ranges as segments of one heap.
    pub(super) fn segments(&self, memory: &Memory) -> Vec<SegmentModel> {
        let mut out: Vec<SegmentModel> = self.ranges.iter().map(|run| segment(run, memory)).collect();
        if let Some(sgen) = &self.sgen {
            out.iter_mut().zip(&sgen.generations).for_each(|(segment, generation)| segment.generation = *generation);
        }
        out
    }

    /// Parts of the segments that have no objects, by address.
    pub(super) fn gaps(&self) -> &[AddrRange] {
        self.sgen.as_ref().map_or(&[], |sgen| &sgen.gaps)
    }
}

fn segment(run: &Run, memory: &Memory) -> SegmentModel {
    let objects = AddrRange::new(run.start, run.end);
    memory.scan_objects(objects);
    let bytes = objects.len();
    SegmentModel {
        address: run.start,
        heap: 0,
        generation: Generation::Unknown,
        start: run.start,
        allocated: run.end,
        stored_allocated: run.end,
        committed: run.end,
        reserved: run.end,
        next: Addr::NULL,
        used: None,
        background_allocated: None,
        allocated_bytes: bytes,
        committed_bytes: bytes,
        reserved_bytes: bytes,
        captured_bytes: memory.captured(objects),
        flags: Vec::new(),
        flags_value: 0,
        parts: Vec::new(),
        walk: None,
    }
}

/// Carves the heap out of the memory `searched`.
///
/// # Errors
/// [`ContractError`] if the descriptor does not have the layouts of method tables or objects.
pub(super) fn carve(
    memory: &Arc<Memory>,
    d: &Descriptor,
    limits: &Limits,
    searched: Searched,
    progress: &dyn Progress,
) -> Result<Answer<Carved>, ContractError> {
    let notes = Collector::new();
    let mut areas = Areas::of(memory, &searched.ranges);
    let kinds = Kinds::bind(memory, d, Kinds::find_free(memory, d, &areas))?;
    progress.start("searching for objects", None);
    let carved = tried(|| {
        scan::scan(&kinds, &mut areas);
        let runs = scan::join(&mut Reader::new(&kinds), &mut areas);
        let walker = |runs: &[Run]| {
            let segments = runs.iter().map(|run| segment(run, memory)).collect();
            Walker::over(memory, d, segments, kinds.tables.free)
        };
        let mut support = Support::new(&kinds, &mut areas, runs);
        support.close(walker)?;
        support.admit_outside(memory, &searched);
        support.fill_gaps();
        support.finish(walker)
    });
    progress.finish();
    kinds.note(&notes);
    let mut carved = carved?;
    carved.searched = areas.bytes();
    (carved.why, carved.collector) = (searched.why, searched.collector);
    carved.free = kinds.tables.free;
    if carved.ranges.len() > limits.segments_per_list {
        let more = carved.ranges.len().saturating_sub(limits.segments_per_list);
        let what = format!("the carved heap has {} more than the {} that are read", plural(len64(more), "range"), limits.segments_per_list);
        notes.add(NoteKind::LimitHit, None, what);
        carved.ranges.truncate(limits.segments_per_list);
    }
    Ok(notes.finish(carved))
}
