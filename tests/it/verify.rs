//! `verify`: no findings in intact dumps, and exactly the planted corruption otherwise, in a real dump and in synthetic
//! processes of four architectures.

pub mod patient;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{answered, ask, cases, full, known_dumps, number, run, sample};
use crate::harness::Tested;
use crate::support::{Shape, Spec};
use gcdump::analysis::FindingId;
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use patient::{Found, Obj, Patient, Write, found, list, objects};
use serde_json::Value;

#[test]
fn nothing_is_found_where_clrmd_finds_nothing() -> Tested {
    let (mut clean, mut partial) = (0, 0);
    for dump in answered()? {
        let theirs = &dump.clrmd["verify"];
        let (exit, ours) = ask(&dump.path, &["verify"]);
        let data = &ours["data"];
        if theirs["total"].as_u64().unwrap_or(0) == 0 {
            assert_eq!(found(data), Found::new(), "{}: {data}", dump.name);
            assert_eq!(exit == Exit::Ok, data["complete"] == true, "{}", dump.name);
            clean += 1;
        }
        // Everything is checked, or reported as unavailable.
        let objects = data["totals"]["objects"].as_u64().unwrap();
        match theirs["objects"].as_u64() {
            // During a compacting collection no object can be checked, which is reported.
            Some(n) if exit == Exit::Ok && !list(data, "unavailable").iter().any(|u| u["check"] == "objects") => {
                let free = dump.clrmd["stat"]["types_table"].as_array().into_iter().flatten().filter(|t| t["free"] == true);
                assert_eq!(objects + free.map(|t| t["count"].as_u64().unwrap()).sum::<u64>(), n, "{}", dump.name);
            }
            _ => partial += 1,
        }
        assert!(data["coverage"]["complete"] == true || !list(data, "unavailable").is_empty(), "{}: {data}", dump.name);
    }
    println!("{clean} dumps without a finding, {partial} of them not whole or without ClrMD's answer");
    Ok(())
}

#[test]
fn every_finding_is_explained() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/findings.md")).unwrap();
    let explained: BTreeMap<&str, &str> =
        page.split("\n### ").skip(1).map(|part| (part.lines().next().unwrap().trim_matches('`'), part)).collect();
    let ids: BTreeSet<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
    assert_eq!(explained.keys().copied().collect::<BTreeSet<_>>(), ids);
    for id in FindingId::ALL {
        let text = explained[id.name()];
        assert!(text.contains(&format!("Severity: {}", id.severity().name())), "{text}");
        assert!(text.contains("**Means**") && text.contains("**Comes from**") && text.contains("**Do**"), "{text}");
        assert_eq!(serde_json::to_value(id).unwrap(), id.name());
    }
}

/// Objects directly followed by another one.
fn followed(all: &[Obj]) -> impl Iterator<Item = (&Obj, &Obj)> {
    all.windows(2).filter(|w| (w[0].at + w[0].size).next_multiple_of(8) == w[1].at).map(|w| (&w[0], &w[1]))
}

#[test]
fn an_overwritten_method_table() {
    let patient = Patient::real();
    let all = objects(&patient);
    let mut named = 0;
    let step = 23 * cases(5, 1);
    for (n, o) in all.iter().enumerate().filter(|(n, o)| n % step == 0 && o.name != "Free") {
        let garbage = [0x4141_4141_4141_4141, 0, 0x10, o.at, 0xffff_ffff_ffff_fff8][n / step % 5];
        // Unreferenced zeros may be an object in allocation.
        let referred = all.iter().any(|other| other.refs.iter().any(|(_, to)| *to == o.at));
        if garbage == 0 && !referred {
            continue;
        }
        let data =
            patient.names(&format!("{garbage:#x} in {o:?}"), &[patient.put(o.at, garbage)], &[(FindingId::ObjectBadMethodTable, o.at)]);
        let also = data["findings"][0]["also"].as_u64().unwrap();
        assert!(also > 0 || !referred, "{data}");
        named += 1;
    }
    println!("{named} method tables");
    assert!(named > cases(15, 100));
}

