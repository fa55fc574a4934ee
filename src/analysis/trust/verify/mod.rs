//! Finds heap corruption. Each corruption is reported once, with the number of its consequences. Missing memory is not corruption; it is reported as
//! coverage.

mod check;
mod entries;
mod gaps;
mod heap_map;
mod messages;
#[cfg(test)]
mod piece_tests;
mod report;
mod sink;
mod structure;

pub use report::*;

use std::collections::BTreeMap;

use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, Collector, Count, Missing, NoteKind, be, plural, thousands, top_or_all, total};
use crate::clr::header::Headers;
use crate::gc::{Gc, MAX_GAPS, ObjectStarts, SegmentIndex, Walker, coverage, note_walks};
use crate::model::{GapKind, SegmentModel, WalkModel};
use crate::session::{Error, Runtime};
use check::{Absent, Age, Checker, Folded, Tools};
use entries::Entries;
use heap_map::HeapMap;
use sink::{Found, Sink};

/// Arguments of `verify`.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyQuery {
    /// Only findings about the object that contains this address.
    pub object: Option<Addr>,
    /// Maximum number of findings to list, 0 for all.
    pub top: usize,
}

/// Checks that cannot be made, in report order.
#[derive(Default)]
struct Unavailable(Vec<UnavailableCheck>);

impl Unavailable {
    fn add(&mut self, check: VerifyCheck, reason: impl Into<String>) {
        self.0.push(UnavailableCheck { check, reason: reason.into() });
    }
}

/// Checks the heap of `runtime`.
///
/// # Errors
/// [`Error::NoObject`] if no object is at the requested address, [`Error::Contract`] if the descriptor does not have layouts of
/// heap structures or objects.
pub fn verify(runtime: &Runtime, query: &VerifyQuery) -> Result<Answer<VerifyReport>, Error> {
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let namer = runtime.namer();
    let threads = runtime.threads_if_any(&notes);
    let all_threads = runtime.has_all_threads();
    let mut heap = notes.take(Walker::new(gc, threads, all_threads)?);
    notes.extend(&runtime.context_losses());
    note_words(runtime, gc, &notes);
    let mut totals = VerifyTotals::default();
    let mut unavailable = Unavailable::default();
    let mut structural = Sink::new(query.top, None);
    let structure = structure::segments(gc, heap.segments(), runtime.memory().is_cut(), &mut structural, &mut totals);
    heap.retain(|s| gc.carved().is_some() || structure.usable.contains(&s.address));

    let (starts, walks) = ObjectStarts::build(&heap, runtime.progress());
    let starts = notes.take(starts);
    note_not_walked(&heap, &walks, &notes);
    let moving = gc.facts().moves_objects();
    let coverage = coverage(&heap, &walks);
    let mut only = None;
    if let Some(address) = query.object {
        let found = tried(|| extent(runtime, &heap, (&starts, &walks), address));
        only = Some(found.ok_or_else(|| Error::NoObject(address).given(&notes.notes()))?);
    }
    let mut sink = Sink::new(query.top, only.map(|(_, range)| range));
    // In Mono, free space is not filled with objects.
    let blind = heap.tables().free.is_none() && heap.tables().mono().is_none();
    if moving || blind {
        let why = if moving { "a garbage collection was rearranging the heap" } else { "the method table of free space is unknown" };
        for check in [
            VerifyCheck::Objects,
            VerifyCheck::References,
            VerifyCheck::SyncBlocks,
            VerifyCheck::ThinLocks,
            VerifyCheck::Handles,
            VerifyCheck::Finalizers,
            VerifyCheck::Contexts,
            VerifyCheck::Cards,
        ] {
            unavailable.add(check, why);
        }
    } else {
        structure::contexts(gc, threads, heap.segments(), structure.all, &mut structural, &mut totals);
        if coverage.allocated_bytes > 0 && coverage.walked_bytes == 0 {
            for check in [VerifyCheck::Objects, VerifyCheck::References] {
                unavailable.add(check, "no part of the heap is in the dump");
            }
        }
        let sum = |of: fn(&SegmentModel) -> u64| total(heap.segments().iter().map(of));
        let lacking = sum(|s| s.allocated_bytes).saturating_sub(sum(|s| s.captured_bytes));
        let inside = lacking.saturating_sub(coverage.absent_bytes);
        if inside > 0 {
            let what = format!("{} inside of objects {} not in the dump", plural(inside, "byte"), be(inside));
            notes.add(Missing::Objects, None, what.clone());
            unavailable.add(VerifyCheck::References, what);
        }
        let bad = [FindingId::ContextBadBounds, FindingId::ContextOutsideGen0, FindingId::ContextOverlap];
        let all_contexts = all_threads && !bad.iter().any(|id| structural.counts().contains_key(id));
        let map = HeapMap { heap: &heap, starts: &starts, walks: &walks, all_segments: structure.all, all_contexts };
        let tools = tools(runtime, map, all_threads, &mut unavailable, &notes)?;
        let mut found = Findings { sink: &mut sink, totals: &mut totals, unavailable: &mut unavailable, notes: &notes };
        // Failed reads are not noted here, because the checks also follow words that are not addresses. Each check reports the data that it misses.
        tried(|| objects(runtime, &tools, &mut found))?;
    }
    if query.object.is_none() {
        sink.merge(structural);
    }
    // In a carved heap, the search may have been mistaken about what contradicts the rest.
    let severity = |id: FindingId| if gc.carved().is_some() { Severity::Suspicious } else { id.severity() };
    let summary: Vec<FindingCount> =
        sink.counts().iter().map(|(id, count)| FindingCount { id: *id, severity: severity(*id), count: *count }).collect();
    for row in &summary {
        let sum = if row.severity == Severity::Error { &mut totals.errors } else { &mut totals.suspicious };
        sum.grow(row.count);
    }
    let most = top_or_all(query.top);
    let findings = sink.into_kept().iter().take(most).map(|f| messages::model(&heap, &namer, severity(f.id), f)).collect();
    let object = only.map(|(object, _)| object);
    namer.note(&notes);
    Ok(notes.finish(VerifyReport { object, findings, summary, totals, unavailable: unavailable.0, coverage }))
}

