//! `locks` compared with the programs' own records of their threads, and with ClrMD's sync blocks.

use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{Known, ask, each, known_dumps};
use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Locks that each thread holds, by managed id.
fn holds(answer: &Value) -> BTreeMap<u64, BTreeSet<String>> {
    let mut out: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for lock in list(&answer["data"], "locks") {
        let owner = std::iter::once(&lock["owner"]).chain(list(lock, "readers"));
        for id in owner.filter_map(|o| o["managed_id"].as_u64()) {
            out.entry(id).or_default().insert(text(lock, "object").into());
        }
    }
    out
}

#[test]
fn waits_holds_and_deadlocks_are_those_of_the_program() -> Tested {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && text(row, "scenario") == "deadlock")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let (exit, answer) = ask(&dump.path, &["locks"]);
        assert_eq!(exit.code(), 0, "{}: {}", dump.name, answer["warnings"]);
        let by_thread: BTreeMap<u64, &Value> =
            list(&answer["data"], "waits").iter().filter_map(|w| Some((w["managed_id"].as_u64()?, w))).collect();
        let held = holds(&answer);
        let (mut waits, mut locks, mut of_locks) = (0, 0, 0);
        let threads = list(truth, "threads");
        for thread in threads {
            let id = thread["managed"].as_u64().unwrap();
            let wait = by_thread.get(&id).unwrap_or_else(|| panic!("{}: thread {id} does not wait", dump.name));
            assert_eq!((text(wait, "kind"), text(wait, "name")), (text(thread, "kind"), text(thread, "name")), "{}: {id}", dump.name);
            let object = wait["object"].as_str().unwrap_or("0x0");
            assert_eq!(object, text(thread, "waits"), "{}: {id}", dump.name);
            waits += 1;
            for object in list(thread, "holds") {
                of_locks += 1;
                // Nothing on the heap shows the owner of a kernel mutex. Since .NET 11 the library has its own mutexes.
                if *object == truth["mutex"] && !dump.runtime.contains("11") {
                    continue;
                }
                assert!(held[&id].contains(object.as_str().unwrap()), "{}: {id} does not hold {object}", dump.name);
                locks += 1;
            }
        }
        // Held monitors, by thread.
        let (_, threads_answer) = ask(&dump.path, &["threads", "--waits"]);
        let monitors = |id: u64| {
            let of = list(&answer["data"], "locks").iter().filter(|l| l["kind"] == "monitor" && l["owner"]["managed_id"] == id);
            of.count() as u64
        };
        for thread in list(&threads_answer["data"], "threads") {
            let id = thread["managed_id"].as_u64().unwrap();
            assert_eq!(thread["locks_held"], monitors(id), "{}: {id}", dump.name);
        }
        let of = |name: &str| threads.iter().find(|t| text(t, "name") == name).and_then(|t| t["managed"].as_u64()).map(monitors);
        assert_eq!((of("ab"), of("thin"), of("bystander")), (Some(1), Some(1), Some(0)), "{}", dump.name);
        assert!(ask(&dump.path, &["threads"]).1["data"]["threads"][0]["locks_held"].is_null());
        let records = by_thread.values().filter(|w| w["evidence"] == "exact").count();
        println!("{:<28} waits {waits} of {} ({records} from records), holds {locks} of {of_locks}", dump.name, threads.len());
        let cycle = |names: &[&str]| -> Vec<u64> {
            let id = |name: &&str| threads.iter().find(|t| text(t, "name") == *name).map(|t| t["managed"].as_u64().unwrap());
            let mut ids: Vec<u64> = names.iter().filter_map(id).collect();
            ids.sort_unstable();
            ids
        };
        let mut expected = vec![cycle(&["ab", "ba"]), cycle(&["cd", "de", "ec"]), cycle(&["l12", "l21"])];
        expected.retain(|c| !c.is_empty());
        let found: Vec<Vec<u64>> =
            list(&answer["data"], "deadlocks").iter().map(|d| list(d, "threads").iter().map(|t| t.as_u64().unwrap()).collect()).collect();
        assert_eq!(found, expected, "{}", dump.name);
        let victims = &answer["data"]["deadlocks"][0]["victims"];
        assert!(cycle(&["bystander", "joiner"]).iter().all(|id| victims.as_array().unwrap().contains(&(*id).into())), "{victims}");
        let thin = list(&answer["data"], "locks").iter().find(|l| l["object"] == truth["thin"]).unwrap();
        assert_eq!((thin["recursion"].as_u64(), thin["sync_block"].as_u64()), (Some(2), None));
        let count = |object: &Value, name: &str| {
            list(&answer["data"], "locks").iter().find(|l| l["object"] == *object).map(|l| l[name].clone()).unwrap_or_default()
        };
        assert_eq!(count(&truth["cde"], "count"), 3);
        assert_eq!(count(&truth["sem"], "waiting"), 2);
        let of_writers: u64 = ["waiting_write", "waiting_read"].iter().map(|n| truth["rw_state"][*n].as_u64().unwrap()).sum();
        assert_eq!(count(&truth["rw"], "waiting"), of_writers);
        assert_eq!(count(&truth["rw"], "readers").as_array().unwrap().len() as u64, truth["rw_state"]["readers"].as_u64().unwrap());
    }
    Ok(())
}