#[test]
fn a_wrong_length() {
    let patient = Patient::real();
    let all = objects(&patient);
    let (mut huge, mut short, mut long, mut ends, mut blamed) = (0, 0, 0, 0, 0);
    let set = |o: &Obj, length: u64| [patient.put32(o.at + 8, length)];
    for (n, (o, next)) in sample(followed(&all).enumerate(), 5) {
        let Some(length) = o.length.filter(|_| o.name != "Free") else { continue };
        if n % 29 == 0 {
            patient.names(&format!("huge {o:?}"), &set(o, 0x7fff_fff0), &[(FindingId::ObjectBadSize, o.at)]);
            huge += 1;
        }
        // A truncated string, and an array without its last references.
        if o.name == "System.String" && length > 16 && n % 31 == 0 {
            patient.names(&format!("short {o:?}"), &set(o, length / 2), &[(FindingId::ObjectBadSize, o.at)]);
            short += 1;
        }
        if o.name.ends_with("[]") && o.refs.len() as u64 == length && length > 4 {
            patient.names(&format!("short {o:?}"), &set(o, length / 2), &[(FindingId::ObjectBadSize, o.at)]);
            short += 1;
        }
        // Any other length that is a few words too short, even if the rest is zero like an object in allocation.
        let element = (o.size - 22) / length.max(1);
        let words = |length: u64| (o.size - (o.length.unwrap_or(0) - length) * element).div_ceil(8);
        if n % 13 == 0 && length > 4 && matches!(o.generation.as_str(), "gen0" | "gen1" | "gen2" | "frozen") {
            for less in [length / 2, length - 1].into_iter().filter(|l| words(*l) < words(length)) {
                let (exit, found, data) = patient.damaged(&set(o, less));
                let exact = Found::from([(FindingId::ObjectBadSize.name().into(), o.at)]);
                assert!(exit == Exit::Negative && found.len() == 1, "{less} of {o:?}: {data:#}");
                ends += 1;
                blamed += usize::from(found != exact);
                // If the remaining bytes could be an object, both candidates are named.
                assert!(found == exact || data["findings"][0]["message"].as_str().unwrap().contains(&Addr(o.at).to_string()), "{data:#}");
            }
        }
        // The length covers the next object, or a part of it.
        let referred = || all.iter().any(|other| other.refs.iter().any(|(_, to)| *to == next.at));
        if n % 37 == 0 && next.name != "Free" && referred() {
            let element = if o.name == "System.String" { 2 } else { (o.size - 24) / length.max(1) };
            if matches!(element, 1 | 2 | 4 | 8) {
                let exact = length + next.size.next_multiple_of(8) / element;
                patient.names(&format!("swallows {o:?} {next:?}"), &set(o, exact), &[(FindingId::ObjectBadSize, o.at)]);
                let part = length + 8 / element;
                patient.names(&format!("half of {o:?} {next:?}"), &set(o, part), &[(FindingId::ObjectBadSize, o.at)]);
                long += 2;
            }
        }
    }
    println!("{huge} huge, {short} short, {long} a little too long; {ends} a little short, {blamed} of these not certain");
    let least = cases(1, 10);
    assert!(huge >= least && short >= least && long >= least && ends >= 5 * least && blamed * 20 <= ends);
}

#[test]
fn a_method_table_of_another_type() {
    let patient = Patient::real();
    let all = objects(&patient);
    let mut types: BTreeMap<u64, &Obj> = BTreeMap::new();
    for o in all.iter().filter(|o| o.name != "Free" && o.length.is_none()) {
        types.entry(patient.word(o.at)).or_insert(o);
    }
    let types: Vec<(u64, &Obj)> = types.into_iter().collect();
    let (mut planted, mut exact) = (0, 0);
    for (n, (o, _)) in followed(&all).enumerate().filter(|(n, (o, _))| n % (17 * cases(5, 1)) == 0 && o.name != "Free") {
        let (table, like) = types[n * 7 % types.len()];
        // On these heaps, zeros after an object may be another one in allocation.
        if matches!(o.generation.as_str(), "loh" | "poh") {
            continue;
        }
        // A type of the same size is plausible.
        if like.size.div_ceil(8) == o.size.div_ceil(8) {
            continue;
        }
        let (exit, found, data) = patient.damaged(&[patient.put(o.at, table)]);
        assert!(exit == Exit::Negative && !found.is_empty(), "{} instead of {o:?}: {data:#}", like.name);
        planted += 1;
        exact += usize::from(found == Found::from([(FindingId::ObjectBadMethodTable.name().into(), o.at)]));
    }
    println!("{planted} method tables of other types, {exact} named exactly");
    assert!(planted > cases(15, 100) && exact * 20 > planted * 17);
}

