//! Differences of .NET 11, and fixes found with its dumps, on dumps of the repository.

use serde_json::Value;

use crate::common::{ask, run};
use crate::corpus;
use gcdump::cli::Exit;

/// Runs `command` on a dump of the corpus. Returns the answer and its exit code.
fn answer(name: &str, command: &[&str]) -> (Exit, Value) {
    ask(&corpus::dump(name), command)
}

fn column<'v>(rows: &'v Value, key: &str) -> Vec<&'v Value> {
    rows.as_array().unwrap().iter().map(|row| &row[key]).collect()
}

#[test]
fn a_kernel_core_needs_no_file_of_the_runtime() {
    let (exit, info) = answer("net11-wks-wait-kernel", &["info"]);
    let runtime = &info["data"]["runtimes"][0];
    assert_eq!(runtime["vm"], "overlay-json", "{runtime}");
    assert_eq!((&runtime["gc"], &runtime["overlay"]), (&"overlay-json".into(), &"net11.0-linux-x64".into()));
    assert!(runtime["version"].as_str().unwrap().starts_with("11.0"), "{runtime}");
    assert_ne!(exit, Exit::NoRuntime);
    let (exit, verify) = answer("net11-wks-wait-kernel", &["verify"]);
    assert_eq!(exit, Exit::Ok, "{verify}");
    let (_, contracts) = answer("net11-wks-wait-kernel", &["contracts", "--check"]);
    let names = column(&contracts["data"]["origins"], "name");
    assert!(names.contains(&&"copy of net11.0-linux-x64-coreclr-wks".into()), "{names:?}");
}

#[test]
fn the_thread_list_links_threads() {
    for (name, threads) in [("net11-wks-basics-heap", 3), ("net11-wks-asyncmixrt-heap", 12), ("win-net11-wks-basics-heap", 3)] {
        let (exit, answer) = answer(name, &["threads"]);
        let ids = column(&answer["data"]["threads"], "managed_id");
        assert_eq!((exit, ids.len()), (Exit::Ok, threads), "{name}: {ids:?}");
        let (exit, contracts) = self::answer(name, &["contracts", "--check"]);
        assert_eq!(exit, Exit::Ok, "{name}: {}", contracts["data"]["checks"]);
    }
}

#[test]
fn continuations_are_objects_with_a_name() {
    let (exit, stat) = answer("net11-wks-asyncmixrt-heap", &["stat"]);
    assert_eq!(exit, Exit::Ok);
    let names = column(&stat["data"]["types"], "type");
    // The names that ClrMD shows.
    for name in ["Continuation_16_0_1", "Continuation_24_0_3", "Continuation_48_8_2_32_1", "Continuation_56_0_3_32_2"] {
        assert!(names.contains(&&name.into()), "{name} is not among {names:?}");
    }
    let (exit, verify) = answer("net11-wks-asyncmixrt-heap", &["verify"]);
    assert_eq!(exit, Exit::Ok, "{verify}");
    assert_ne!(verify["data"]["checked"]["cards"], 0, "{}", verify["data"]);
}

#[test]
fn exceptions_in_flight_are_objects() {
    let (_, threads) = answer("net11-wks-crash-heap", &["threads"]);
    let types: Vec<&Value> =
        column(&threads["data"]["threads"], "exception").into_iter().map(|e| &e["type"]).filter(|t| !t.is_null()).collect();
    assert_eq!(types, ["System.ApplicationException"]);
    // A class constructor's exception has its trace as text only.
    let ran = run(&["exceptions", "--no-local-files", corpus::dump("net11-wks-nestedcctor-heap").to_str().unwrap()]);
    assert!(ran.out.contains("Cases.Nested.BadInit..cctor()"), "{}", ran.out);
}

#[test]
fn frames_of_an_exception_that_are_only_text_are_listed() {
    let (_, answer) = answer("net11-wks-nestedcctor-heap", &["exceptions"]);
    let listed = answer["data"]["exceptions"].as_array().unwrap();
    let thrown = listed.iter().find(|e| e["type"] == "Cases.CaseException").unwrap();
    assert_eq!(thrown["stack"].as_array().map(Vec::len), Some(0), "{thrown}");
    let lines: Vec<&str> = thrown["remote_stack_text"].as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 3, "{thrown}");
    let group = answer["data"]["groups"].as_array().unwrap().iter().find(|g| g["type"] == "Cases.CaseException").unwrap();
    assert_eq!(group["thrown"], 1, "{group}");
    let object = thrown["address"].as_str().unwrap();
    let shown = run(&["exceptions", "--object", object, corpus::dump("net11-wks-nestedcctor-heap").to_str().unwrap()]).out;
    assert!(lines.iter().all(|line| shown.contains(line)), "{shown}");
    let row = shown.lines().find(|line| line.starts_with(object)).unwrap();
    assert_eq!(row.split_whitespace().nth(3), Some("3"), "{shown}");
}

#[test]
fn nested_exceptions_of_net8_are_all_seen() {
    let (_, answer) = answer("net8-wks-nestedthree-heap", &["exceptions"]);
    let roles: Vec<&Value> = column(&answer["data"]["exceptions"], "thread_role").into_iter().filter(|role| *role == "nested").collect();
    assert_eq!(roles.len(), 2, "{}", answer["data"]["exceptions"]);
}

#[test]
fn messages_are_those_that_the_program_sees() {
    let (_, answer) = answer("net10-wks-nestedfailfast-heap", &["exceptions"]);
    let messages = column(&answer["data"]["exceptions"], "message");
    assert!(messages.contains(&&"third from outside (Parameter 'argumentName')".into()), "{messages:?}");
}

#[test]
fn a_module_that_was_edited_says_so() {
    let (exit, answer) = answer("net10-wks-enc-heap", &["stat"]);
    assert_eq!(exit, Exit::Partial);
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("edited was edited while the process ran (hot reload)"), "{warnings}");
    assert_eq!(answer["data"]["complete"], false);
    let (exit, _) = self::answer("net10-wks-enc-heap", &["segments"]);
    assert_eq!(exit, Exit::Ok, "no types are named");
}
