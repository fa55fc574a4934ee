//! `pool` and `timers`: the thread pool, its queued items, and pending callbacks.
//!
//! Source: `docs/internals/pool.md`.

mod describe;
mod report;
mod timers;

pub use report::*;
pub use timers::{CallbackCount, CancellationModel, RegisteredWait, TimerClock, TimerKind, TimerModel, TimersReport};

pub use timers::timers;

use std::borrow::Cow;

use crate::analysis::threads::async_chains::is_library;
use crate::analysis::threads::locks::{LocksQuery, locks};
use crate::analysis::threads::stacks::{StacksQuery, each_stack};
use crate::analysis::threads::task_names::Names;
use crate::analysis::walk::objects_of;
use crate::analysis::{StackFrameModel, ThreadStackModel, WaitModel};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Collector, Count, Missing, Name, len64};
use crate::bcl::Library;
use crate::bcl::tasks::Tasks;
use crate::clr::library::{Classifier, FieldAt, NoSuchField, fields_of, library_types, noted};
use crate::clr::threads::Thread;
use crate::model::StackFrameKind;
use crate::session::{Error, Heap};
use describe::Describer;

library_types! {
    /// Types of the thread pool and of its work items.
    pub(in crate::analysis) enum PoolType {
        in "System.Private.CoreLib" {
            Portable = "System.Threading.PortableThreadPool",
            Windows = "System.Threading.WindowsThreadPool",
            ThreadPool = "System.Threading.ThreadPool",
            WorkQueue = "System.Threading.ThreadPoolWorkQueue",
            LocalQueue = "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue",
            Locals = "System.Threading.ThreadPoolWorkQueueThreadLocals",
            Callback = "System.Threading.QueueUserWorkItemCallbackBase",
            TimerQueue = "System.Threading.TimerQueue",
            Timer = "System.Threading.TimerQueueTimer",
            Delay = "System.Threading.Tasks.Task+DelayPromise",
            Cancellation = "System.Threading.CancellationTokenSource",
            Periodic = "System.Threading.PeriodicTimer+State",
        }
    }
}

fields_of! {
    /// Fields of `PortableThreadPool`.
    struct PoolFields {
        min: req "_minThreads",
        max: req "_maxThreads",
        separated: req "_separated",
        cpu: opt "_cpuUtilization",
        blocked: opt "_numBlockedThreads",
    }
}

fields_of! {
    /// Fields of `ThreadPoolWorkQueueThreadLocals`.
    struct LocalsFields {
        queue: req "workStealingQueue",
        thread: req "currentThread",
    }
}

/// Number of bits of each counter in the field `counts`.
const COUNT_BITS: u32 = 16;

/// Returns the state of the thread pool: counters, queues with their items, and threads with their waits.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub fn pool(heap: &Heap) -> Result<Answer<PoolReport>, Error> {
    let notes = heap.begin();
    let mut report = notes.take(pool_with(heap, None)?);
    running(heap, &mut report.workers, &notes);
    Ok(notes.finish(report))
}

/// Adds the method that each thread without a wait runs: the innermost method outside .NET's libraries, or else the innermost method outside
/// `System.Threading`.
fn running(heap: &Heap, workers: &mut [PoolWorker], notes: &Collector) {
    let runtime = heap.runtime();
    let threads: Vec<u64> = workers.iter().filter(|w| w.blocked_by.is_none()).filter_map(|w| w.os_id).collect();
    if threads.is_empty() || !runtime.descriptor().has_code_tables() {
        return;
    }
    let mut methods: Map<u64, (Name, Option<Name>)> = Map::default();
    let mut add = |stack: ThreadStackModel| {
        let named = || stack.frames.iter().filter(|f| f.kind == StackFrameKind::Managed && f.method.is_some());
        let is = |f: &&StackFrameModel, prefix: fn(&str) -> bool| f.method.as_deref().is_some_and(prefix);
        let own = named().find(|f| !is(f, is_library)).or_else(|| named().find(|f| !is(f, |name| name.starts_with("System.Threading."))));
        if let Some((os_id, method, display)) = own.and_then(|f| Some((stack.os_id?, f.method.clone()?, f.display.clone()))) {
            methods.insert(os_id, (method, display));
        }
    };
    match each_stack(runtime, &StacksQuery { threads, ..StacksQuery::default() }, &mut add) {
        Ok(answer) => drop(notes.take(answer)),
        // None of the threads has a stack.
        Err(Error::Nothing(_)) => {}
        Err(e) => notes.add(Missing::Async, None, format!("what the thread pool threads run is unknown: {e}")),
    }
    for worker in workers.iter_mut().filter(|w| w.blocked_by.is_none()) {
        let (method, display) = worker.os_id.and_then(|id| methods.remove(&id)).unzip();
        worker.method = method;
        worker.display = display.flatten();
    }
}