#[test]
fn a_wrong_reference() {
    let patient = Patient::real();
    let all = objects(&patient);
    let free: Vec<&Obj> = all.iter().filter(|o| o.name == "Free").collect();
    let large = all.iter().find(|o| o.name == "System.Byte[]" && o.size > 85_000).unwrap();
    let context = number(&patient.ask(&["heap"]).1["allocation_contexts"][0]["pointer"]);
    let mut planted = 0;
    for (n, o) in all.iter().enumerate().filter(|(n, o)| n % (41 * cases(5, 1)) == 0 && !o.refs.is_empty()) {
        let slot = o.at + o.refs[n % o.refs.len()].0;
        let values = [
            (0x10, FindingId::ReferenceOutsideHeap),
            (patient.word(o.at), FindingId::ReferenceOutsideHeap),
            (all[0].at + 4, FindingId::ReferenceUnaligned),
            (large.at + 0x408, FindingId::ReferenceToMiddle),
            (o.at + 8, FindingId::ReferenceToMiddle),
            (free[n % free.len()].at, FindingId::ReferenceToFree),
            (context + 8, FindingId::ReferenceToUnused),
        ];
        for (value, id) in values {
            let data = patient.names(&format!("{value:#x} in {o:?}"), &[patient.put(slot, value)], &[(id, slot)]);
            let finding = &data["findings"][0];
            assert_eq!((number(&finding["object"]), number(&finding["related"])), (o.at, value));
            planted += 1;
        }
    }
    println!("{planted} references");
    assert!(planted > cases(15, 100));
}

#[test]
fn headers_handles_and_finalizers() {
    let patient = Patient::real();
    let all = objects(&patient);
    let middle = all.iter().find(|o| o.size > 100).unwrap().at + 16;
    let free = all.iter().find(|o| o.name == "Free").unwrap().at;
    for o in all.iter().filter(|o| o.name != "Free").step_by(400 * cases(4, 1)) {
        patient.names("no such sync block", &[patient.put32(o.at - 4, 0x0800_0123)], &[(FindingId::SyncBlockBadIndex, o.at)]);
        let (exit, found, _) = patient.damaged(&[patient.put32(o.at - 4, 777)]);
        assert_eq!((exit, found), (Exit::Ok, Found::from([("thin-lock-no-thread".into(), o.at)])), "suspicious, not broken");
        // Locked by an existing thread, or a hash code: no finding.
        patient.names("locked", &[patient.put32(o.at - 4, 1)], &[]);
        patient.names("hashed", &[patient.put32(o.at - 4, 0x0c12_3456)], &[]);
    }
    let (_, handles) = patient.ask(&["handles"]);
    for handle in sample(list(&handles, "handles"), 4) {
        let at = number(&handle["address"]);
        for target in [middle, free, 0x1000, 0x7777] {
            patient.names(&format!("{handle}"), &[patient.put(at, target)], &[(FindingId::HandleBadObject, at)]);
        }
    }
    patient.gc(|gc, _| {
        let queues = gc.finalizer_queues();
        assert!(!queues[0].entries.is_empty());
        for entry in &queues[0].entries {
            let writes = [patient.put(entry.address.0, middle)];
            patient.names("a finalizer entry", &writes, &[(FindingId::FinalizerBadObject, entry.address.0)]);
        }
    });
}

