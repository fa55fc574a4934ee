//! The GC's records of its collections: counts, settings, figures of the last collections, budgets.
//!
//! No release publishes their locations, so they are found by their contents (`find`), with the layouts of the overlay
//! `gc-records-64`. Source and evidence: `docs/internals/gc-structures.md#collections`.

mod find;

use super::segments::kind_of;
use super::{Gc, names};
use crate::base::missed::tried;
use crate::base::{Answer, Collector, Missing, PAGE};
use crate::data::{
    Bound, Field, GCDynamicData as Dynamic, GCMechanisms as Mechanisms, GCRecord, GCRecordedGeneration as Recorded, Source, Word,
};
use crate::memory::Image;
use crate::model::{CollectionKind, CollectionsModel, GenerationBudget, LastCollection, RecordedCollection, RecordedGeneration};
use find::{Raw, Search};

/// Maximum number of candidates for a structure. A GC has at most four of a kind, and at most four were found in any dump.
const MAX_CANDIDATES: usize = 64;

/// The GC's records of its collections.
#[derive(Clone, Debug)]
pub struct Collections {
    /// Records of the process.
    pub process: CollectionsModel,
    /// The index of each heap, with its budgets by generation.
    pub heaps: Vec<(u64, Vec<GenerationBudget>)>,
    /// Whether a blocking collection was running; `None` if its record may have been missed.
    pub(super) blocking: Option<bool>,
}

impl Gc {
    /// Finds the records of the GC in `image`. `None` if their layout is unknown, or if they are not in the dump (with a note).
    pub(super) fn find_collections(&self, image: Option<&Image>) -> Answer<Option<Collections>> {
        let notes = Collector::new();
        let Some(image) = image else { return notes.finish(None) };
        image.writable.iter().for_each(|range| self.memory.scan(*range));
        notes.extend(&self.record_losses);
        let Some(records) = &self.records else { return notes.finish(None) };
        let search = Search { gc: self, records, image };
        let (found, missing) = tried(|| search.collections()).map_or((None, true), |(found, missing)| (Some(found), missing));
        if let Some(range) = search.torn().or_else(|| search.absent().filter(|_| missing)) {
            notes.add(Missing::Heap, range.start, "collections: not all of the GC's variables are in the dump");
        }
        notes.finish(found)
    }
}

/// The settings and records found in the GC's variables.
#[derive(Default)]
struct Records {
    last: Option<LastCollection>,
    recorded: Vec<RecordedCollection>,
    /// The index of the background collection that was running.
    background: Option<u64>,
    /// Whether a record that must exist was not found.
    missing: bool,
    /// Whether more candidates of a kind were found than the GC has records.
    ambiguous: bool,
}

