//! `report`: a page about a process that combines the answers of other analyses.
//!
//! Each analysis is run at most once; results of `analyze` are reused. A part that fails is omitted and listed with the reason.

mod report;

pub use report::*;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::dump::analyze::{Answers, Skip, findings};
use crate::analysis::on_graph::OnGraph;
use crate::analysis::{
    AnalyzeQuery, HeapQuery, InfoQuery, MapQuery, ModulesQuery, PathsQuery, Retained, StacksQuery, StatQuery, env, info, modules, paths,
    stacks, stat, statics,
};
use crate::analysis::{DiffReport, ExceptionModel, PathModel, Suspect, ThreadModel, TypeStat};
use crate::base::missed::Carried;
use crate::base::store::caught;
use crate::base::threads::start;
use crate::base::{Addr, Answer, Collector, Missing, file_name, len64};
use crate::heapgraph::Depends;
use crate::model::Stacks;
use crate::session::{Dump, Error, GraphSource, Heap, StaticsQuery, TypePattern};

/// Maximum number of types listed.
const TYPES: usize = 200;
/// Maximum number of static fields listed.
const STATICS: usize = 50;
/// Maximum number of holders of grown types listed.
const HOLDERS: usize = 10;
/// Maximum number of suspects with a path.
const WITH_PATHS: usize = 10;
/// Depth of the merged paths to the objects of a type. Only the first path is shown.
const DEPTH: u32 = 12;

/// Options of [`page`].
#[derive(Clone, Debug, Default)]
pub struct PageQuery {
    /// Index of the runtime.
    pub runtime: usize,
    /// Options of `analyze`.
    pub analyze: AnalyzeQuery,
    /// The command line that created this page.
    pub made_by: String,
}

/// Creates a page about the process in `dump`. `before`: an earlier dump of the same process, to show what has changed.
///
/// # Errors
/// [`Error::Runtime`] if the runtime cannot be read, or the file is a heap snapshot.
pub fn page(dump: &Dump, before: Option<&dyn GraphSource>, query: &PageQuery) -> Result<Answer<PageReport>, Error> {
    let runtime = dump.runtime_at(query.runtime)?;
    let notes = Collector::new();
    let info = notes.take(info(dump, &InfoQuery { runtime: query.runtime, options: query.analyze.options.clone() }));
    let answers = Answers::new(&runtime, before.as_slice(), &query.analyze, &notes);
    if query.analyze.graph {
        ahead(&answers);
    }
    let analyze = findings(&answers);
    let mut parts = Parts { notes: &notes, lacking: Vec::new() };
    let heap = parts.of("heap", answers.heap());
    let diff = before.and_then(|_| parts.of("diff", answers.diff())).cloned();
    let diff = diff.map(|diff| DiffReport { holders: diff.holders.map(|list| list.into_iter().take(HOLDERS).collect()), ..diff });
    let oom = parts.of("oom", answers.oom()).filter(|oom| oom.any == Some(true)).cloned();
    let exceptions = parts.of("exceptions", answers.threads()).map(|t| t.threads.as_slice()).unwrap_or_default();
    let exceptions = in_flight(exceptions);
    let types = heap.and_then(|heap| parts.asked("types", || types(heap, query.analyze.graph)));
    let map = HeapQuery { map: Some(MapQuery { garbage: query.analyze.graph.then(Stacks::default) }), ..HeapQuery::default() };
    let (drawn, mapped) =
        beside(|| heap.filter(|_| query.analyze.graph).map(icicle), || heap.map(|_| crate::analysis::heap(&runtime, &map)));
    let icicle = drawn.and_then(|drawn| parts.asked("icicle", || drawn));
    let retained = parts.of("suspects", answers.retained());
    let suspects = heap.zip(retained).map(|(heap, r)| with_paths(heap, r.rows.fields().suspects.map_or(&[], Vec::as_slice), &notes));
    let merged = StacksQuery { merge: true, ..StacksQuery::default() };
    let stacks = parts.asked("stacks", || stacks(&runtime, &merged));
    let locks = parts.of("locks", answers.locks()).filter(|l| !l.waits.is_empty() || !l.deadlocks.is_empty()).cloned();
    let chains = heap.and_then(|_| parts.of("chains", answers.chains())).filter(|c| !c.chains.is_empty()).cloned();
    let pool = parts.of("pool", answers.pool()).cloned();
    let inspect = parts.of("inspect", answers.inspect()).cloned();
    let fragmentation = parts.of("fragmentation", answers.fragmentation()).cloned();
    let handles = parts.of("handles", answers.handles()).cloned();
    let finalizers = parts.of("finalizers", answers.finalizers()).cloned();
    let requests = heap.and_then(|_| parts.of("requests", answers.http()));
    let requests = requests.filter(|r| !(r.requests.is_empty() && r.sockets.is_empty() && r.pools.is_empty())).cloned();
    let thrown = heap.and_then(|_| parts.of("thrown", answers.exceptions())).filter(|e| e.total > Some(e.preallocated)).cloned();
    let memory = parts.of("memory", answers.native_memory()).cloned();
    let most = StaticsQuery { retained: true, top: STATICS, ..StaticsQuery::default() };
    let statics = heap.filter(|_| query.analyze.graph).and_then(|_| parts.asked("statics", || statics(&runtime, &most)));
    let modules = parts.asked("modules", || modules(dump, &ModulesQuery { runtime: query.runtime, ..ModulesQuery::default() }));
    // The environment is of little use if its values are hidden.
    let hidden = dump.memory().hides_contents();
    let env = (!hidden && dump.snapshot().is_none()).then(|| notes.take(env(dump, query.runtime)));
    let mapped = mapped.and_then(|mapped| parts.asked("map", || mapped));
    let page = PageReport {
        title: title(dump),
        without_contents: hidden,
        made_by: query.made_by.clone(),
        heap: mapped.or_else(|| parts.of("heap", answers.generations()).cloned()),
        info,
        analyze,
        diff,
        exceptions,
        oom,
        requests,
        thrown,
        memory,
        statics,
        modules,
        env,
        types,
        icicle,
        suspects,
        stacks,
        locks,
        chains,
        pool,
        inspect,
        fragmentation,
        handles,
        finalizers,
        lacking: parts.lacking,
    };
    drop(answers);
    Ok(notes.finish(page))
}