#[test]
fn sync_blocks_of_other_objects() -> Tested {
    let dump = known_dumps(|row| row["name"] == "net10-wks-locks-heap")?.0.swap_remove(0);
    let patient = Patient::new(&std::fs::read(&dump.path).unwrap());
    let (_, data) = patient.ask(&["verify"]);
    assert!(data["totals"]["sync_blocks"].as_u64() > Some(1), "{data}");
    let header = |at: u64| patient.process.memory().u32(Addr(at - 4)).unwrap();
    let with_block: Vec<Obj> = objects(&patient).into_iter().filter(|o| header(o.at) & 0x0c00_0000 == 0x0800_0000).collect();
    assert!(with_block.len() > 1);
    let (a, b) = (with_block[0].at, with_block[1].at);
    // The index of another object, and of no object.
    patient.names("another number", &[patient.put32(a - 4, header(b).into())], &[(FindingId::SyncBlockWrongObject, a)]);
    patient.names("no number", &[patient.put32(a - 4, 0)], &[(FindingId::SyncBlockNotInHeader, a)]);
    Ok(())
}

#[test]
fn segments_and_contexts() {
    let patient = Patient::real();
    let (_, data) = patient.ask(&["segments"]);
    let segments = list(&data, "segments");
    let of =
        |generation: &str| segments.iter().filter(|s| s["generation"] == generation).map(|s| number(&s["address"])).collect::<Vec<_>>();
    let next = patient.offset("HeapSegment", "Next");
    let (gen2, loh) = (of("gen2")[0], of("loh")[0]);
    let object = number(&segments.iter().find(|s| s["generation"] == "gen2").unwrap()["start"]);
    for target in [0x7777, 0x1_0000, gen2, loh, object + 8] {
        patient.names(&format!("link to {target:#x}"), &[patient.put(gen2 + next, target)], &[(FindingId::SegmentBadLink, gen2)]);
    }
    for field in ["Allocated", "Committed", "Reserved"] {
        let at = gen2 + patient.offset("HeapSegment", field);
        patient.names(field, &[patient.put(at, 0x10)], &[(FindingId::SegmentBadBounds, gen2)]);
    }
    let committed = gen2 + patient.offset("HeapSegment", "Reserved");
    let above = segments.iter().filter(|s| number(&s["start"]) > object).min_by_key(|s| number(&s["start"])).unwrap();
    let writes = [patient.put(committed, number(&above["start"]) + 0x100)];
    patient.names("reserved beyond the next", &writes, &[(FindingId::SegmentOverlap, number(&above["address"]))]);

    // The segment's memory is also that of the next one: it is walked once.
    let end = number(&above["start"]) + 0x100;
    let fields = ["Allocated", "Committed", "Reserved"].map(|f| patient.put(gen2 + patient.offset("HeapSegment", f), end));
    let whole = patient.ask(&["stat"]).1["totals"]["count"].as_u64().unwrap();
    let (exit, twice) = patient.with(&fields, || patient.ask(&["stat"]));
    assert_eq!(exit, Exit::Partial);
    assert!(twice["totals"]["count"].as_u64().unwrap() <= whole, "{}", twice["totals"]);
    let absent = twice["coverage"]["absent_bytes"].as_u64().unwrap();
    assert!(absent >= number(&above["allocated"]) - number(&above["start"]), "{}", twice["coverage"]);

    let context = &patient.ask(&["heap"]).1["allocation_contexts"][0];
    let (pointer, limit) = (number(&context["pointer"]), number(&context["limit"]));
    let at = context_of(&patient, pointer);
    let limit_at = at + patient.offset("GCAllocContext", "Limit") - patient.offset("GCAllocContext", "Pointer");
    patient.names("limit", &[patient.put(limit_at, pointer - 8)], &[(FindingId::ContextBadBounds, pointer)]);
    patient.names("limit", &[patient.put(limit_at, limit + (1 << 32))], &[(FindingId::ContextBadBounds, pointer)]);
    patient.names("pointer", &[patient.put(at, object + 3)], &[(FindingId::ContextOutsideGen0, object + 3)]);
    patient.names("pointer", &[patient.put(at, 0x5000)], &[(FindingId::ContextOutsideGen0, 0x5000)]);
}

