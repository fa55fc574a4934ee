//! Comparison with the records of the programs `stacks` and `spin` about their threads: a thread in every construct that a walk meets, the
//! objects that its frames hold, and those that only stale words of its stack refer to.

use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};

use super::{address, ask_with, folders, has_heap, list, plain, text};
use crate::common::{Known, each, every_dump, further_dumps, is_further};
use serde_json::Value;

/// A frame of the program: its method, and whether it is a handler, a filter, or left by an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    method: String,
    part: &'static str,
}

/// Whether `method` of the answer is `name` of the truth: the runtime chooses the type of emitted methods.
fn is(method: &str, name: &str, emitted: bool) -> bool {
    let method = plain(method);
    method == plain(name) || emitted && method.ends_with(&format!(".{name}"))
}

/// Returns the frames of the program's own methods in the answer, whether `truth` names them or not.
fn own_frames(thread: &Value, truth: &Value) -> Vec<Frame> {
    let named = |method: &str| list(&truth["frames"]).iter().find(|f| is(method, text(f, "method"), f["emitted"] == true));
    let managed = list(&thread["frames"]).iter().filter(|f| f["kind"] == "managed");
    let mut out = Vec::new();
    for f in managed {
        let method = text(f, "method");
        let name = match named(method) {
            Some(known) => plain(text(known, "method")),
            // Lambdas and local functions run methods that the truth names.
            None if method.starts_with("Stacks.") && !method.contains('<') => plain(method),
            None => continue,
        };
        let part = match text(f, "part") {
            "handler" => "handler",
            "filter" => "filter",
            _ => "body",
        };
        out.push(Frame { method: name, part });
    }
    out
}

/// Returns the frames of the truth, and whether each may be missing.
fn recorded(truth: &Value) -> Vec<(Frame, bool)> {
    let mut out = Vec::new();
    for f in list(&truth["frames"]) {
        let part = match text(f, "part") {
            "catch" | "finally" => "handler",
            "filter" => "filter",
            _ => "body",
        };
        let frame = Frame { method: plain(text(f, "method")), part };
        let times = f["times"].as_u64().unwrap_or(1) as usize;
        out.extend(std::iter::repeat_n((frame, f["optional"] == true), times));
    }
    out
}

#[derive(Debug, Default)]
struct Found {
    frames: usize,
    live: usize,
    dead: usize,
    /// Dead objects that a conservative scan treats as live.
    stale: usize,
    /// Dead objects that `unreachable` lists.
    garbage: usize,
    wrong: Vec<String>,
}

fn check(dump: &Known) -> Found {
    let mut found = Found::default();
    let folders = folders(&dump.runtime);
    let (_, answer) = ask_with(&dump.path, &folders, &["stacks", "--roots"]);
    let threads: BTreeMap<u64, &Value> = list(&answer["data"]["threads"]).iter().filter_map(|t| Some((t["os_id"].as_u64()?, t))).collect();
    let precise = |t: &&&Value| t["coverage"] == "precise";
    assert!(folders.is_empty() || threads.values().all(|t| precise(&t)), "{}: not precise", dump.name);
    let mut held: BTreeSet<u64> = BTreeSet::new();
    for root in threads.values().flat_map(|t| list(&t["frames"])).flat_map(|f| list(&f["roots"])).filter(|r| r["precise"] == true) {
        held.insert(address(root, "object"));
    }
    let stale = conservative(dump);
    let garbage = garbage(dump);
    let truth = dump.truth.as_ref().unwrap();
    for t in list(&truth["threads"]) {
        let name = format!("{} {}", dump.name, text(t, "name"));
        let Some(thread) = threads.get(&t["os_id"].as_u64().unwrap()).filter(precise) else {
            // Without files, the rest of a stack may be unknown.
            assert!(folders.is_empty(), "{name} is missing");
            continue;
        };
        frames(thread, t, &name, &mut found);
        for live in list(&t["live"]) {
            // A mini dump does not have the memory with which the object around an address is found.
            if !has_heap(dump) && text(live, "how").contains("interior") {
                continue;
            }
            let (object, methods) = (address(live, "object"), list(&live["in"]));
            let holds = |f: &&Value| list(&f["roots"]).iter().any(|r| r["precise"] == true && address(r, "object") == object);
            let right = |f: &Value| methods.is_empty() || methods.iter().any(|m| plain(text(f, "method")) == plain(m.as_str().unwrap()));
            let holders: Vec<&Value> = list(&thread["frames"]).iter().filter(holds).collect();
            if holders.iter().any(|f| right(f)) {
                found.live += 1;
            } else {
                let of: Vec<&str> = holders.iter().map(|f| text(f, "method")).collect();
                found.wrong.push(format!("{name}: {live} is held by {of:?}"));
            }
        }
        for dead in list(&t["dead"]) {
            let object = address(dead, "object");
            found.dead += 1;
            found.stale += usize::from(stale.contains(&object));
            if held.contains(&object) {
                found.wrong.push(format!("{name}: {dead} is held by a frame"));
            }
            if let Some(garbage) = garbage.as_ref().filter(|_| dead["kept"] == false) {
                found.garbage += 1;
                if !garbage.contains(&object) {
                    found.wrong.push(format!("{name}: {dead} counts as reachable"));
                }
            }
        }
    }
    found
}

