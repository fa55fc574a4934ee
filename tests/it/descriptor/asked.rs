//! The answers of all commands about one process.

use std::collections::BTreeMap;

use crate::exact_roots::all_roots;
use gcdump::analysis::*;
use gcdump::analysis::{MemoryRangeModel, StatBy};
use gcdump::internals::base::{Addr, Answer, Notes};
use gcdump::internals::session::StaticsQuery;
use gcdump::internals::session::roots::RootOptions;
use gcdump::model::{RootKind, Stacks};
use gcdump::{Dump, Error, Heap, Runtime};
use serde::Serialize;
use serde_json::Value;

/// Objects that commands are run on.
pub struct Given {
    object: Addr,
    exception: Addr,
    array: Addr,
    /// A method table.
    table: Addr,
}

impl Given {
    pub fn of(dump: &Dump) -> Given {
        let heap = dump.runtime().unwrap().heap().unwrap();
        let roots = all_roots(&heap);
        let object =
            |of: &dyn Fn(&str) -> bool| roots.iter().find(|r| r.type_name.as_deref().is_some_and(of)).map_or(roots[0].object, |r| r.object);
        Given {
            object: object(&|t| t.contains("Dictionary")),
            exception: heap.exceptions().unwrap().exceptions[0].address,
            array: object(&|t| t == "System.Object[]"),
            table: roots[0].method_table.unwrap(),
        }
    }
}

/// How an answer has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The command refuses, with a reason.
    Refused,
    /// The answer says that it is partial.
    Partial,
    /// The answer is the same; its coverage says which stacks are conservative.
    Covered,
    /// The answer differs and does not say that it is partial.
    Changed,
}

type Said = Result<(String, Notes), String>;

