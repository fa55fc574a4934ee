//! What other analyses answer, each asked at most once.

use std::cell::{Cell, OnceCell};

use super::{AnalyzeQuery, Thresholds};
use crate::analysis::SUSPECT_SHARE;
use crate::analysis::liveness::{Dead, dead};
use crate::analysis::memory_map::memory_of;
use crate::analysis::modules::dynamic_modules;
use crate::analysis::pool::pool_with;
use crate::analysis::requests::incoming_requests;
use crate::analysis::{
    AsyncQuery, DiffQuery, FragmentationQuery, HandlesQuery, HeapQuery, InspectQuery, LocksQuery, RetainedQuery, RetainedView, StacksQuery,
    ThreadsQuery,
};
use crate::analysis::{
    Recursion, chains, diff, each_stack, finalizers, fragmentation, handles, heap, inspect, locks, oom, recursion, retained, threads,
    timers,
};
use crate::base::{Answer, Collector, Name, NoteKind};
use crate::model::{
    AsyncReport, DiffReport, FinalizersReport, FragmentationReport, HandlesReport, HeapReport, InspectReport, InspectionId,
    InspectionModel, LocksReport, MemoryReport, ModuleModel, OomReport, PoolReport, ProblemId, RequestModel, RetainedReport,
    StackFrameKind, ThreadStackModel, ThreadsReport, TimersReport,
};
use crate::session::{Error, GraphSource, Heap, Runtime};

/// Why something was not looked for.
#[derive(Clone, Debug)]
pub(in crate::analysis) struct Skip(pub(in crate::analysis) String);

/// An answer, and the first reason why it is partial.
pub(super) struct Told<T> {
    pub(super) data: T,
    pub(super) loss: Option<String>,
}

/// An answer, or why there is none.
pub(super) type Asked<T> = OnceCell<Result<Told<T>, String>>;

/// The stack of the crashed thread.
pub(super) struct CrashedStack {
    /// Its innermost method.
    pub(super) innermost: Option<Name>,
    /// Its recursion, if it overflowed.
    pub(super) recursion: Option<Recursion>,
}

/// The answers of other analyses. Their notes go to those of the whole.
pub(in crate::analysis) struct Answers<'a> {
    pub(super) runtime: &'a Runtime,
    /// Earlier dumps of the process, in the order of time.
    pub(super) before: &'a [&'a dyn GraphSource],
    pub(super) query: &'a AnalyzeQuery,
    pub(super) notes: &'a Collector,
    /// Why the first partial answer that was asked for since this was taken is so.
    loss: Cell<Option<String>>,
    pub(super) heap: Asked<Heap>,
    pub(super) chains: Asked<AsyncReport>,
    pub(super) dead: Asked<Dead>,
    pub(super) diff: Asked<DiffReport>,
    pub(super) dynamic: Asked<Vec<ModuleModel>>,
    pub(super) finalizers: Asked<FinalizersReport>,
    pub(super) fragmentation: Asked<FragmentationReport>,
    pub(super) generations: Asked<HeapReport>,
    pub(super) handles: Asked<HandlesReport>,
    pub(super) inspect: Asked<InspectReport>,
    pub(super) locks: Asked<LocksReport>,
    pub(super) memory: Asked<MemoryReport>,
    pub(super) native_memory: Asked<MemoryReport>,
    pub(super) oom: Asked<OomReport>,
    pub(super) pool: Asked<PoolReport>,
    pub(super) requests: Asked<Vec<RequestModel>>,
    pub(super) retained: Asked<RetainedReport>,
    pub(super) retained_listed: Asked<RetainedReport>,
    /// That of the crashed thread.
    pub(super) crashed_stack: Asked<Option<CrashedStack>>,
    pub(super) threads: Asked<ThreadsReport>,
    pub(super) timers: Asked<TimersReport>,
}