/// Address of the pointer of the thread's allocation context.
fn context_of(patient: &Patient, pointer: u64) -> u64 {
    let runtime = patient.process.runtime().unwrap();
    let threads = runtime.thread_list().unwrap();
    let thread = threads.iter().find(|t| t.context.is_some_and(|c| c.pointer.0 == pointer)).unwrap();
    let locals = patient.word(thread.address.0 + patient.offset("Thread", "RuntimeThreadLocals"));
    let outer = patient.offset("RuntimeThreadLocals", "AllocContext") + patient.offset("EEAllocContext", "GCAllocationContext");
    let at = locals + outer + patient.offset("GCAllocContext", "Pointer");
    assert_eq!(patient.word(at), pointer);
    at
}

#[test]
fn a_clear_card() {
    let patient = Patient::real();
    let all = objects(&patient);
    let generation: BTreeMap<u64, &str> = all.iter().map(|o| (o.at, o.generation.as_str())).collect();
    // Addresses of references from generation 2 to younger ones, by card.
    let mut cards: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut others = 0;
    for o in &all {
        for (offset, to) in &o.refs {
            match (o.generation.as_str(), generation[to]) {
                ("gen2", "gen0" | "gen1") | ("gen1", "gen0") => cards.entry((o.at + offset) / 256).or_default().push(o.at + offset),
                ("loh" | "poh", "gen0" | "gen1") => others += 1,
                _ => {}
            }
        }
    }
    let (_, data) = patient.ask(&["verify"]);
    let places: usize = cards.values().map(Vec::len).sum();
    assert_eq!(data["totals"]["cards"].as_u64(), Some((places + others) as u64));
    assert!(!cards.is_empty());
    let table = number(&patient.ask(&["heap", "--detail"]).1["heaps"][0]["detail"]["card_table"]);
    for (card, places) in &cards {
        let word = table + card / 32 * 4;
        let value = u64::from(patient.process.memory().u32(Addr(word)).unwrap());
        assert_ne!(value >> (card % 32) & 1, 0);
        let expected: Vec<_> = places.iter().map(|at| (FindingId::CardClear, *at)).collect();
        patient.names("card", &[patient.put32(word, value & !(1 << (card % 32)))], &expected);
        let (exit, ..) = patient.damaged(&[patient.put32(word, value & !(1 << (card % 32)))]);
        assert_eq!(exit, Exit::Ok, "suspicious, not broken");
    }
}

#[test]
fn findings_of_a_single_object() {
    let patient = Patient::real();
    let all = objects(&patient);
    let holder = all.iter().find(|o| !o.refs.is_empty()).unwrap();
    let other = all.iter().rfind(|o| !o.refs.is_empty()).unwrap();
    let writes: Vec<Write> = [holder, other].iter().map(|o| patient.put(o.at + o.refs[0].0, 0x10)).collect();
    patient.with(&writes, || {
        let about = |at: u64| patient.ask(&["verify", "--object", &format!("{at:#x}")]);
        for (asked, o) in [(holder.at, holder), (holder.at + 8, holder), (other.at, other)] {
            let (exit, data) = about(asked);
            assert_eq!(found(&data), Found::from([("reference-outside-heap".into(), o.at + o.refs[0].0)]));
            assert_eq!((exit, number(&data["object"])), (Exit::Negative, o.at));
        }
        let healthy = all.iter().find(|o| o.refs.is_empty() && o.name != "Free").unwrap();
        let (exit, data) = about(healthy.at);
        assert_eq!((exit, found(&data)), (Exit::Ok, Found::new()));
        // A limited list has the lowest addresses; totals cover everything.
        let (_, data) = patient.ask(&["verify", "--top", "1"]);
        assert_eq!(number(&list(&data, "findings")[0]["address"]), (holder.at + holder.refs[0].0).min(other.at + other.refs[0].0));
        assert_eq!((list(&data, "findings").len(), data["totals"]["errors"].as_u64()), (1, Some(2)));
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| patient.ask(&["verify", "--top", "1"]).1), data, "{threads} threads");
        }
        let sos = run(&["verifyobj", &format!("{:#x}", holder.at), "--json", "--no-local-files", patient.path.to_str().unwrap()]);
        assert_eq!(sos.json()["data"], about(holder.at).1);
    });
    let nowhere = run(&["verify", "--object", "0x10", "--no-local-files", patient.path.to_str().unwrap()]);
    assert_eq!(nowhere.exit, Exit::Negative);
    assert!(nowhere.err.contains("there is no object at 0x10"), "{}", nowhere.err);
}

