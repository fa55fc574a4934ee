//! Tests of the rules on dumps whose heap or roots are incomplete.

use super::answers::Answers;
use super::{AnalyzeQuery, Thresholds, find};
use crate::analysis::{DiffQuery, Problem, ProblemId, Severity, VerifyQuery, diff, verify};
use crate::base::Collector;
use crate::model::{Carve, CoverageKind, RootCoverageModel, RootKind};
use crate::{Dump, GraphSource, Heap, OpenOptions};

fn open(carve: Carve) -> Dump {
    OpenOptions::new().carve(carve).open("dumps/net10-wks-basics-heap.dmp.zst").unwrap()
}

fn mini() -> Dump {
    crate::open("dumps/corpus/net10-wks-basics-mini.dmp.zst").unwrap()
}

fn heap(dump: &Dump) -> Heap {
    dump.runtime().unwrap().heap().unwrap()
}

/// Applies a rule with the smallest thresholds.
fn ask(dump: &Dump, id: ProblemId) -> Result<Vec<Problem>, String> {
    ask_since(dump, &[], id)
}

/// Like [`ask`], with earlier dumps.
fn ask_since(dump: &Dump, before: &[&dyn GraphSource], id: ProblemId) -> Result<Vec<Problem>, String> {
    let thresholds = Thresholds { bytes: 0, garbage: 0.0, free: 0.0, ..Thresholds::default() };
    let query = AnalyzeQuery { thresholds, ..AnalyzeQuery::default() };
    let (runtime, notes) = (dump.runtime().unwrap(), Collector::new());
    let answers = Answers::new(&runtime, before, &query, &notes);
    find(id, &answers, answers.thresholds()).map_err(|skip| skip.reason)
}

#[test]
fn objects_are_garbage_only_if_roots_are_known() {
    assert!(ask(&open(Carve::Never), ProblemId::Garbage).is_ok());
    // Handles of a mini dump are unknown.
    let why = ask(&mini(), ProblemId::Garbage).unwrap_err();
    assert!(why.starts_with("the roots are unknown"), "{why}");
}

#[test]
fn a_main_kind_of_root_that_the_dump_does_not_show_is_found() {
    let row = |kind, coverage| RootCoverageModel { kind, coverage, reason: None };
    let all = |coverage| RootKind::ALL.into_iter().map(|kind| row(kind, coverage)).collect::<Vec<_>>();
    for known in [CoverageKind::Complete, CoverageKind::Conservative, CoverageKind::Partial] {
        assert_eq!(RootCoverageModel::unknown(&all(known)), None);
    }
    let lacks = |kind: RootKind| {
        let rows = RootKind::ALL.map(|k| row(k, if k == kind { CoverageKind::Unavailable } else { CoverageKind::Complete }));
        RootCoverageModel::unknown(&rows).map(|c| c.kind)
    };
    for kind in [RootKind::StrongHandle, RootKind::Static, RootKind::Stack, RootKind::Register] {
        assert_eq!(lacks(kind), Some(kind));
    }
    assert_eq!(lacks(RootKind::FinalizerReady), None);
}

#[test]
fn errors_of_a_carved_heap_may_be_mistakes_of_the_search() {
    let carved = open(Carve::Always);
    assert!(ask(&carved, ProblemId::Damage).unwrap_err().starts_with("the heap was carved"));
    let report = verify(&carved.runtime().unwrap(), &VerifyQuery::default()).unwrap().data;
    assert_eq!(report.totals.errors, 0);
    assert!(report.findings.iter().all(|f| f.severity == Severity::Suspicious));
    assert_eq!(ask(&open(Carve::Never), ProblemId::Damage), Ok(Vec::new()));
}

#[test]
fn growth_is_unknown_if_objects_of_a_dump_are() {
    let (whole, mini) = (open(Carve::Never), mini());
    let (of_whole, of_mini) = (heap(&whole), heap(&mini));
    let query = DiffQuery { holders: true, ..DiffQuery::default() };
    let same = diff(&[&of_whole, &of_whole], &query).unwrap().data;
    assert!(same.holders.is_some() && same.holders_unknown.is_none());
    for (before, after) in [(&of_mini, &of_whole), (&of_whole, &of_mini)] {
        let answer = diff(&[before, after], &query).unwrap();
        assert!(!answer.complete() && answer.holders.is_none());
        assert_eq!(answer.holders_unknown.as_deref(), Some("not all objects are in the dump"));
        // What is unknown of one dump is compared with nothing.
        for name in ["fragmented", "tasks", "handles"] {
            let measure = answer.summary.iter().find(|m| m.name == name).unwrap();
            assert!(measure.before.is_none() != measure.after.is_none() && measure.change.is_none(), "{measure:?}");
        }
    }
    let why = ask_since(&whole, &[&of_mini], ProblemId::Growth).unwrap_err();
    assert!(why.starts_with("the holders of the growth are unknown"), "{why}");
    assert_eq!(ask_since(&whole, &[&of_whole], ProblemId::Growth), Ok(Vec::new()));
}
