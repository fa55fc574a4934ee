//! References that native code protects: `GCFrame`s, which are in no frame of a method.

use std::collections::BTreeSet;

use super::{has_heap, list, text};
use crate::common::{Known, ask, each, known_dumps};
use crate::harness::Tested;
use gcdump::cli::Exit;
use serde_json::Value;

/// The references of a dump that native code protects.
struct Found {
    name: String,
    /// Types of the objects that native code protects.
    types: BTreeSet<String>,
    /// Number of objects that only native code protects and that `unreachable` lists.
    garbage: usize,
}

fn is_protected(root: &Value) -> bool {
    text(root, "label").starts_with("GCFrame ")
}

fn check(dump: &Known) -> Found {
    let (_, answer) = ask(&dump.path, &["roots"]);
    let roots = list(&answer["data"]["roots"]);
    let objects = |wanted: fn(&Value) -> bool| roots.iter().filter(|r| wanted(r)).map(|r| text(r, "object")).collect::<BTreeSet<&str>>();
    let (protected, others) = (objects(is_protected), objects(|r| !is_protected(r)));
    let alone: BTreeSet<&str> = protected.difference(&others).copied().collect();
    let (_, garbage) = ask(&dump.path, &["unreachable", "--objects"]);
    let garbage = list(&garbage["data"]["objects"]).iter().filter(|o| alone.contains(text(o, "address"))).count();
    let types = roots.iter().filter(|r| is_protected(r)).map(|r| text(r, "type").to_string()).collect();
    Found { name: dump.name.clone(), types, garbage }
}

/// The runtime protects the arguments of `Main` while the program runs.
#[test]
fn the_arguments_of_main_are_protected_by_native_code() -> Tested {
    let is_described = |row: &Value| row["runtime"] != "net11shape";
    let wanted = |row: &Value| is_described(row) && ["roots", "stacks", "threads"].iter().any(|scenario| row["scenario"] == *scenario);
    let (dumps, _) = known_dumps(wanted)?;
    let dumps: Vec<Known> = dumps.into_iter().filter(has_heap).collect();
    for found in each(&dumps, check) {
        assert!(found.types.contains("System.String[]"), "{}: {:?}", found.name, found.types);
        assert_eq!(found.garbage, 0, "{}", found.name);
    }
    Ok(())
}

/// Dumps trimmed before gcdump read these references do not have the list, but the whole stacks.
#[test]
fn without_the_list_the_frames_are_found_on_the_stack() {
    let dump = crate::corpus::dump("net9-wks-roots-heap");
    let (exit, answer) = ask(&dump, &["roots", "--kind", "stack"]);
    assert_eq!(exit, Exit::Ok);
    let data = &answer["data"];
    let is_of_main = |r: &&Value| r["type"] == "System.String[]" && text(r, "label").starts_with("stack of thread 1 ");
    let of_main: Vec<&Value> = list(&data["roots"]).iter().filter(is_of_main).collect();
    assert!(of_main.iter().any(|r| list(&r["flags"]).iter().any(|flag| flag == "conservative")), "{of_main:?}");
    let coverage = list(&data["coverage"]).iter().find(|c| c["kind"] == "stack").unwrap();
    assert_eq!(coverage["coverage"], "conservative");
    assert!(text(coverage, "reason").contains("references that native code protects"), "{coverage}");
}
