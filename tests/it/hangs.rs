//! Findings of `analyze` about crashes and hangs name their cause, and have the same counts as the commands that they name.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{self, ask, cases, commands, each, number, sample};
use crate::corpus;
use crate::harness::Tested;
use gcdump::cli::Exit;

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn findings(path: &Path, options: &[&str]) -> Vec<Value> {
    let (_, answer) = ask(path, &[&["analyze"], options].concat());
    list(&answer["data"]["findings"]).to_vec()
}

fn only(path: &Path, id: &str, options: &[&str]) -> Value {
    findings(path, &[&["--only", id], options].concat()).first().cloned().unwrap_or(Value::Null)
}

/// An earlier version reported "SIGABRT …" with an exception that was merely being handled.
#[test]
fn a_process_that_ended_itself_says_so() -> Tested {
    let shared = common::needs_shared()?;
    let unpacked = |name: &str| common::unpacked().join(format!("{name}.dmp"));
    for (path, begin, end) in [
        (
            corpus::dump("net10-wks-failfast-heap"),
            "FailFast on thread 1: the config store is gone: code 4711; exception System.InvalidOperationException: inner reason",
            "; called by Pub.Program.Main(System.String[])",
        ),
        (
            shared.join("../cases/failfast10.dmp.zst"),
            "FailFast on thread 1: the config store is gone: code 4711; exception System.InvalidOperationException: inner reason",
            "; called by Pub.Program.Main(System.String[])",
        ),
        (
            corpus::dump("net10-wks-nestedfailfast-heap"),
            "FailFast on thread 1: a message for FailFast, ü中; exception Cases.CaseException: second from outside",
            "; called by Cases.Nested.FailFastWith()",
        ),
        (
            unpacked("net10-wks-nestedwithin-heap"),
            "FailFast on thread 1: nested: in the catch of the second, within the catch of the first",
            "; called by Cases.Nested.Die(System.String, System.String[]) while System.InvalidOperationException: second was handled",
        ),
        (
            corpus::dump("net8-wks-nestedthree-heap"),
            "FailFast on thread 1: nested: in a filter, which runs in a finally that runs in a catch",
            "; called by Cases.Nested.Die(System.String, System.String[]) while Cases.CaseException: third was handled",
        ),
        (
            corpus::dump("net11-wks-asyncliverasync-heap"),
            "FailFast on thread 6: asynclive: dies in the resumed inner method",
            "; called by Cases.AsyncLive.Resumed(Cases.Marker, Int32)",
        ),
    ] {
        if !path.is_file() {
            continue;
        }
        let crash = only(&path, "crash", &[]);
        let title = text(&crash, "title");
        assert!(title.starts_with(begin) && title.ends_with(end), "{}: {crash}", path.display());
        let caller = end.split("called by ").nth(1).unwrap().split(" while").next().unwrap();
        assert_eq!(text(&crash, "method"), caller, "{crash}");
        // The title shows the objects that the frames hold.
        let object = text(&crash, "object").to_string();
        let (_, stacks) = ask(&path, &["stacks", "--roots"]);
        assert!(stacks.to_string().contains(&object), "{crash}");
    }
    Ok(())
}

