//! Measures of the whole process.

use std::collections::BTreeMap;

use super::key::are_all_named;
use super::trend::trend;
use crate::analysis::dump::analyze::{NATIVE, bytes_of};
use crate::analysis::dump::env::gc_with_properties;
use crate::analysis::dump::memory_map::memory_of;
use crate::analysis::{DiffMeasure, KnownNumbers, MemoryListing, TypeStats, known};
use crate::base::{Collector, Count, Missing, change, growth, len64, total};
use crate::gc::HandleFilter;
use crate::managed::Segment;
use crate::model::{FinalizerState, HandleKind, OomModel};
use crate::session::{GraphSource, Runtime};

/// The measures by name, and whether their unit is bytes.
const NAMES: [(&str, bool); 11] = [
    ("bytes", true),
    ("objects", false),
    ("fragmented", true),
    ("committed", true),
    ("handles", false),
    ("finalizable", false),
    ("ready", false),
    ("threads", false),
    ("oom", false),
    ("native", true),
    ("tasks", false),
];

/// Name prefixes of tasks and of the boxes of asynchronous methods, which are tasks as well.
const TASKS: [&str; 2] = ["System.Threading.Tasks.Task", "System.Runtime.CompilerServices.AsyncTaskMethodBuilder"];

/// The measures of one dump. A measure that cannot be determined is `None`.
pub(super) struct Measures {
    list: Vec<(&'static str, bool, Option<u64>)>,
    /// Number of handles by kind; `None` if handles could not be read.
    handles: Option<BTreeMap<HandleKind, u64>>,
    /// Whether the dump has all objects.
    has_all_objects: bool,
}

/// Measures that are a part of the real number if the dump does not have all objects.
const OF_OBJECTS: [&str; 3] = ["bytes", "objects", "fragmented"];

impl Measures {
    /// Reads the measures. `types` has the objects of the heap by type.
    pub(super) fn read(source: &dyn GraphSource, types: &TypeStats, notes: &Collector) -> Measures {
        let totals = &types.totals;
        let Some(heap) = source.heap() else {
            let list = NAMES.map(|(name, bytes)| {
                let known = match name {
                    "bytes" => Some(totals.bytes),
                    "objects" => Some(totals.count),
                    _ => None,
                };
                (name, bytes, known)
            });
            return Measures { list: list.to_vec(), handles: None, has_all_objects: true };
        };
        let (gc, numbers) = (heap.gc(), KnownNumbers::of(heap, types));

        let mut kinds: BTreeMap<HandleKind, u64> = BTreeMap::new();
        let read = gc.walk_handles(&HandleFilter::default(), |h| kinds.entry(h.kind).or_default().bump());
        // A part of the handles does not compare with all of them.
        let handles = read.complete().then_some(kinds);
        notes.take(read);

        let queues = gc.finalizer_queues();
        let (mut registered, mut ready) = (0u64, 0u64);
        for entry in queues.iter().flat_map(|q| &q.entries) {
            if entry.state == FinalizerState::Registered { &mut registered } else { &mut ready }.bump();
        }
        let all_queues = queues.complete() && !queues.is_empty();
        notes.take(queues);

        let threads = match heap.runtime().thread_list() {
            Ok(list) => {
                let list = notes.with(list);
                (!list.is_empty()).then(|| len64(list.len()))
            }
            Err(e) => {
                notes.add(Missing::Threads, None, format!("threads cannot be read: {e}"));
                None
            }
        };

        // Later answers about this dump show the limit.
        let _ = gc_with_properties(heap.runtime());
        let oom = notes.take(gc.oom());
        let failed: Option<Vec<bool>> = oom.iter().map(OomModel::failed).collect();
        let failed = failed.filter(|all| !all.is_empty()).map(|all| len64(all.iter().filter(|failed| **failed).count()));
        let committed = total(heap.segments().iter().map(Segment::committed_bytes));
        let whole = types.coverage.absent_bytes == 0;
        let values = [
            numbers.of_walk(totals.bytes),
            numbers.of_walk(totals.count),
            numbers.free_bytes(),
            numbers.committed(committed),
            handles.as_ref().map(|h| total(h.values().copied())),
            known(registered, all_queues),
            known(ready, all_queues),
            threads,
            failed,
            if numbers.has_figures() { native(heap.runtime(), whole, notes) } else { None },
            tasks(types).filter(|_| numbers.has_all_objects()),
        ];
        let list = NAMES.into_iter().zip(values).map(|((name, bytes), value)| (name, bytes, value)).collect();
        Measures { list, handles, has_all_objects: types.coverage.complete }
    }

