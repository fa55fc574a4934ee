//! `analyze`: the fault that a program was made for is its first finding, and programs without faults have none.

use crate::harness::{Ignored, Tested};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;

use crate::common::{self, ask, cases, commands, each, every_dump, own_unpacked, run, sample};
use crate::corpus;
use crate::support::Spec;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, Endian};
use gcdump::internals::dump;
use serde_json::{Value, json};

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn findings(answer: &Value) -> &[Value] {
    answer["data"]["findings"].as_array().unwrap()
}

fn ids(answer: &Value) -> Vec<&str> {
    findings(answer).iter().map(|f| text(f, "id")).collect()
}

/// Returns the expected finding for a program of the lab, by the name of its scenario. Kernels write dumps when a process dies.
fn trouble(scenario: &str, kind: &str) -> Option<&'static str> {
    Some(match scenario {
        _ if kind == "kernel" => "crash",
        "crash" | "failfast" => "crash",
        "oom" => "oom",
        "deadlock" => "deadlock",
        "finalizers" => "stuck-finalizer",
        "pool" | "starve" => "pool-starvation",
        "locks" => "lock-queue",
        "fragmented" => "fragmentation",
        "suspects" => "suspects",
        "inspect" => "event-leaks",
        "colls" => "load-contexts",
        "async" => "async-waits",
        "hangs" => "sync-over-async",
        _ => return None,
    })
}

/// Programs without faults: they wait for something, or hold little.
const SOUND: [&str; 11] = ["asyncmix", "basics", "bridge", "dynamic", "exactctx", "handles", "http", "leak", "probe", "roots", "threads"];

/// Returns what is wrong with an answer about a program of `scenario`.
fn judge(name: &str, scenario: &str, kind: &str, exit: Exit, answer: &Value) -> Option<String> {
    let found = ids(answer);
    let partial = answer["data"]["complete"] == false;
    let wrong = |what: &str| Some(format!("{name}: {what}: {found:?}, {exit:?}"));
    if (exit == Exit::Partial) != partial || !partial && exit != Exit::Ok {
        return wrong("exit code");
    }
    // Missing memory is not a fault of the process.
    let first = found.iter().copied().find(|id| *id != "missing-parts");
    match trouble(scenario, kind) {
        Some(expected) if first != Some(expected) => wrong(&format!("{expected} is not first")),
        None if SOUND.contains(&scenario) && first.is_some() => wrong("nothing was expected"),
        _ => None,
    }
}

/// Formats a finding as in the table of `docs/coverage.md`.
fn shown(finding: &Value) -> String {
    let n = |key: &str| finding[key].as_u64();
    let numbers = [n("count").map(|n| n.to_string()), n("bytes").map(|n| format!("{n} bytes"))];
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!(" {}", numbers.join(", ")) };
    format!("{} `{}`{numbers}", text(finding, "severity"), text(finding, "id"))
}