/// Program: `dumps/corpus/programs/faults.cs`, scenario `hangs`. An earlier version found only the asynchronous methods.
#[test]
fn a_program_with_many_faults_has_a_finding_of_each() {
    let path = corpus::dump("net10-wks-hangs-heap");
    let found = findings(&path, &[]);
    let rows: Vec<(&str, &str, &Value, &str)> =
        found.iter().map(|f| (text(f, "severity"), text(f, "id"), &f["count"], text(f, "method"))).collect();
    let (all, twelve, thirty) = (&json!(120), &json!(12), &json!(30));
    assert_eq!(
        rows,
        [
            ("warning", "sync-over-async", twelve, "Shop.Bank.Price(Int32)"),
            ("warning", "unobserved-exceptions", all, ""),
            ("info", "async-waits", &json!(26), "Shop.Bank+<Rate>c__async3"),
            ("info", "async-waits", twelve, "Shop.Bank+<Pay>c__async0"),
            ("info", "same-place", thirty, "Shop.Import.Download(Int32)"),
            ("info", "exceptions", all, "Shop.Bank.Refuse(Int32)"),
            ("info", "exceptions", all, "Shop.Bank+<Report>c__async4.MoveNext()"),
        ]
    );
    let titles: Vec<&str> = found.iter().map(|f| text(f, "title")).collect();
    assert_eq!(
        titles[0],
        "12 threads are blocked until tasks are complete: all in Shop.Bank.Price(Int32); the innermost method waits for the \
         TaskCompletionSource in Shop.Gate.Never"
    );
    let holder = "perhaps taken by another call of Shop.Bank+<Pay>c__async0, which waits for the TaskCompletionSource in Shop.Gate.Never";
    assert!(titles[3].contains(holder), "{}", titles[3]);
    assert_eq!(titles[4], "30 threads are at the same place in Shop.Import.Download(Int32) (blocked: sleep), such as \"import 0\"");
    assert_eq!(titles[5], "120 × Shop.BankException are on the heap, thrown by Shop.Bank.Refuse(Int32), such as: order 0 is closed");
    for (id, option, n) in [
        ("sync-over-async", "--min-waits", 13),
        ("same-place", "--min-threads", 31),
        ("exceptions", "--min-exceptions", 121),
        ("unobserved-exceptions", "--min-exceptions", 121),
    ] {
        assert_eq!(only(&path, id, &[option, &n.to_string()]), Value::Null, "{id}");
        assert_eq!(text(&only(&path, id, &[option, &(n - 1).to_string()]), "id"), id);
    }
    // Two running threads are mentioned if no finding explains a hang.
    let quiet = ["--min-waits", "100", "--min-threads", "100", "--only", "deadlock", "--only", "same-place"];
    let (_, answer) = ask(&path, &[&["analyze"], quiet.as_slice()].concat());
    assert_eq!(text(&answer["data"]["triage"][1], "text"), "2 threads run in Miner.Step", "{answer}");
}

#[test]
fn many_connection_pools_for_one_server_are_a_finding() {
    let path = corpus::dump("net10-wks-http-heap");
    let pools = only(&path, "connection-pools", &["--min-pools", "1"]);
    assert_eq!((text(&pools, "id"), &pools["count"]), ("connection-pools", &json!(1)));
    assert!(text(&pools, "title").starts_with("1 connection pool for 127.0.0.1:"), "{pools}");
    assert_eq!(only(&path, "connection-pools", &[]), Value::Null);
    let (_, answer) = ask(&path, &["analyze"]);
    let hang = &answer["data"]["triage"][1];
    assert!(text(hang, "text").starts_with("7 HTTP requests to 127.0.0.1:"), "{hang}");
    assert!(text(hang, "command").starts_with("gcdump requests "), "{hang}");
}

/// While a collection moves objects, answers about them cannot be trusted.
#[test]
fn nothing_doubtful_follows_a_collection_that_moved_objects() -> Tested {
    let shared = common::needs_shared()?;
    let unpacked = common::unpacked().join("net10-wks-spin-heap.dmp");
    for path in [shared.join("../cases/corruptgc10.dmp.zst"), unpacked].into_iter().filter(|path| path.is_file()) {
        let (exit, answer) = ask(&path, &["analyze"]);
        let found: Vec<&str> = list(&answer["data"]["findings"]).iter().map(|f| text(f, "id")).collect();
        let sound = |id: &&str| ["crash", "gc-in-progress", "missing-parts"].contains(id);
        assert!(found.iter().all(sound) && found.contains(&"gc-in-progress"), "{found:?}");
        assert_eq!((exit, list(&answer["data"]["below"]).len()), (Exit::Partial, 0), "{}", path.display());
        let skipped: Vec<&str> = list(&answer["data"]["skipped"]).iter().map(|s| text(s, "id")).collect();
        assert!(["suspects", "deadlock", "zero-arrays"].iter().all(|id| skipped.contains(id)), "{skipped:?}");
    }
    Ok(())
}