/// The synthetic processes, in both containers.
fn patients(spec: &Spec) -> [(Patient, Value); 2] {
    let target = spec.build();
    [target.to_elf_core(), target.to_minidump()].map(|bytes| (Patient::new(&bytes), target.expected()))
}

#[test]
fn synthetic_processes_of_four_architectures() {
    for shape in crate::common::shapes() {
        // Each shape has one of the four collectors; in a full run all of them.
        let collectors = [(None, true), (Some(2), true), (None, false), (Some(2), false)];
        let skip = if full() { 0 } else { usize::from(shape.big) + 2 * usize::from(shape.ptr == 4) };
        for (server, regions) in sample(collectors.into_iter().skip(skip), 4) {
            for (patient, expected) in patients(&Spec { server, regions, stray_handle: true, ..Spec::standard(shape) }) {
                fake(&patient, &expected, shape, regions);
            }
        }
    }
}

fn fake(patient: &Patient, expected: &Value, shape: Shape, regions: bool) {
    // The builder creates one weak handle without a target.
    let healthy: Vec<&str> = patient.healthy.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(healthy, ["handle-bad-object"], "{shape:?}");
    let p = shape.ptr;
    let all = objects(patient);
    assert!(all.iter().any(|o| !o.refs.is_empty()));
    for o in sample(all.iter().filter(|o| o.name != "Free"), 4) {
        let what = format!("{shape:?} {o:?}");
        patient.names(&what, &[patient.put(o.at, 0x1238)], &[(FindingId::ObjectBadMethodTable, o.at)]);
        if o.length.is_some() {
            patient.names(&what, &[patient.put32(o.at + p, 0x6000_0000)], &[(FindingId::ObjectBadSize, o.at)]);
        }
        for (offset, _) in &o.refs {
            let slot = o.at + offset;
            let free = all.iter().find(|o| o.name == "Free").unwrap().at;
            let cases = [
                (0x10, FindingId::ReferenceOutsideHeap),
                (all[0].at + 2, FindingId::ReferenceUnaligned),
                (o.at + p, FindingId::ReferenceToMiddle),
                (free, FindingId::ReferenceToFree),
            ];
            for (value, id) in cases {
                patient.names(&what, &[patient.put(slot, value)], &[(id, slot)]);
            }
        }
    }
    let middle = all.iter().find(|o| !o.refs.is_empty()).unwrap().at + p;
    let sound = list(expected, "handles").iter().map(|h| number(&h["address"])).filter(|at| !patient.healthy.iter().any(|f| f.1 == *at));
    for at in sound {
        patient.names("handle", &[patient.put(at, middle)], &[(FindingId::HandleBadObject, at)]);
    }
    let entry = number(&expected["heaps"][0]["fill_pointers"][2]);
    patient.names("finalizer", &[patient.put(entry, middle)], &[(FindingId::FinalizerBadObject, entry)]);
    let segment = |generation: &str| {
        let row = list(expected, "segments").iter().find(|s| s["generation"] == generation).unwrap();
        (number(&row["address"]), number(&row["start"]))
    };
    let next = patient.offset("HeapSegment", "Next");
    let ((loh, loh_start), (frozen, _)) = (segment("loh"), segment("frozen"));
    for target in [0x7777, loh, loh_start + 4 * p] {
        patient.names("link", &[patient.put(loh + next, target)], &[(FindingId::SegmentBadLink, loh)]);
    }
    let reserved = patient.offset("HeapSegment", "Reserved");
    patient.names("bounds", &[patient.put(frozen + reserved, 8)], &[(FindingId::SegmentBadBounds, frozen)]);
    if !regions {
        let generations = number(&expected["heaps"][0]["detail"]["generation_table"][0]["start_segment"]);
        let starts = list(&expected["heaps"][0]["detail"], "generation_table");
        assert_eq!(number(&starts[1]["start_segment"]), generations);
    }
    let context = number(&list(expected, "threads")[0]["alloc_pointer"]);
    let at = context_of(patient, context);
    let limit_at = at + patient.offset("GCAllocContext", "Limit") - patient.offset("GCAllocContext", "Pointer");
    let writes = [patient.put(at, loh_start + 1), patient.put(limit_at, loh_start + 9)];
    patient.names("context", &writes, &[(FindingId::ContextOutsideGen0, loh_start + 1)]);
}

