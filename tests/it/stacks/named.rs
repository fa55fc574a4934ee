//! Names of runtime frames: the method that the runtime implements, and the import whose native code runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{list, text};
use crate::common::{ask, run};
use gcdump::cli::Exit;
use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// Counts the runtime frames of a dump by type and method. A frame that the answer shows twice is counted once.
fn named(dump: &str) -> BTreeMap<(String, String), usize> {
    let (_, answer) = ask(&corpus(dump), &["stacks"]);
    let mut out: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for frame in list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"])).filter(|f| f["kind"] == "runtime") {
        assert!(frame["method_desc"].is_null() || frame["method"].is_string() && frame["display"].is_string(), "{frame}");
        let method = text(frame, "method").split('(').next().unwrap_or_default().to_string();
        out.entry((text(frame, "frame_type").into(), method)).or_default().push(text(frame, "address"));
    }
    let once = |mut all: Vec<&str>| {
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    out.into_iter().map(|(key, all)| (key, once(all))).collect()
}

#[test]
fn native_helpers_have_the_method_that_they_implement() {
    let frames = named("net8-wks-deadlock-heap");
    let of = |frame: &str, method: &str| frames.get(&(frame.into(), method.into())).copied().unwrap_or_default();
    // These are the names that ClrMD shows.
    assert_eq!(of("HelperMethodFrame_1OBJ", "System.Threading.Monitor.ObjWait"), 10, "{frames:?}");
    assert_eq!(of("HelperMethodFrame_1OBJ", "System.Threading.Monitor.ReliableEnter"), 6);
    assert_eq!(of("HelperMethodFrame", "System.Threading.WaitHandle.WaitOneCore"), 5);
    assert!(frames.keys().all(|(frame, method)| !frame.starts_with("Helper") || !method.is_empty()), "{frames:?}");
    for windows in ["win-net8-wks-handles-full", "win-net9-wks-basics-full"] {
        let frames = named(windows);
        assert_eq!(frames[&("HelperMethodFrame".into(), "System.Threading.WaitHandle.WaitOneCore".into())], 1, "{windows}: {frames:?}");
    }
}

#[test]
fn inlined_calls_have_the_import_whose_code_runs() {
    for dump in
        ["net8-wks-spin-heap", "net8-wks-stacks-heap", "net10-wks-stacks-heap", "net10-wks-stacks-mini", "net10arm64-wks-stacks-heap"]
    {
        let frames = named(dump);
        assert_eq!(frames[&("InlinedCallFrame".into(), "Stacks.Program.qsort".into())], 1, "{dump}: {frames:?}");
    }
}

#[test]
fn methods_of_runtime_frames_are_found_and_folded() {
    let path = corpus("net8-wks-deadlock-heap");
    let (exit, answer) = ask(&path, &["stacks", "--method", "*Monitor*Enter*"]);
    assert_eq!((exit, &answer["data"]["total"]), (Exit::Ok, &Value::from(6)));
    let (_, merged) = ask(&path, &["stacks", "--merge"]);
    let rows: Vec<&Value> =
        list(&merged["data"]["merged"]).iter().filter(|r| text(r, "method").contains("Monitor.ReliableEnter")).collect();
    let label = "[HelperMethodFrame_1OBJ] System.Threading.Monitor.ReliableEnter(System.Object, Boolean ByRef)";
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|r| text(r, "frame") == label && r["method_desc"].is_string()), "{rows:?}");
    let words = |more: &[&str]| run(&[&["stacks", "--no-local-files", path.to_str().unwrap()], more].concat()).out;
    assert_eq!(words(&["--format", "folded"]).matches(label).count(), 6);
    assert_eq!(words(&[]).matches(label).count(), 6);
}
