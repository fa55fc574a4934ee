//! The collector's own structures: the memory of handle tables, references of older objects to younger ones, and what threads allocate.

use std::collections::BTreeMap;
use std::io::Write;

use crate::common::{Known, ask, each, every_dump, own_dump, run, sample, shapes};
use crate::harness::Tested;
use crate::support::Spec;
use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::model::Generation;
use serde_json::Value;

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// Checks the memory of the handle tables against the handles that they hold. Returns the number of handles.
fn check_handles(name: &str, memory: (Exit, Value), stat: &Value) -> u64 {
    let (exit, answer) = memory;
    let memory = &answer["data"]["memory"];
    if exit != Exit::Ok {
        assert!(exit == Exit::Partial || memory.is_null(), "{name}: {exit:?}");
        return 0;
    }
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut blocks, mut handles) = (0, 0);
    let per_block = count(&memory["slots_per_block"]);
    for row in memory["types"].as_array().unwrap() {
        let slots = count(&row["slots"]);
        assert_eq!(slots, count(&row["handles"]) + count(&row["empty_slots"]), "{name}: {row}");
        assert_eq!(slots, count(&row["blocks"]) * per_block, "{name}: {row}");
        assert!(count(&row["blocks_without_objects"]) <= count(&row["blocks"]), "{name}: {row}");
        blocks += count(&row["blocks"]) + count(&row["secondary_blocks"]);
        handles += count(&row["handles"]);
        if count(&row["handles"]) > 0 {
            counted.insert(row["type"].as_str().unwrap(), count(&row["handles"]));
        }
    }
    let known = stat["data"]["counts"].as_array().unwrap();
    let known: BTreeMap<&str, u64> = known.iter().map(|row| (row["type"].as_str().unwrap(), count(&row["count"]))).collect();
    assert_eq!(counted, known, "{name}");
    let segments = count(&memory["segments"]);
    assert!(count(&memory["tables"]) <= segments && count(&memory["segments_with_objects"]) <= segments, "{name}: {memory}");
    assert_eq!(count(&memory["bytes"]), segments * count(&memory["segment_bytes"]), "{name}");
    assert_eq!((blocks + count(&memory["free_blocks"])) % segments.max(1), 0, "{name}: a segment has as many blocks as the others");
    handles
}

#[test]
fn blocks_of_handle_tables_hold_the_handles() -> Tested {
    for shape in shapes() {
        let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        file.write_all(&Spec::standard(shape).build().to_elf_core()).unwrap();
        let of = |option: &str| ask(file.path(), &["handles", option]);
        assert!(check_handles("synthetic", of("--memory"), &of("--stat").1) > 0);
    }
    let own = own_dump();
    let handles = check_handles("own", ask(&own, &["handles", "--memory"]), &ask(&own, &["handles", "--stat"]).1);
    let screen = run(&["handles", "--memory", "--no-local-files", own.to_str().unwrap()]).out;
    assert!(handles > 0 && screen.contains("EMPTY SLOTS") && screen.contains("1 segment of 64.0 KiB"), "{screen}");
    let (dumps, _) = every_dump(|_| true)?;
    let found = each(&sample(dumps, 24), |dump: &Known| {
        let of = |option: &str| ask(&dump.path, &["handles", option]);
        check_handles(&dump.name, of("--memory"), &of("--stat").1)
    });
    assert!(found.iter().filter(|n| **n > 0).count() * 2 > found.len(), "{found:?}");
    Ok(())
}

/// Age of a generation: the collector looks for references from higher to lower ones.
fn age(generation: Option<Generation>) -> u8 {
    match generation {
        Some(Generation::Gen0) => 0,
        Some(Generation::Gen1) => 1,
        _ => 2,
    }
}

