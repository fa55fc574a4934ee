//! Platforms other than those of most dumps: NativeAOT programs of each release, arm64, single-file programs. Also the table in
//! `docs/coverage.md` of runtimes, platforms, GCs and kinds of dump, with the tests that compare each of them; `GCDUMP_BLESS=1` rewrites it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{self, COVERAGE, Known, ask, further_dumps, json_file, number};
use crate::harness::{Ignored, Tested};
use crate::stacks::truth::is_of_a_program_of_stacks;

fn list<'v>(v: &'v Value, key: &str) -> &'v [Value] {
    v[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

/// Returns a complete answer.
fn data(dump: &Known, command: &[&str]) -> Value {
    let (exit, mut answer) = ask(&dump.path, command);
    assert_eq!(exit, Exit::Ok, "{} {command:?}: {}", dump.name, answer["warnings"]);
    answer["data"].take()
}

/// Whether the tests here compare a dump with the program's record.
fn is_compared(row: &Value) -> bool {
    ["net8aot", "net10aot", "net11aot", "net10arm64max"].contains(&text(row, "runtime"))
}

/// Dumps of NativeAOT programs of .NET 8, 10 and 11, and of CoreCLR on arm64. The programs of NativeAOT 8 and 10 are not available.
fn others(wanted: impl Fn(&Value) -> bool) -> Result<Vec<Known>, Ignored> {
    Ok(further_dumps(|row| is_compared(row) && wanted(row))?.0)
}

/// Returns a complete or partial answer.
fn partly(dump: &Known, command: &[&str]) -> Value {
    let (exit, mut answer) = ask(&dump.path, command);
    assert!([Exit::Ok, Exit::Partial].contains(&exit), "{} {command:?}: {}", dump.name, answer["warnings"]);
    answer["data"].take()
}

#[test]
fn programs_of_each_release_are_walked_with_names_and_references() -> Tested {
    let mut counted = 0;
    for dump in others(|_| true)? {
        let truth = dump.truth.as_ref().unwrap();
        let stat = data(&dump, &["stat", "--top", "0"]);
        let counts: BTreeMap<&str, u64> = list(&stat, "types").iter().map(|t| (text(t, "type"), t["count"].as_u64().unwrap())).collect();
        for (name, count) in truth["counts"].as_object().into_iter().flatten() {
            assert_eq!(counts.get(name.replace(',', ", ").as_str()), count.as_u64().as_ref(), "{} {name}", dump.name);
            counted += 1;
        }
        // Allocation contexts are checked, too.
        let verify = data(&dump, &["verify"]);
        assert!(list(&verify, "findings").is_empty(), "{}: {verify}", dump.name);
        assert_eq!(verify["coverage"]["share"], 1.0, "{}: {verify}", dump.name);
        let handles = data(&dump, &["handles", "--top", "0"]);
        let rows: BTreeMap<u64, &Value> = list(&handles, "handles").iter().map(|h| (number(&h["address"]), h)).collect();
        for handle in list(truth, "handles") {
            let row = rows.get(&number(&handle["handle"])).unwrap_or_else(|| panic!("{}: {handle}", dump.name));
            assert_eq!((text(row, "type"), &row["object"]), (text(handle, "type").replace('_', "-").as_str(), &handle["object"]));
        }
    }
    println!("{counted} counts");
    Ok(())
}

#[test]
fn locks_waits_and_hash_codes_of_each_release_are_those_of_the_program() -> Tested {
    for dump in others(|row| ["all", "locks"].contains(&row["scenario"].as_str().unwrap()))? {
        let truth = dump.truth.as_ref().unwrap();
        let found = partly(&dump, &["locks"]);
        let lock =
            |object: &Value| list(&found, "locks").iter().find(|l| l["object"] == *object).unwrap_or_else(|| panic!("{object}: {found}"));
        let contended = lock(&truth["contended"]);
        assert_eq!(contended["owner"]["managed_id"], truth["owner_managed_id"], "{}: {contended}", dump.name);
        assert_eq!(list(contended, "waiters").len() as u64, truth["waiters"].as_u64().unwrap(), "{}: {contended}", dump.name);
        assert_eq!(contended["waiting"], truth["waiters"], "{}: {contended}", dump.name);
        assert_eq!(lock(&truth["both"])["owner"]["managed_id"], truth["owner_managed_id"], "{}", dump.name);
        let thin = lock(&truth["thin"]);
        assert_eq!((&thin["owner"]["managed_id"], &thin["recursion"]), (&truth["thin_owner_managed_id"], &truth["thin_recursion"]));
        assert!(list(&found, "locks").iter().all(|l| l["owner"]["orphaned"] != true), "{}: {found}", dump.name);
        for (object, hash) in [("hashed", "hash"), ("both", "hash_both")] {
            let object = data(&dump, &["object", truth[object].as_str().unwrap()]);
            assert_eq!(object["header"]["hash_code"], truth[hash], "{} {hash}", dump.name);
        }
        // A thread in `Task.Wait` waits for the task.
        let blocked = list(&found, "waits").iter().find(|w| w["managed_id"] == truth["taskwait_managed_id"]);
        if let Some(task) = truth.get("never").filter(|_| !truth["taskwait_managed_id"].is_null()) {
            assert_eq!(blocked.map(|w| (&w["kind"], &w["object"])), Some((&"task".into(), task)), "{}: {found}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn exceptions_thread_names_and_paths_of_each_release_are_those_of_the_program() -> Tested {
    for dump in others(|row| row["scenario"] == "all")? {
        let truth = dump.truth.as_ref().unwrap();
        let threads = data(&dump, &["threads"]);
        let names: Vec<&str> = list(&threads, "threads").iter().filter_map(|t| t["name"].as_str()).collect();
        assert!(list(truth, "thread_names").iter().all(|name| names.contains(&name.as_str().unwrap())), "{}: {names:?}", dump.name);
        let catcher = list(&threads, "threads").iter().find(|t| t["managed_id"] == truth["catcher_managed_id"]).unwrap();
        assert_eq!(catcher["exception"]["address"], truth["held_exception"], "{}: {catcher}", dump.name);
        assert_eq!(catcher["exception"]["message"], truth["held_exception_message"], "{}: {catcher}", dump.name);
        let methods: Vec<&str> = list(&catcher["exception"], "stack").iter().map(|f| text(f, "method")).collect();
        let expected: Vec<String> =
            list(truth, "held_exception_frames").iter().map(|f| format!("Lab.Program.{}", f.as_str().unwrap())).collect();
        assert!(expected.iter().zip(&methods).all(|(wanted, method)| method.starts_with(wanted.as_str())), "{}: {methods:?}", dump.name);
        for (object, kind) in [("static_deep", "static"), ("via_handle", "strong-handle"), ("thread_static", "thread-static")] {
            let paths = partly(&dump, &["path", truth[object].as_str().unwrap()]);
            let mut kinds = list(&paths, "paths").iter().flat_map(|p| list(p, "roots")).map(|r| text(r, "kind"));
            assert!(kinds.any(|k| k == kind), "{} {object}: {paths}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn the_crash_report_of_net_11_is_found() -> Tested {
    for dump in others(|row| row["scenario"] == "crash")? {
        let info = data(&dump, &["info"]);
        let report = &info["crash_report"];
        assert_eq!(
            (&report["reason"], &report["exception"]["type"]),
            (&"unhandled exception".into(), &"System.ApplicationException".into())
        );
        assert!(text(&report["exception"]["stack"][0], "method").starts_with("Lab.Program.Crash("), "{report}");
        assert_eq!((&info["runtimes"][0]["version"], &info["runtimes"][0]["version_source"]), (&"11.0.0".into(), &"descriptor".into()));
    }
    Ok(())
}

#[test]
fn a_program_whose_exports_are_not_in_the_dump_is_named_with_its_build_id() -> Tested {
    for dump in further_dumps(needs_its_program)?.0 {
        let path = dump.path.to_str().unwrap();
        let ran = common::run(&["stat", "--no-local-files", path]);
        assert_eq!(ran.exit, Exit::NoRuntime, "{}", dump.name);
        assert!(!ran.err.contains("no .NET runtime found"), "{}: {}", dump.name, ran.err);
        let id = ran.err.split("build id ").nth(1).map_or("", |rest| rest.split(')').next().unwrap());
        assert!(id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{}: {}", dump.name, ran.err);
        assert!(ran.err.contains("/lab (build id") && ran.err.contains("--modules"), "{}: {}", dump.name, ran.err);
        // Another program with that name is not used, and the answer says why.
        let Some(folder) = common::native_aot_program() else { continue };
        let ran = common::run(&["stat", "--no-local-files", "--modules", folder.to_str().unwrap(), path]);
        assert!(ran.exit == Exit::NoRuntime && ran.err.contains("is not the lab of this process"), "{}: {}", dump.name, ran.err);
    }
    Ok(())
}

#[test]
fn chains_and_frames_on_arm64_are_those_of_the_program() -> Tested {
    for dump in others(|row| row["runtime"] == "net10arm64max")? {
        let truth = dump.truth.as_ref().unwrap();
        let chains = data(&dump, &["async"]);
        assert_eq!(chains["totals"]["suspended"].as_u64(), truth["async_chains"].as_u64().map(|n| 3 * n), "{}", dump.name);
        let stacks = data(&dump, &["stacks"]);
        assert!(list(&stacks, "threads").iter().all(|t| t["coverage"] == "precise"), "{}", dump.name);
        let main = list(&stacks, "threads").iter().find(|t| t["managed_id"] == truth["thin_owner_managed_id"]).unwrap();
        let own = list(main, "frames").iter().filter_map(|f| text(f, "method").strip_prefix("Lab.Program."));
        let own: Vec<&str> = own.map(|name| name.split('(').next().unwrap_or(name)).collect();
        assert_eq!(own, list(truth, "main_frames").iter().map(|f| f.as_str().unwrap()).collect::<Vec<_>>(), "{}", dump.name);
    }
    Ok(())
}

const KINDS: [&str; 6] = ["full", "heap", "mini", "triage", "kernel", "gcore"];

/// Runtime, platform and GC.
type Line = (&'static str, &'static str, &'static str);

/// Combinations without a dump, each with the tests (in `src` or `tests/it`) that check a part of it on made-up input.
const NO_DUMP: &[(Line, &str, &[&str])] = &[
    ((".NET 8", "Linux musl x64", "workstation"), "heap", &[]),
    ((".NET 8", "Linux musl x64", "workstation"), "kernel", &[]),
    ((".NET 10", "Linux musl x64", "workstation"), "heap", &[]),
    ((".NET 10", "Linux musl x64", "workstation"), "kernel", &[]),
    ((".NET 11", "Linux musl x64", "workstation"), "heap", &["every_bundled_overlay_parses_and_names_its_target"]),
    ((".NET 11", "Linux musl x64", "workstation"), "kernel", &["every_bundled_overlay_parses_and_names_its_target"]),
    ((".NET 9", "Linux arm64", "workstation"), "heap", &["every_bundled_overlay_parses_and_names_its_target"]),
    ((".NET 10", "Linux arm64", "workstation"), "kernel", &["reads_all_shapes", "segments_aligned_to_large_pages_are_one_module"]),
    ((".NET 11", "Linux arm64", "workstation"), "heap", &["every_bundled_overlay_parses_and_names_its_target"]),
    ((".NET 11", "Linux arm64", "workstation"), "kernel", &["reads_all_shapes", "every_bundled_overlay_parses_and_names_its_target"]),
    (("NativeAOT 8", "Linux x64", "workstation"), "heap", &["each_release_has_the_layouts_that_were_measured_on_it"]),
    (("NativeAOT 10", "Linux x64", "workstation"), "heap", &["each_release_has_the_layouts_that_were_measured_on_it"]),
    (("NativeAOT 10", "Linux x64", "workstation"), "kernel", &["each_release_has_the_layouts_that_were_measured_on_it"]),
    ((".NET 8 single file", "Linux x64", "workstation"), "kernel", &["a_single_file_host_stays_one_module"]),
    ((".NET 10 single file", "Linux x64", "workstation"), "kernel", &["a_single_file_host_stays_one_module"]),
    ((".NET 11 single file", "Linux x64", "workstation"), "kernel", &["a_single_file_host_stays_one_module"]),
];

/// Returns the row of the table for a dump of the manifest; `None` if gcdump does not support it.
fn line(row: &Value) -> Option<Line> {
    let runtime = match text(row, "runtime") {
        "net8" => (".NET 8", "Linux x64"),
        "net9" => (".NET 9", "Linux x64"),
        "net10" => (".NET 10", "Linux x64"),
        "net11" => (".NET 11", "Linux x64"),
        "net11shape" => (".NET 10 (`net11shape`)", "Linux x64"),
        "net10arm64" | "net10arm64max" => (".NET 10", "Linux arm64"),
        "net10trim" => (".NET 10 single file", "Linux x64"),
        "win-net8" => (".NET 8", "Windows x64"),
        "win-net9" => (".NET 9", "Windows x64"),
        "win-net10" => (".NET 10", "Windows x64"),
        "win-net11" => (".NET 11", "Windows x64"),
        "net8aot" => ("NativeAOT 8", "Linux x64"),
        "aot9" => ("NativeAOT 9", "Linux x64"),
        "net10aot" => ("NativeAOT 10", "Linux x64"),
        "net11aot" => ("NativeAOT 11", "Linux x64"),
        _ => return None,
    };
    let gc = match text(row, "gc") {
        "wks" => "workstation",
        "svr" => "server",
        "datas" => "server, DATAS",
        "seg" => "segments",
        "segsvr" => "segments, server",
        _ => return None,
    };
    Some((runtime.0, runtime.1, gc))
}

/// Whether `manifest::every_shared_dump_is_exact` compares the dump.
fn is_of_the_matrix(folder: &Path, row: &Value) -> bool {
    folder.ends_with("dumps") || common::is_of_x64(row)
}

fn needs_its_program(row: &Value) -> bool {
    ["net11aot", "net10trim"].contains(&text(row, "runtime")) && row["kind"] == "heap"
}

/// Returns the source that the dump is compared with; `None` if no test does.
fn compared(folder: &Path, row: &Value) -> Option<&'static str> {
    let has = |key: &str| row[key].is_string();
    if is_of_the_matrix(folder, row) {
        // ClrMD finds no runtime in a kernel core; then its answer consists of errors.
        let clrmd = row["clrmd"].as_str().and_then(|file| json_file(&folder.join(file)));
        let answered = clrmd.is_some_and(|c| c["heap"]["heaps"].is_array() || c["threads"]["threads"].is_array());
        return match () {
            () if answered => Some("ClrMD"),
            // Their truth is what people measured on the service.
            () if text(row, "scenario").starts_with("web-") => Some("read"),
            () => (has("truth") || has("expect")).then_some("truth"),
        };
    }
    let further = common::is_further(row);
    match () {
        () if further && has("truth") && (is_compared(row) || is_of_a_program_of_stacks(row)) => Some("truth"),
        () if further && needs_its_program(row) => Some("refused"),
        () => None,
    }
}

/// Scenarios, or names of tests, by what the dumps are compared with.
type Compared<'r> = BTreeMap<&'r str, BTreeSet<&'r str>>;

#[test]
fn the_table_of_platforms_is_that_of_the_manifests() -> Tested {
    let rows = common::manifest_rows()?;
    // In order of the releases.
    let key = |line: Line| {
        (
            line.0.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().unwrap(),
            line,
        )
    };
    let mut cells: BTreeMap<(u32, Line), BTreeMap<&str, Compared<'_>>> = BTreeMap::new();
    let mut elsewhere = BTreeSet::new();
    for (folder, row) in &rows {
        let (name, kind) = (text(row, "name"), *KINDS.iter().find(|k| row["kind"] == **k).unwrap());
        match (line(row), compared(folder, row)) {
            (Some(line), Some(with)) => {
                let scenario = text(row, "scenario");
                cells.entry(key(line)).or_default().entry(kind).or_default().entry(with).or_default().insert(scenario);
            }
            // Each platform is in the table, and each of its dumps is compared.
            (line, _) => {
                assert!(line.is_none() || !common::is_further(row), "{name}: no test compares it");
                elsewhere.insert(name);
            }
        }
    }
    for (line, kind, tests) in NO_DUMP {
        let lines = cells.entry(key(*line)).or_default().entry(kind).or_default();
        assert!(lines.is_empty(), "{line:?} {kind}: there is a dump");
        lines.insert(if tests.is_empty() { "not tested" } else { "synthetic" }, tests.iter().copied().collect());
    }
    let missing: Vec<&str> = NO_DUMP.iter().flat_map(|n| n.2).copied().filter(|name| !is_a_test(name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");

    let mut out = format!("{} dumps by runtime, platform, GC and kind.\n\n| runtime | platform | GC |", rows.len() - elsewhere.len());
    out.push_str(&KINDS.map(|k| format!(" {k} |")).concat());
    out.push_str(&format!("\n|{}\n", " --- |".repeat(3 + KINDS.len())));
    for ((_, (runtime, platform, gc)), kinds) in &cells {
        out.push_str(&format!("| {runtime} | {platform} | {gc} |"));
        for kind in KINDS {
            let states = kinds.get(kind).into_iter().flatten();
            let shown = states.map(|(state, names)| match names.len() {
                0 => (*state).to_string(),
                _ if *state == "synthetic" => format!("{state}: `{}`", names.iter().copied().collect::<Vec<_>>().join("`, `")),
                _ => format!("{state}: {}", names.iter().copied().collect::<Vec<_>>().join(", ")),
            });
            let shown = shown.collect::<Vec<_>>().join("; ");
            out.push_str(&format!(" {} |", if shown.is_empty() { "–" } else { &shown }));
        }
        out.push('\n');
    }
    let elsewhere: Vec<&str> = elsewhere.into_iter().collect();
    out.push_str(&format!("\nNot in the table, since no test of all dumps asks them: {}.\n", elsewhere.join(", ")));
    document(&out);
    Ok(())
}

/// Whether a source file has a test of this name.
fn is_a_test(name: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = vec![root.join("src"), root.join("tests/it")];
    let wanted = format!("fn {name}(");
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && std::fs::read_to_string(path).unwrap().contains(&wanted) {
                return true;
            }
        }
    }
    false
}

fn document(out: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = old.split_once("<!-- platforms -->\n").expect("the first marker");
    let (_, tail) = rest.split_once("<!-- end of platforms -->").expect("the second marker");
    let new = format!("{head}<!-- platforms -->\n{out}<!-- end of platforms -->{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 cargo test --test it platforms:: rewrites it");
    }
}
