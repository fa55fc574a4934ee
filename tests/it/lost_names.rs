//! Dumps without the names of their types: what is asked for by name may be there.

use std::path::Path;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{own_unpacked, run};
use crate::corpus;

/// Questions that choose objects, roots or types by name.
const QUESTIONS: [&[&str]; 11] = [
    &["stat", "--type", "Lab.Nothing"],
    &["stat", "--type", "Lab.Noth*"],
    &["objects", "--type", "Lab.Noth*"],
    &["objects", "--where", "type = \"Lab.Nothing\""],
    &["objects", "--where", "type ~ \"Noth\" and size > 16"],
    &["objects", "--where", "field(\"nothing\") = 3"],
    &["objects", "--top", "5", "--fields", "nothing"],
    &["retained", "--type", "Lab.Nothing"],
    &["roots", "--type", "Lab.Nothing"],
    &["statics", "--type", "Lab.Nothing"],
    &["type", "Lab.Nothing"],
];

/// Without the program's file, which `common::ask` has for dumps of NativeAOT.
fn ask(dump: &Path, question: &[&str]) -> (Exit, Value) {
    let ran = run(&[question, &["--json", "--no-local-files", dump.to_str().unwrap()]].concat());
    (ran.exit, ran.json())
}

#[test]
fn what_is_chosen_by_a_name_that_is_lost_is_not_certain() {
    let dump = |name: &str| corpus::dumps().into_iter().find(|p| p.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap();
    for name in ["net10-wks-wait-kernel", "aot9-wks-crash-kernel"] {
        let path = dump(name);
        for question in QUESTIONS {
            let (exit, answer) = ask(&path, question);
            assert_eq!((exit, &answer["data"]["complete"]), (Exit::Partial, &false.into()), "{name} {question:?}: {answer}");
        }
        // What stands for a name has one.
        for question in [["stat", "--type", "nothing!*"], ["stat", "--type", "lab!0x*"]] {
            let (exit, answer) = ask(&path, &question);
            assert!(matches!(exit, Exit::Ok | Exit::Negative) && answer["data"]["complete"] == true, "{name} {question:?}: {answer}");
        }
    }
    let (exit, answer) = ask(&dump("net10-wks-wait-kernel"), &["stat", "--type", "System.String"]);
    assert!(exit == Exit::Ok && answer["data"]["totals"]["count"].as_u64().unwrap() > 100, "{answer}");
}

#[test]
fn where_names_are_there_nothing_is_uncertain() {
    for question in QUESTIONS {
        let (exit, answer) = ask(&own_unpacked(), question);
        assert_ne!(exit, Exit::Partial, "{question:?}: {answer}");
    }
}
