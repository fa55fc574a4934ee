//! A cycle in every linked list of the runtime: the answer is partial, names the address, and keeps everything read before.

use crate::common;
use crate::common::number;
use crate::support::{Spec, Target};
use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, Limits};
use gcdump::internals::clr::loader::Loader;
use gcdump::internals::dump::{self, Bytes, OpenOptions};
use serde_json::Value;

fn ask(target: &Target, command: &[&str]) -> (Exit, Value) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), target.to_elf_core()).unwrap();
    common::ask(file.path(), command)
}

/// Returns the word in `from..end` that points into the `reach` bytes from `to` on: its address, and its target's offset from `to`.
fn link(target: &Target, from: u64, end: u64, to: u64, reach: u64) -> Option<(u64, u64)> {
    let p = target.memory.shape.ptr;
    (0..(end - from) / p).map(|i| from + i * p).find_map(|at| {
        let offset = target.memory.word(at)?.checked_sub(to)?;
        (offset < reach).then_some((at, offset))
    })
}

/// Redirects each link of a list to an earlier element, and runs the command. Returns the number of links found.
fn bent(target: &Target, rows: &[Value], reach: u64, command: &[&str], list: &str) -> usize {
    let mut found = 0;
    let addresses: Vec<u64> = rows.iter().map(|r| number(&r["address"])).collect();
    // No structure is larger than the smallest distance between two of them.
    let mut sorted = addresses.clone();
    sorted.sort_unstable();
    let size = sorted.windows(2).map(|w| w[1] - w[0]).min().unwrap().min(0x100);
    let circular = rows.iter().any(|r| r["list"] == "handle-table");
    for (i, from) in addresses.iter().enumerate().skip(usize::from(circular)) {
        let end = from + size;
        for to in addresses.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, a)| a) {
            let Some((at, offset)) = link(target, *from, end, *to, reach.min(size)) else { continue };
            let mut copy = target.clone();
            copy.memory.p(at, from + offset);
            let (exit, answer) = ask(&copy, command);
            assert_eq!(exit, Exit::Partial, "{list}: {at:#x}: {}", answer["warnings"]);
            let warnings = answer["warnings"].as_array().unwrap();
            let cycle = warnings.iter().find(|w| w["kind"] == "limit-hit").unwrap_or_else(|| panic!("{list}: {warnings:?}"));
            assert!(cycle["address"].is_string(), "{list}: {cycle}");
            let kept = answer["data"][list].as_array().unwrap();
            assert!(kept.iter().any(|r| number(&r["address"]) == *from), "{list}: {from:#x} was read before the cycle");
            assert_eq!(answer["data"]["complete"], false, "{list}");
            found += 1;
            break;
        }
    }
    found
}

#[test]
fn a_cycle_in_every_list_is_reported() {
    for shape in crate::common::shapes() {
        let target = Spec { server: Some(2), ..Spec::standard(shape) }.build();
        let rows = |command: &[&str], list: &str| ask(&target, command).1["data"][list].as_array().unwrap().clone();
        let threads = bent(&target, &rows(&["threads"], "threads"), 0x100, &["threads"], "threads");
        assert_eq!(threads, 3, "{shape:?}");
        let segments = bent(&target, &rows(&["segments"], "segments"), 1, &["segments"], "segments");
        assert_eq!(segments, 5, "{shape:?}");
        let free = rows(&["segments", "--free"], "regions");
        let of = |list: &str| free.iter().filter(|r| r["list"] == list).cloned().collect::<Vec<Value>>();
        let tables = of("handle-table");
        // This list is circular: only a link that skips the first element is wrong.
        let wrong = bent(&target, &tables, 1, &["segments", "--free"], "regions");
        assert_eq!(wrong, 1, "{shape:?}");
        assert!(bent(&target, &of("free"), 1, &["segments", "--free"], "regions") >= 2, "{shape:?}");
        // The first one is linked to the second through an unused card table, which is not listed.
        let first = number(&of("bookkeeping")[0]["address"]);
        let next =
            (0..0x50 / shape.ptr).map(|i| first + i * shape.ptr).find(|at| target.memory.word(*at).is_some_and(|w| w > first - 0x1000));
        let mut copy = target.clone();
        copy.memory.p(next.unwrap(), first + 0x50);
        let (exit, answer) = ask(&copy, &["segments", "--free"]);
        assert_eq!(exit, Exit::Partial, "{shape:?}");
        assert!(answer["warnings"].to_string().contains("bookkeeping regions has a cycle"), "{shape:?}: {}", answer["warnings"]);
    }
}

/// A copy of `target` changed with access to the process.
fn changed(target: &Target, change: impl Fn(&Dump, &mut Target)) -> Target {
    let dump = dump::open_bytes(Bytes::Owned(target.to_elf_core()), "whole.dmp".as_ref(), &OpenOptions::default()).unwrap();
    let mut copy = target.clone();
    change(&Dump::of(dump, &gcdump::OpenOptions::default()), &mut copy);
    copy
}

