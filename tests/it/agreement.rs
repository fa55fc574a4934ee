//! Findings of `analyze` have the same numbers as the command that each of them suggests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::commands::words;
use crate::common::{ask, each, every_dump, run, sample};
use crate::corpus;

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn sum(rows: &[Value], name: &str) -> u64 {
    rows.iter().filter_map(|row| row[name].as_u64()).sum()
}

/// Returns the answer to a command line that a finding suggests. Each command line runs once.
fn answer<'a>(line: &str, asked: &'a mut BTreeMap<String, Value>) -> &'a Value {
    asked.entry(line.into()).or_insert_with(|| {
        let mut args: Vec<String> = words(line).into_iter().skip(1).collect();
        args.push("--json".into());
        let ran = run(&args);
        assert!(!ran.out.is_empty(), "{line}: {:?} {}", ran.exit, ran.err);
        ran.json()["data"].take()
    })
}

/// Pairs of a number in the finding and the same number in the answer of the command that it suggests. `None` if no command has the number
/// of the finding.
fn pairs(finding: &Value, data: &Value) -> Option<Vec<(&'static str, Value, Value)>> {
    let (count, bytes) = (finding["count"].clone(), finding["bytes"].clone());
    let threads: BTreeSet<u64> = list(finding, "threads").iter().filter_map(Value::as_u64).collect();
    let ids = |values: &[Value]| values.iter().filter_map(Value::as_u64).collect::<BTreeSet<u64>>();
    let inspection = || list(data, "inspections").first().cloned().unwrap_or_default();
    Some(match text(finding, "id") {
        "deadlock" => {
            let cycles = list(data, "deadlocks").iter().map(|d| ids(list(d, "threads")));
            let found = cycles.filter(|cycle| *cycle == threads).count();
            vec![("deadlocks of these threads", 1.into(), found.into()), ("threads", count, threads.len().into())]
        }
        "lock-queue" | "orphaned-lock" => {
            let of = list(data, "locks").iter().find(|lock| lock["object"] == finding["object"]).cloned().unwrap_or_default();
            let blocked: BTreeSet<u64> = list(data, "waits").iter().filter_map(|w| w["managed_id"].as_u64()).collect();
            let known = list(&of, "waiters").len() as u64;
            vec![
                ("threads that are blocked", 0.into(), threads.difference(&blocked).count().into()),
                ("waiters", count.clone(), if known == 0 { count } else { known.into() }),
            ]
        }
        "sync-over-async" => {
            let of_task = |w: &&Value| w["kind"] == "task" && w["managed_id"].as_u64().is_some_and(|id| threads.contains(&id));
            vec![("threads that wait for tasks", count, list(data, "waits").iter().filter(of_task).count().into())]
        }
        "stuck-finalizer" => vec![("objects ready", count, data["ready"].clone())],
        "pool-starvation" => {
            let workers: Vec<Value> = list(data, "workers").iter().map(|w| w["managed_id"].clone()).collect();
            vec![
                ("items", count.clone(), data["pending"].clone()),
                ("items in queues", count, sum(list(data, "groups"), "count").into()),
                ("threads", threads.len().into(), ids(&workers).len().into()),
                ("starved", true.into(), data["starved"].clone()),
            ]
        }
        "requests" => {
            let open = list(data, "requests").iter().filter(|r| r["state"] == "processing").count() as u64;
            let there = list(data, "requests").iter().any(|r| r["object"] == finding["object"]);
            vec![
                ("no more than there are", true.into(), count.as_u64().is_some_and(|n| n <= open).into()),
                ("the oldest", true.into(), there.into()),
            ]
        }
        "async-waits" => {
            let methods: BTreeSet<&str> = list(data, "chains")
                .iter()
                .filter(|chain| chain["root"]["object"] == finding["object"])
                .flat_map(|chain| list(chain, "frames"))
                // Other compilers than Roslyn name the state otherwise, and names may be missing.
                .filter(|frame| !frame["state"].is_null() || text(frame, "type").contains("StateMachineBox"))
                .map(|frame| text(frame, "object"))
                .collect();
            vec![("methods", count, methods.len().into())]
        }
        "same-place" => {
            let method = text(finding, "method");
            let most = list(data, "merged").iter().filter(|f| text(f, "method") == method).filter_map(|f| f["threads"].as_u64()).max();
            vec![("threads in it", true.into(), (most >= count.as_u64()).into()), ("threads", count, threads.len().into())]
        }
        "connection-pools" => {
            let there = |p: &&Value| finding["title"].as_str().is_some_and(|title| title.contains(text(p, "server")));
            vec![("pools", count, list(data, "pools").iter().filter(there).count().into())]
        }
        "unobserved-exceptions" => vec![("faulted tasks", count, inspection()["found"].clone())],
        "exceptions" => {
            let same = |g: &&Value| g["type"] == finding["type"] && g["method"] == finding["method"];
            vec![("exceptions", count, list(data, "groups").iter().find(same).map_or(Value::Null, |g| g["count"].clone()))]
        }
        "fragmentation" => vec![
            ("free bytes", bytes, data["totals"]["free_bytes"].clone()),
            ("share", finding["share"].clone(), data["totals"]["share"].clone()),
            ("pinned objects", count, data["totals"]["pinned_objects"].clone()),
        ],
        "garbage" => {
            let all = data["unreachable"]["bytes"].as_u64().unwrap_or_default();
            vec![("no more than there is", true.into(), bytes.as_u64().is_some_and(|n| n <= all).into())]
        }
        "free-regions" => {
            let free = list(data, "kinds").iter().filter(|k| text(k, "kind").contains("free")).cloned().collect::<Vec<_>>();
            vec![("no more than there is", true.into(), (bytes.as_u64() <= Some(sum(&free, "bytes"))).into())]
        }
        "suspects" if !finding["object"].is_null() => vec![
            ("retained", bytes, data["object"]["retained"].clone()),
            ("share", finding["share"].clone(), data["object"]["share"].clone()),
            ("type", finding["type"].clone(), data["object"]["type"].clone()),
        ],
        "load-contexts" | "event-leaks" | "registrations" => {
            let there = list(&inspection(), "rows").iter().any(|row| row["object"] == finding["object"]);
            vec![("listed", true.into(), there.into())]
        }
        "equal-strings"
        | "sparse-arrays"
        | "oversized-collections"
        | "empty-collections"
        | "equal-arrays"
        | "zero-arrays"
        | "zero-tails" => {
            vec![("found", count, inspection()["found"].clone()), ("wasted", bytes, inspection()["wasted_bytes"].clone())]
        }
        "timers" => vec![("active", count, data["active"].clone())],
        "dynamic-assemblies" => {
            vec![("assemblies", count, list(data, "modules").iter().filter(|m| m["kind"] == "dynamic").count().into())]
        }
        "handles" => vec![("handles", count, data["total"].clone())],
        _ => return None,
    })
}

