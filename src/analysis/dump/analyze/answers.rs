//! Answers of other analyses, each computed at most once.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;

use super::places::Places;
use super::{AnalyzeQuery, Thresholds};
use crate::analysis::SUSPECT_SHARE;
use crate::analysis::dump::memory_map::memory_of;
use crate::analysis::dump::modules::dynamic_modules;
use crate::analysis::holders::liveness::{Dead, dead, garbage_among};
use crate::analysis::threads::pool::pool_with;
use crate::analysis::threads::requests::requests_of;
use crate::analysis::{
    AsyncQuery, DiffQuery, ExceptionsQuery, FragmentationQuery, HandlesQuery, HandlesView, HeapQuery, InspectQuery, LocksQuery,
    RetainedQuery, RetainedView, ThreadsQuery, VerifyQuery,
};
use crate::analysis::{
    AsyncReport, DiffReport, ExceptionsReport, FinalizersReport, FragmentationReport, HandlesReport, HeapReport, InspectReport,
    InspectionId, InspectionModel, LocksReport, MemoryReport, ModuleModel, PoolReport, ProblemId, RequestsReport, RetainedReport, RuleNeed,
    ThreadsReport, TimersReport, VerifyReport,
};
use crate::analysis::{
    async_chains, diff, exceptions, finalizers, fragmentation, handles, heap, inspect, locks, oom, retained, threads, timers, verify,
};
use crate::base::{Addr, Answer, Collector, Missing};
use crate::model::{OomReport, RootCoverageModel};
use crate::session::{Error, GraphSource, Heap, Runtime};

/// The reason why a problem was not inspected.
#[derive(Clone, Debug)]
pub(in crate::analysis) struct Skip {
    pub(in crate::analysis) reason: String,
    /// The part that the query did not give, if that is the reason.
    pub(in crate::analysis) needs: Option<RuleNeed>,
}

impl Skip {
    pub(in crate::analysis) fn because(reason: impl Into<String>) -> Skip {
        Skip { reason: reason.into(), needs: None }
    }
}

/// The data of an answer, and the first reason why it is partial.
pub(super) struct Received<T> {
    pub(super) data: T,
    pub(super) loss: Option<String>,
}

/// A lazily computed answer, or the reason for its absence.
pub(super) type Cached<T> = OnceCell<Result<Received<T>, String>>;