/// The frames of a thread, in order.
fn frames(thread: &Value, truth: &Value, name: &str, found: &mut Found) {
    let own = own_frames(thread, truth);
    let recorded = recorded(truth);
    // Only the outermost frames of a running thread are known.
    let skip = if truth["running"] == true { own.len().saturating_sub(recorded.len()) } else { 0 };
    let mut rest = own[skip..].iter();
    let mut next = rest.next();
    for (frame, optional) in &recorded {
        if next == Some(frame) {
            found.frames += 1;
            next = rest.next();
        } else if !optional {
            found.wrong.push(format!("{name}: {frame:?} is missing, found {own:?}"));
            return;
        }
    }
    if next.is_some() {
        found.wrong.push(format!("{name}: {next:?} is not in the record, found {own:?}"));
    }
    // Frames that an exception has left hold no objects.
    let left = list(&thread["frames"]).iter().filter(|f| f["unwound"] == true);
    let holding = left.filter(|f| !list(&f["roots"]).is_empty()).count();
    let told_left = list(&truth["frames"]).iter().filter(|f| f["part"] == "unwound");
    let marked =
        |f: &Value| list(&thread["frames"]).iter().any(|own| own["unwound"] == true && is(text(own, "method"), text(f, "method"), false));
    let unmarked = told_left.filter(|f| !marked(f)).count();
    if holding > 0 || unmarked > 0 {
        found.wrong.push(format!("{name}: {holding} frames that were left hold something, {unmarked} are not marked"));
    }
}

/// Objects that the conservative scan treats as roots.
fn conservative(dump: &Known) -> BTreeSet<u64> {
    if !has_heap(dump) {
        return BTreeSet::new();
    }
    let (_, answer) = ask_with(&dump.path, &[], &["roots", "--stacks", "conservative"]);
    let of_stacks = list(&answer["data"]["roots"]).iter().filter(|r| r["kind"] == "stack" || r["kind"] == "register");
    of_stacks.map(|r| address(r, "object")).collect()
}

/// Unreachable objects.
fn garbage(dump: &Known) -> Option<BTreeSet<u64>> {
    let (_, answer) = ask_with(&dump.path, &folders(&dump.runtime), &["unreachable", "--objects"]);
    answer["data"]["objects"].as_array().filter(|_| has_heap(dump)).map(|o| o.iter().map(|o| address(o, "address")).collect())
}

/// Whether the dump is one of the `stacks` and `spin` programs.
pub fn is_of_a_program_of_stacks(row: &Value) -> bool {
    let scenario = text(row, "scenario");
    row["truth"].is_string() && (scenario.starts_with("stacks") || scenario.starts_with("spin"))
}

#[test]
fn every_construct_holds_the_recorded_objects() -> Tested {
    let (mut dumps, _) = every_dump(is_of_a_program_of_stacks)?;
    dumps.extend(further_dumps(|row| is_further(row) && is_of_a_program_of_stacks(row)).unwrap_or_default().0);
    if dumps.is_empty() {
        println!("skipped: no dumps of the programs are at hand");
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (dump, found) in dumps.iter().zip(each(&dumps, check)) {
        let Found { frames, live, dead, stale, garbage, .. } = found;
        println!(
            "{:<28} {frames} frames, {live} live, {dead} dead objects: {stale} of these conservatively held, {garbage} unreachable",
            dump.name
        );
        wrong.extend(found.wrong);
        if !folders(&dump.runtime).is_empty() {
            assert!(frames > 200 && live > 150 && dead > 10, "{}: too little was compared", dump.name);
            assert!(stale > 0 || !has_heap(dump), "{}: no stale words", dump.name);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n"));
    Ok(())
}