/// Compares `refs --young` with a walk over all references. Returns how many there are.
fn check_young(name: &str, path: &std::path::Path) -> u64 {
    let opened = Dump::open(path, &gcdump::OpenOptions::default()).unwrap();
    let Some(heap) = opened.runtime().ok().and_then(|runtime| runtime.heap().ok()) else { return 0 };
    if heap.objects().take(200_001).count() > 200_000 {
        return 0;
    }
    let mut known = 0;
    for object in heap.objects() {
        let from = age(heap.generation_of(object.address()));
        let younger = |to| age(heap.generation_of(to)) < from;
        known += object.references().into_iter().filter(|r| r.object.is_some() && younger(r.address)).count() as u64;
    }
    let (exit, answer) = ask(path, &["refs", "--young"]);
    let data = &answer["data"];
    assert!(matches!(exit, Exit::Ok | Exit::Partial | Exit::Negative), "{name}: {exit:?}");
    let types = data["incoming"]["types"].as_array().unwrap();
    let of_fields: u64 = types.iter().filter(|row| row["via"] == "field").map(|row| count(&row["references"])).sum();
    assert_eq!(of_fields, known, "{name}");
    if let Some(cards) = data["cards"].as_object() {
        let [set, clear] = ["references_on_set", "references_on_clear"].map(|key| count(&cards[key]));
        assert!(set + clear <= known && (exit == Exit::Partial || set + clear == known), "{name}: {cards:?}");
        assert_eq!(count(&cards["set_bytes"]), count(&cards["set"]) * count(&cards["card_bytes"]), "{name}");
        assert!(set == 0 || count(&cards["set"]) > 0, "{name}: {cards:?}");
    }
    known
}

#[test]
fn references_to_younger_objects_are_those_of_older_ones() -> Tested {
    check_young("own", &own_dump());
    let screen = run(&["refs", "--young", "--no-local-files", own_dump().to_str().unwrap()]).out;
    assert!(screen.contains("young objects") && screen.contains("set in older generations"), "{screen}");
    let (dumps, _) = every_dump(|row| row["kind"] == "heap")?;
    let found = each(&sample(dumps, 16), |dump: &Known| check_young(&dump.name, &dump.path));
    assert!(found.iter().any(|n| *n > 0), "{found:?}");
    Ok(())
}

#[test]
fn threads_are_sorted_by_what_they_have_allocated() -> Tested {
    let check = |name: &str, path: &std::path::Path| {
        let (exit, answer) = ask(path, &["threads", "--sort", "allocated"]);
        if !matches!(exit, Exit::Ok | Exit::Partial) {
            return (0, false);
        }
        let threads = answer["data"]["threads"].as_array().unwrap();
        let allocated = |thread: &Value| {
            let [a, b] = ["allocated_bytes", "allocated_bytes_uoh"].map(|key| thread[key].as_u64());
            (a.is_some() || b.is_some()).then(|| a.unwrap_or(0) + b.unwrap_or(0))
        };
        let counts: Vec<Option<u64>> = threads.iter().map(allocated).collect();
        assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{name}: {counts:?}");
        // The same as in the allocation contexts of the heap.
        let contexts = ask(path, &["heap", "--detail"]).1["data"]["allocation_contexts"].clone();
        for context in contexts.as_array().into_iter().flatten().filter(|c| c["owner"] == "thread" && !c["owner_id"].is_null()) {
            let Some(thread) = threads.iter().find(|thread| thread["managed_id"] == context["owner_id"]) else { continue };
            for key in ["allocated_bytes", "allocated_bytes_uoh", "home_heap"] {
                assert_eq!(thread[key], context[key], "{name}: {key} of {thread}");
            }
        }
        (counts.iter().flatten().sum::<u64>(), threads.iter().any(|thread| thread["home_heap"].is_u64()))
    };
    let (bytes, _) = check("own", &own_dump());
    let screen = run(&["threads", "--sort", "allocated", "--no-local-files", own_dump().to_str().unwrap()]).out;
    assert!(bytes > 0 && screen.contains("ALLOCATED BYTES") && screen.contains("have allocated"), "{screen}");
    let (dumps, _) = every_dump(|_| true)?;
    let server = dumps.into_iter().filter(|dump| dump.gc == "svr" && !dump.name.contains("aot"));
    let found = each(&sample(server, 6), |dump: &Known| check(&dump.name, &dump.path));
    assert!(found.iter().any(|(bytes, home)| *bytes > 0 && *home), "{found:?}");
    Ok(())
}