#[test]
fn threads_that_wait_for_tasks_name_them() -> Tested {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && ["asyncmix", "starve"].contains(&text(row, "scenario")))?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let (_, answer) = ask(&dump.path, &["locks"]);
        let awaited = |id: &Value| -> BTreeSet<String> {
            let wait = list(&answer["data"], "waits").iter().find(|w| w["managed_id"] == *id).unwrap();
            assert_eq!((text(wait, "kind"), text(wait, "evidence")), ("task", "exact"), "{}: {id}", dump.name);
            std::iter::once(&wait["object"]).chain(list(wait, "others")).map(|o| o.as_str().unwrap().into()).collect()
        };
        if dump.scenario == "starve" {
            assert_eq!(awaited(&truth["knot"]), BTreeSet::from([text(truth, "second").to_string()]));
            let workers = list(truth, "workers");
            assert_eq!((workers.len(), workers.iter().map(awaited).collect::<BTreeSet<_>>().len()), (4, 4), "each waits for its own task");
            continue;
        }
        let truth = &truth["async"];
        for thread in list(truth, "threads") {
            let mut expected = BTreeSet::from([text(truth, "blocked_on").to_string()]);
            if text(thread, "name") == "blocked-waitall" {
                expected.insert(truth["all_of"][0].as_str().unwrap().into());
            }
            assert_eq!(awaited(&thread["managed"]), expected, "{}: {}", dump.name, thread["name"]);
            // Also of the thread that waits in an awaiter, `Task.GetAwaiter().GetResult()`.
            let wait = list(&answer["data"], "waits").iter().find(|w| w["managed_id"] == thread["managed"]).unwrap();
            assert!(text(wait, "method").starts_with("StateLab."), "{}: {wait}", dump.name);
        }
    }
    Ok(())
}

/// Returns the number of compared sync blocks, and the differences from ClrMD.
fn compare(dump: &Known) -> (usize, Vec<String>) {
    let (_, answer) = ask(&dump.path, &["locks", "--all"]);
    let mut wrong = Vec::new();
    if !["deadlock", "taskdeadlock"].contains(&dump.scenario.as_str()) && !list(&answer["data"], "deadlocks").is_empty() {
        wrong.push(format!("{}: {}", dump.name, answer["data"]["deadlocks"]));
    }
    // Words that are not addresses are not losses.
    let unread = |w: &&Value| text(w, "message").contains("that the answer needs");
    if (dump.name.ends_with("-heap") || dump.name.ends_with("-full"))
        && let Some(warning) = list(&answer, "warnings").iter().find(unread)
    {
        wrong.push(format!("{}: {warning}", dump.name));
    }
    let theirs = dump.clrmd.as_ref().map_or(&[][..], |c| list(&c["syncblocks"], "syncblocks"));
    for block in theirs {
        let mine = list(&answer["data"], "locks").iter().find(|l| l["sync_block"] == block["index"]);
        let held = |l: &Value| !l["owner"].is_null();
        let same = mine.is_some_and(|l| {
            let once = block["recursion"].as_u64().unwrap_or(0);
            let recursion = l["recursion"].as_u64().map_or(0, |n| n + 1);
            // ClrMD prints 1000 if the lock's word is not a state (a hash code is stored instead).
            let waiting = block["waiting"] == l["waiting"] || block["waiting"] == 1000;
            l["object"] == block["object"] && held(l) == (block["held"] == true) && waiting && (once == recursion || !held(l))
        });
        if !same {
            wrong.push(format!("{}: {block} is {mine:?}", dump.name));
        }
    }
    (theirs.len(), wrong)
}