/// Computes the dominators on one thread while this thread computes the answers that do not need them. Errors are ignored here: the code that uses a
/// result reports them.
fn ahead(answers: &Answers<'_>) {
    let Ok(heap) = answers.heap() else { return };
    beside(
        || heap.dominators(Stacks::default()).is_ok(),
        || {
            let _ = (answers.inspect(), answers.fragmentation(), answers.pool(), answers.timers(), answers.chains(), heap.type_sums());
        },
    );
}

/// Runs `there` on a separate thread while this thread runs `here`.
fn beside<A: Send, B>(there: impl Fn() -> A + Send + Sync, here: impl FnOnce() -> B) -> (A, B) {
    let carried = Carried::here();
    std::thread::scope(|scope| {
        let worker = start(scope, None, || carried.run(&there));
        let done = here();
        let other = match worker {
            // A cancellation of the worker is a panic, which continues on this thread.
            Ok(worker) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => there(),
        };
        (other, done)
    })
}

/// The parts of a page that is being composed.
struct Parts<'n> {
    notes: &'n Collector,
    lacking: Vec<LackingPart>,
}

impl Parts<'_> {
    fn lacks<T>(&mut self, part: &str, Skip { reason, needs }: Skip) -> Option<T> {
        if !self.lacking.iter().any(|l| l.part == part) {
            self.lacking.push(LackingPart { part: part.into(), reason, needs });
        }
        None
    }

    /// Returns a part from the results of `analyze`, which has already added the notes on missing parts.
    fn of<T>(&mut self, part: &str, asked: Result<T, Skip>) -> Option<T> {
        asked.map_or_else(|skip| self.lacks(part, skip), Some)
    }

    /// Computes a part that `analyze` does not have, and adds a note if it fails.
    fn asked<T>(&mut self, part: &str, ask: impl FnOnce() -> Result<Answer<T>, Error>) -> Option<T> {
        match ask() {
            Ok(answer) => Some(self.notes.take(answer)),
            Err(e) => {
                self.notes.add(Missing::Answer, None, format!("{part}: {e}"));
                self.lacks(part, Skip::because(e.to_string()))
            }
        }
    }
}