/// The answer of each command.
pub struct Asked(BTreeMap<&'static str, Said>);

fn said<T: Serialize>(answer: Answer<T>) -> Said {
    Ok((serde_json::to_string(&answer.data).unwrap(), answer.notes))
}

fn tried<T: Serialize>(answer: Result<Answer<T>, Error>) -> Said {
    answer.map_err(|e| e.to_string()).and_then(said)
}

type Ask = fn(&Dump, &Runtime, &Given) -> Said;

fn with_heap(runtime: &Runtime, ask: impl FnOnce(&Heap) -> Said) -> Said {
    ask(&runtime.heap().map_err(|e| e.to_string())?)
}

/// The commands, in order of name. `info` and `contracts` are about the descriptor itself.
pub const COMMANDS: &[(&str, Ask)] = &[
    ("analyze", |_, r, _| said(analyze(r, &[], &AnalyzeQuery::default()))),
    ("async", |_, r, _| with_heap(r, |h| tried(async_chains(h, &AsyncQuery { tasks: true, ..AsyncQuery::default() })))),
    ("exceptions", |_, r, _| with_heap(r, |h| tried(exceptions(h, &ExceptionsQuery::default())))),
    ("finalizers", |_, r, _| tried(finalizers(r, &FinalizersQuery { objects: true, ..FinalizersQuery::default() }))),
    ("fragmentation", |_, r, _| with_heap(r, |h| said(fragmentation(h, &FragmentationQuery { heaps: true, segments: true, top: 0 })))),
    ("handles", |_, r, _| tried(handles(r, &HandlesQuery::default()))),
    ("heap", |_, r, _| tried(heap(r, &HeapQuery { detail: true, ..HeapQuery::default() }))),
    ("inspect", |_, r, _| with_heap(r, |h| tried(inspect(h, &InspectQuery::default())))),
    ("locks", |_, r, _| with_heap(r, |h| tried(locks(h, &LocksQuery { all: true })))),
    ("memory", |d, _, _| {
        // The test itself changes how much memory there is, and how much of it is unexplained.
        let claimed = |r: &MemoryRangeModel| r.kind.explains().then_some((r.kind, r.generation, r.start, r.end));
        let answer = memory_map(d, &MemoryQuery { ranges: true, top: 0, runtime: 0, contents: false });
        said(answer.map(|report| report.ranges.unwrap().iter().filter_map(claimed).collect::<Vec<_>>()))
    }),
    ("near", |_, r, g| with_heap(r, |h| tried(near(h, &NearQuery { address: g.object, before: 3, after: 3 })))),
    ("object", |_, r, g| {
        with_heap(r, |h| tried(object(h, &ObjectQuery { address: g.exception, start: 0, count: 10, items: 10, fields: true })))
    }),
    ("object-array", |_, r, g| {
        with_heap(r, |h| tried(object(h, &ObjectQuery { address: g.array, start: 0, count: 10, items: 10, fields: true })))
    }),
    ("objsize", |_, r, g| with_heap(r, |h| tried(objsize(h, g.object, Stacks::ALL[0])))),
    ("oom", |_, r, _| tried(oom(r))),
    ("path", |_, r, g| {
        let query = PathsQuery {
            object: Some(g.object),
            types: vec![],
            paths: 3,
            weak: false,
            depth: 100,
            lines: 0,
            full: false,
            stacks: Stacks::ALL[0],
        };
        with_heap(r, |h| tried(paths(h, &query)))
    }),
    ("pool", |_, r, _| with_heap(r, |h| tried(pool(h)))),
    ("requests", |_, r, _| with_heap(r, |h| tried(requests(h, &Default::default())))),
    ("retained", |_, r, _| {
        let query = RetainedQuery { view: RetainedView::Top, types: vec![], stacks: Stacks::ALL[0], top: 20, objects: 20 };
        with_heap(r, |h| tried(retained(h, &query)))
    }),
    // Static fields are read by `statics`, and by all commands that need the graph.
    ("roots", |_, r, _| {
        let kinds = RootKind::ALL.into_iter().filter(|k| !matches!(k, RootKind::Static | RootKind::ThreadStatic)).collect();
        let query = RootsQuery { options: RootOptions { kinds, weak: true, ..RootOptions::default() }, ..RootsQuery::default() };
        with_heap(r, |h| tried(roots(h, &query)))
    }),
    ("segments", |_, r, _| tried(segments(r, &SegmentsQuery { free: true, walk: true, ..SegmentsQuery::default() }))),
    ("stat", |_, r, _| with_heap(r, |h| tried(stat(h, &StatQuery::default())))),
    ("stat-generation", |_, r, _| with_heap(r, |h| tried(stat(h, &StatQuery { by: StatBy::Generation, ..StatQuery::default() })))),
    ("statics", |_, r, _| tried(statics(r, &StaticsQuery { thread_statics: true, everything: true, ..StaticsQuery::default() }))),
    ("threads", |_, r, _| tried(threads(r, &ThreadsQuery::default()))),
    ("timers", |_, r, _| with_heap(r, |h| tried(timers(h, None)))),
    ("type", |_, r, g| tried(types(r, &TypePattern::MethodTable(g.table), true))),
    ("unreachable", |_, r, _| with_heap(r, |h| tried(unreachable(h, &UnreachableQuery::default())))),
    ("verify", |_, r, _| tried(verify(r, &VerifyQuery::default()))),
    ("where", |_, r, g| with_heap(r, |h| said(where_is(h, g.object)))),
];

impl Asked {
    pub fn of(dump: &Dump, given: &Given) -> Asked {
        let runtime = dump.runtime();
        let ask = |ask: &Ask| match &runtime {
            Ok(runtime) => ask(dump, runtime, given),
            Err(e) => Err(e.to_string()),
        };
        Asked(COMMANDS.iter().map(|(name, of)| (*name, ask(of))).collect())
    }

    /// Returns the commands whose answer differs in `other`.
    pub fn differences(&self, other: &Asked) -> BTreeMap<&'static str, Outcome> {
        let compare = |(name, now): (&&'static str, &Said)| {
            let outcome = match (&self.0[name], now) {
                (before, now) if same(before, now) => return None,
                (_, Err(_)) => Outcome::Refused,
                (Ok((_, before)), Ok((_, now))) if now.iter().any(|n| n.kind.makes_partial() && !before.iter().any(|b| b == n)) => {
                    Outcome::Partial
                }
                (Ok((before, _)), Ok((now, _))) if is_covered(before, now) => Outcome::Covered,
                _ => Outcome::Changed,
            };
            Some((*name, outcome))
        };
        other.0.iter().filter_map(compare).collect()
    }
}

/// Whether only the coverage differs, with a reason for each kind that does.
fn is_covered(before: &str, now: &str) -> bool {
    let [(before, was), (now, is)] = [before, now].map(|text| {
        let mut data: Value = serde_json::from_str(text).unwrap();
        let coverage = data.as_object_mut().and_then(|data| data.remove("coverage"));
        (data, coverage.unwrap_or_default())
    });
    let rows = |coverage: &Value| coverage.as_array().cloned().unwrap_or_default();
    let was = rows(&was);
    before == now && rows(&is).iter().all(|row| was.contains(row) || row["coverage"] == "conservative" && row["reason"].is_string())
}

fn same(a: &Said, b: &Said) -> bool {
    match (a, b) {
        (Ok((a, x)), Ok((b, y))) => a == b && x.iter().eq(y.iter()),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}
