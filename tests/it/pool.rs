//! The thread pool, timers and requests, compared with the records of the dumped programs.

use crate::harness::{Ignored, Tested};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{Known, ask, known_dumps, number, run};

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

fn list<'v>(v: &'v Value, key: &str) -> &'v [Value] {
    v[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn dumps(scenario: &str) -> Result<Vec<Known>, Ignored> {
    Ok(known_dumps(|row| row["scenario"] == scenario && row["truth"].is_string())?.0)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn answer(dump: &Known, command: &str) -> Value {
    let (exit, answer) = ask(&dump.path, &[command]);
    assert_eq!(exit, Exit::Ok, "{} {command}: {}", dump.name, answer["warnings"]);
    answer["data"].clone()
}

/// Returns the managed ids, in order.
fn ids(of: &[Value]) -> Vec<u64> {
    let mut ids: Vec<u64> = of.iter().filter_map(|v| v.as_u64().or(v["managed_id"].as_u64())).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn queues_counters_and_workers_are_those_of_the_program() -> Tested {
    let dumps = dumps("pool")?;
    let (mut right, mut items) = (0, 0);
    for dump in &dumps {
        let (truth, found) = (dump.truth.as_ref().unwrap(), answer(dump, "pool"));
        let mut check = |what: &str, found: &Value, expected: &Value| {
            assert_eq!(found, expected, "{}: {what}", dump.name);
            right += 1;
        };
        let kinds = |queue: &str, kind: &str, what: &str| -> Value {
            let groups = list(&found, "groups").iter().filter(|g| text(g, "queue").starts_with(queue) && g["kind"] == kind);
            groups.filter(|g| text(g, "description").contains(what)).map(|g| g["count"].as_u64().unwrap()).sum::<u64>().into()
        };
        check("pending", &found["pending"], &truth["pending"]);
        check("min", &found["min"], &truth["min"]);
        check("max", &found["max"], &truth["max"]);
        check("existing", &found["existing"], &truth["thread_count"]);
        check("working", &found["working"], &(truth["max"].as_u64().unwrap() - truth["available"].as_u64().unwrap()).into());
        check("work items", &kinds("global", "work-item", "StateLab.Work"), &truth["work_items"]);
        check("callbacks", &kinds("global", "callback", "StateLab.Pool.Callback"), &truth["callback_items"]);
        check("callbacks with a type", &kinds("global", "callback", "StateLab.Pool.Typed"), &truth["typed_items"]);
        check("tasks", &kinds("global", "task", "<Go>b__"), &truth["task_items"]);
        check("methods", &kinds("global", "async-method", "StateLab.Pool.Yielding"), &truth["yield_items"]);
        check("local items", &kinds("local", "task", "<Go>b__"), &truth["local_items"]);
        let listed: usize = list(&found, "queues").iter().map(|q| list(q, "items").len()).sum();
        check("listed items", &listed.into(), &truth["pending"]);
        let local = list(&found, "queues").iter().filter(|q| text(q, "name").starts_with("local")).collect::<Vec<_>>();
        let workers = ids(list(truth, "worker_ids"));
        assert!(local.len() == 1 && workers.contains(&local[0]["managed_id"].as_u64().unwrap()), "{}: {local:?}", dump.name);
        check("workers", &ids(list(&found, "workers")).into(), &workers.into());
        assert!(list(&found, "workers").iter().all(|w| text(w, "blocked_by").starts_with("event-slim 0x")), "{found}");
        check("starved", &found["starved"], &true.into());
        items += listed;
    }
    println!("{right} checks right; {items} items of the queues in {} dumps", dumps.len());
    assert!(dumps.is_empty() || right >= 14);
    Ok(())
}

#[test]
fn timers_and_waits_are_those_of_the_program() -> Tested {
    for dump in &dumps("pool")? {
        let (truth, found) = (dump.truth.as_ref().unwrap(), answer(dump, "timers"));
        let timers = list(&found, "timers");
        assert_eq!(found["active"], truth["timer_active"], "{}", dump.name);
        let own = |t: &&Value| t["callback"] == "StateLab.Pool.TimerTick";
        let armed: Vec<&Value> = timers.iter().filter(own).filter(|t| t["due_ms"].is_u64()).collect();
        let idle = timers.iter().filter(own).filter(|t| t["due_ms"].is_null()).count();
        assert_eq!((armed.len() as u64, idle as u64), (truth["timers"].as_u64().unwrap(), truth["timers_off"].as_u64().unwrap()));
        // The program sleeps for half a second before it writes down the tick.
        let tick = truth["tick"].as_u64().unwrap();
        for (i, timer) in armed.iter().enumerate() {
            let i = i as u64;
            let left = timer["due_ms"].as_u64().unwrap() - (tick - 500);
            let expected = 1_000_000 + i * 1000;
            assert!((expected - 300..=expected).contains(&left), "{}: {left} ms left, not {expected}", dump.name);
            let period = if i.is_multiple_of(2) { Value::Null } else { (5000 + i).into() };
            assert_eq!((&timer["period_ms"], &timer["kind"]), (&period, &"timer".into()), "{}: {timer}", dump.name);
        }
        utc_agrees_with_the_static_field(dump, &found);
        let kinds: BTreeMap<&str, usize> = timers.iter().fold(BTreeMap::new(), |mut kinds, t| {
            *kinds.entry(text(t, "kind")).or_default() += 1;
            kinds
        });
        assert_eq!((kinds["delay"], kinds["cancellation"]), (1, 1), "{}: {kinds:?}", dump.name);
        let waits = list(&found, "waits");
        assert_eq!(waits.len() as u64, truth["registered_waits"].as_u64().unwrap(), "{}", dump.name);
        let once = |w: &Value| w["timeout_ms"].is_null() && w["repeating"] == false && text(w, "callback").contains("<Go>b__");
        assert!(waits.iter().all(once), "{waits:?}");
        // One callback of the program, one of the linked source.
        assert!(list(&found, "cancellations").iter().any(|c| c["count"] == 2), "{}", dump.name);
        println!("{}: {} timers, {} waits", dump.name, timers.len(), waits.len());
    }
    Ok(())
}

/// Milliseconds since the year 0 of a time like `2026-11-24T05:38:30.385345Z`.
fn milliseconds(time: &str) -> i64 {
    let n = |from: usize, to: usize| time[from..to].parse::<i64>().unwrap();
    let (year, month) = if n(5, 7) < 3 { (n(0, 4) - 1, n(5, 7) + 9) } else { (n(0, 4), n(5, 7) - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + n(8, 10);
    let fraction = format!("{:0<4}", &time[19..time.len() - 1]);
    let milliseconds = fraction[1..4].parse().unwrap_or(0);
    (((days * 24 + n(11, 13)) * 60 + n(14, 16)) * 60 + n(17, 19)) * 1000 + milliseconds
}

/// Checks that due times in UTC are as far from the pair of tick and time in `statics` as their ticks.
fn utc_agrees_with_the_static_field(dump: &Known, found: &Value) {
    let (_, statics) = ask(&dump.path, &["statics", "--type", "System.Threading.TimerQueue"]);
    let field = list(&statics["data"], "statics").iter().find(|f| f["name"] == "s_tickCountToTimeMap").unwrap();
    let (tick, time) = text(field, "text").trim_matches(['{', '}']).split_once(", ").unwrap();
    let (tick, time) = (tick.strip_prefix("Item1=").unwrap(), time.strip_prefix("Item2=").unwrap());
    assert_eq!(found["clock"]["tick_ms"].to_string(), tick, "{}", dump.name);
    assert!(milliseconds(text(&found["clock"], "utc")) == milliseconds(time), "{}: {found}", dump.name);
    let due: Vec<&Value> = list(found, "timers").iter().filter(|t| t["due_ms"].is_u64()).collect();
    let between = |t: &&Value| milliseconds(text(t, "due_utc")) - milliseconds(time);
    let same = |t: &&Value| (between(t) - (t["due_ms"].as_i64().unwrap() - tick.parse::<i64>().unwrap())).abs() <= 1;
    assert!(!due.is_empty() && due.iter().all(same), "{}: {due:?}", dump.name);
    assert!(list(found, "timers").iter().all(|t| t["due_ms"].is_null() == t["due_utc"].is_null()), "{}", dump.name);
    assert!(text(found, "latest_utc") >= text(&found["clock"], "utc"), "{}", dump.name);
}

#[test]
fn starvation_names_what_blocks_each_thread() -> Tested {
    for dump in &dumps("starve")? {
        let (truth, found) = (dump.truth.as_ref().unwrap(), answer(dump, "pool"));
        assert_eq!(found["starved"], true, "{}", dump.name);
        assert_eq!(ids(list(&found, "workers")), ids(list(truth, "workers")), "{}", dump.name);
        let by_task =
            |w: &Value| w["wait"] == "task" && text(w, "blocked_by").contains(" async StateLab.Starve.Step in StateLab.Starve.Go.b__");
        assert!(list(&found, "workers").iter().all(by_task), "{}: {found}", dump.name);
        let ready = list(&found, "groups").iter().any(|g| g["description"] == "StateLab.Starve.Step" && g["kind"] == "async-method");
        assert!(ready, "{}: {}", dump.name, found["groups"]);
        let shown = run(&["threadpool", "--no-local-files", dump.path.to_str().unwrap()]);
        assert!(shown.out.contains("STARVED: 4 items in the queues; 4 of at most 4 threads exist"), "{}", shown.out);
    }
    Ok(())
}

#[test]
fn requests_in_flight_are_those_of_the_program() -> Tested {
    for dump in &dumps("http")? {
        let (truth, found) = (dump.truth.as_ref().unwrap(), answer(dump, "requests"));
        let port = truth["port"].as_u64().unwrap();
        let gets = (0..truth["gets"].as_u64().unwrap()).map(|n| ("GET".to_string(), format!("http://127.0.0.1:{port}/path/{n}?q=1")));
        let posts = (0..truth["posts"].as_u64().unwrap()).map(|n| ("POST".to_string(), format!("http://127.0.0.1:{port}/post/{n}")));
        let expected: BTreeSet<(String, String)> = gets.chain(posts).collect();
        let requests = list(&found, "requests");
        let have: BTreeSet<(String, String)> = requests.iter().map(|r| (text(r, "method").into(), text(r, "uri").into())).collect();
        println!("{}: {} of {} requests", dump.name, have.intersection(&expected).count(), expected.len());
        assert_eq!(have, expected, "{}", dump.name);
        assert!(requests.iter().all(|r| r["state"] == "sent" && number(&r["connection"]) != 0 && r["waiter"].is_string()), "{requests:?}");
        // The chain of each request in `async`.
        let chains = answer(dump, "async");
        for request in requests {
            let frames: Vec<(&Value, &Value)> = list(request, "frames").iter().map(|f| (&f["object"], &f["method"])).collect();
            let same = |chain: &&Value| {
                let all: Vec<(&Value, &Value)> = list(chain, "frames").iter().map(|f| (&f["object"], &f["method"])).collect();
                all.ends_with(&frames)
            };
            assert!(frames.len() >= 4 && list(&chains, "chains").iter().find(same).is_some(), "{}: {request}", dump.name);
        }
        let pools = list(&found, "pools");
        assert_eq!(pools.len(), 1, "{pools:?}");
        assert_eq!((&pools[0]["busy"], &pools[0]["queued"]), (&expected.len().into(), &0.into()));
        assert_eq!(text(&pools[0], "server"), format!("127.0.0.1:{port}"));
        let sockets = list(&found, "sockets");
        let listening = sockets.iter().filter(|s| s["listening"] == true).count();
        let at_server = sockets.iter().filter(|s| s["connected"] == true && text(s, "local") == format!("127.0.0.1:{port}"));
        let at_client = sockets.iter().filter(|s| s["connected"] == true && text(s, "remote").ends_with(&format!("127.0.0.1]:{port}")));
        assert_eq!((listening, at_server.count(), at_client.count()), (1, expected.len(), expected.len()), "{sockets:?}");
        // No socket is garbage, and both ends of each connection are counted.
        assert!(sockets.iter().all(|s| s["garbage"] == false), "{sockets:?}");
        let of =
            |state: &str| list(&found, "peers").iter().filter(|p| p["state"] == state).map(|p| p["count"].as_u64().unwrap()).sum::<u64>();
        let all = expected.len() as u64;
        assert_eq!([of("accepted"), of("connected"), of("listening")], [all, all, 1], "{}", found["peers"]);
        let peer = list(&found, "peers").iter().find(|p| p["state"] == "connected").unwrap();
        assert_eq!(text(peer, "peer"), format!("127.0.0.1:{port}"));
    }
    Ok(())
}

#[test]
fn a_process_without_a_pool_says_so() {
    let path = corpus("net10-wks-basics-full");
    let shown = run(&["pool", "--no-local-files", path.to_str().unwrap()]);
    assert_eq!((shown.exit, shown.out.trim()), (Exit::Ok, "The process has not used the thread pool."), "{}", shown.err);
    for command in ["timers", "requests"] {
        assert_eq!(run(&[command, "--no-local-files", path.to_str().unwrap()]).exit, Exit::Ok, "{command}");
    }
}