/// Returns the name of the process or, if it is unknown, of the dump file.
fn title(dump: &Dump) -> String {
    let facts = &dump.file().facts;
    let process = facts.process_name.as_deref().map(file_name);
    match process.filter(|name| !name.is_empty()) {
        Some(name) => name.into(),
        None => file_name(&facts.shown_path()).into(),
    }
}

/// Returns the exceptions in flight. The exception of the crashed thread comes first.
fn in_flight(threads: &[ThreadModel]) -> Vec<Arc<ExceptionModel>> {
    let of = |crashed: bool| threads.iter().filter(move |t| t.crashed == crashed).filter_map(|t| t.exception.as_ref());
    of(true).chain(of(false).filter(|e| e.current)).map(Arc::clone).collect()
}

/// Returns the types with the most bytes. With `graph`, they have their retained bytes.
fn types(heap: &Heap, graph: bool) -> Result<Answer<PageTypes>, Error> {
    let notes = heap.begin();
    let stat = notes.take(stat(heap, &StatQuery { top: TYPES, ..StatQuery::default() })?).of_types();
    let retained = if graph { retained_by_type(heap, &notes)? } else { FxHashMap::default() };
    let of = |stat: TypeStat| PageType { retained: retained.get(&stat.method_table).copied(), stat };
    let rows: Vec<PageType> = stat.types.into_iter().map(of).collect();
    let listed = |of: fn(&TypeStat) -> u64| rows.iter().fold(0u64, |sum, row| sum.saturating_add(of(&row.stat)));
    let rest = TypesRest {
        types: stat.totals.types.saturating_sub(len64(rows.len())),
        count: stat.totals.count.saturating_sub(listed(|t| t.count)),
        bytes: stat.totals.bytes.saturating_sub(listed(|t| t.bytes)),
    };
    Ok(notes.finish(PageTypes { rows, rest, totals: stat.totals }))
}

/// Returns the retained bytes of each type's reachable objects, by method table.
fn retained_by_type(heap: &Heap, notes: &Collector) -> Result<FxHashMap<Addr, u64>, Error> {
    caught(|| {
        let on = OnGraph::open(heap, false, Stacks::default(), Some(Depends::Dominators))?;
        let types = heap.dominators(on.stacks)?.by_type(on.graph);
        let sums = on.graph.types.iter().zip(types.iter()).map(|(kind, of)| (kind.method_table, of.retained)).collect();
        notes.take(on.finish(()));
        Ok(sums)
    })?
}

fn icicle(heap: &Heap) -> Result<Answer<Icicle>, Error> {
    caught(|| {
        let on = OnGraph::open(heap, false, Stacks::default(), Some(Depends::Dominators))?;
        let icicle = Retained::compute(heap, on.graph, Stacks::default())?.icicle(&on.namer);
        Ok(on.finish(icicle))
    })?
}

/// Returns the suspects. The first `WITH_PATHS` of them have a path.
fn with_paths(heap: &Heap, suspects: &[Suspect], notes: &Collector) -> Vec<PageSuspect> {
    let path = |s: &Suspect| -> Option<PathModel> {
        let at = s.accumulation.as_ref().map(|a| a.address).or(s.address);
        let types = if at.is_none() { vec![TypePattern::MethodTable(s.method_table)] } else { Vec::new() };
        let query = PathsQuery { object: at, types, paths: 1, weak: false, stacks: Stacks::default(), depth: DEPTH, lines: 1, full: false };
        match paths(heap, &query) {
            Ok(answer) => notes.take(answer).paths.into_iter().next(),
            Err(e) => {
                notes.add(Missing::Answer, at, format!("no path to a suspect: {e}"));
                None
            }
        }
    };
    let with = |(i, s): (usize, &Suspect)| PageSuspect { path: (i < WITH_PATHS).then(|| path(s)).flatten(), suspect: s.clone() };
    suspects.iter().enumerate().map(with).collect()
}