/// Like [`pool`], but without the methods that threads run. `waits`: the waits of threads, if the caller has them.
pub(in crate::analysis) fn pool_with(heap: &Heap, waits: Option<&[WaitModel]>) -> Result<Answer<PoolReport>, Error> {
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    let tasks = Tasks::bind(Library::bind(runtime, &namer, &notes)?, &notes);
    let library = tasks.library();
    let types = Classifier::<PoolType>::bind(library.types());
    let describer = Describer::new(&tasks, Names::new(&tasks, runtime, &namer, &notes));
    let threads = runtime.threads_if_any(&notes);
    if let Ok(reader) = runtime.thread_reader() {
        notes.extend(reader.losses());
    }
    runtime.note_thread_ids(&notes);
    runtime.note_thread_objects(&notes);
    let mut reader = Reader { heap, tasks: &tasks, library, types: &types, describer, threads, notes: &notes };
    let mut report = reader.counters();
    if report.kind == PoolKind::Portable {
        let found = notes.take(objects_of(heap, |mt| {
            let kinds = types.of(mt);
            kinds.is(PoolType::LocalQueue) || kinds.is(PoolType::Locals)
        }));
        let owners = reader.owners(&found);
        reader.global_queues(&mut report);
        reader.local_queues(&found, &owners, &mut report);
        reader.workers(&owners, waits, &mut report);
        report.pending = report.queues.iter().fold(0, |n, q| n.saturating_add(len64(q.items.len())));
        report.groups = groups(&report.queues);
        report.starved = starved(&report);
    }
    reader.describer.names.note(&notes);
    tasks.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Whether items are queued but no thread runs them. All threads must be busy, and either all of them blocked or their number at its maximum.
fn starved(report: &PoolReport) -> bool {
    let (Some(existing), Some(goal), Some(max)) = (report.existing, report.goal, report.max) else { return false };
    let busy = existing > 0 && report.working.is_some_and(|n| n >= existing);
    let all_blocked = !report.workers.is_empty() && report.workers.iter().all(|w| w.blocked_by.is_some());
    report.pending > 0 && busy && (existing >= goal && goal >= max || all_blocked)
}

fn groups(queues: &[PoolQueue]) -> Vec<PoolGroup> {
    let mut out: Vec<PoolGroup> = Vec::new();
    for queue in queues {
        let start = out.len();
        // The key has the type, because state machines of different types may have methods with the same name.
        let mut known: Map<(PoolItemKind, &Name, Option<&Name>), usize> = Map::default();
        for item in &queue.items {
            let at = *known.entry((item.kind, &item.display, item.type_name.as_ref())).or_insert_with(|| {
                let (kind, description) = (item.kind, item.description.clone());
                out.push(PoolGroup { queue: queue.name.clone(), kind, display: description.display(), description, count: 0 });
                out.len().saturating_sub(1)
            });
            if let Some(group) = out.get_mut(at) {
                group.count.bump();
            }
        }
        if let Some(own) = out.get_mut(start..) {
            own.sort_by_key(|g| std::cmp::Reverse(g.count));
        }
    }
    out
}

/// The threads of the pool, each with its local queue.
type Owners<'t> = Vec<(Option<Addr>, &'t Thread)>;