/// An earlier version reported only how many bytes are not objects.
#[test]
fn a_crash_within_a_collection_names_the_first_error_of_the_heap() -> Tested {
    common::needs_shared()?;
    let path = common::unpacked().join("net10-wks-nativecorruptgc-heap.dmp");
    if !path.is_file() {
        return Err(crate::harness::Ignored(format!("{} is not there", path.display())));
    }
    let found = findings(&path, &[]);
    let ids: Vec<&str> = found.iter().map(|f| text(f, "id")).collect();
    // An overwritten header is not a lock whose owner has ended.
    assert_eq!(ids, ["crash", "gc-in-progress", "damage", "missing-parts"], "{found:?}");
    let (_, verify) = ask(&path, &["verify"]);
    let first = &verify["data"]["findings"][0];
    assert!(text(&found[0], "title").contains("in System.GC.Collect(), called by Cases.NativeCrash.Corrupt(Boolean)"), "{}", found[0]);
    assert!(text(&found[2], "title").ends_with(&format!(" errors, the first: {}", text(first, "message"))), "{} {first}", found[2]);
    assert_eq!((&found[2]["count"], &found[2]["object"]), (&verify["data"]["totals"]["errors"], &first["object"]));
    Ok(())
}

/// Compares a finding with the answer of the command that it names. `None` if they agree or have nothing in common.
fn contradiction(path: &Path, finding: &Value) -> Option<String> {
    let (count, id) = (finding["count"].as_u64().unwrap_or_default(), text(finding, "id"));
    let words = commands::words(text(finding, "command").strip_prefix("gcdump ").unwrap());
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| path.to_str() != Some(*word) && *word != "--no-local-files").collect();
    let (_, answer) = ask(path, &words);
    let data = &answer["data"];
    let of_object = |rows: &Value, name: &str| list(rows).iter().find(|row| row[name] == finding["object"]).cloned().unwrap_or(Value::Null);
    let inspected = || data["inspections"][0].clone();
    let ok = match id {
        "crash" => {
            let (_, threads) = ask(path, &["threads"]);
            let crashed = list(&threads["data"]["threads"]).iter().find(|t| t["crashed"] == true).map(|t| t["managed_id"].clone());
            list(&finding["threads"]).first() == crashed.as_ref() || finding["threads"] == json!([])
        }
        "deadlock" => {
            list(&data["deadlocks"]).iter().any(|d| d["threads"] == finding["threads"] && list(&d["threads"]).len() as u64 == count)
        }
        "orphaned-lock" => of_object(&data["locks"], "object")["owner"]["orphaned"] == true,
        "lock-queue" => {
            let lock = of_object(&data["locks"], "object");
            let waiters: Vec<&Value> = list(&lock["waiters"]).iter().map(|w| &w["managed_id"]).collect();
            list(&finding["threads"]).len() as u64 == count && list(&finding["threads"]).iter().all(|t| waiters.contains(&t))
        }
        "stuck-finalizer" => data["ready"].as_u64().unwrap() + data["critical"].as_u64().unwrap() == count,
        "pool-starvation" => data["starved"] == true && data["pending"] == count,
        "sync-over-async" => {
            let tasks: Vec<&Value> = list(&data["waits"]).iter().filter(|w| w["kind"] == "task").map(|w| &w["managed_id"]).collect();
            count <= tasks.len() as u64 && list(&finding["threads"]).iter().all(|t| tasks.contains(&t))
        }
        "requests" => list(&data["requests"]).iter().filter(|r| r["state"] == "processing").count() as u64 >= count,
        "async-waits" => !list(&data["chains"]).is_empty(),
        "same-place" => {
            let name = finding["display"].as_str().unwrap_or_default();
            list(&data["merged"]).iter().any(|row| text(row, "label") == name && row["threads"].as_u64().unwrap() >= count)
                || list(&data["merged"]).iter().any(|row| row["threads"].as_u64().unwrap_or_default() >= count)
        }
        "connection-pools" => list(&data["pools"]).len() as u64 >= count,
        "unobserved-exceptions" => inspected()["found"] == count,
        "event-leaks" | "registrations" => list(&inspected()["rows"]).iter().any(|row| row["object"] == finding["object"]),
        "exceptions" => {
            list(&data["groups"]).iter().any(|g| g["type"] == finding["type"] && g["thrown"] == count && g["method"] == finding["method"])
        }
        "timers" => data["active"] == count,
        // Handles of the runtime itself are not counted.
        "handles" => list(&data["counts"]).iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>() >= count,
        "load-contexts" => list(&inspected()["rows"]).iter().any(|row| row["object"] == finding["object"]),
        "dynamic-assemblies" => list(&data["modules"]).iter().filter(|m| m["kind"] == "dynamic").count() as u64 == count,
        "oom" => list(&data["heaps"]).len() as u64 >= count,
        _ => true,
    };
    (!ok).then(|| format!("{}: {finding} beside {}", path.display(), &data.to_string().chars().take(400).collect::<String>()))
}

