//! The heap without the GC's structures: found by the objects themselves, each of which begins with a method table.
//!
//! Words that lead to method tables may begin objects (`reader`). Where the size of one leads to the next, for long enough, there are
//! objects ([`scan`]). What they refer to are objects as well, and so is what words outside lead to (`support`). What nothing
//! leads to does not belong to the heap: arrays of method tables, remains of compacted regions.
//!
//! Source: `docs/internals/carving.md`, with what was measured.

mod areas;
pub(super) mod mono;
mod reader;
mod scan;
mod slots;
mod support;

use std::sync::Arc;

use super::walk::Walker;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, Collector, Count, Limits, Missing, NoteKind, Notes, Progress, len64, plural, thousands, total};
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
use crate::model::{CarvedModel, Generation, HandleKind, HandleModel, SegmentModel};
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
    /// Runs of objects that nothing leads to, which are left out: their number, objects and bytes.
    pub left_out: LeftOut,
    /// Why the GC's structures are not used: completes a sentence.
    why: String,
    /// The file of a standalone GC.
    collector: Option<String>,
    /// Bytes that were searched: writable memory of no other known use.
    pub searched: u64,
    /// References of the objects.
    pub references: u64,
    /// References that lead to the start of an object.
    pub hits: u64,
    /// The method table of free space, where it was found by what it looks like.
    pub(super) free: Option<Addr>,
    /// The structures that were read from Mono's collector.
    pub(super) sgen: Option<mono::Sgen>,
    /// Bytes of `ranges` between objects.
    gap_bytes: u64,
    /// Handles, where some were found.
    pub(super) handles: Vec<HandleModel>,
}

/// Memory to search, and the reason.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Memory with no other known use that the process could write, sorted and disjoint.
    pub ranges: Vec<AddrRange>,
    /// All memory that the process could write, sorted and disjoint: words of it may lead to objects.
    pub writable: Vec<AddrRange>,
    /// Stacks, sorted and disjoint. What seems to be an object there is one only if others follow, or objects refer to it.
    pub stacks: Vec<AddrRange>,
    /// Why the GC's structures are not used: completes a sentence.
    pub why: String,
    /// The file of a standalone GC.
    pub collector: Option<String>,
    /// Slots of handles to which structures of the runtime refer, with the kinds of handles.
    pub slots: Vec<(Addr, HandleKind)>,
}

/// Notes that `what`, which the GC keeps, is not known of a carved heap.
pub(super) fn lacks(code: Missing, what: &str) -> Notes {
    let mut notes = Notes::new();
    notes.add(code, None, format!("{what} are not known: the heap was carved out of memory"));
    notes
}

/// Runs of objects that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of runs.
    pub runs: u64,
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
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

    /// Kinds of handles that may be found.
    pub(super) fn handle_kinds(&self) -> Vec<HandleKind> {
        match self.sgen {
            Some(_) => vec![HandleKind::WeakShort, HandleKind::WeakLong, HandleKind::Strong, HandleKind::Pinned],
            None => slots::kinds(&self.handles),
        }
    }

    /// Notes on handles that were not found, or whose kinds are not known.
    pub(super) fn handle_losses(&self) -> Notes {
        if self.sgen.is_some() {
            return Notes::new();
        }
        if self.handles.is_empty() {
            return lacks(Missing::Handles, "handles");
        }
        let unknown = len64(self.handles.iter().filter(|handle| handle.kind == HandleKind::Unknown).count());
        let mut notes = Notes::new();
        let what = format!(
            "{} found around those to which the runtime refers; the kinds of {unknown} are not known, since the form of the tables is not",
            plural(len64(self.handles.len()), "handle"),
        );
        notes.add(Missing::Handles, None, what);
        notes
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

    /// Notes that the heap was carved, and why.
    pub(super) fn note(&self, notes: &Collector) {
        let LeftOut { runs, objects, .. } = self.left_out;
        let left_out = match runs {
            0 => String::new(),
            _ => format!("; {} in {} that nothing leads to left out", plural(objects, "object"), plural(runs, "range")),
        };
        let references = match self.references {
            0 => String::new(),
            all => format!(", {} of {} lead to objects", thousands(self.hits), plural(all, "reference")),
        };
        let what = format!(
            "the heap was carved out of memory, since {}: {} in {}{references}{left_out}",
            self.why,
            plural(self.bytes(), "byte"),
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

    /// Parts of the segments without objects, by address.
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

/// Carves the heap out of memory that is `searched`.
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
    let carved = tried(|| -> Result<Carved, ContractError> {
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
        let mut carved = support.finish(walker)?;
        carved.handles = slots::handles(&kinds, &areas, &searched.slots);
        Ok(carved)
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