impl Search<'_> {
    /// The records, and whether one that must exist was not found.
    fn collections(&self) -> Option<(Collections, bool)> {
        let tables = self.tables()?;
        // All heaps are collected together.
        let (_, first) = tables.first()?;
        let soh = self.oldest();
        let of_each = |field| (0..=soh).map(|g| self.dynamic(first, g, field)).collect::<Option<Vec<u64>>>();
        let (counts, clocks) = (of_each(Dynamic::CollectionCount)?, of_each(Dynamic::GcClock)?);
        let records = self.records(&counts, &clocks);
        let heaps = tables.iter().filter_map(|(heap, table)| Some((*heap, self.budgets(table)?))).collect();
        let blocking = self.blocking(&records, &counts, &clocks);
        let process = CollectionsModel { counts, last: records.last, recorded: records.recorded };
        Some((Collections { process, heaps, blocking }, records.missing))
    }

    fn budgets(&self, table: &Raw<'_>) -> Option<Vec<GenerationBudget>> {
        let soh = self.oldest();
        (0..self.gc.facts.total_generations)
            .map(|g| {
                let of = |field| self.dynamic(table, g, field);
                Some(GenerationBudget {
                    generation: kind_of(g, soh)?,
                    collections: of(Dynamic::CollectionCount)?,
                    last_collection: if g <= soh { Some(of(Dynamic::GcClock)?) } else { None },
                    last_duration_us: if g <= soh { Some(of(Dynamic::GcElapsedTime)?) } else { None },
                    budget: of(Dynamic::DesiredAllocation)?,
                    budget_left: of(Dynamic::NewAllocation)?.cast_signed(),
                    size_before: of(Dynamic::BeginDataSize)?,
                    survived: of(Dynamic::SurvivedSize)?,
                    pinned_survived: of(Dynamic::PinnedSurvivedSize)?,
                    size_after: of(Dynamic::CurrentSize)?,
                    promoted: of(Dynamic::PromotedSize)?,
                    fragmentation: of(Dynamic::Fragmentation)?,
                })
            })
            .collect()
    }

    /// The settings and the recorded collections, from one pass over the GC's variables.
    fn records(&self, counts: &[u64], clocks: &[u64]) -> Records {
        let newest = counts.first().copied().unwrap_or(0);
        let full = counts.last().copied().unwrap_or(0);
        let newest_full = clocks.last().copied().unwrap_or(0);
        let mut records = Records::default();
        if newest == 0 {
            return records;
        }
        let (mut settings, mut earlier, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        // A collection's index is set before the collection is counted.
        let latest = newest.saturating_add(1);
        for (at, n) in self.words().filter(|(_, n)| (1..=latest).contains(n)) {
            if let Some(raw) = self.peek(at, self.records.record_size)
                && let Some(record) = self.record(&raw, clocks)
            {
                self.keep(at, self.records.record_size);
                recorded.push(record);
            }
            if (n >= newest || is_of_full(n, newest_full))
                && let Some(raw) = self.peek(at, self.records.mechanisms_size)
                && let Some(last) = last(&raw, &self.records.mechanisms)
            {
                self.keep(at, self.records.mechanisms_size);
                if n >= newest { &mut settings } else { &mut earlier }.push(last);
            }
            if [recorded.len(), settings.len(), earlier.len()].iter().any(|n| *n > MAX_CANDIDATES) {
                return records;
            }
        }
        let background =
            settings.iter().chain(&earlier).filter(|s| s.concurrent && is_of_full(s.index, newest_full)).map(|s| s.index).max();
        // Ephemeral collections may have run since a background collection began; its settings are kept in a copy.
        if settings.is_empty() {
            settings = earlier.into_iter().filter(|s| s.generation == self.oldest()).collect();
        }
        // A collection is recorded when it ends; the last one may not have ended.
        let has = |ephemeral: bool| recorded.iter().any(|r| (r.kind == CollectionKind::Ephemeral) == ephemeral);
        let incomplete = |all: u64, ephemeral: bool| all > 1 && !has(ephemeral);
        records.missing = settings.is_empty() || incomplete(newest.saturating_sub(full), true) || incomplete(full, false);
        // If there are more candidates than the GC has variables, some of them are other data.
        for (kind, most) in [(CollectionKind::Ephemeral, 1), (CollectionKind::FullBlocking, 1), (CollectionKind::Background, 2)] {
            if recorded.iter().filter(|r| r.kind == kind).count() > most {
                recorded.retain(|r| r.kind != kind);
                records.ambiguous = true;
            }
        }
        records.background = self.background_runs().then(|| background.unwrap_or(newest_full));
        recorded.retain(|r| !(r.kind == CollectionKind::Background && records.background == Some(r.index)));
        recorded.sort_by_key(|r| std::cmp::Reverse(r.index));
        records.last = select_settings(settings, &recorded);
        records.recorded = recorded;
        records
    }

    fn background_runs(&self) -> bool {
        self.gc.facts.background_runs() == Some(true)
    }

    /// Whether a blocking collection was running. A collection gets an index and settings when it begins, and is recorded when it ends. A
    /// missing record is evidence only if the search can find records of its kind. That is certain if it found an older record of the kind,
    /// which would have been replaced, or every record that must exist.
    fn blocking(&self, records: &Records, counts: &[u64], clocks: &[u64]) -> Option<bool> {
        let (newest, newest_full) = (*counts.first()?, *clocks.last()?);
        let of_background = |index: u64| records.background == Some(index);
        let is_recorded = newest == 0 || records.recorded.iter().any(|r| r.index >= newest) || of_background(newest);
        let settings = records.last.as_ref().filter(|s| s.index >= newest || is_recorded);
        let unfinished = |s: &LastCollection| !of_background(s.index) && !records.recorded.iter().any(|r| r.index == s.index);
        if is_recorded && !settings.is_some_and(unfinished) {
            return Some(false);
        }
        let (is_full, concurrent) = settings.map_or((newest == newest_full, false), |s| (s.generation == self.oldest(), s.concurrent));
        let kind = match (is_full, concurrent) {
            (false, _) => CollectionKind::Ephemeral,
            (true, false) => CollectionKind::FullBlocking,
            (true, true) => CollectionKind::Background,
        };
        let found = records.recorded.iter().any(|r| r.kind == kind);
        (!records.ambiguous && (found || (settings.is_some() && !records.missing))).then_some(true)
    }

    /// The recorded collection in `raw`, if its fields are consistent.
    fn record(&self, raw: &Raw<'_>, clocks: &[u64]) -> Option<RecordedCollection> {
        let fields = &self.records.record;
        let word = |field: Field<GCRecord, Word>| fields.get(raw, raw.at, field);
        let (index, committed) = (word(GCRecord::Index)?, word(GCRecord::TotalCommitted)?);
        let (heap, fragmented) = (word(GCRecord::HeapSize)?, word(GCRecord::Fragmentation)?);
        if heap == 0 || heap > committed || fragmented > heap || committed % PAGE != 0 {
            return None;
        }
        let generations = self.recorded_generations(raw)?;
        let sum = |f: fn(&RecordedGeneration) -> u64| generations.iter().try_fold(0u64, |n, g| n.checked_add(f(g)));
        let sound = |g: &RecordedGeneration| {
            let aligned = [g.size_before, g.fragmentation_before, g.size_after, g.fragmentation_after].iter().all(|n| n % raw.align() == 0);
            aligned && g.fragmentation_after <= g.size_after
        };
        let (compacting, concurrent) =
            (flag(fields.get(raw, raw.at, GCRecord::Compaction)?)?, flag(fields.get(raw, raw.at, GCRecord::Concurrent)?)?);
        // With segments, the size of the heap includes frozen segments, which are not in any generation (measured: .NET 8). The fragmentation
        // of a background collection is measured at two times.
        let (size, free) = (sum(|g| g.size_after)?, sum(|g| g.fragmentation_after)?);
        let outside = heap.checked_sub(size).filter(|n| *n <= heap / 8)?;
        let agrees = (outside == 0 || !self.gc.facts.regions) && (free == fragmented || concurrent);
        if size == 0 || !agrees || !generations.iter().all(sound) {
            return None;
        }
        let generation = u64::from(fields.get(raw, raw.at, GCRecord::CondemnedGeneration)?);
        // A collection sets the clock of its generation to its index. An ephemeral collection at the start of a background one has the
        // clock plus one as its index.
        let clock = clocks.get(usize::try_from(generation).ok()?)?;
        let memory_load = u64::from(fields.get(raw, raw.at, GCRecord::MemoryLoad)?);
        let percent = f64::from(fields.get(raw, raw.at, GCRecord::PausePercentage)?);
        if index > clock.saturating_add(1) || memory_load > 100 || !(0.0..=100.0).contains(&percent) {
            return None;
        }
        let kind = match (generation == self.oldest(), concurrent) {
            (false, false) => CollectionKind::Ephemeral,
            (true, false) => CollectionKind::FullBlocking,
            (true, true) => CollectionKind::Background,
            (false, true) => return None,
        };
        let pauses = fields.place(raw.at, GCRecord::PauseDurations)?;
        let pause_count = if concurrent { self.records.pauses } else { 1 };
        Some(RecordedCollection {
            kind,
            index,
            generation,
            compacting,
            pauses_us: (0..pause_count).map(|i| raw.word(pauses.element(i, raw.align())).ok()).collect::<Option<_>>()?,
            pause_percent: (percent * 100.0).floor() / 100.0,
            promoted_bytes: word(GCRecord::Promoted)?,
            pinned_objects: word(GCRecord::PinnedObjects)?,
            finalization_pending: word(GCRecord::FinalizePromotedObjects)?,
            heap_bytes: heap,
            fragmented_bytes: fragmented,
            committed_bytes: committed,
            memory_load,
            generations,
        })
    }

    fn recorded_generations(&self, raw: &Raw<'_>) -> Option<Vec<RecordedGeneration>> {
        let first = self.records.record.place(raw.at, GCRecord::Generations)?;
        let entry = |g: u64| {
            let word = |field| self.records.recorded.get(raw, first.element(g, self.records.recorded_size), field);
            Some(RecordedGeneration {
                generation: kind_of(g, self.oldest())?,
                size_before: word(Recorded::SizeBefore)?,
                fragmentation_before: word(Recorded::FragmentationBefore)?,
                size_after: word(Recorded::SizeAfter)?,
                fragmentation_after: word(Recorded::FragmentationAfter)?,
            })
        };
        (0..self.gc.facts.total_generations).map(entry).collect()
    }
}