#[test]
fn no_finding_contradicts_the_command_that_it_names() {
    let unpacked: Vec<PathBuf> =
        common::every_dump(|_| true).map(|(dumps, _)| dumps.into_iter().map(|d| d.path).collect()).unwrap_or_default();
    let dumps: Vec<PathBuf> = sample(corpus::dumps(), 8).into_iter().chain(sample(unpacked, 8)).collect();
    let wrong: Vec<String> = each(&dumps, |path| {
        let all = findings(
            path,
            &[
                "--min-waits",
                "3",
                "--min-threads",
                "3",
                "--min-exceptions",
                "2",
                "--min-pools",
                "1",
                "--min-handles",
                "1",
                "--min-timers",
                "1",
            ],
        );
        all.iter().filter_map(|finding| contradiction(path, finding)).collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(dumps.len() > cases(10, 60) && wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Exceptions that differ only in their messages are of one kind.
#[test]
fn exceptions_are_counted_by_type_and_thrower() {
    let path = corpus::dump("net10-wks-hangs-heap");
    let (_, answer) = ask(&path, &["exceptions", "--stat"]);
    let groups = list(&answer["data"]["groups"]);
    let row = groups.iter().find(|g| text(g, "type") == "Shop.BankException").unwrap();
    assert_eq!((&row["count"], &row["thrown"], text(row, "method")), (&json!(120), &json!(120), "Shop.Bank.Refuse(Int32)"));
    assert!(number(&row["example"]) > 0 && text(row, "message").starts_with("order "), "{row}");
    let sum: u64 = groups.iter().map(|g| g["count"].as_u64().unwrap()).sum();
    assert_eq!(answer["data"]["total"], sum);
}

/// An earlier version showed "-" for running threads and for those that wait for work.
#[test]
fn threads_of_the_pool_say_what_they_run() {
    let path = corpus::dump("net8-wks-spin-heap");
    let (_, pool) = ask(&path, &["pool"]);
    let (_, stacks) = ask(&path, &["stacks"]);
    for worker in list(&pool["data"]["workers"]).iter().filter(|w| w["blocked_by"].is_null()) {
        let thread = list(&stacks["data"]["threads"]).iter().find(|t| t["os_id"] == worker["os_id"]);
        let frames: Vec<&Value> = thread.map(|t| list(&t["frames"]).iter().map(|f| &f["method"]).collect()).unwrap_or_default();
        assert!(worker["method"].is_null() || frames.contains(&&worker["method"]), "{worker}");
        let own = frames.iter().any(|f| f.as_str().is_some_and(|name| !name.starts_with("System.") && !name.starts_with("Microsoft.")));
        assert!(!own || worker["method"].is_string(), "{worker}: {frames:?}");
    }
}