/// Adds notes about values in threads and segments that contradict each other. They are not findings, because findings are about the heap.
fn note_words(runtime: &Runtime, gc: &Gc, notes: &Collector) {
    runtime.note_thread_ids(notes);
    runtime.note_thread_objects(notes);
    if let Ok(reader) = runtime.thread_reader() {
        let threads = runtime.threads_if_any(notes);
        reader.note_modes(threads, notes);
        reader.note_contexts(threads, notes);
    }
    gc.note_figures(&tried(|| gc.segments()).data, notes);
}

/// Reads the cards and marks that the checks use, so that `trim` records them. Other readers record the rest.
pub(crate) fn touch(runtime: &Runtime) {
    let Ok(gc) = runtime.gc() else { return };
    let (cards, sweep) = (gc.cards().ok(), gc.sweep().and_then(Result::ok));
    for segment in &gc.segments().data {
        cards.iter().for_each(|cards| cards.touch(runtime.memory(), segment));
        sweep.iter().for_each(|sweep| sweep.touch(runtime.memory(), segment));
    }
}

/// Adds notes about memory that was not walked. Corrupt gaps are findings instead.
fn note_not_walked(heap: &Walker, walks: &[(SegmentIndex, WalkModel)], notes: &Collector) {
    let sound: Vec<(SegmentIndex, WalkModel)> = walks
        .iter()
        .map(|(i, walk)| {
            let mut walk = walk.clone();
            walk.gaps.retain(|g| g.kind != GapKind::Corrupt);
            (*i, walk)
        })
        .collect();
    note_walks(heap, &sound, notes);
}

/// Collects the results of the second walk.
struct Findings<'v> {
    sink: &'v mut Sink,
    totals: &'v mut VerifyTotals,
    unavailable: &'v mut Unavailable,
    notes: &'v Collector,
}

/// Creates the input of the object checks. Adds each check whose input is missing to `unavailable`.
fn tools<'h>(
    runtime: &'h Runtime,
    map: HeapMap<'h>,
    all_threads: bool,
    unavailable: &mut Unavailable,
    notes: &Collector,
) -> Result<Tools<'h>, Error> {
    let (gc, threads) = (runtime.gc()?, runtime.threads_if_any(notes));
    let headers = runtime.headers(notes);
    headers.iter().for_each(|h| h.note_sync_end(notes));
    let sync_end = headers.as_ref().and_then(Headers::sync_end);
    if sync_end.is_none() {
        let why = if headers.is_none() {
            "the descriptor does not describe object headers"
        } else {
            "the sync table is not in the dump, or not described"
        };
        unavailable.add(VerifyCheck::SyncBlocks, why);
    }
    // This call only adds notes about contradictory entries of the sync table.
    let _ = headers.as_ref().and_then(|h| h.sync_blocks(notes));
    let ids: Set<u32> = threads.iter().filter_map(|t| t.id).collect();
    let known = (all_threads && headers.is_some() && ids.len() == threads.len() && !ids.is_empty()).then_some(ids);
    if known.is_none() {
        unavailable.add(VerifyCheck::ThinLocks, "some managed threads are unknown");
    }
    notes.extend(&gc.card_losses());
    let cards = gc.cards().map_err(|why| unavailable.add(VerifyCheck::Cards, why)).ok();
    let sweep = gc.sweep().and_then(|s| s.map_err(|why| unavailable.add(VerifyCheck::Sweep, why)).ok());
    let ages = map.heap.segments().iter().map(|s| Age::of(s.generation)).collect();
    Ok(Tools { headers, sync_end, threads: known, cards, sweep, ages, map })
}