#[test]
fn the_fault_of_every_shared_dump_comes_first() {
    // Dumps of NativeAOT without the module file are refused.
    let (dumps, missing) = every_dump(|_| true).unwrap_or_default();
    let answers = each(&dumps, |d| {
        if run(&["info", d.path.to_str().unwrap()]).exit == Exit::NoRuntime {
            return None;
        }
        Some(ask(&d.path, &["analyze"]))
    });
    let mut wrong = Vec::new();
    let mut rows: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (dump, answer) in dumps.iter().zip(&answers) {
        let Some((exit, answer)) = answer else { continue };
        wrong.extend(judge(&dump.name, &dump.scenario, &dump.kind, *exit, answer));
        if let Some(truth) = &dump.truth {
            wrong.extend(
                evidence(&dump.scenario, &findings(answer).iter().collect::<Vec<_>>(), truth).map(|w| format!("{}: {w}", dump.name)),
            );
        }
        let cell = findings(answer).iter().map(shown).collect::<Vec<_>>().join("; ");
        rows.entry(cell).or_default().push(&dump.name);
    }
    println!("{} dumps, {} skipped", dumps.len(), missing.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    if missing.is_empty() && !dumps.is_empty() && common::native_aot_program().is_some() {
        document(&rows);
    }
}

#[test]
fn growth_between_shared_dumps_comes_first() -> Tested {
    let (dumps, _) = every_dump(|row| row["name"].as_str().unwrap().ends_with(".after"))?;
    let found = each(&dumps, |d| {
        let before = common::unpacked().join(format!("{}.before.dmp", d.name.trim_end_matches(".after")));
        ask(&d.path, &["analyze", "--since", before.to_str().unwrap()])
    });
    for (dump, (exit, answer)) in dumps.iter().zip(&found) {
        let first = &findings(answer)[0];
        let (kind, count) = if dump.scenario == "leak" { ("Lab.Leaky", 250) } else { ("System.Byte[]", 1050) };
        assert_eq!(*exit, Exit::Ok, "{}", dump.name);
        assert_eq!((text(first, "id"), text(first, "type"), &first["count"]), ("growth", kind, &json!(count)), "{}: {first}", dump.name);
    }
    Ok(())
}

/// Pairs of dumps of one program. A leak of 250 KB is visible only in two dumps: in one, a list of that size looks like any other.
#[test]
fn growth_since_an_earlier_dump_is_a_finding() {
    let pair = ["before", "after"].map(|side| format!("{}/dumps/corpus/net10-wks-leak-heap.{side}.dmp.zst", env!("CARGO_MANIFEST_DIR")));
    let [before, after] = [pair[0].as_str(), pair[1].as_str()];
    let (exit, answer) = ask(Path::new(after), &["analyze", "--since", before]);
    // The second one is the list in which the program records its objects.
    assert_eq!((exit, ids(&answer)), (Exit::Ok, vec!["growth", "growth"]));
    let finding = &findings(&answer)[0];
    let diff = ask(Path::new(after), &["diff", before]).1;
    let holder = &diff["data"]["holders"][0];
    let container = holder["path"].as_array().unwrap().last().unwrap();
    assert_eq!((text(finding, "type"), &finding["count"]), ("Lab.Leaky", &json!(250)));
    assert_eq!((&finding["bytes"], &finding["object"]), (&holder["change"], &container["address"]));
    assert!(text(finding, "title").starts_with(text(holder, "text")), "{finding}");
    assert!(text(finding, "command").starts_with("gcdump retained --object"), "{finding}");

    // With the dumps swapped, or with one dump twice, nothing grew; a rule for CI fails only on growth.
    for (since, exit, options) in [
        (before, Exit::Negative, &[][..]),
        (after, Exit::Ok, &[]),
        (before, Exit::Ok, &["--min-gain", "10M"]),
        (before, Exit::Ok, &["--min-growth", "90"]),
    ] {
        let ran = run(&[&["analyze", "--fail-on", "growth", "--since", since, after], options].concat());
        assert_eq!(ran.exit, exit, "{since} {options:?}: {}", ran.err);
    }
    let same = run(&["analyze", "--since", after, after]).out;
    assert!(same.contains("No growth since net10-wks-leak-heap.after") && !same.contains("One dump cannot show growth"), "{same}");
    // In the wrong order, nothing could be found.
    let ran = run(&["analyze", "--json", "--fail-on", "growth", "--since", after, before]);
    let swapped = ran.json();
    assert_eq!((ran.exit, ids(&swapped), &swapped["data"]["complete"]), (Exit::Partial, vec![], &json!(false)));
    let skipped = &swapped["data"]["skipped"][0];
    assert!(skipped["id"] == "growth" && text(skipped, "reason").contains("taken last"), "{skipped}");
    let shown = run(&["analyze", "--since", after, before]).out;
    assert!(!shown.contains("No growth") && shown.contains("Not checked: growth: "), "{shown}");

    // With `--no-graph` the graph is not built for growth either: both heaps are small.
    let (exit, quick) = ask(Path::new(after), &["analyze", "--no-graph", "--only", "growth", "--since", before]);
    let skipped = &quick["data"]["skipped"][0];
    assert!(exit == Exit::Ok && skipped["id"] == "growth" && skipped["needs"] == "graph", "{quick}");

    // Without an earlier dump growth is not searched for, and a request for it is refused.
    let (exit, alone) = ask(Path::new(after), &["analyze"]);
    assert!(exit == Exit::Ok && alone["data"]["inspected"].as_array().unwrap().iter().all(|id| id != "growth"));
    for option in ["--only", "--fail-on"] {
        let ran = run(&["analyze", option, "growth", after]);
        assert!(ran.exit == Exit::Usage && ran.err.contains("--since"), "{}", ran.err);
    }
}

/// Returns what contradicts the program's own record of its fault.
fn evidence(scenario: &str, found: &[&Value], truth: &Value) -> Option<String> {
    let first = found.first()?;
    let same = |key: &str, expected: &Value| (&first[key] != expected).then(|| format!("{key} is {}, not {expected}", first[key]));
    match scenario {
        "locks" => same("object", &truth["contended"]).or_else(|| same("count", &truth["waiters"])),
        "suspects" => same("object", &truth["cache"]),
        "deadlock" => {
            let cycles = truth["threads"].as_array()?;
            let id = |name: &str| cycles.iter().find(|t| t["name"] == name).map(|t| t["managed"].clone());
            let expected = [id("ab"), id("ba")].into_iter().flatten().collect::<Vec<_>>();
            let reported = found.iter().any(|f| f["threads"].as_array().is_some_and(|t| expected.iter().all(|id| t.contains(id))));
            (expected.len() != 2 || !reported).then(|| format!("the deadlock of {expected:?} is not reported"))
        }
        "starve" => same("count", &json!(4)),
        "inspect" => same("count", &truth["subscribers"]),
        _ => None,
    }
}

/// Fails if the table in `docs/coverage.md` is outdated; `GCDUMP_BLESS=1` rewrites it.
fn document(rows: &BTreeMap<String, Vec<&str>>) {
    let mut part = String::from("| findings, in order | dumps |\n| --- | --- |\n");
    for (cell, names) in rows {
        part.push_str(&format!("| {} | {} |\n", if cell.is_empty() { "none" } else { cell }, names.join(", ")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = common::COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = old.split_once("<!-- analyze -->\n").expect("the first marker");
    let (_, tail) = rest.split_once("<!-- end of analyze -->").expect("the second marker");
    let new = format!("{head}<!-- analyze -->\n{part}<!-- end of analyze -->{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 cargo test --test it analyze:: rewrites it");
    }
}

#[test]
fn the_corpus_has_its_faults_and_each_suggested_command_works() {
    let dumps = sample(corpus::dumps(), 8);
    let wrong: Vec<String> = each(&dumps, |path| {
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".zst").trim_end_matches(".dmp");
        let mut parts = name.split(['-', '.']).skip_while(|p| !["wks", "svr", "seg", "segsvr", "datas"].contains(p)).skip(1);
        let (scenario, kind) = (parts.next().unwrap(), parts.next().unwrap());
        let ran = run(&["analyze", "--json", "--no-local-files", path.to_str().unwrap()]);
        if ran.out.is_empty() {
            return vec![format!("{name}: {:?}: {}", ran.exit, ran.err)];
        }
        let answer = ran.json();
        let mut wrong: Vec<String> = judge(name, scenario, kind, ran.exit, &answer).into_iter().collect();
        for finding in findings(&answer) {
            let line = text(finding, "command");
            let (words, answers) = commands::leads_on(line);
            assert_eq!(words.last().map(String::as_str), path.to_str(), "{line}");
            if !answers {
                wrong.push(format!("{name}: {line}"));
            }
        }
        wrong
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(dumps.len() > cases(8, 60) && wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn thresholds_and_exit_codes_are_as_asked() {
    let path = own_unpacked();
    let path = path.to_str().unwrap();
    let ask = |options: &[&str]| {
        let ran = run(&[&["analyze", "--json", path], options].concat());
        (ran.exit, if ran.out.is_empty() { Value::Null } else { ran.json() })
    };
    let (exit, sound) = ask(&["--fail-on", "info"]);
    assert_eq!((exit, ids(&sound)), (Exit::Ok, vec![]));
    assert_eq!((sound["data"]["skipped"].clone(), sound["data"]["inspected"].as_array().unwrap().len()), (json!([]), 35));
    let table = run(&["analyze", path]).out;
    assert!(
        table.starts_with("Nothing found above the thresholds. Looked for 35 kinds of problems") && table.lines().count() == 8,
        "{table}"
    );
    assert!(table.lines().skip(1).take(2).all(|line| line.starts_with("Below the threshold of 1.0 MiB: ")), "{table}");
    let small = ["--min-bytes", "100K"];
    let (exit, held) = ask(&small);
    assert_eq!((exit, ids(&held)), (Exit::Ok, vec!["suspects", "zero-arrays"]));
    let suspect = &findings(&held)[0];
    assert!(text(suspect, "title").contains("held by Lab.Program.Keep"), "{suspect}");
    assert_eq!(text(suspect, "command"), format!("gcdump retained --object {} {path}", text(suspect, "object")));
    let fails = |on: &str| ask(&["--min-bytes", "100K", "--fail-on", on]).0;
    assert_eq!(
        ["critical", "warning", "info", "suspects", "ZERO-ARRAYS", "oom"].map(fails),
        [Exit::Ok, Exit::Negative, Exit::Negative, Exit::Negative, Exit::Negative, Exit::Ok]
    );
    assert_eq!(fails("warnings"), Exit::Usage);
    assert_eq!(ids(&ask(&["--min-bytes", "100K", "--min-share", "95", "--min-waste", "70"]).1), [] as [&str; 0]);
    let (exit, some) = ask(&["--no-graph", "--only", "suspects", "--only", "oom"]);
    assert_eq!((exit, &some["data"]["inspected"]), (Exit::Ok, &json!(["oom"])));
    assert_eq!(some["data"]["skipped"][0]["id"], "suspects");
}

/// The pool of the dump is starved, and all about the pool is known, although the answer is partial: a build fails on that and on nothing else.
#[test]
fn a_certain_finding_of_a_partial_answer_fails_the_build() {
    let [starved, pool] =
        ["starve", "pool"].map(|name| format!("{}/dumps/corpus/net10-wks-{name}-heap.dmp.zst", env!("CARGO_MANIFEST_DIR")));
    let ask = |on: &str| run(&["analyze", "--json", "--no-local-files", "--fail-on", on, &starved]);
    for (on, exit) in [("critical", Exit::Negative), ("pool-starvation", Exit::Negative), ("deadlock", Exit::Partial)] {
        let ran = ask(on);
        assert_eq!((ran.exit, &ran.json()["data"]["complete"]), (exit, &json!(false)), "{on}: {}", ran.err);
    }
    let diff = |rule: &str| run(&["diff", "--json", "--no-local-files", "--fail-on", rule, &starved, &pool]);
    for (rule, exit) in [("objects > 1", Exit::Negative), ("objects > 1000000", Exit::Partial)] {
        let ran = diff(rule);
        let failed = &ran.json()["data"]["rules"][0]["failed"];
        assert_eq!((ran.exit, failed), (exit, &json!(exit == Exit::Negative)), "{rule}: {}", ran.err);
    }
}

#[test]
fn an_analysis_that_does_not_fit_in_memory_is_reported() {
    let dump = own_unpacked();
    let ran = run(&["analyze", "--json", "--max-memory", "1K", dump.to_str().unwrap()]);
    let answer = ran.json();
    let skipped: Vec<&str> = answer["data"]["skipped"].as_array().unwrap().iter().map(|s| text(s, "id")).collect();
    assert!(ran.exit == Exit::Partial && skipped.contains(&"suspects"), "{:?} {skipped:?}", ran.exit);
    assert!(answer["warnings"].as_array().unwrap().iter().any(|w| text(w, "message").starts_with("leak suspects are not inspected")));
}

#[test]
fn suggested_commands_repeat_the_options_of_the_dump() {
    let folder = tempfile::Builder::new().prefix("it's a ").tempdir().unwrap();
    let path = folder.path().join("a b.dmp");
    std::fs::copy(own_unpacked(), &path).unwrap();
    let (folder, path) = (folder.path().to_str().unwrap(), path.to_str().unwrap());
    let ran = run(&["analyze", "--json", "--min-bytes", "100K", "--only", "suspects", "--modules", folder, "--no-local-files", path]);
    let answer = ran.json();
    let line = text(&findings(&answer)[0], "command");
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    assert!(line.ends_with(&format!(" --modules {} --no-local-files {}", quoted(folder), quoted(path))), "{line}");
    let info = run(&["info", "--json", path]).json();
    assert_eq!(info["data"]["next"], format!("gcdump analyze {}", quoted(path)));
    let info = run(&["info", "--json", "--modules", folder, "--no-local-files", path]).json();
    assert_eq!(info["data"]["next"], format!("gcdump analyze --modules {} --no-local-files {}", quoted(folder), quoted(path)));
}

#[test]
fn synthetic_processes_are_analyzed() {
    for shape in crate::common::shapes() {
        for moving in [false, true] {
            let spec = Spec { gc_in_progress: moving, ..Spec::standard(shape) };
            let target = spec.build();
            let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            std::fs::write(file.path(), target.to_elf_core()).unwrap();
            let (exit, answer) = ask(file.path(), &["analyze"]);
            let expected = if moving { vec!["oom", "gc-in-progress"] } else { vec!["oom"] };
            assert_eq!((exit, ids(&answer)), (Exit::Partial, expected), "{shape:?}");
            assert_eq!(findings(&answer)[0]["bytes"], target.expected()["oom"][0]["alloc_size"], "{shape:?}");
            // The process has no fields from which locks could be read.
            let skipped = answer["data"]["skipped"].as_array().unwrap();
            let why = skipped.iter().find(|s| s["id"] == "deadlock").map(|s| text(s, "reason").to_string());
            let because = if moving { "a collection was moving objects" } else { "FieldDesc" };
            assert!(why.is_some_and(|why| why.contains(because)), "{shape:?}: {skipped:?}");
        }
    }
}

/// An earlier version reported no suspects although `retained --suspects` named one with half of a small heap.
#[test]
fn a_suspect_of_retained_is_a_finding_or_below_a_threshold() {
    let mut below = 0;
    for path in sample(corpus::dumps(), 20).into_iter().chain([corpus::dump("net10-wks-leak-heap.after")]) {
        let (_, retained) = ask(&path, &["retained", "--suspects"]);
        let (_, answer) = ask(&path, &["analyze", "--only", "suspects"]);
        let lists = ["findings", "below"].map(|list| answer["data"][list].as_array().into_iter().flatten());
        let said: Vec<&Value> = lists.into_iter().flatten().collect();
        // Shares of the few objects of a mini dump mean nothing.
        if answer["warnings"].as_array().unwrap().iter().any(|w| w["kind"] == "no-heap") {
            assert!(said.iter().all(|p| p["share"].is_null()), "{}", path.display());
            continue;
        }
        for suspect in retained["data"]["suspects"].as_array().into_iter().flatten() {
            let is = |p: &&&Value| (&p["object"], &p["type"], &p["bytes"]) == (&suspect["address"], &suspect["type"], &suspect["retained"]);
            // Objects that frames of one method hold are one finding.
            let among = |p: &Value| {
                let one_of_several = text(p, "title").contains("each held by a frame of") && p["type"] == suspect["type"];
                one_of_several && p["bytes"].as_u64() > suspect["retained"].as_u64()
            };
            assert!(said.iter().any(|p| is(&p) || among(p)), "{}: {suspect}", path.display());
        }
        below += answer["data"]["below"].as_array().into_iter().flatten().count();
    }
    assert!(below > 0);
    let shown = run(&["analyze", "--no-local-files", corpus::dump("net10-wks-leak-heap.after").to_str().unwrap()]).out;
    let line = "Below the threshold of 1.0 MiB: System.Collections.Generic.List<System.Object> 0x7f7e11c05c70, held by Lab.Program.Keep";
    assert!(shown.contains(line), "{shown}");
}

/// Threads that do the same are one finding.
#[test]
fn objects_that_frames_of_one_method_hold_are_one_finding() -> Tested {
    let path = common::unpacked().join("net10-wks-busy-gcore.dmp");
    if !path.is_file() {
        return Err(Ignored(format!("{} is not there", path.display())));
    }
    let (_, answer) = ask(&path, &["analyze", "--only", "suspects"]);
    let (_, retained) = ask(&path, &["retained", "--suspects"]);
    let found = answer["data"]["findings"].as_array().unwrap();
    let suspects: Vec<&Value> = retained["data"]["suspects"].as_array().unwrap().iter().filter(|s| !s["address"].is_null()).collect();
    let sum: u64 = suspects.iter().map(|s| s["retained"].as_u64().unwrap()).sum();
    let merged: Vec<&Value> = found.iter().filter(|f| text(f, "title").contains("each held by a frame of")).collect();
    assert!(suspects.len() > 1 && merged.len() == 1, "{found:?}");
    assert_eq!((&merged[0]["count"], &merged[0]["bytes"]), (&suspects.len().into(), &sum.into()));
    Ok(())
}

/// An earlier version reported "SIGABRT …, no exception in flight", and no stack for a secondary thread.
#[test]
fn a_stack_overflow_names_its_recursion() -> Tested {
    for (name, thread, least, by) in [
        ("net10-wks-nativeoverflowthread-heap", 4, 2_000, "Cases.NativeCrash.Go.b__39_0 (lambda)"),
        ("net10-wks-nativestackoverflow-heap", 1, 60_000, "Cases.NativeCrash.Go()"),
    ] {
        let path = common::unpacked().join(format!("{name}.dmp"));
        if !path.is_file() {
            return Err(Ignored(format!("{} is not there", path.display())));
        }
        let (exit, answer) = ask(&path, &["analyze", "--only", "crash"]);
        let [crash] = findings(&answer) else { panic!("{answer}") };
        let times = crash["count"].as_u64().unwrap();
        assert!(exit == Exit::Ok && times > least && crash["threads"] == serde_json::json!([thread]), "{crash}");
        let cycle = "Cases.NativeCrash.Recurse → Cases.NativeCrash.Middle";
        let title = text(crash, "title");
        assert!(title.starts_with(&format!("Stack overflow on thread {thread}: {cycle}, about ")), "{title}");
        assert!(title.ends_with(&format!(" times, started by {by}")), "{title}");
        assert_eq!(text(crash, "type"), "System.StackOverflowException");
        let shown = run(&["info", "--no-local-files", path.to_str().unwrap()]).out;
        assert!(shown.contains("SIGABRT (SI_USER), stack overflow in thread "), "{shown}");
    }
    Ok(())
}

fn crash_of(path: &Path) -> Value {
    let (_, answer) = ask(path, &["analyze", "--only", "crash"]);
    findings(&answer).first().cloned().unwrap_or(Value::Null)
}

/// An earlier version reported "no exception in flight" although `threads` shows the exception that the runtime keeps for such an end.
#[test]
fn a_crash_names_the_exception_that_threads_shows() {
    let mut named = 0;
    for path in sample(corpus::dumps(), 20).into_iter().chain([corpus::dump("net10-wks-failfast-heap")]) {
        let crash = crash_of(&path);
        let (_, threads) = ask(&path, &["threads"]);
        let crashed = threads["data"]["threads"].as_array().into_iter().flatten().find(|t| t["crashed"] == true);
        let exception = crashed.map_or(&Value::Null, |t| &t["exception"]);
        // The exception that was being handled when a process ended itself is not the cause (`tests/it/hangs.rs`).
        let itself = text(&crash, "title").starts_with("FailFast");
        if !crash.is_null() && exception["type"].is_string() && !itself {
            assert_eq!((&crash["object"], &crash["type"]), (&exception["address"], &exception["type"]), "{}", path.display());
            assert!(text(&crash, "title").contains(text(exception, "type")), "{}: {crash}", path.display());
            named += 1;
        }
    }
    assert!(named > 0);
}

/// The lab's dump of a stack overflow is too large for the repository. Here, the crashed thread's last exception is replaced by the one that
/// the runtime keeps for a stack overflow.
#[test]
fn a_stack_overflow_is_named() {
    let path = corpus::dump("net10-wks-failfast-heap");
    let title = text(&crash_of(&path), "title").to_string();
    assert!(title.starts_with("FailFast on thread 1: ") && title.contains("; exception System.InvalidOperationException"), "{title}");
    let (_, kept) = ask(&path, &["exceptions", "--type", "System.StackOverflowException"]);
    let kept = common::number(&kept["data"]["exceptions"][0]["address"]);
    let (_, threads) = ask(&path, &["threads"]);
    let thread = threads["data"]["threads"].as_array().unwrap().iter().find(|t| t["crashed"] == true).unwrap();

    let bytes = common::bytes_of("net10-wks-failfast-heap").unwrap();
    let file = dump::open_bytes(dump::Bytes::Owned(bytes.clone()), Path::new("failfast.dmp"), &dump::OpenOptions::default()).unwrap();
    let opened = gcdump::Dump::open(&path, &gcdump::OpenOptions::default()).unwrap();
    let runtime = opened.runtime().unwrap();
    let at = Addr(common::number(&thread["address"])).plus(runtime.descriptor().offset("Thread", "LastThrownObject").unwrap());
    let handle = opened.memory().ptr(at).unwrap();
    let altered = common::with_words(&file, &bytes, Endian::Little, &[(handle, kept, 8)]);
    let copy = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(copy.path(), altered).unwrap();
    let crash = crash_of(copy.path());
    let (title, method) = (text(&crash, "title"), text(&crash, "method"));
    assert!(title.starts_with("Stack overflow on thread 1: ") && text(&crash, "type") == "System.StackOverflowException", "{crash}");
    assert!(title.contains(method.split('(').next().unwrap()), "{crash}");
    let (_, info) = ask(copy.path(), &["info"]);
    assert_eq!(info["data"]["fault"]["stack_overflow"], true);
}