/// Whether the collection with `index` may have advanced the clock of the oldest generation to `clock`. If a background collection begins
/// with an ephemeral one, the ephemeral one has the next index and is counted first (measured).
fn is_of_full(index: u64, clock: u64) -> bool {
    index == clock || index.checked_add(1) == Some(clock)
}

/// Selects the settings from the candidates `found`. There may be several because the GC keeps a copy for the background collection,
/// and because small numbers are common. The record of the same collection decides, unless the collection has not finished.
fn select_settings(mut found: Vec<LastCollection>, recorded: &[RecordedCollection]) -> Option<LastCollection> {
    let record = |s: &LastCollection| recorded.iter().find(|r| r.index == s.index);
    // The record has the load after the collection if that was measured, else the load before it; some builds keep neither.
    let load = |s: &LastCollection| s.exit_memory_load.filter(|n| *n != 0).unwrap_or(s.entry_memory_load);
    let agrees = |s: &LastCollection, r: &RecordedCollection| {
        let concurrent = r.kind == CollectionKind::Background;
        let same = (s.generation, s.compacting) == (r.generation, Some(r.compacting));
        // The settings of a background collection are no longer concurrent at its end, and it measures the load more than once.
        same && (concurrent || (!s.concurrent && [0, r.memory_load].contains(&load(s))))
    };
    found.retain(|s| record(s).is_none_or(|r| agrees(s, r)));
    if found.len() > 1 && found.iter().any(|s| record(s).is_some() && load(s) != 0) {
        found.retain(|s| record(s).is_some() && load(s) != 0);
    }
    // The copies differ at most in fields that are set at the end of the collection.
    found.sort_by_key(|s| std::cmp::Reverse(s.exit_memory_load));
    found.dedup_by(|b, a| {
        let (exit_memory_load, concurrent) = (a.exit_memory_load, a.concurrent || b.concurrent);
        let same = LastCollection { exit_memory_load, concurrent, ..b.clone() } == LastCollection { concurrent, ..a.clone() };
        a.concurrent |= same && concurrent;
        same
    });
    let only = if found.len() == 1 { found.pop()? } else { return None };
    let concurrent = only.concurrent || record(&only).is_some_and(|r| r.kind == CollectionKind::Background);
    Some(LastCollection { concurrent, ..only })
}

