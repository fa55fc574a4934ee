//! `fragmentation`, compared with ClrMD, the programs' own records and other commands, on every shared dump.

use crate::common::{ask, known_dumps, number, own_unpacked};
use crate::harness::Tested;
use gcdump::internals::base::{Addr, AddrRange};
use serde_json::Value;

fn n(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap()
}

fn rows<'v>(data: &'v Value, key: &str) -> &'v Vec<Value> {
    data[key].as_array().unwrap()
}

#[test]
fn free_space_is_that_of_clrmd() -> Tested {
    let (dumps, missing) = known_dumps(|_| true)?;
    assert!(!dumps.is_empty(), "no dump is unpacked, {missing:?} are missing");
    let (mut exact, mut added) = (0, 0);
    for dump in &dumps {
        if !matches!(dump.kind.as_str(), "heap" | "full" | "gcore" | "kernel") {
            continue;
        }
        let (_, ours) = ask(&dump.path, &["fragmentation", "--segments", "--top", "0"]);
        let data = &ours["data"];
        sums_add_up(&dump.name, data);
        added += 1;
        let Some(theirs) = dump.clrmd.as_ref().and_then(|c| c["stat"]["types_table"].as_array()) else { continue };
        let free: Vec<&Value> = theirs.iter().filter(|t| t["free"] == true).collect();
        let sum = |key: &str| free.iter().map(|t| n(t, key)).sum::<u64>();
        assert_eq!((n(&data["totals"], "free_count"), n(&data["totals"], "free_bytes")), (sum("count"), sum("size")), "{}", dump.name);
        exact += 1;
    }
    println!("{exact} dumps with ClrMD's free space, {added} add up");
    assert!(exact > 0);
    Ok(())
}

/// Every grouping of the free space gives the same totals.
fn sums_add_up(name: &str, data: &Value) {
    let t = &data["totals"];
    for list in ["generations", "segments"] {
        for key in ["allocated_bytes", "free_count", "free_bytes", "unused_committed_bytes", "context_bytes"] {
            assert_eq!(rows(data, list).iter().map(|r| n(r, key)).sum::<u64>(), n(t, key), "{name} {list} {key}");
        }
    }
    let c = &data["coverage"];
    assert_eq!((n(t, "allocated_bytes"), n(t, "context_bytes")), (n(c, "allocated_bytes"), n(c, "context_bytes")), "{name}");
    let (sizes, blocks) = (rows(data, "sizes"), rows(data, "largest"));
    assert_eq!(sizes.iter().map(|r| n(r, "count")).sum::<u64>(), n(t, "free_count"), "{name}");
    assert_eq!(sizes.iter().map(|r| n(r, "bytes")).sum::<u64>(), n(t, "free_bytes"), "{name}");
    assert_eq!(u64::try_from(blocks.len()).unwrap(), n(t, "free_count"), "{name}");
    assert_eq!(blocks.iter().map(|r| n(r, "size")).sum::<u64>(), n(t, "free_bytes"), "{name}");
    assert!(blocks.iter().map(|r| n(r, "size")).is_sorted_by(|a, b| a >= b), "{name}");
    let pinned = rows(data, "pinned");
    assert_eq!(pinned.iter().map(|r| n(r, "count")).sum::<u64>(), n(t, "pinned_objects"), "{name}");
    assert!(n(t, "pinned_objects") <= n(t, "pinned_handles"), "{name}");
    // Only free space is counted before pinned objects, and each block before at most one object.
    assert!(pinned.iter().map(|r| n(r, "free_bytes_before")).sum::<u64>() <= n(t, "free_bytes"), "{name}");
}

#[test]
fn pinned_objects_are_those_pinned_by_the_program() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "fragmented")?;
    for dump in &dumps {
        let (_, answer) = ask(&dump.path, &["fragmentation", "--top", "50"]);
        let data = &answer["data"];
        let truth = n(dump.truth.as_ref().unwrap(), "pinned");
        assert!(n(&data["totals"], "pinned_objects") >= truth, "{}", dump.name);
        let arrays = rows(data, "pinned").iter().find(|p| p["type"] == "System.Byte[]").unwrap();
        assert!(n(arrays, "count") >= truth && n(arrays, "free_bytes_before") > 0, "{}: {arrays}", dump.name);
        let (_, handles) = ask(&dump.path, &["handles", "--type", "pinned"]);
        let handles = rows(&handles["data"], "handles");
        let pinned: Vec<&Value> = rows(data, "largest").iter().filter(|b| b["pinned_by"].is_string()).collect();
        assert!(!pinned.is_empty(), "{}", dump.name);
        for block in pinned {
            let handle = handles.iter().find(|h| h["address"] == block["pinned_by"]).unwrap();
            assert!([&block["after"]["address"], &block["before"]["address"]].contains(&&handle["object"]), "{}: {block}", dump.name);
        }
    }
    println!("{} dumps", dumps.len());
    Ok(())
}

#[test]
fn neighbors_match_near_for_any_number_of_threads() {
    let dump = own_unpacked();
    let data = |args: &[&str]| ask(&dump, &[&["fragmentation", "--segments"], args].concat()).1["data"].clone();
    let all = data(&["--top", "0"]);
    let cut = data(&["--top", "5"]);
    assert_eq!(rows(&cut, "largest")[..], rows(&all, "largest")[..5.min(rows(&all, "largest").len())]);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| data(&["--top", "0"])), all, "{threads} threads");
    }
    let mut compared = 0;
    for block in rows(&cut, "largest") {
        let (_, near) = ask(&dump, &["near", block["address"].as_str().unwrap(), "--before", "1", "--after", "1"]);
        let near: Vec<&Value> = rows(&near["data"], "rows").iter().map(|r| &r["address"]).collect();
        for side in ["before", "after"] {
            if block[side].is_object() {
                assert!(near.contains(&&block[side]["address"]), "{block} {near:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 0);
}

/// The walk knows how many bytes of a segment are missing, but not in which of its generations.
#[test]
fn missing_bytes_of_a_segment_with_generations_are_missing_once() {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/dumps/corpus/net10-seg-basics-heap.dmp.zst");
    let mut file = gcdump::internals::dump::open(name.as_ref(), &Default::default()).unwrap();
    let segments = ask(name.as_ref(), &["segments"]).1["data"]["segments"].as_array().unwrap().clone();
    let segment = segments.iter().find(|s| s["parts"].as_array().is_some_and(|parts| parts.len() > 2)).unwrap();
    let part = segment["parts"].as_array().unwrap().iter().max_by_key(|p| number(&p["end"]) - number(&p["start"])).unwrap();
    let start = Addr((number(&part["start"]) + (number(&part["end"]) - number(&part["start"])) / 2) / 8 * 8);
    file.remove(AddrRange::of(start, 256));
    let heap = gcdump::Dump::of(file, &Default::default()).runtime().unwrap().heap().unwrap();
    let query = gcdump::analysis::FragmentationQuery { heaps: false, segments: false, top: 1 };
    let report = gcdump::analysis::fragmentation(&heap, &query).data;
    let (totals, coverage) = (report.totals, report.coverage);
    assert!(coverage.absent_bytes > 0);
    let walked = coverage.allocated_bytes - coverage.absent_bytes;
    let share = totals.free_bytes.unwrap() as f64 / walked as f64;
    assert!((totals.share.unwrap() - share).abs() < 1e-9, "{:?}, not {share}", totals.share);
}