#[test]
fn sync_blocks_are_those_of_clrmd_and_no_other_dump_has_a_deadlock() -> Tested {
    let (dumps, _) = known_dumps(|_| true)?;
    let (mut blocks, mut wrong) = (0, Vec::new());
    for (n, list) in each(&dumps, compare) {
        blocks += n;
        wrong.extend(list);
    }
    println!("{blocks} sync blocks in {} dumps", dumps.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// In `dumps/corpus/programs/rtasync.il`, the task that the first thread waits for awaits another one, whose innermost method is running.
#[test]
fn a_deadlock_through_tasks_of_runtime_async_is_found() {
    let (exit, answer) = ask(&corpus("net11-wks-rtasync-heap"), &["locks"]);
    assert_eq!(exit.code(), 0, "{}", answer["warnings"]);
    let deadlocks = list(&answer["data"], "deadlocks");
    assert_eq!((deadlocks.len(), &deadlocks[0]["possible"]), (1, &false.into()), "{deadlocks:?}");
    let edges: Vec<(&Value, &Value, &str)> = list(&deadlocks[0], "edges").iter().map(|e| (&e["from"], &e["to"], text(e, "kind"))).collect();
    let (holder, worker) = (&deadlocks[0]["threads"][0], &deadlocks[0]["threads"][1]);
    assert_eq!(edges, [(holder, worker, "runs"), (worker, holder, "holds")]);
    let waits = list(&answer["data"], "waits");
    let worker = waits.iter().find(|w| &w["managed_id"] == worker).unwrap();
    assert_eq!((text(worker, "kind"), text(worker, "method")), ("monitor", "Rt.Inner()"), "{worker}");
}

#[test]
fn a_thread_waits_for_the_one_that_runs_its_task() {
    for name in ["net8-wks-tasklocks-heap", "net10-wks-tasklocks-heap"] {
        let (exit, answer) = ask(&corpus(name), &["locks"]);
        assert_eq!(exit.code(), 0, "{name}: {}", answer["warnings"]);
        let waits = list(&answer["data"], "waits");
        let id = |thread: &str| waits.iter().find(|w| w["name"] == thread).unwrap()["managed_id"].as_u64().unwrap();
        let deadlocks = list(&answer["data"], "deadlocks");
        let edges = |d: &Value| -> Vec<(u64, u64, String)> {
            let edge = |e: &Value| (e["from"].as_u64().unwrap(), e["to"].as_u64().unwrap(), text(e, "kind").to_string());
            list(d, "edges").iter().map(edge).collect()
        };
        // The first thread waits for a method that a pool worker runs, which needs a lock of the first thread.
        let (holder, reader, upgrader) = (id("holderA"), id("reader"), id("upgrader"));
        let worker = deadlocks[0]["threads"][1].as_u64().unwrap();
        assert_eq!(edges(&deadlocks[0]), [(holder, worker, "runs".into()), (worker, holder, "holds".into())], "{name}");
        assert_eq!(edges(&deadlocks[1]), [(reader, upgrader, "holds".into()), (upgrader, reader, "holds".into())], "{name}");
        // The code of the upgrader is optimized: its debug info does not locate the argument of `ReaderWriterLockSlim` that has the timeout.
        assert_eq!((&deadlocks[0]["possible"], &deadlocks[1]["possible"]), (&false.into(), &true.into()), "{name}");
        let victims: Vec<u64> = list(&deadlocks[0], "victims").iter().map(|v| v.as_u64().unwrap()).collect();
        assert_eq!(victims, [id("joiner"), id("victim")], "{name}");
        // The code is optimized: only the native part of `Thread.Join` is on the stack.
        let joiner = waits.iter().find(|w| w["name"] == "joiner").unwrap();
        assert_eq!((text(joiner, "kind"), text(joiner, "type")), ("join", "System.Threading.Thread"), "{name}: {joiner}");
        // Nothing shows the owner of a kernel mutex.
        assert!(list(&answer["data"], "chains").iter().any(|c| c["type"] == "System.Threading.Mutex"), "{name}");
        // The continuation of the method for which the thread with a context waits is in the queue of this context.
        let ui = id("ui");
        assert_eq!(
            (deadlocks.len(), edges(&deadlocks[2]), &deadlocks[2]["possible"]),
            (3, vec![(ui, ui, "context".into())], &false.into()),
            "{name}"
        );
        let edge = &list(&deadlocks[2], "edges")[0];
        assert_eq!(text(edge, "context_type"), "Extra.UiContext", "{name}");
        let (_, answer) = ask(&corpus(name), &["async"]);
        let chains = list(&answer["data"], "chains");
        let root = &chains.iter().find(|c| c["root"]["object"] == edge["context"]).unwrap()["root"];
        let label = format!("ready, posted to Extra.UiContext, the context of thread {ui}");
        assert_eq!((text(root, "kind"), text(root, "label")), ("context", label.as_str()), "{name}");
        // A thread waits for a method that another thread runs: both have it on their stacks.
        let run = chains.iter().find(|c| c["root"]["object"] == list(&deadlocks[0], "edges")[0]["object"]).unwrap();
        assert_eq!(text(&run["root"], "label"), "runs on a thread", "{name}");
    }
}

/// Optimized code inlines `Thread.Join`: only its native part is on the stack.
#[test]
fn joins_in_optimized_code_are_found() -> Tested {
    let scenarios = ["stacks", "stacksopt", "spin", "spinopt", "spingc"];
    let (dumps, _) = known_dumps(|row| scenarios.contains(&text(row, "scenario")) && text(row, "kind") == "heap")?;
    for dump in &dumps {
        let (_, answer) = ask(&dump.path, &["locks"]);
        let joiner = list(&answer["data"], "waits").iter().find(|w| w["name"] == "join").unwrap();
        assert_eq!((text(joiner, "kind"), text(joiner, "type")), ("join", "System.Threading.Thread"), "{}: {joiner}", dump.name);
    }
    Ok(())
}

/// The wait kind for `kind` in the records of the lab's programs.
fn kind_of(kind: &str) -> &str {
    match kind {
        "tasks-all" | "tasks-any" => "task",
        "wait-all" | "wait-any" => "wait-handles",
        "old-rwlock-read" => "rwlock-read",
        "lazy" => "monitor",
        same => same,
    }
}

#[test]
fn each_construct_that_blocks_is_named_with_its_object_and_owner() -> Tested {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && text(row, "scenario") == "monitors")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let has_mutexes = dump.runtime.contains("11");
        let (exit, answer) = ask(&dump.path, &["locks"]);
        assert_eq!(exit.code(), 0, "{}: {}", dump.name, answer["warnings"]);
        let (_, threads_answer) = ask(&dump.path, &["threads", "--waits"]);
        let held = holds(&answer);
        let threads = list(truth, "threads");
        let id = |name: &str| threads.iter().find(|t| text(t, "name") == name).unwrap()["managed"].clone();
        for thread in threads {
            let managed = &thread["managed"];
            let about = format!("{}: {thread}", dump.name);
            let wait = list(&answer["data"], "waits").iter().find(|w| w["managed_id"] == *managed).expect(&about);
            assert_eq!(text(wait, "kind"), kind_of(text(thread, "kind")), "{about}");
            assert!(!text(wait, "type").ends_with("Threading.Condition"), "{about}: {wait}");
            if thread["on"].is_string() && thread["kind"] != "lazy" {
                assert_eq!(wait["object"], thread["on"], "{about}");
            }
            // The library waits for a barrier in steps, whatever timeout the program requested.
            assert!(thread["kind"] != "barrier" || wait["timeout_ms"].is_null(), "{about}: {wait}");
            let mutex = thread["owner"] == "MutexOwner" || thread["name"] == "MutexOwner";
            if let Some(owner) = thread["owner"].as_str().filter(|_| thread["kind"] != "join" && (!mutex || has_mutexes)) {
                let shown = list(&threads_answer["data"], "threads").iter().find(|t| t["managed_id"] == *managed).expect(&about);
                let owners: Vec<&Value> = list(&shown["waits_for"], "owners").iter().map(|o| &o["managed_id"]).collect();
                assert!(owners.contains(&&id(owner)), "{about}: {owners:?}");
                // A thread that enters in upgradeable mode waits for the thread in that mode.
                assert!(thread["kind"] != "rwlock-upgradeable" || owners.len() == 1, "{about}: {owners:?}");
            }
            for held_one in (0..3).filter_map(|i| thread[format!("holds{i}")].as_str()).filter(|_| !mutex || has_mutexes) {
                assert!(held[&managed.as_u64().unwrap()].contains(held_one), "{about}: {held_one}");
            }
        }
        let starting = list(&answer["data"], "locks").iter().find(|l| l["kind"] == "class-constructor").unwrap();
        assert_eq!((text(starting, "type"), &starting["owner"]["managed_id"]), ("Cases.Monitors+Slow", &id("CctorMaker")), "{}", dump.name);
        // While a thread is in upgradeable mode, another upgradeable reader waits for it and not for writers.
        let (waiter, writer) = (id("UpgraderWaits"), id("WriterWaits"));
        let chains = list(&answer["data"], "chains");
        let pair = |c: &Value| list(c, "threads").windows(2).any(|two| two == [waiter.clone(), writer.clone()]);
        assert!(!chains.iter().any(pair), "{}: {chains:?}", dump.name);
    }
    Ok(())
}

