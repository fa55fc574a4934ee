//! Threads that were not stopped for a collection, and answers that do not depend on the references in their frames.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::common::known_dumps;
use crate::harness::Tested;
use gcdump::cli::Exit;
use serde_json::Value;

use super::{address, ask_with, folders, list, text};

/// An object that a running thread holds is not garbage, and each thread has its outermost method.
#[test]
fn objects_that_running_threads_hold_are_alive() -> Tested {
    let (dumps, _) = known_dumps(|row| text(row, "scenario").starts_with("busy"))?;
    let mut held = 0;
    for dump in &dumps {
        let Some(objects) = dump.truth.as_ref().and_then(|truth| truth["objects"].as_array()) else { continue };
        let (_, handles) = ask_with(&dump.path, &[], &["handles"]);
        let of_handle: BTreeMap<u64, u64> =
            list(&handles["data"]["handles"]).iter().map(|h| (address(h, "address"), address(h, "object"))).collect();
        let (_, garbage) = ask_with(&dump.path, &[], &["unreachable", "--objects", "--top", "0"]);
        let garbage: BTreeSet<u64> = list(&garbage["data"]["objects"]).iter().map(|o| address(o, "address")).collect();
        assert!(!garbage.is_empty(), "{}", dump.name);
        for object in objects.iter().filter(|o| o["certainly"] == "alive") {
            let at = of_handle.get(&address(object, "weak_handle"));
            assert!(at.is_some_and(|at| !garbage.contains(at)), "{}: {object}", dump.name);
            held += 1;
        }
        let (_, stacks) = ask_with(&dump.path, &[], &["stacks"]);
        let loops: BTreeSet<&str> = objects.iter().map(|o| text(o, "in")).collect();
        for thread in list(&stacks["data"]["threads"]).iter().filter(|t| objects.iter().any(|o| o["thread_os"] == t["os_id"])) {
            let methods: Vec<&str> = list(&thread["frames"]).iter().map(|f| text(f, "method")).collect();
            let name = |method: &&str| loops.iter().any(|of| method.starts_with(of));
            assert!(methods.iter().any(name), "{}: {thread}", dump.name);
        }
    }
    println!("{held} objects of running threads in {} dumps", dumps.len());
    assert!(dumps.is_empty() || held > 50);
    Ok(())
}

/// A complete answer without module files equals the answer with them.
#[test]
fn complete_answers_are_those_with_the_files() -> Tested {
    let (dumps, _) = known_dumps(|row| row["kind"] == "heap")?;
    let (mut same, mut partial) = (0, 0);
    for dump in &dumps {
        let folders = folders(&dump.runtime);
        if folders.is_empty() {
            continue;
        }
        let gaps = |answer: &Value| list(&answer["data"]["threads"]).iter().map(|t| list(&t["gaps"]).len()).sum::<usize>();
        if gaps(&ask_with(&dump.path, &[], &["stacks"]).1) == 0 {
            continue;
        }
        type Parts = fn(&Value) -> Vec<Value>;
        let roots: Parts = |data| list(&data["roots"]).iter().map(|r| r["object"].clone()).collect();
        let whole: Parts = |data| [&data["objects"], &data["totals"], &data["total"]].map(Clone::clone).to_vec();
        let asked: [(&[&str], Parts); 3] =
            [(&["roots"], roots), (&["unreachable", "--objects", "--top", "0"], whole), (&["retained", "--top", "100"], whole)];
        for (line, parts) in asked {
            let ask = |folders: &[PathBuf]| ask_with(&dump.path, folders, line);
            let (exit, bare) = ask(&[]);
            if exit != Exit::Ok {
                partial += 1;
                continue;
            }
            let sorted = |answer: &Value| {
                let mut parts: Vec<String> = parts(&answer["data"]).iter().map(Value::to_string).collect();
                parts.sort();
                parts
            };
            assert_eq!(sorted(&bare), sorted(&ask(&folders).1), "{}: {line:?}", dump.name);
            same += 1;
        }
    }
    println!("{same} answers of dumps with gaps are complete, {partial} are not");
    Ok(())
}

/// The signal handler of an overflow runs on the signal stack; the thread's normal stack is walked to its end, and each frame of it is listed.
#[test]
fn overflowed_stacks_are_complete() -> Tested {
    let (dumps, _) = known_dumps(|row| text(row, "scenario").starts_with("native") && text(row, "scenario").contains("overflow"))?;
    for dump in &dumps {
        let (exit, answer) = ask_with(&dump.path, &[], &["stacks"]);
        assert_eq!(exit, Exit::Ok, "{}: {}", dump.name, answer["warnings"]);
        let threads = list(&answer["data"]["threads"]);
        let crashed = threads.iter().find(|t| t["crashed"] == true).unwrap();
        let methods: Vec<&str> = list(&crashed["frames"]).iter().filter(|f| f["kind"] == "managed").map(|f| text(f, "method")).collect();
        let truth = &dump.truth.as_ref().unwrap()["thread"];
        assert_eq!(crashed["os_id"], truth["os"], "{}", dump.name);
        let recursing = methods.iter().filter(|m| m.starts_with("Cases.NativeCrash.")).count();
        assert!(recursing > 4_000 && methods.len() - recursing < 10, "{}: {recursing} of {}", dump.name, methods.len());
        let outermost = methods.last().unwrap();
        assert!(["System.Threading.Thread.StartCallback", "Cases.Program.Main"].iter().any(|m| outermost.starts_with(m)), "{outermost}");
    }
    Ok(())
}
