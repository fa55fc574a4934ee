//! The output of `dotnet-dump` 10 for two dumps of the corpus (`sos/*.txt`), compared line by line with gcdump. `docs/sos.md` says where each
//! column is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{ask, number};

const ASYNC: (&str, &str) = ("net10-wks-async-heap", include_str!("sos/net10-wks-async-heap.txt"));
const LOCKS: (&str, &str) = ("net10-wks-locks-heap", include_str!("sos/net10-wks-locks-heap.txt"));

fn dump(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn data(name: &str, command: &[&str]) -> Value {
    let (exit, answer) = ask(&dump(name), command);
    assert_eq!(exit, Exit::Ok, "{command:?}: {}", answer["warnings"]);
    answer["data"].clone()
}

fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of[key].as_array().unwrap()
}

fn hex(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Returns the lines between the ones that begin with `first` and `last`.
fn between<'t>(text: &'t str, first: &str, last: &str) -> Vec<&'t str> {
    let lines = text.lines().skip_while(|l| !l.starts_with(first)).skip(1);
    lines.take_while(|l| !l.starts_with(last)).filter(|l| !l.trim().is_empty()).collect()
}

/// A line of `dumpasync` as part of its chain: address, method table, state, type.
type Line = (u64, u64, String, String);

/// Each path from the root of a tree of `dumpasync` to a leaf.
fn ways(text: &str) -> Vec<Vec<Line>> {
    let (mut out, mut way): (Vec<Vec<Line>>, Vec<Line>) = (Vec::new(), Vec::new());
    let lines = between(text, "STACK", "(L)");
    for (i, line) in lines.iter().enumerate() {
        let depth = |l: &str| (l.len() - l.trim_start().len()) / 2;
        let (head, rest) = line.trim_start().split_once(" (").unwrap();
        let (state, name) = rest.split_once(") ").unwrap();
        let (object, table) = head.split_once(' ').unwrap();
        way.truncate(depth(line));
        way.push((hex(object), hex(table), state.trim().into(), name.into()));
        if lines.get(i + 1).is_none_or(|next| depth(next) <= depth(line)) {
            out.push(way.clone());
        }
    }
    out
}

#[test]
fn dumpasync_lists_the_same_chains() {
    let (name, text) = ASYNC;
    let (ways, answer) = (ways(text), data(name, &["async", "--all"]));
    // Paths by addresses and states, from the root.
    let of_ways: BTreeSet<Vec<(u64, String)>> =
        ways.iter().map(|way| way.iter().map(|(object, _, state, _)| (*object, state.clone())).collect()).collect();
    let state = |f: &Value| f["state"].as_i64().map_or_else(String::new, |n| n.to_string());
    let chain = |c: &Value| {
        let root = (number(&c["root"]["node"]), String::new());
        std::iter::once(root).chain(list(c, "frames").iter().map(|f| (number(&f["object"]), state(f)))).collect::<Vec<_>>()
    };
    let of_chains: BTreeSet<Vec<(u64, String)>> = list(&answer, "chains").iter().map(chain).collect();
    assert_eq!(of_ways, of_chains);
    assert_eq!(ways.len(), 40);
    // SOS prints the type of the state machine: the name of its box contains it, and it gives the method.
    let frames: Vec<&Value> = list(&answer, "chains").iter().flat_map(|c| list(c, "frames")).collect();
    for (object, _, _, machine) in ways.iter().flat_map(|way| &way[1..]) {
        let frame = frames.iter().find(|f| number(&f["object"]) == *object).unwrap();
        let (owner, method) = machine.split_once("+<").unwrap();
        let method = format!("{owner}.{}", method.split('>').next().unwrap());
        assert!(frame["type"].as_str().unwrap().ends_with(&format!("<{machine}>")), "{machine}: {frame}");
        assert_eq!(frame["method"], method.as_str(), "{machine}");
    }
    // One object of each type shows its method table.
    let mut seen = BTreeSet::new();
    for (object, table, ..) in ways.iter().flatten().filter(|(_, table, ..)| seen.insert(*table)) {
        assert_eq!(number(&data(name, &["object", &format!("{object:#x}")])["method_table"]), *table, "{object:#x}");
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn timerinfo_lists_the_same_timers() {
    let (name, text) = ASYNC;
    let answer = data(name, &["timers"]);
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("(L) 0x") || l.starts_with("(S) 0x")).collect();
    assert_eq!((lines.len(), &answer["active"]), (5, &5.into()));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        // (L) 0xOBJECT @ DUE ms every PERIOD ms | STATE (TYPE) -> METHOD
        let timer = list(&answer, "timers").iter().find(|t| number(&t["object"]) == hex(words[1])).unwrap();
        let ms = |at: usize| words[at].parse::<u64>().unwrap();
        assert_eq!((timer["set_ms"].as_u64(), timer["period_ms"].as_u64()), (Some(ms(3)), Some(ms(6))), "{line}");
        assert_eq!((number(&timer["state"]), timer["callback"].as_str()), (hex(words[9]), words.last().copied()), "{line}");
        assert_eq!(format!("({})", timer["state_type"].as_str().unwrap()), words[10], "{line}");
    }
}

#[test]
fn syncblk_and_thinlock_list_the_same_locks() {
    let (name, text) = LOCKS;
    let (answer, threads) = (data(name, &["locks", "--all"]), data(name, &["threads"]));
    let lock = |object: u64| list(&answer, "locks").iter().find(|l| number(&l["object"]) == object).unwrap();
    let thread = |os_id: u64| list(&threads, "threads").iter().find(|t| t["os_id"] == os_id).unwrap();
    let blocks = between(text, "Index", "-----");
    assert_eq!(blocks.len(), 2);
    for line in blocks {
        // Index SyncBlock MonitorHeld Recursion Thread OSID DBG Object Type
        let words: Vec<&str> = line.split_whitespace().collect();
        let lock = lock(hex(words[7]));
        assert_eq!((lock["sync_block"].to_string().as_str(), lock["type"].as_str()), (words[0], Some(words[8])), "{line}");
        let header = &data(name, &["object", words[7]])["header"]["sync_block"];
        assert_eq!(number(&header["address"]), hex(words[1]), "{line}");
        // One for the owner, and two for each waiting thread.
        assert_eq!((1 + 2 * lock["waiting"].as_u64().unwrap()).to_string(), words[2], "{line}");
        assert_eq!(list(lock, "waiters").len() as u64, lock["waiting"].as_u64().unwrap(), "{line}");
        // SOS counts the first entry, too.
        assert_eq!((1 + lock["recursion"].as_u64().unwrap()).to_string(), words[3], "{line}");
        assert_eq!(lock["owner"]["os_id"], hex(words[5]), "{line}");
        assert_eq!(number(&thread(hex(words[5]))["address"]), hex(words[4]), "{line}");
    }
    let thin: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    let held = lock(hex(thin[0]));
    assert_eq!((&held["sync_block"], &held["kind"]), (&Value::Null, &"monitor".into()));
    assert_eq!((held["owner"]["os_id"].as_u64(), held["recursion"].to_string()), (Some(hex(thin[2])), thin[3].into()));
    assert_eq!(number(&thread(hex(thin[2]))["address"]), hex(thin[1]));
}