#[test]
fn deadlocks_over_tasks_and_monitors_are_found() -> Tested {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && text(row, "scenario") == "taskdeadlock")?;
    for dump in &dumps {
        let (exit, answer) = ask(&dump.path, &["locks"]);
        assert_eq!(exit.code(), 0, "{}: {}", dump.name, answer["warnings"]);
        let deadlocks = list(&answer["data"], "deadlocks");
        let kinds = |d: &Value| -> BTreeSet<String> { list(d, "edges").iter().map(|e| text(e, "kind").into()).collect() };
        let found: BTreeSet<BTreeSet<String>> = deadlocks.iter().map(kinds).collect();
        let of = |kinds: &[&str]| kinds.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!((deadlocks.len(), found), (2, BTreeSet::from([of(&["holds", "runs"]), of(&["holds"])])), "{}: {deadlocks:?}", dump.name);
        let types: BTreeSet<&str> = deadlocks.iter().flat_map(|d| list(d, "edges")).map(|e| text(e, "type")).collect();
        assert_eq!(types, BTreeSet::from(["Cases.Monitors+Guarded", "System.Threading.Tasks.Task"]), "{}", dump.name);
    }
    Ok(())
}

#[test]
fn a_class_constructor_that_waits_for_a_thread_which_waits_for_it_is_a_deadlock() -> Tested {
    let path = crate::common::needs_shared()?.join("../cases/cctorjoin10.dmp.zst");
    let (_, answer) = ask(&path, &["locks"]);
    let [deadlock] = list(&answer["data"], "deadlocks") else { panic!("{answer}") };
    let edge =
        |e: &Value| (e["from"].as_u64().unwrap(), e["to"].as_u64().unwrap(), text(e, "kind").to_string(), text(e, "type").to_string());
    let edges: Vec<_> = list(deadlock, "edges").iter().map(edge).collect();
    let joined = (4, 5, "joined".to_string(), "System.Threading.Thread".to_string());
    assert_eq!(edges, [joined, (5, 4, "class-constructor".into(), "Pub.Boot".into())]);
    assert_eq!(deadlock["victims"], serde_json::json!([6, 7, 8]));
    // The thread has called `Thread.Join()`, which has no timeout.
    assert_eq!(deadlock["possible"], false);
    let ran = crate::common::run(&["analyze", path.to_str().unwrap()]);
    assert!(ran.out.contains("5 for the class constructor of Pub.Boot that 4 runs; 3 other threads"), "{}", ran.out);
    Ok(())
}

/// A thread that waits for three handles of one event is one waiter of it.
#[test]
fn a_thread_is_one_waiter_of_a_lock() {
    let dump = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-pool-heap.dmp.zst");
    let (_, answer) = ask(&dump, &["locks"]);
    let mut waiters = 0;
    for lock in answer["data"]["locks"].as_array().unwrap() {
        let ids: Vec<u64> = lock["waiters"].as_array().unwrap().iter().filter_map(|w| w["managed_id"].as_u64()).collect();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(ids.len(), once.len(), "{lock}");
        waiters += ids.len();
    }
    assert!(waiters > 0, "{answer}");
}
