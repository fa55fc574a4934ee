//! Measures of the whole process.

use std::collections::BTreeMap;

use super::key::are_all_named;
use super::trend::trend;
use crate::analysis::dump::analyze::{NATIVE, bytes_of};
use crate::analysis::dump::env::gc_with_properties;
use crate::analysis::dump::memory_map::memory_of;
use crate::analysis::{DiffMeasure, KnownNumbers, MemoryListing, TypeStats, known};
use crate::base::{Addr, Collector, Count, Missing, change, growth, len64, total};
use crate::clr::library::{Classifier, library_types};
use crate::gc::HandleFilter;
use crate::managed::Segment;
use crate::model::{FinalizerState, HandleKind, OomModel};
use crate::session::{GraphSource, Heap, Runtime};

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

/// The namespace of tasks, the name of their base type in it, and the name prefix of the boxes of asynchronous methods, which are tasks as well.
const TASKS: [&str; 3] = ["System.Threading.Tasks.", "Task", "System.Runtime.CompilerServices.AsyncTaskMethodBuilder"];
/// Parts of the names of other types of tasks: `Task+DelayPromise`, `UnwrapPromise<…>`, `ContinuationTaskFromTask`.
const OTHERS: [&str; 3] = ["Promise", "ContinuationTask", "ContinuationResultTask"];

library_types! {
    enum Counted {
        in "System.Private.CoreLib" {
            Task = "System.Threading.Tasks.Task",
        }
    }
}

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
            if numbers.has_all_objects() { tasks(heap, types) } else { None },
        ];
        let list = NAMES.into_iter().zip(values).map(|((name, bytes), value)| (name, bytes, value)).collect();
        Measures { list, handles, has_all_objects: types.coverage.complete }
    }

    /// Replaces the measures of objects by those of `types`, which are objects of `source`.
    pub(super) fn count(&mut self, source: &dyn GraphSource, types: &TypeStats) {
        for (name, _, value) in &mut self.list {
            *value = match *name {
                "bytes" => value.and(Some(types.totals.bytes)),
                "objects" => value.and(Some(types.totals.count)),
                "tasks" => value.and_then(|_| tasks(source.heap()?, types)),
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

/// Returns the number of tasks among the objects: objects of types that derive from `System.Threading.Tasks.Task`. `None` if the base types of some types are
/// unknown, or their names.
fn tasks(heap: &Heap, types: &TypeStats) -> Option<u64> {
    let all = || types.types.iter();
    are_all_named(all()).then_some(())?;
    let classifier = heap.runtime().types().ok().map(Classifier::<Counted>::bind).filter(|known| known.defines(Counted::Task));
    let Some(classifier) = classifier else {
        return Some(total(all().filter(|t| is_named_as_task(&t.type_name)).map(|t| t.count)));
    };
    let is_task = |mt: Addr| if classifier.of(mt).is(Counted::Task) { Some(true) } else { classifier.has_all_bases(mt).then_some(false) };
    all().try_fold(0, |sum: u64, t| Some(if is_task(t.method_table)? { sum.saturating_add(t.count) } else { sum }))
}

/// Whether the objects of a type are tasks, by its name. Used for runtimes whose library has another name.
fn is_named_as_task(name: &str) -> bool {
    let [namespace, task, of_box] = TASKS;
    if name.ends_with("[]") {
        return false;
    }
    let Some(rest) = name.strip_prefix(namespace) else { return name.starts_with(of_box) && name.contains("StateMachineBox<") };
    let is_plain = |rest: &str| rest.is_empty() || rest.starts_with('<') && !rest.contains('+');
    // The part before the type arguments names the type.
    let is_other = || rest.split('<').next().is_some_and(|own| OTHERS.iter().any(|other| own.contains(other)));
    rest.strip_prefix(task).is_some_and(is_plain) || is_other()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_recognized_by_name() {
        let tasks = [
            "System.Threading.Tasks.Task",
            "System.Threading.Tasks.Task<System.Int32>",
            "System.Threading.Tasks.Task+DelayPromise",
            "System.Threading.Tasks.Task+WhenAllPromise<System.Int32>",
            "System.Threading.Tasks.UnwrapPromise<System.Int32>",
            "System.Threading.Tasks.ContinuationTaskFromTask",
            "System.Threading.Tasks.ContinuationResultTaskFromTask<System.Int32>",
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<System.Int32>+AsyncStateMachineBox<Lab.Program+<Run>d__1>",
        ];
        assert_eq!(tasks.iter().filter(|name| !is_named_as_task(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let others = [
            "System.Threading.Tasks.Task[]",
            "System.Threading.Tasks.Task<System.Int32>[]",
            "System.Threading.Tasks.Task+ContingentProperties",
            "System.Threading.Tasks.TaskFactory",
            "System.Threading.Tasks.TaskFactory<System.Int32>",
            "System.Threading.Tasks.TaskCompletionSource<System.Int32>",
            "System.Threading.Tasks.Task+DelayPromise[]",
            "Lab.Task",
        ];
        assert_eq!(others.iter().filter(|name| is_named_as_task(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    /// `async` counts the same tasks by their base types.
    #[test]
    fn tasks_are_those_of_the_asynchronous_chains() {
        let mut most = 0;
        for name in ["net10-wks-async-heap", "net10-svr-threads-heap", "net11-wks-asyncmixrt-heap"] {
            let dump = crate::open(format!("dumps/corpus/{name}.dmp.zst")).unwrap();
            let heap = dump.runtime().unwrap().heap().unwrap();
            let types = heap.stat().unwrap().data;
            let chains = crate::analysis::async_chains(&heap, &crate::analysis::AsyncQuery::default()).unwrap().data;
            let counted = tasks(&heap, &types).unwrap();
            assert_eq!(counted, chains.totals.tasks, "{name}");
            most = most.max(counted);
        }
        assert!(most > 0);
    }
}