/// The answers of other analyses. Their notes become notes of the whole report.
pub(in crate::analysis) struct Answers<'a> {
    pub(super) runtime: &'a Runtime,
    /// Earlier dumps of the process, in the order of time.
    pub(super) before: &'a [&'a dyn GraphSource],
    pub(super) query: &'a AnalyzeQuery,
    pub(super) notes: &'a Collector,
    /// Why the first partial answer since the last [`Answers::take_loss`] is partial.
    loss: Cell<Option<String>>,
    pub(super) heap: Cached<Heap>,
    pub(super) chains: Cached<AsyncReport>,
    pub(super) dead: Cached<Dead>,
    pub(super) diff: Cached<DiffReport>,
    pub(super) dynamic: Cached<Vec<ModuleModel>>,
    pub(super) exceptions: Cached<ExceptionsReport>,
    pub(super) finalizers: Cached<FinalizersReport>,
    pub(super) fragmentation: Cached<FragmentationReport>,
    pub(super) generations: Cached<HeapReport>,
    pub(super) handles: Cached<HandlesReport>,
    pub(super) http: Cached<RequestsReport>,
    pub(super) inspect: Cached<InspectReport>,
    pub(super) locks: Cached<LocksReport>,
    pub(super) memory: Cached<MemoryReport>,
    pub(super) native_memory: Cached<MemoryReport>,
    pub(super) oom: Cached<OomReport>,
    pub(super) pool: Cached<PoolReport>,
    pub(super) retained: Cached<RetainedReport>,
    pub(super) retained_listed: Cached<RetainedReport>,
    pub(super) places: Cached<Places>,
    pub(super) threads: Cached<ThreadsReport>,
    pub(super) timers: Cached<TimersReport>,
    pub(super) verify: Cached<VerifyReport>,
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
            exceptions: OnceCell::new(),
            finalizers: OnceCell::new(),
            fragmentation: OnceCell::new(),
            generations: OnceCell::new(),
            handles: OnceCell::new(),
            http: OnceCell::new(),
            inspect: OnceCell::new(),
            locks: OnceCell::new(),
            memory: OnceCell::new(),
            native_memory: OnceCell::new(),
            oom: OnceCell::new(),
            pool: OnceCell::new(),
            retained: OnceCell::new(),
            retained_listed: OnceCell::new(),
            places: OnceCell::new(),
            threads: OnceCell::new(),
            timers: OnceCell::new(),
            verify: OnceCell::new(),
        }
    }

    pub(super) fn thresholds(&self) -> &Thresholds {
        &self.query.thresholds
    }

    /// Returns the answer in `cell`, computed by `ask` the first time. If that fails, a note that begins with `what` is added.
    pub(super) fn asked<'s, T>(
        &'s self,
        what: &str,
        cell: &'s Cached<T>,
        ask: impl FnOnce() -> Result<Answer<T>, Error>,
    ) -> Result<&'s T, Skip> {
        self.asked_but(what, cell, |_, _| false, ask)
    }

    /// Like [`Answers::asked`]. Losses for which `apart` is true, given the data and the message of the note, are those of a part of the data.
    fn asked_but<'s, T>(
        &'s self,
        what: &str,
        cell: &'s Cached<T>,
        apart: impl Fn(&T, &str) -> bool,
        ask: impl FnOnce() -> Result<Answer<T>, Error>,
    ) -> Result<&'s T, Skip> {
        let answer = cell.get_or_init(|| match ask() {
            Ok(answer) => {
                let losses = || answer.notes.iter().filter(|note| note.kind.makes_partial());
                let loss = losses().find(|note| !apart(&answer.data, &note.message)).map(|note| note.message.clone());
                Ok(Received { data: self.notes.take(answer), loss })
            }
            Err(e) => Err(self.lacks(what, &e).reason),
        });
        let known = answer.as_ref().map_err(Skip::because)?;
        self.lose(known.loss.as_ref());
        Ok(&known.data)
    }

    /// Keeps the first loss.
    fn lose(&self, loss: Option<&String>) {
        let before = self.loss.take();
        self.loss.set(before.or_else(|| loss.cloned()));
    }

    /// Returns why the first partial answer since the last call is partial.
    pub(super) fn take_loss(&self) -> Option<String> {
        self.loss.take()
    }

    /// Adds the note that `what` is not inspected because of `error`.
    pub(super) fn lacks(&self, what: &str, error: &Error) -> Skip {
        self.notes.add(Missing::Answer, None, format!("{what}: {error}"));
        Skip::because(error.to_string())
    }

    pub(in crate::analysis) fn heap(&self) -> Result<&Heap, Skip> {
        self.asked("objects are not inspected", &self.heap, || Ok(Answer::whole(self.runtime.heap()?)))
    }

    /// The chains of asynchronous methods, with equal chains merged.
    pub(in crate::analysis) fn chains(&self) -> Result<&AsyncReport, Skip> {
        let heap = self.heap()?;
        let query = AsyncQuery { merge: true, top: TREES, ..AsyncQuery::default() };
        self.asked("asynchronous methods are not inspected", &self.chains, || async_chains(heap, &query))
    }

    /// The HTTP requests in flight, and connection pools.
    pub(in crate::analysis) fn http(&self) -> Result<&RequestsReport, Skip> {
        let heap = self.heap()?;
        self.asked("HTTP requests are not inspected", &self.http, || requests_of(heap, self.query.graph))
    }

    /// The garbage among `objects`.
    pub(super) fn garbage_among(&self, objects: &[Addr]) -> Result<BTreeSet<Addr>, Skip> {
        self.needs_graph()?;
        let answer = garbage_among(self.heap()?, objects).map_err(|e| self.lacks("garbage is not inspected", &e))?;
        Ok(self.notes.take(answer))
    }

    /// Exceptions on the heap by type and method.
    pub(in crate::analysis) fn exceptions(&self) -> Result<&ExceptionsReport, Skip> {
        let heap = self.heap()?;
        let query = ExceptionsQuery { stat: true, ..ExceptionsQuery::default() };
        self.asked("exceptions are not inspected", &self.exceptions, || exceptions(heap, &query))
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

    /// The address space by kind, with a breakdown of native memory. This reads all of that memory.
    pub(in crate::analysis) fn native_memory(&self) -> Result<&MemoryReport, Skip> {
        self.asked("native memory is not inspected", &self.native_memory, || Ok(memory_of(self.runtime, true)))
    }

    /// The changes since the earlier dumps. Without the graph, holders of the growth are found only if that is cheap.
    pub(in crate::analysis) fn diff(&self) -> Result<&DiffReport, Skip> {
        if self.before.is_empty() {
            return Err(Skip { reason: "needs an earlier dump".into(), needs: Some(RuleNeed::EarlierDump) });
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
        self.asked("free space is not inspected", &self.fragmentation, || Ok(fragmentation(heap, &query)))
    }

    /// The heap by generation.
    pub(in crate::analysis) fn generations(&self) -> Result<&HeapReport, Skip> {
        self.asked("generations are not inspected", &self.generations, || heap(self.runtime, &HeapQuery::default()))
    }

    pub(in crate::analysis) fn handles(&self) -> Result<&HandlesReport, Skip> {
        let query = HandlesQuery { view: HandlesView::Counts, ..HandlesQuery::default() };
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

    /// Fails if the options forbid building the graph of the heap.
    pub(super) fn needs_graph(&self) -> Result<(), Skip> {
        let needs = || Skip { reason: "needs the graph of the heap".into(), needs: Some(RuleNeed::Graph) };
        if self.query.graph { Ok(()) } else { Err(needs()) }
    }

    /// Suspects, and the number of reachable bytes.
    pub(in crate::analysis) fn retained(&self) -> Result<&RetainedReport, Skip> {
        self.suspects(&self.retained, self.thresholds().share)
    }

    /// The answer of [`Answers::retained`]; fails if it cannot distinguish garbage, because roots are unknown or most objects are not in the dump.
    pub(super) fn with_roots(&self) -> Result<&RetainedReport, Skip> {
        let report = self.retained()?;
        if let Some(unknown) = RootCoverageModel::unknown(&report.coverage) {
            let reason = unknown.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            return Err(Skip::because(format!("the roots are unknown{reason}")));
        }
        if report.totals.bytes > 0 && report.totals.reachable_bytes == 0 {
            return Err(Skip::because("the roots are unknown: no object is reachable"));
        }
        self.needs_most_objects()?;
        Ok(report)
    }

    /// Fails if most of the heap is not in the dump.
    pub(super) fn needs_most_objects(&self) -> Result<(), Skip> {
        let coverage = &self.fragmentation()?.coverage;
        let known = coverage.walked_bytes.saturating_add(coverage.context_bytes);
        if coverage.absent_bytes > known { Err(Skip::because("most of the heap is not in the dump")) } else { Ok(()) }
    }

    /// The suspects that `retained` lists by default.
    pub(super) fn retained_listed(&self) -> Result<&RetainedReport, Skip> {
        self.suspects(&self.retained_listed, self.thresholds().share.min(SUSPECT_SHARE))
    }

    fn suspects<'s>(&'s self, cell: &'s Cached<RetainedReport>, share: f64) -> Result<&'s RetainedReport, Skip> {
        self.needs_graph()?;
        let heap = self.heap()?;
        let query = RetainedQuery { view: RetainedView::Suspects(share), ..RetainedQuery::default() };
        self.asked("leak suspects are not inspected", cell, || retained(heap, &query))
    }

    pub(in crate::analysis) fn threads(&self) -> Result<&ThreadsReport, Skip> {
        self.asked("threads are not inspected", &self.threads, || threads(self.runtime, &ThreadsQuery::default()))
    }

    pub(in crate::analysis) fn timers(&self) -> Result<&TimersReport, Skip> {
        let heap = self.heap()?;
        self.asked("timers are not inspected", &self.timers, || timers(heap, None))
    }

    /// The errors of the heap. Only the first one is listed.
    pub(super) fn verify(&self) -> Result<&VerifyReport, Skip> {
        let query = VerifyQuery { object: None, top: 1 };
        self.asked("the heap is not verified", &self.verify, || verify(self.runtime, &query))
    }

    /// The requested inspections, which share a walk.
    pub(in crate::analysis) fn inspect(&self) -> Result<&InspectReport, Skip> {
        let wanted = |finding: &ProblemId| self.query.only.is_empty() || self.query.only.contains(finding);
        let only: Vec<InspectionId> =
            INSPECTIONS.iter().filter(|(finding, _)| wanted(finding)).map(|(_, inspection)| *inspection).collect();
        let heap = self.heap()?;
        let apart = |report: &InspectReport, loss: &str| report.inspections.iter().any(|i| i.partial.as_deref() == Some(loss));
        let query = InspectQuery { only, top: ROWS, graph: self.query.graph };
        self.asked_but("waste is not inspected", &self.inspect, apart, || inspect(heap, &query))
    }

    /// One of the requested inspections.
    pub(super) fn inspection(&self, id: InspectionId) -> Result<&InspectionModel, Skip> {
        let found = self.inspect()?.inspections.iter().find(|i| i.id == id);
        let found = found.ok_or_else(|| Skip::because(format!("{id} was not inspected")))?;
        self.lose(found.partial.as_ref());
        Ok(found)
    }
}

/// Most trees of asynchronous chains.
const TREES: usize = 40;

/// Most types that changed since an earlier dump, as many as a page shows.
const CHANGES: usize = 100;

/// Most rows of an inspection that become findings.
const ROWS: usize = 10;

/// The findings that come from an inspection.
pub(super) const INSPECTIONS: [(ProblemId, InspectionId); 11] = [
    (ProblemId::UnobservedExceptions, InspectionId::UnobservedExceptions),
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