/// The boolean that is stored as `n`; `None` if it is neither 0 nor 1.
fn flag(n: impl Into<u32>) -> Option<bool> {
    match n.into() {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The settings in `raw`, if every field has a possible value.
fn last(raw: &Raw<'_>, fields: &Bound<Mechanisms>) -> Option<LastCollection> {
    let number = |field: Field<Mechanisms, u32>| fields.get(raw, raw.at, field);
    let set = |field| flag(number(field)?);
    let generation = u64::from(number(Mechanisms::CondemnedGeneration)?);
    let (reason, mode) = (number(Mechanisms::Reason)?, number(Mechanisms::PauseMode)?);
    let (entry, exit) = (u64::from(number(Mechanisms::EntryMemoryLoad)?), u64::from(number(Mechanisms::ExitMemoryLoad)?));
    // On Windows and Linux, the GC reads the available memory before every collection, so zero means that `raw` is another variable.
    let available = fields.get(raw, raw.at, Mechanisms::EntryAvailablePhysicalMem)?;
    let known = names::gc_reason(reason)?;
    // These are not shown, but must be valid flags too.
    let others = [
        Mechanisms::HeapExpansion,
        Mechanisms::CardBundles,
        Mechanisms::ShouldLockElevation,
        Mechanisms::MinimalGc,
        Mechanisms::FoundFinalizers,
        Mechanisms::Background,
    ];
    others.into_iter().try_for_each(|field| set(field).map(drop))?;
    if generation > 2 || entry > 100 || exit > 100 || available == 0 || available >> 56 != 0 {
        return None;
    }
    Some(LastCollection {
        index: fields.get(raw, raw.at, Mechanisms::GcIndex)?,
        generation,
        reason: known,
        compacting: Some(set(Mechanisms::Compaction)?),
        loh_compacting: Some(set(Mechanisms::LohCompaction)?),
        concurrent: set(Mechanisms::Concurrent)?,
        promotion: Some(set(Mechanisms::Promotion)?),
        demotion: Some(set(Mechanisms::Demotion)?),
        elevation_reduced: Some(set(Mechanisms::ElevationReduced)?),
        latency_mode: names::latency_mode(mode)?,
        entry_memory_load: entry,
        entry_available_bytes: available,
        exit_memory_load: Some(exit),
    })
}