impl<'a> Answers<'a> {
    pub(in crate::analysis) fn new(
        runtime: &'a Runtime,
        before: &'a [&'a dyn GraphSource],
        query: &'a AnalyzeQuery,
        notes: &'a Collector,
    ) -> Answers<'a> {
        Answers {
            runtime,
            before,
            query,
            notes,
            loss: Cell::default(),
            heap: OnceCell::new(),
            chains: OnceCell::new(),
            dead: OnceCell::new(),
            diff: OnceCell::new(),
            dynamic: OnceCell::new(),
            finalizers: OnceCell::new(),
            fragmentation: OnceCell::new(),
            generations: OnceCell::new(),
            handles: OnceCell::new(),
            inspect: OnceCell::new(),
            locks: OnceCell::new(),
            memory: OnceCell::new(),
            native_memory: OnceCell::new(),
            oom: OnceCell::new(),
            pool: OnceCell::new(),
            requests: OnceCell::new(),
            retained: OnceCell::new(),
            retained_listed: OnceCell::new(),
            crashed_stack: OnceCell::new(),
            threads: OnceCell::new(),
            timers: OnceCell::new(),
        }
    }

    pub(super) fn thresholds(&self) -> &Thresholds {
        &self.query.thresholds
    }

    /// What `ask` answers, the first time; `what` is told if it does not.
    fn asked<'s, T>(&'s self, what: &str, cell: &'s Asked<T>, ask: impl FnOnce() -> Result<Answer<T>, Error>) -> Result<&'s T, Skip> {
        let answer = cell.get_or_init(|| match ask() {
            Ok(answer) => {
                let loss = answer.notes.first_loss().map(|note| note.message.clone());
                Ok(Told { data: self.notes.take(answer), loss })
            }
            Err(e) => Err(self.lacks(what, &e).0),
        });
        let told = answer.as_ref().map_err(|reason| Skip(reason.clone()))?;
        let before = self.loss.take();
        self.loss.set(before.or_else(|| told.loss.clone()));
        Ok(&told.data)
    }

    /// Why an answer that was asked for since the last call is partial.
    pub(super) fn take_loss(&self) -> Option<String> {
        self.loss.take()
    }

    /// Notes that something is not inspected because of `error`.
    pub(super) fn lacks(&self, what: &str, error: &Error) -> Skip {
        self.notes.add(NoteKind::Missing, None, format!("{what}: {error}"));
        Skip(error.to_string())
    }

    pub(in crate::analysis) fn heap(&self) -> Result<&Heap, Skip> {
        self.asked("objects are not inspected", &self.heap, || Ok(Answer::whole(self.runtime.heap()?)))
    }

    /// The chains of asynchronous methods, equal ones merged.
    pub(in crate::analysis) fn chains(&self) -> Result<&AsyncReport, Skip> {
        let heap = self.heap()?;
        let query = AsyncQuery { merge: true, top: TREES, ..AsyncQuery::default() };
        self.asked("asynchronous methods are not inspected", &self.chains, || chains(heap, &query))
    }

    /// The incoming HTTP requests in flight.
    pub(super) fn requests(&self) -> Result<&Vec<RequestModel>, Skip> {
        let heap = self.heap()?;
        self.asked("incoming requests are not inspected", &self.requests, || incoming_requests(heap))
    }

    /// Garbage by generation.
    pub(super) fn dead(&self) -> Result<&Dead, Skip> {
        self.needs_graph()?;
        let heap = self.heap()?;
        self.asked("garbage is not inspected", &self.dead, || dead(heap))
    }

    /// Assemblies without a file.
    pub(super) fn dynamic(&self) -> Result<&Vec<ModuleModel>, Skip> {
        self.asked("dynamic assemblies are not counted", &self.dynamic, || dynamic_modules(self.runtime))
    }

    /// The address space by kind.
    pub(super) fn memory(&self) -> Result<&MemoryReport, Skip> {
        self.asked("memory is not inspected", &self.memory, || Ok(memory_of(self.runtime, false)))
    }

    /// The same with what native memory holds, which reads all of it.
    pub(super) fn native_memory(&self) -> Result<&MemoryReport, Skip> {
        self.asked("native memory is not inspected", &self.native_memory, || Ok(memory_of(self.runtime, true)))
    }

    /// What changed since the earlier dump; without the graph, what holds the growth only where that is cheap.
    pub(in crate::analysis) fn diff(&self) -> Result<&DiffReport, Skip> {
        if self.before.is_empty() {
            return Err(Skip("needs an earlier dump (--since)".into()));
        }
        let heap = self.heap()?;
        let query = DiffQuery { top: CHANGES, holders: self.query.graph, ..DiffQuery::default() };
        self.asked("changes are not inspected", &self.diff, || {
            let dumps: Vec<&dyn GraphSource> = self.before.iter().copied().chain([heap as &dyn GraphSource]).collect();
            diff(&dumps, &query)
        })
    }

    pub(in crate::analysis) fn finalizers(&self) -> Result<&FinalizersReport, Skip> {
        self.asked("finalizers are not inspected", &self.finalizers, || finalizers(self.runtime, &Default::default()))
    }

    pub(in crate::analysis) fn fragmentation(&self) -> Result<&FragmentationReport, Skip> {
        let query = FragmentationQuery { heaps: false, segments: false, top: ROWS };
        let heap = self.heap()?;
        self.asked("free space is not inspected", &self.fragmentation, || fragmentation(heap, &query))
    }

    /// The heap by generation.
    pub(in crate::analysis) fn generations(&self) -> Result<&HeapReport, Skip> {
        self.asked("generations are not inspected", &self.generations, || heap(self.runtime, &HeapQuery::default()))
    }

    pub(in crate::analysis) fn handles(&self) -> Result<&HandlesReport, Skip> {
        let query = HandlesQuery { stat: true, ..HandlesQuery::default() };
        self.asked("handles are not inspected", &self.handles, || handles(self.runtime, &query))
    }

    pub(in crate::analysis) fn locks(&self) -> Result<&LocksReport, Skip> {
        let heap = self.heap()?;
        self.asked("locks are not inspected", &self.locks, || locks(heap, &LocksQuery::default()))
    }

    pub(in crate::analysis) fn oom(&self) -> Result<&OomReport, Skip> {
        self.asked("failed allocations are not inspected", &self.oom, || oom(self.runtime))
    }

    pub(in crate::analysis) fn pool(&self) -> Result<&PoolReport, Skip> {
        let heap = self.heap()?;
        let waits = self.locks().ok().map(|locks| locks.waits.as_slice());
        self.asked("the thread pool is not inspected", &self.pool, || pool_with(heap, waits))
    }

    /// Refuses what takes the graph where it is not to be built.
    pub(super) fn needs_graph(&self) -> Result<(), Skip> {
        if self.query.graph { Ok(()) } else { Err(Skip("needs the graph of the heap (--no-graph)".into())) }
    }

    /// Suspects, and how much is reachable.
    pub(in crate::analysis) fn retained(&self) -> Result<&RetainedReport, Skip> {
        self.suspects(&self.retained, self.thresholds().share)
    }

    /// The suspects that `retained` lists by default.
    pub(super) fn retained_listed(&self) -> Result<&RetainedReport, Skip> {
        self.suspects(&self.retained_listed, self.thresholds().share.min(SUSPECT_SHARE))
    }

    fn suspects<'s>(&'s self, cell: &'s Asked<RetainedReport>, share: f64) -> Result<&'s RetainedReport, Skip> {
        self.needs_graph()?;
        let heap = self.heap()?;
        let query = RetainedQuery { view: RetainedView::Suspects(share), ..RetainedQuery::default() };
        self.asked("suspects are not inspected", cell, || retained(heap, &query))
    }

    /// The stack of the crashed thread; `None` where that is not managed.
    pub(super) fn crashed_stack(&self) -> Result<Option<&CrashedStack>, Skip> {
        let stack = self.asked("stacks are not inspected", &self.crashed_stack, || {
            let mut found = None;
            let mut add = |stack: ThreadStackModel| {
                if stack.crashed {
                    let frame = stack.frames.iter().find(|f| f.kind == StackFrameKind::Managed);
                    let name = frame.and_then(|f| Some(Name::shown_as(f.method.as_deref()?, f.display.as_deref().map(String::from))));
                    found = Some(CrashedStack { innermost: name, recursion: recursion(&stack) });
                }
            };
            let answer = each_stack(self.runtime, &StacksQuery::default(), &mut add)?;
            Ok(answer.map(|_| found))
        })?;
        Ok(stack.as_ref())
    }

    pub(in crate::analysis) fn threads(&self) -> Result<&ThreadsReport, Skip> {
        self.asked("threads are not inspected", &self.threads, || threads(self.runtime, &ThreadsQuery::default()))
    }

    pub(in crate::analysis) fn timers(&self) -> Result<&TimersReport, Skip> {
        let heap = self.heap()?;
        self.asked("timers are not inspected", &self.timers, || timers(heap, None))
    }

    /// The inspections that are asked for, which share a walk.
    pub(in crate::analysis) fn inspect(&self) -> Result<&InspectReport, Skip> {
        let wanted = |finding: &ProblemId| self.query.only.is_empty() || self.query.only.contains(finding);
        let only: Vec<InspectionId> =
            INSPECTIONS.iter().filter(|(finding, _)| wanted(finding)).map(|(_, inspection)| *inspection).collect();
        let heap = self.heap()?;
        self.asked("waste is not inspected", &self.inspect, || inspect(heap, &InspectQuery { only, top: ROWS, graph: self.query.graph }))
    }

    /// One of them.
    pub(super) fn inspection(&self, id: InspectionId) -> Result<&InspectionModel, Skip> {
        self.inspect()?.inspections.iter().find(|i| i.id == id).ok_or_else(|| Skip(format!("{id} was not inspected")))
    }
}

/// Most trees of asynchronous chains.
const TREES: usize = 40;

/// Most types that changed since an earlier dump: those of a page.
const CHANGES: usize = 100;

/// Most rows of an inspection that become findings.
const ROWS: usize = 10;

/// The findings that `inspect` answers.
pub(super) const INSPECTIONS: [(ProblemId, InspectionId); 10] = [
    (ProblemId::EventLeaks, InspectionId::EventLeaks),
    (ProblemId::Registrations, InspectionId::Registrations),
    (ProblemId::LoadContexts, InspectionId::LoadContexts),
    (ProblemId::EqualStrings, InspectionId::EqualStrings),
    (ProblemId::SparseArrays, InspectionId::SparseArrays),
    (ProblemId::OversizedCollections, InspectionId::OversizedCollections),
    (ProblemId::EmptyCollections, InspectionId::EmptyCollections),
    (ProblemId::EqualArrays, InspectionId::EqualArrays),
    (ProblemId::ZeroArrays, InspectionId::ZeroArrays),
    (ProblemId::ZeroTails, InspectionId::ZeroTails),
];