struct Reader<'h> {
    heap: &'h Heap,
    tasks: &'h Tasks,
    library: &'h Library,
    types: &'h Classifier<PoolType>,
    describer: Describer<'h>,
    threads: &'h [Thread],
    notes: &'h Collector,
}

impl<'h> Reader<'h> {
    fn counters(&self) -> PoolReport {
        let mut out = PoolReport {
            kind: PoolKind::None,
            min: None,
            max: None,
            working: None,
            existing: None,
            goal: None,
            blocked: None,
            cpu_percent: None,
            pending: 0,
            starved: false,
            queues: Vec::new(),
            groups: Vec::new(),
            workers: Vec::new(),
        };
        if !self.types.defines(PoolType::Portable) {
            let what = "thread pool: the definition of System.Threading.PortableThreadPool is not in the dump";
            self.notes.add(Missing::Async, None, what);
            out.kind = PoolKind::Unknown;
            return out;
        }
        let Some(instance) = self.instance() else {
            out.kind = PoolKind::Unknown;
            return out;
        };
        let Some(instance) = instance else {
            // If only the class of the Windows pool is loaded, the process uses that pool.
            if self.types.table(PoolType::Windows).is_some() && self.types.table(PoolType::Portable).is_none() {
                out.kind = PoolKind::Windows;
            }
            return out;
        };
        out.kind = PoolKind::Portable;
        let (library, types) = (self.library, self.library.types());
        let Some(mt) = library.method_table(instance) else { return out };
        let Some(fields) = noted(PoolFields::bind(types, mt), "thread pool counters", self.notes) else { return out };
        out.min = library.u16(instance, fields.min).map(u32::from);
        out.max = library.u16(instance, fields.max).map(u32::from);
        out.cpu_percent = fields.cpu.and_then(|f| library.u32(instance, f));
        out.blocked = fields.blocked.and_then(|f| library.u16(instance, f)).map(u32::from);
        if let Some(counts) = noted(self.counts(fields.separated), "thread pool counters", self.notes) {
            let word = library.u64(instance, counts);
            let part = |n: u32| word.and_then(|w| u32::try_from(w >> n.saturating_mul(COUNT_BITS) & 0xffff).ok());
            (out.working, out.existing, out.goal) = (part(0), part(1), part(2));
        }
        out
    }

    /// Returns the pool object; `Some(None)` if the process does not have one, `None` if that cannot be determined.
    fn instance(&self) -> Option<Option<Addr>> {
        let Some(table) = self.types.table(PoolType::Portable) else { return Some(None) };
        noted(self.library.static_object(table, "ThreadPoolInstance"), "thread pool", self.notes)
    }

    /// Returns the field `counts` of the structure `separated`, which does not share its cache lines with other fields.
    fn counts(&self, separated: FieldAt) -> Result<FieldAt, NoSuchField> {
        let types = self.library.types();
        let inner =
            separated.method_table.ok_or_else(|| NoSuchField::Absent { type_name: "CacheLineSeparated".into(), field: "counts" })?;
        Ok(separated.then(types.field_at(inner, "counts")?, types))
    }