#[test]
fn dead_objects_of_a_background_sweep() {
    for shape in crate::common::shapes() {
        for (patient, _) in patients(&Spec { sweeping: true, ..Spec::standard(shape) }) {
            let (_, data) = patient.ask(&["verify"]);
            assert_eq!(data["totals"]["dead_objects"], 0, "{shape:?}: {data}");
            let all = objects(&patient);
            let free = all.iter().find(|o| o.name == "Free").unwrap().at;
            let mut dead = 0;
            // The builder's segment of generation 1 has been swept.
            for o in all.iter().filter(|o| !o.refs.is_empty() && !matches!(o.generation.as_str(), "frozen" | "gen1")) {
                let stale = patient.put(o.at + o.refs[0].0, free);
                patient.names("alive", std::slice::from_ref(&stale), &[(FindingId::ReferenceToFree, o.at + o.refs[0].0)]);
                // A mark bit covers 16 bytes on 64-bit targets, 8 on 32-bit ones; adjacent objects do not change.
                let mark = o.at / (2 * shape.ptr);
                let marks = number(&patient.ask(&["heap", "--detail"]).1["heaps"][0]["detail"]["mark_array"]);
                let word = marks + mark / 32 * 4;
                let bits = u64::from(patient.process.memory().u32(Addr(word)).unwrap());
                let data = patient.names("dead", &[stale, patient.put32(word, bits & !(1 << (mark % 32)))], &[]);
                assert_eq!(data["totals"]["dead_objects"], 1, "{shape:?} {o:?}");
                dead += 1;
            }
            assert!(dead > 5);
        }
    }
}

#[test]
fn a_collection_in_progress_is_not_corruption() {
    for shape in crate::common::shapes() {
        for (patient, _) in patients(&Spec { gc_in_progress: true, ..Spec::standard(shape) }) {
            let (exit, data) = patient.ask(&["verify"]);
            assert_eq!((exit, found(&data)), (Exit::Ok, Found::new()));
            let unavailable: Vec<&str> = list(&data, "unavailable").iter().map(|u| u["check"].as_str().unwrap()).collect();
            assert!(["objects", "references", "handles", "cards"].iter().all(|c| unavailable.contains(c)), "{unavailable:?}");
        }
    }
}

#[test]
fn missing_memory_is_not_corruption() {
    for shape in crate::common::shapes() {
        let target = Spec { stray_handle: true, ..Spec::standard(shape) }.build();
        let expected = target.expected();
        for segment in list(&expected, "segments") {
            let (start, end) = (number(&segment["start"]), number(&segment["allocated"]));
            if end - start < 0x40 {
                continue;
            }
            // The second half, or everything.
            for from in [start, start + (end - start) / 16 * 8] {
                let cut = target.without(from, end - from);
                let patient = Patient::new(&cut.to_elf_core());
                let (exit, data) = patient.ask(&["verify"]);
                let ids: Vec<String> = found(&data).into_iter().map(|(id, _)| id).collect();
                assert_eq!((exit, ids), (Exit::Negative, vec!["handle-bad-object".to_string()]), "{shape:?} {segment} {data:#}");
                // An object whose end is missing is walked; its references are unknown.
                let inside = || list(&data, "unavailable").iter().any(|u| u["check"] == "references");
                assert!((data["complete"] == false && data["coverage"]["absent_bytes"].as_u64() > Some(0)) || inside(), "{data}");
            }
        }
    }
}