    /// Replaces the measures of objects by those of `types`.
    pub(super) fn count(&mut self, types: &TypeStats) {
        for (name, _, value) in &mut self.list {
            *value = match *name {
                "bytes" => value.and(Some(types.totals.bytes)),
                "objects" => value.and(Some(types.totals.count)),
                "tasks" => value.and_then(|_| tasks(types)),
                _ => continue,
            };
        }
    }

    /// Returns a measure by its name in rules.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.list.iter().find(|(n, ..)| *n == name).and_then(|m| m.2)
    }

    /// Whether the real number may be larger than the measure.
    pub(super) fn is_least(&self, name: &str) -> bool {
        !self.has_all_objects && OF_OBJECTS.contains(&name)
    }

    /// Returns the number of handles of a kind.
    pub(super) fn handles(&self, kind: HandleKind) -> Option<u64> {
        self.handles.as_ref().map(|h| h.get(&kind).copied().unwrap_or(0))
    }
}

/// Returns the size of native memory in bytes; `None` if the dump lists no such memory, or if memory of the runtime is counted as native. Some dumps list
/// only the memory that they capture: one without all objects (`whole`) does not have most of the native memory either.
fn native(runtime: &Runtime, whole: bool, notes: &Collector) -> Option<u64> {
    let report = memory_of(runtime, false);
    let identified = !report.notes.iter().any(|note| note.code == Some(Missing::NativeMemory));
    let report = notes.take(report);
    if !identified || !whole && report.listing == MemoryListing::Captured {
        return None;
    }
    let bytes = bytes_of(&report, &NATIVE);
    (bytes > 0).then_some(bytes)
}

/// Returns the number of tasks among the objects; `None` if the names of some types are unknown.
fn tasks(types: &TypeStats) -> Option<u64> {
    let is_task = |name: &str| {
        let plain = name.strip_prefix(TASKS[0]).is_some_and(|rest| rest.is_empty() || rest.starts_with('<') && !rest.contains('+'));
        plain || name.starts_with(TASKS[1]) && name.contains("StateMachineBox<")
    };
    let all = || types.types.iter();
    are_all_named(all()).then(|| total(all().filter(|t| is_task(&t.type_name)).map(|t| t.count)))
}

/// Returns the measures of all dumps side by side. Kinds of handles that occur in no dump are omitted.
pub(super) fn summary<'m>(dumps: impl Iterator<Item = &'m Measures> + Clone) -> Vec<DiffMeasure> {
    let names = dumps.clone().take(1).flat_map(|m| &m.list);
    let of = |(name, bytes, _): &(&str, bool, _)| {
        let row = measure((*name).into(), *bytes, dumps.clone().map(|m| m.get(name)));
        // A part of the objects does not compare with all of them, nor with another part.
        let compares = !dumps.clone().any(|m| m.is_least(name));
        if compares { row } else { DiffMeasure { change: None, growth: None, trend: None, ..row } }
    };
    let mut out: Vec<DiffMeasure> = names.map(of).collect();
    let kinds = HandleKind::ALL.into_iter().filter(|kind| dumps.clone().any(|m| m.handles(*kind).is_some_and(|n| n > 0)));
    let kinds: Vec<DiffMeasure> =
        kinds.map(|kind| measure(format!("handles:{kind}"), false, dumps.clone().map(|m| m.handles(kind)))).collect();
    let place = out.iter().position(|m| m.name == "handles").map_or(out.len(), |i| i.saturating_add(1));
    out.splice(place..place, kinds);
    out
}

fn measure(name: String, is_bytes: bool, series: impl Iterator<Item = Option<u64>>) -> DiffMeasure {
    let series: Vec<Option<u64>> = series.collect();
    let (before, after) = (series.first().copied().flatten(), series.last().copied().flatten());
    let both = before.zip(after);
    DiffMeasure {
        name,
        is_bytes,
        before,
        after,
        change: both.map(|(from, to)| change(from, to)),
        growth: both.and_then(|(from, to)| growth(from, to)),
        trend: trend(&series),
        series,
    }
}