/// Runs the second walk, and the checks that depend on it.
fn objects(runtime: &Runtime, tools: &Tools<'_>, found: &mut Findings<'_>) -> Result<(), Error> {
    let Findings { sink, totals, unavailable, notes } = found;
    let gc = runtime.gc()?;
    let empty = sink.clone();
    let walked = tools.map.heap.walk_once(runtime.progress(), || Checker::new(tools, empty.clone()));
    let mut folded = Folded::default();
    // Visitors do not have equal keys: only one object is before a gap, and only one visitor visits it.
    let (mut before, mut doubtful) = (Map::default(), BTreeMap::new());
    let mut absent = Absent::default();
    let mut types = BTreeMap::new();
    for mut checker in walked.visitors {
        checker.close();
        before.extend(checker.before);
        doubtful.extend(checker.doubtful);
        folded.merge(checker.folded);
        sink.merge(checker.sink);
        totals.merge(&checker.totals);
        absent.merge(checker.absent);
        for (table, object) in checker.bad_types {
            let first = types.entry(table).or_insert(object);
            *first = (*first).min(object);
        }
    }
    for (table, object) in types {
        sink.add(Found::new(FindingId::TypeBadReferences, table).object(object));
    }
    let mut entries = Entries { tools, folded: &mut folded, sink, totals, hint: SegmentIndex::default() };
    notes.take(entries.handles(gc));
    notes.take(entries.finalizers(gc));
    let sync_entries = entries.sync_blocks(notes);
    if sync_entries > 0 {
        notes.add(Missing::Locks, None, format!("entries of the sync table that are not in the dump: {}", thousands(sync_entries)));
    }
    gaps::judge(tools, &before, doubtful, &mut folded, sink, notes);
    let left_out = [
        (VerifyCheck::Objects, absent.uncertain, "objects whose starts are uncertain, after memory that is not in the dump"),
        (VerifyCheck::SyncBlocks, sync_entries, "entries of the sync table that are not in the dump"),
        (VerifyCheck::Cards, absent.cards, "cards that are not in the dump"),
        (VerifyCheck::Sweep, absent.marks, "objects whose marks are not in the dump"),
        (VerifyCheck::References, absent.layouts, "objects of types whose references are unknown"),
    ];
    for (check, n, why) in left_out.into_iter().filter(|(_, n, _)| *n > 0) {
        unavailable.add(check, format!("{why}: {}", thousands(n)));
    }
    for (index, walk) in &tools.map.walks.iter().filter(|(_, w)| w.gaps.len() >= MAX_GAPS).collect::<Vec<_>>() {
        let segment = tools.map.heap.segment(*index).map_or(walk.segment, |s| s.address);
        notes.add(NoteKind::LimitHit, segment, format!("the segment at {segment} has too many gaps; only the first are examined"));
    }
    Ok(())
}

/// Returns the start of the object or gap that contains `address`, and its range including the header.
fn extent(
    runtime: &Runtime,
    heap: &Walker,
    (starts, walks): (&ObjectStarts, &[(SegmentIndex, WalkModel)]),
    address: Addr,
) -> Option<(Addr, AddrRange)> {
    let header = Headers::bind(runtime.memory(), runtime.descriptor(), runtime.limits()).map_or(0, |h| h.before());
    let gap = walks.iter().flat_map(|(_, w)| &w.gaps).find(|g| g.range.contains(address)).map(|g| (g.range.start, g.range.end));
    let object = || {
        let (_, start) = starts.containing(heap, address)?;
        let (_, size) = heap.object(start)?;
        // The size includes the header word, which precedes the object.
        Some((start, start.plus(size.checked_sub(heap.memory().ptr_bytes())?)))
    };
    let (start, end) = gap.or_else(object)?;
    Some((start, AddrRange::new(start.minus(header).unwrap_or(start), end)))
}

impl VerifyTotals {
    /// Adds the counts of one thread.
    fn merge(&mut self, other: &VerifyTotals) {
        self.objects.grow(other.objects);
        self.dead_objects.grow(other.dead_objects);
        self.references.grow(other.references);
        self.unknown_references.grow(other.unknown_references);
        self.headers.grow(other.headers);
        self.cards.grow(other.cards);
    }
}

impl Absent {
    fn merge(&mut self, other: Absent) {
        self.cards.grow(other.cards);
        self.marks.grow(other.marks);
        self.layouts.grow(other.layouts);
        self.uncertain.grow(other.uncertain);
    }
}
