//! `analyze`: the three lines that end every answer, and findings about hangs and memory.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{self, ask, cases, commands, each, run, sample};
use crate::corpus;
use crate::harness::{Ignored, Tested};
use gcdump::cli::Exit;

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn findings(answer: &Value) -> &[Value] {
    answer["data"]["findings"].as_array().unwrap()
}

fn first(path: &Path, options: &[&str]) -> Value {
    let (_, answer) = ask(path, &[&["analyze"], options].concat());
    findings(&answer).first().cloned().unwrap_or(Value::Null)
}

/// A dump of `../shared/cases`.
fn case(name: &str) -> Result<PathBuf, Ignored> {
    let path = common::needs_shared()?.parent().unwrap().join(format!("cases/{name}.dmp.zst"));
    let missing = || Ignored("the shared cases (../shared/cases) are not on this machine".into());
    path.is_file().then_some(path).ok_or_else(missing)
}

#[test]
fn every_run_ends_with_a_crash_a_hang_and_memory() {
    let dumps = sample(corpus::dumps(), 8);
    let wrong: Vec<String> = each(&dumps, |path| {
        let name = path.display();
        let ran = run(&["analyze", "--json", "--no-local-files", path.to_str().unwrap()]);
        if ran.out.is_empty() {
            return Vec::new();
        }
        let answer = ran.json();
        let rows = answer["data"]["triage"].as_array().unwrap();
        let complaints: Vec<&str> = rows.iter().map(|row| text(row, "complaint")).collect();
        let mut wrong = Vec::new();
        if complaints != ["crash", "hang", "memory"] {
            wrong.push(format!("{name}: {complaints:?}"));
        }
        for row in rows {
            if let Some(index) = row["found"].as_u64() {
                let finding = &findings(&answer)[usize::try_from(index).unwrap()];
                let (title, shown) = (text(finding, "title"), text(row, "text"));
                // The holder of a suspect and what it retains, in short.
                let brief = finding["id"] == "suspects" && shown.split(" retains ").all(|part| title.contains(part.trim_end_matches('…')));
                // The event that threads wait for, without its address and its type.
                let queue = finding["id"] == "lock-queue" && title.starts_with(shown.split(" one ").next().unwrap());
                let begins = brief || queue || title.starts_with(shown.trim_end_matches('…'));
                if !begins || row["command"] != finding["command"] {
                    wrong.push(format!("{name}: {row} is not {finding}"));
                }
                continue;
            }
            let (words, answers) = commands::leads_on(text(row, "command"));
            if !answers {
                wrong.push(format!("{name}: {words:?}"));
            }
        }
        let shown = run(&["analyze", "--no-local-files", path.to_str().unwrap()]).out;
        let last: Vec<&str> = shown.lines().rev().take(3).collect();
        let begin = ["memory  ", "hang    ", "crash   "];
        if !last
            .iter()
            .zip(begin)
            .all(|(line, begin)| line.starts_with(begin) && (line.chars().count() <= 80 || line.ends_with(path.to_str().unwrap())))
        {
            wrong.push(format!("{name}: {last:?}"));
        }
        wrong
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(dumps.len() > cases(8, 60) && wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// An earlier version found nothing about 120 methods that wait for a promise.
#[test]
fn methods_that_wait_for_one_promise_are_a_finding() {
    let path = corpus::dump("net10-wks-async-heap");
    let (exit, answer) = ask(&path, &["analyze"]);
    let finding = &findings(&answer)[0];
    assert_eq!((exit, findings(&answer).len()), (Exit::Ok, 1));
    assert_eq!((text(finding, "id"), text(finding, "severity"), &finding["count"]), ("async-waits", "info", &json!(120)));
    assert_eq!(text(finding, "method"), "Lab.Waits.Leaf");
    let title = "120 asynchronous methods wait for one TaskCompletionSource in Lab.Waits.Never: 40 chains of up to 3 methods, innermost Lab.Waits.Leaf";
    assert!(text(finding, "title").starts_with(title), "{finding}");
    assert_eq!(answer["data"]["triage"][1]["found"], 0);
    assert_eq!(first(&path, &["--min-waits", "41"]), Value::Null);
    // Without the graph, only the holder is unknown.
    let quick = first(&path, &["--no-graph"]);
    assert!(text(&quick, "title").starts_with("120 asynchronous methods wait for one TaskCompletionSource: 40 chains"), "{quick}");
    // Methods that wait for this promise and are in order.
    assert_eq!(first(&corpus::dump("net10-wks-asyncmix-heap"), &["--only", "async-waits"]), Value::Null);
}

/// An earlier version reported only the asynchronous methods, which users of a web server do not see.
#[test]
fn requests_without_an_answer_come_first() -> Tested {
    let hung = "; 499 wait in Web.Program.Pay for the semaphore in Web.PaymentGate.Slot";
    for dump in common::web_dumps()? {
        let (count, begin, end) = match dump.name.as_str() {
            "web10-hung" => (560, "the oldest, GET /pay/0, for 2 s", hung),
            "web11-hung" => (560, "the oldest, GET /pay/0, for 5 s", hung),
            "web10-http2" => (30, "the oldest, GET /export/11, for 2 s", "; all wait in "),
            _ => continue,
        };
        let (_, answer) = ask(&dump.path, &["analyze"]);
        let finding = &findings(&answer)[0];
        assert_eq!(
            (text(finding, "id"), text(finding, "severity"), &finding["count"]),
            ("requests", "warning", &json!(count)),
            "{}",
            dump.name
        );
        let title = format!("{count} incoming HTTP requests are not answered, {begin}{end}");
        assert!(text(finding, "title").starts_with(&title), "{finding}");
        assert_eq!(answer["data"]["triage"][1]["found"], 0, "{}", dump.name);
        let none = first(&dump.path, &["--only", "requests", "--min-requests", "561"]);
        assert_eq!(none, Value::Null, "{}", dump.name);
    }
    Ok(())
}

#[test]
fn garbage_outside_of_gen0_is_a_finding() {
    let path = corpus::dump("net10-svr-oom-heap");
    let finding = first(&path, &["--only", "garbage"]);
    let (_, unreachable) = ask(&path, &["unreachable"]);
    let all = &unreachable["data"]["unreachable"];
    assert_eq!((text(&finding, "id"), text(&finding, "type")), ("garbage", "System.Byte[]"));
    let bytes = finding["bytes"].as_u64().unwrap();
    assert!(bytes <= all["bytes"].as_u64().unwrap() && bytes > all["bytes"].as_u64().unwrap() * 9 / 10, "{finding} {all}");
    assert!(text(&finding, "title").contains("was last collected by GC #"), "{finding}");
    assert_eq!(first(&path, &["--only", "garbage", "--min-garbage", "60"]), Value::Null);
    assert_eq!(first(&path, &["--only", "garbage", "--min-bytes", "5M"]), Value::Null);
}

#[test]
fn native_memory_and_assemblies_without_a_file_have_thresholds() {
    let path = corpus::dump("net10-wks-basics-heap");
    let native = first(&path, &["--only", "native-memory", "--min-bytes", "10K"]);
    let (_, memory) = ask(&path, &["memory"]);
    let kinds = memory["data"]["kinds"].as_array().unwrap();
    let of_native = kinds.iter().filter(|k| k["kind"] == "anonymous" || k["kind"] == "malloc");
    let bytes: u64 = of_native.map(|k| k["accessible_bytes"].as_u64().unwrap()).sum();
    assert_eq!((text(&native, "id"), &native["bytes"]), ("native-memory", &json!(bytes)));
    assert!(text(&native, "title").contains(" in the brk heap"), "{native}");
    assert_eq!(first(&path, &["--only", "native-memory"]), Value::Null);

    let path = corpus::dump("net10-wks-dynamic-heap");
    let dynamic = first(&path, &["--only", "dynamic-assemblies", "--min-dynamic", "1"]);
    let (_, modules) = ask(&path, &["modules"]);
    let count = modules["data"]["modules"].as_array().unwrap().iter().filter(|m| m["kind"] == "dynamic").count();
    assert!(count > 0 && dynamic["count"] == json!(count), "{dynamic}: {count}");
    assert_eq!(first(&path, &["--only", "dynamic-assemblies"]), Value::Null);
}

#[test]
fn cases_of_memory_have_findings_with_their_cause() -> Tested {
    for (name, id, part) in [
        ("garbage10", "garbage", "gen2 was last collected by GC #1, and its allocation budget is 256.0 KiB"),
        ("release10", "free-regions", "44.1 MiB are committed in free regions"),
        ("hglobal10", "native-memory", "malloc has 97.7 MiB (97.7 MiB in the brk heap)"),
        ("dynasm10", "dynamic-assemblies", "1,000 × Microsoft.GeneratedCode*"),
    ] {
        let (_, answer) = ask(&case(name)?, &["analyze"]);
        let ids: Vec<&str> = findings(&answer).iter().map(|f| text(f, "id")).collect();
        assert_eq!(ids, [id], "{name}");
        assert!(text(&findings(&answer)[0], "title").contains(part), "{name}: {}", findings(&answer)[0]);
        assert_eq!(answer["data"]["triage"][2]["found"], 0, "{name}");
    }
    Ok(())
}