/// The address in the warning about a cycle, in an answer that must be partial.
fn cycle_address<'a>((exit, answer): &'a (Exit, Value), what: &str) -> &'a str {
    assert_eq!(*exit, Exit::Partial, "{what}: {}", answer["warnings"]);
    let warnings = answer["warnings"].as_array().unwrap();
    let cycle = warnings.iter().find(|w| w["kind"] == "limit-hit" && w["message"].as_str().unwrap().contains(what));
    cycle.unwrap_or_else(|| panic!("{what}: {warnings:?}"))["address"].as_str().unwrap()
}

#[test]
fn cycles_of_handle_table_maps_and_exceptions_in_flight_are_reported() {
    for shape in crate::common::shapes() {
        let target = Spec::standard(shape).build();
        let whole = ask(&target, &["handles"]).1;
        let maps = changed(&target, |process, copy| {
            let runtime = process.runtime().unwrap();
            let d = runtime.descriptor();
            let (first, next) = (d.pointer("HandleTableMap").unwrap(), d.offset("HandleTableMap", "Next").unwrap());
            let second = process.memory().ptr(first.plus(next)).unwrap();
            copy.memory.p(second.0 + next, first.0);
        });
        let ran = ask(&maps, &["handles"]);
        cycle_address(&ran, "handle table maps");
        assert_eq!(ran.1["data"]["handles"], whole["data"]["handles"], "{shape:?}");

        let threads = ask(&target, &["threads"]).1["data"]["threads"].clone();
        let in_flight = threads.as_array().unwrap().iter().find(|t| t["exception"]["current"] == true).unwrap();
        let exceptions = changed(&target, |process, copy| {
            let runtime = process.runtime().unwrap();
            let d = runtime.descriptor();
            let at = Addr(number(&in_flight["address"])).plus(d.offset("Thread", "ExceptionTracker").unwrap());
            let tracker = process.memory().ptr(at).unwrap();
            copy.memory.p(tracker.0 + d.offset("ExceptionInfo", "PreviousNestedInfo").unwrap(), tracker.0);
        });
        let ran = ask(&exceptions, &["threads"]);
        cycle_address(&ran, "exceptions in flight");
        assert_eq!(ran.1["data"]["threads"], threads, "{shape:?}");
    }
}

#[test]
fn cycles_of_the_loader_are_reported() {
    let bytes = zstd::decode_all(std::fs::File::open(common::own_dump()).unwrap()).unwrap();
    let whole = dump::open_bytes(Bytes::Owned(bytes.clone()), "whole.dmp".as_ref(), &OpenOptions::default()).unwrap();
    let process = Dump::of(whole.clone(), &gcdump::OpenOptions::default());
    let runtime = process.runtime().unwrap();
    let (m, d) = (process.memory(), runtime.descriptor());
    let of = |type_name: &str, field: &str| d.offset(type_name, field).unwrap();
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    let with = |changes: &[(Addr, u64, usize)], command: &[&str]| {
        let mut copy = bytes.clone();
        for (at, value, len) in changes {
            let offset = common::file_offset(&whole, *at).unwrap();
            copy[offset..offset + len].copy_from_slice(&value.to_le_bytes()[..*len]);
        }
        std::fs::write(file.path(), &copy).unwrap();
        common::ask(file.path(), command)
    };
    let types = ["type", "Lab.*"];
    let (_, expected) = with(&[], &types);
    assert!(expected["data"]["types"].as_array().unwrap().len() > 3 && expected["data"]["complete"] == true);

    let list = m.ptr(d.pointer("AppDomain").unwrap()).unwrap().plus(of("AppDomain", "DomainAssemblyList"));
    let first = list.plus(of("ArrayListBase", "FirstBlock"));
    // The count is larger, so that the list continues.
    let more = (list.plus(of("ArrayListBase", "Count")), 100_000, 4);
    let ran = with(&[more, (first.plus(of("ArrayListBlock", "Next")), first.0, 8)], &types);
    assert_eq!(cycle_address(&ran, "assembly list"), first.to_string());
    assert_eq!(ran.1["data"]["types"], expected["data"]["types"]);

    let modules: Vec<Addr> = Loader::bind(m, d, &Limits::default()).unwrap().modules();
    assert!(modules.len() > 3);
    let chain = |module: &Addr| {
        // A chain with two entries or more.
        let table = m.ptr(module.plus(of("Module", "AvailableTypeParams"))).ok().filter(|t| !t.is_null())?;
        let buckets = m.ptr(table.plus(of("EETypeHashTable", "Buckets"))).unwrap();
        let next = of("EETypeHashTable", "VolatileEntryNextEntry");
        let entries = (3..m.word(buckets).unwrap() + 3).filter_map(|i| m.ptr(buckets.element(i, 8)).ok());
        entries.filter(|e| e.0 & 1 == 0 && !e.is_null()).find_map(|e| Some((e, m.ptr(e.plus(next)).ok().filter(|n| n.0 & 1 == 0)?)))
    };
    let (entry, second) = modules.iter().find_map(chain).unwrap();
    let ran = with(&[(second.plus(of("EETypeHashTable", "VolatileEntryNextEntry")), entry.0, 8)], &types);
    assert_eq!(cycle_address(&ran, "instance table"), entry.to_string());

    let map = modules.last().unwrap().plus(of("Module", "TypeDefToMethodTableMap"));
    let ran = with(&[(map.plus(of("ModuleLookupMap", "Next")), map.0, 8)], &types);
    cycle_address(&ran, "type table of a module");
}