    /// Returns the threads of the pool with their local queues.
    fn owners(&self, found: &[(Addr, Addr)]) -> Owners<'h> {
        let by_object: Map<Addr, &Thread> = self.threads.iter().filter_map(|t| Some((t.exposed?, t))).collect();
        let mut fields: Option<Option<LocalsFields>> = None;
        let mut out = Vec::new();
        for (object, mt) in found.iter().filter(|(_, mt)| self.types.of(*mt).is(PoolType::Locals)) {
            let bind = || noted(LocalsFields::bind(self.library.types(), *mt), "thread pool threads", self.notes);
            let Some(fields) = *fields.get_or_insert_with(bind) else { return out };
            let thread = self.library.reference(*object, fields.thread).and_then(|t| by_object.get(&t).copied());
            // The `ThreadPoolWorkQueueThreadLocals` of an ended thread remain on the heap until the next collection.
            out.extend(thread.filter(|t| t.has_stack()).map(|t| (self.library.reference(*object, fields.queue), t)));
        }
        out.sort_by_key(|(_, thread)| thread.id);
        out
    }

    fn global_queues(&mut self, report: &mut PoolReport) {
        let Some(table) = self.types.table(PoolType::ThreadPool) else { return };
        let found = noted(self.library.static_object(table, "s_workQueue"), "thread pool queues", self.notes);
        let Some(queue) = found.flatten() else { return };
        for (name, object) in self.tasks.shared_queues(queue, self.notes) {
            let Some(items) = self.tasks.queued(object, self.notes) else { continue };
            let items = items.into_iter().map(|item| self.describer.item(item)).collect();
            report.queues.push(PoolQueue { name: name.into(), object, managed_id: None, items });
        }
    }

    fn local_queues(&mut self, found: &[(Addr, Addr)], owners: &Owners<'_>, report: &mut PoolReport) {
        let threads: Map<Addr, &Thread> = owners.iter().filter_map(|(queue, thread)| Some(((*queue)?, *thread))).collect();
        for (queue, mt) in found.iter().filter(|(_, mt)| self.types.of(*mt).is(PoolType::LocalQueue)) {
            let items = self.tasks.queued_locally(*queue, *mt, self.notes);
            let Some(items) = noted(items, "local thread pool queues", self.notes) else { return };
            let items = items.unwrap_or_default();
            let managed_id = threads.get(queue).and_then(|t| t.id);
            if !items.is_empty() {
                let items = items.into_iter().map(|item| self.describer.item(item)).collect();
                let name = managed_id.map_or_else(|| "local".into(), |id| format!("local of thread {id}"));
                report.queues.push(PoolQueue { name, object: *queue, managed_id, items });
            }
        }
    }

    fn workers(&self, owners: &Owners<'_>, waits: Option<&[WaitModel]>, report: &mut PoolReport) {
        let waits: Cow<'_, [WaitModel]> = match waits {
            Some(waits) => waits.into(),
            None => match locks(self.heap, &LocksQuery::default()) {
                Ok(answer) => self.notes.take(answer).waits.into(),
                Err(e) => {
                    self.notes.add(Missing::Async, None, format!("what blocks the thread pool threads is unknown: {e}"));
                    Cow::default()
                }
            },
        };
        let waits: Map<u32, &WaitModel> = waits.iter().filter_map(|w| Some((w.managed_id?, w))).collect();
        let mut seen = Set::default();
        for thread in owners.iter().map(|(_, thread)| *thread).filter(|t| seen.insert(t.address)) {
            let wait = thread.id.and_then(|id| waits.get(&id).copied());
            report.workers.push(PoolWorker {
                managed_id: thread.id,
                os_id: thread.os_id.filter(|id| *id != 0),
                blocked_by: wait.map(blocked_by),
                wait: wait.map(|w| w.kind),
                object: wait.and_then(|w| w.object),
                type_name: wait.and_then(|w| w.type_name.clone()),
                method: wait.and_then(|w| w.method.clone()),
                display: wait.and_then(|w| w.display.clone()),
            });
        }
    }
}

/// Formats a wait with its object and method: `task 0x7f0012345678 async Lab.Service.Fetch in Lab.Program.Main(System.String[])`.
fn blocked_by(wait: &WaitModel) -> String {
    let object = wait.object.map(|object| format!(" {object}")).unwrap_or_default();
    let of = wait.type_name.as_ref().filter(|_| wait.object.is_some()).map(|name| format!(" {name}")).unwrap_or_default();
    let at = wait.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
    format!("{}{object}{of}{at}", wait.kind)
}