/// Returns how many numbers were compared, and a message for each that differs.
fn contradictions(path: &Path) -> (usize, Vec<String>) {
    let (exit, answer_of_all) = ask(path, &["analyze"]);
    if matches!(exit, Exit::NoRuntime | Exit::Usage) {
        return (0, Vec::new());
    }
    let (mut asked, mut compared, mut wrong) = (BTreeMap::new(), 0, Vec::new());
    for finding in list(&answer_of_all["data"], "findings") {
        let data = answer(text(finding, "command"), &mut asked);
        for (what, said, known) in pairs(finding, data).unwrap_or_default() {
            compared += 1;
            if said != known {
                wrong.push(format!("{}: {what}: {said}, but {known} by {}: {}", path.display(), finding["command"], finding["title"]));
            }
        }
    }
    (compared, wrong)
}

fn check(paths: &[PathBuf], least: usize) {
    let found = each(paths, |path| contradictions(path));
    let compared: usize = found.iter().map(|(n, _)| n).sum();
    let wrong: Vec<&str> = found.iter().flat_map(|(_, wrong)| wrong).map(String::as_str).collect();
    println!("{} dumps, {compared} figures compared", paths.len());
    assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
    assert!(paths.is_empty() || compared >= least, "{compared} figures of {} dumps", paths.len());
}

#[test]
fn findings_agree_with_the_commands_that_they_suggest() {
    check(&sample(corpus::dumps(), 5), 10);
    let (shared, _) = every_dump(|_| true).unwrap_or_default();
    check(&sample(shared.into_iter().map(|d| d.path), 9), 5);
}
