//! Answers do not depend on earlier queries: data and notes are the same as with a freshly opened dump.

use std::path::Path;
use std::time::Duration;

use crate::common::{own_dump, run, sample};
use gcdump::analysis::{
    self, AnalyzeQuery, AsyncQuery, ExceptionsQuery, FinalizersQuery, FragmentationQuery, HandlesQuery, HeapQuery, InfoQuery, InspectQuery,
    LocksQuery, PathsQuery, RetainedQuery, RootsQuery, SegmentsQuery, Selection, StatQuery, StringsQuery, ThreadsQuery, UnreachableQuery,
    VerifyQuery,
};
use gcdump::analysis::{InspectionId, StringSort};
use gcdump::internals::base::{Addr, Answer, Note};
use gcdump::internals::session::{StaticsQuery, TypePattern};
use gcdump::{Dump, Error, Heap, OpenOptions};
use serde::Serialize;
use serde_json::{Value, json};

fn said<T: Serialize>(answer: Result<Answer<T>, Error>) -> Value {
    match answer {
        Ok(answer) => json!({ "data": answer.data, "notes": answer.notes.iter().collect::<Vec<&Note>>() }),
        Err(e) => json!({ "error": e.to_string() }),
    }
}

fn on_heap<T: Serialize>(dump: &Dump, question: impl FnOnce(&Heap) -> Result<Answer<T>, Error>) -> Value {
    said(dump.runtime().unwrap().heap().and_then(|heap| question(&heap)))
}

/// Queries that share parts of the session: GC, threads, names, walk, object starts, both graphs.
type Question = (&'static str, fn(&Dump) -> Value);

const QUESTIONS: &[Question] = &[
    ("info", |d| said(Ok(analysis::info(d, &InfoQuery::default())))),
    ("analyze", |d| said(Ok(analysis::analyze(&d.runtime().unwrap(), &[], &AnalyzeQuery::default())))),
    ("heap", |d| said(analysis::heap(&d.runtime().unwrap(), &HeapQuery { detail: true, ..HeapQuery::default() }))),
    ("segments", |d| {
        said(analysis::segments(&d.runtime().unwrap(), &SegmentsQuery { free: true, walk: true, ..SegmentsQuery::default() }))
    }),
    ("handles", |d| said(analysis::handles(&d.runtime().unwrap(), &HandlesQuery::default()))),
    ("threads", |d| said(analysis::threads(&d.runtime().unwrap(), &ThreadsQuery::default()))),
    ("inspect", |d| on_heap(d, |h| analysis::inspect(h, &InspectQuery::default()))),
    ("inspect, what few types hold", |d| {
        let only = vec![InspectionId::EventLeaks, InspectionId::OpenHandles, InspectionId::LoadContexts];
        on_heap(d, |h| analysis::inspect(h, &InspectQuery { only, ..InspectQuery::default() }))
    }),
    ("timers", |d| on_heap(d, |h| analysis::timers(h, None))),
    ("requests", |d| on_heap(d, |h| analysis::requests(h, &Default::default()))),
    ("pool", |d| on_heap(d, analysis::pool)),
    ("locks", |d| on_heap(d, |h| analysis::locks(h, &LocksQuery { all: true }))),
    ("statics", |d| said(analysis::statics(&d.runtime().unwrap(), &StaticsQuery::default()))),
    ("type", |d| said(analysis::types(&d.runtime().unwrap(), &analysis::TypePattern::Name("System.*".into()), false))),
    ("finalizers", |d| said(analysis::finalizers(&d.runtime().unwrap(), &FinalizersQuery::default()))),
    ("verify", |d| said(analysis::verify(&d.runtime().unwrap(), &VerifyQuery::default()))),
    ("stat", |d| on_heap(d, |h| analysis::stat(h, &StatQuery::default()))),
    ("strings", |d| on_heap(d, |h| analysis::strings(h, &duplicates()))),
    ("fragmentation", |d| on_heap(d, |h| Ok(analysis::fragmentation(h, &FragmentationQuery { heaps: true, segments: true, top: 10 })))),
    ("exceptions", |d| on_heap(d, |h| analysis::exceptions(h, &ExceptionsQuery::default()))),
    ("async", |d| on_heap(d, |h| analysis::async_chains(h, &AsyncQuery { tasks: true, merge: true, ..AsyncQuery::default() }))),
    ("roots", |d| on_heap(d, |h| analysis::roots(h, &RootsQuery::default()))),
    ("path", |d| {
        let types = vec![TypePattern::Name("System.Byte[]".into()), TypePattern::Name("System.String".into())];
        on_heap(d, |h| analysis::paths(h, &PathsQuery { object: None, types, ..PathsQuery::to(Addr::NULL) }))
    }),
    ("retained", |d| on_heap(d, |h| analysis::retained(h, &RetainedQuery::default()))),
    ("unreachable", |d| on_heap(d, |h| analysis::unreachable(h, &UnreachableQuery::default()))),
];

fn duplicates() -> StringsQuery {
    StringsQuery { selection: Selection::default(), like: None, min_count: 2, sort: StringSort::Waste.into(), top: 0, max_chars: 80 }
}

fn open(path: &Path) -> Dump {
    Dump::open(path, &OpenOptions::default()).unwrap()
}

#[test]
fn repeated_queries_give_the_same_answers() {
    let corpus = |name: &str| own_dump().with_file_name(format!("corpus/{name}.dmp.zst"));
    let partial = ["net10-wks-basics-mini", "net10-wks-basics-triage", "net8-wks-crash-mini", "net10-wks-wait-kernel"];
    for path in sample([vec![own_dump(), corpus("net10-svr-basics-heap")], partial.map(corpus).to_vec()].concat(), 4) {
        let name = path.file_name().unwrap().display();
        let alone: Vec<Value> = QUESTIONS.iter().map(|(_, ask)| ask(&open(&path))).collect();
        assert!(alone.iter().any(|a| a["data"].is_object()), "{name}: nothing is answered");
        let dump = open(&path);
        let forth = 0..QUESTIONS.len();
        for i in forth.clone().chain(forth.rev()) {
            let (what, ask) = QUESTIONS[i];
            let again = ask(&dump);
            assert_eq!(again["notes"], alone[i]["notes"], "{name}: notes of {what}");
            assert!(again == alone[i], "{name}: {what} says something else after other questions");
        }
    }
}

/// Rows of a streamed list are named on pool threads, so missing names are only known after the last row. Here the pool is
/// busy during the walk.
#[test]
fn a_streamed_list_reports_every_missing_name() {
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-wait-gcore.dmp.zst");
    let list = || run(&["objects", "--refs", "--json", "--no-local-files", dump.to_str().unwrap()]).json();
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(list);
    (0..rayon::current_num_threads() * 4).for_each(|_| rayon::spawn(|| std::thread::sleep(Duration::from_millis(100))));
    let busy = list();
    assert!(!alone["warnings"].as_array().unwrap().is_empty());
    assert_eq!(busy, alone);
}
