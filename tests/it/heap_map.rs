//! `heap --map`: every committed byte is in one row and one cell, and the sums equal those of the heap walk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{ask, cases, each, every_dump, run, sample};
use crate::support::{Shape, Spec};

const HELD: [&str; 4] = ["objects", "pinned", "free", "unknown"];

fn n(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap_or(0)
}

fn rows<'v>(v: &'v Value, key: &str) -> &'v [Value] {
    v[key].as_array().map_or(&[], Vec::as_slice)
}

/// The corpus, and dumps that are unpacked here.
fn dumps() -> Vec<PathBuf> {
    let corpus = std::fs::read_dir("dumps/corpus").unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<PathBuf> = corpus.filter(|p| p.extension().is_some_and(|e| e == "zst")).collect();
    all.sort();
    let mut all = sample(all, 6);
    all.extend(every_dump(|_| true).unwrap_or_default().0.into_iter().map(|d| d.path).take(cases(10, 40)));
    all
}

/// Sums the bytes of a walk by the categories of the map.
fn walked(walk: &Value) -> [u64; 3] {
    [n(walk, "bytes"), n(walk, "free_bytes"), n(walk, "in_allocation_bytes") + n(walk, "skipped_bytes") + n(walk, "absent_bytes")]
}

/// Checks that rows equal the walks. A walk counts a thread's allocation context as absent if it is in an absent range.
#[track_caller]
fn agree(what: &str, ours: [u64; 3], walked: [u64; 3]) {
    let (known, absent) = (ours[..2] == walked[..2], walked[2]);
    assert!(known && ours[2] <= absent, "{what}: {ours:?} {walked:?}");
}

fn mapped(row: &Value) -> [u64; 3] {
    [n(row, "objects") + n(row, "pinned") + n(row, "garbage"), n(row, "free"), n(row, "unknown")]
}

fn sound(name: &str, map: &Value) {
    let cell = n(map, "cell_bytes");
    for row in rows(map, "rows") {
        let held: u64 = HELD.iter().map(|k| n(row, k)).sum::<u64>() + n(row, "garbage") + n(row, "unused");
        assert_eq!(held, n(row, "committed"), "{name}: {row}");
        let cells = row["cells"].as_str().unwrap();
        let own = cells.trim_end_matches('.');
        assert_eq!(own.len() as u64, n(row, "committed").div_ceil(cell), "{name}: {row}");
        assert_eq!(cells.len() - own.len(), n(row, "reserved").div_ceil(cell).min(16) as usize, "{name}: {row}");
        assert!(own.chars().all(|c| "opgfxu?".contains(c)), "{name}: {row}");
        // A category that is not in a row is in no cell; one that fills more than half of a cell is shown.
        for (letters, key) in [("g", "garbage"), ("px", "pinned"), ("?", "unknown"), ("fx", "free"), ("u", "unused")] {
            assert!(n(row, key) > 0 || !own.contains(|c| letters.contains(c)), "{name}: {key} {row}");
        }
    }
    for key in HELD.iter().chain(&["unused", "reserved"]) {
        assert_eq!(rows(map, "rows").iter().map(|r| n(r, key)).sum::<u64>(), n(&map["totals"], key), "{name}: {key}");
    }
}

#[test]
fn the_map_agrees_with_the_walk() {
    let done = each(&dumps(), |path| {
        let name = path.display().to_string();
        let (exit, answer) = ask(path, &["heap", "--map"]);
        let (of_walk, walk) = ask(path, &["segments", "--walk"]);
        let map = &answer["data"]["map"];
        if !matches!(of_walk, Exit::Ok | Exit::Partial) {
            assert_eq!(exit, of_walk, "{name}");
            return 0;
        }
        assert_eq!(answer["data"]["complete"], walk["data"]["complete"], "{name}");
        sound(&name, map);
        let segments = rows(&walk["data"], "segments");
        let sums =
            |all: &[Value], of: fn(&Value) -> [u64; 3]| all.iter().map(of).fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
        agree(&name, sums(rows(map, "rows"), mapped), sums(segments, |s| walked(&s["walk"])));
        if walk["data"]["complete"] == true {
            assert_eq!(sums(rows(map, "rows"), mapped)[2], sums(segments, |s| walked(&s["walk"]))[2], "{name}");
        }
        if map["by"] == "segments" {
            let by_address: BTreeMap<&str, &Value> = segments.iter().map(|s| (s["address"].as_str().unwrap(), s)).collect();
            assert_eq!(by_address.len(), rows(map, "rows").len(), "{name}");
            for row in rows(map, "rows") {
                let segment = by_address[row["segment"].as_str().unwrap()];
                agree(&format!("{name}: {row}"), mapped(row), walked(&segment["walk"]));
                assert_eq!(
                    (n(row, "committed"), &row["heap"], &row["generation"]),
                    (n(segment, "committed_bytes"), &segment["heap"], &segment["generation"])
                );
                assert_eq!(
                    n(row, "committed") + n(row, "reserved"),
                    n(segment, "reserved_bytes").max(n(row, "committed")),
                    "{name}: {row}"
                );
            }
        }
        rows(map, "rows").len()
    });
    assert!(done.iter().filter(|rows| **rows > 0).count() > cases(5, 30), "{done:?}");
}

#[test]
fn garbage_is_that_of_unreachable() {
    for name in ["net10-wks-suspects-heap", "net10-svr-handles-heap", "net8-seg-basics-heap", "net10-seg-fragmented-heap"] {
        let path = PathBuf::from(format!("dumps/corpus/{name}.dmp.zst"));
        let (_, answer) = ask(&path, &["heap", "--map", "--garbage"]);
        let map = &answer["data"]["map"];
        sound(name, map);
        let (_, garbage) = ask(&path, &["unreachable"]);
        let garbage = &garbage["data"]["unreachable"];
        // The map counts the space of an object, rounded up to the alignment.
        let (least, most) = (n(garbage, "bytes"), n(garbage, "bytes") + 7 * n(garbage, "count"));
        let ours = n(&map["totals"], "garbage");
        assert!((least..=most).contains(&ours), "{name}: {ours} {least}");
        let (_, plain) = ask(&path, &["heap", "--map"]);
        let plain = &plain["data"]["map"];
        assert!(plain["totals"]["garbage"].is_null(), "{name}");
        assert_eq!(n(&plain["totals"], "objects"), n(&map["totals"], "objects") + ours, "{name}");
    }
}

#[test]
fn only_the_map_walks_and_only_the_requested_heap() {
    let path = PathBuf::from("dumps/corpus/net10-svr-handles-heap.dmp.zst");
    assert!(ask(&path, &["heap"]).1["data"]["map"].is_null());
    let (_, all) = ask(&path, &["heap", "--map"]);
    let (_, one) = ask(&path, &["heap", "--map", "--heap", "1"]);
    let of = |v: &Value| rows(&v["data"]["map"], "rows").iter().filter(|r| r["heap"] == 1).map(mapped).collect::<Vec<_>>();
    assert!(!of(&one).is_empty());
    assert_eq!(of(&one), of(&all));
    assert_eq!(of(&one).len(), rows(&one["data"]["map"], "rows").len());
    assert_eq!(run(&["heap", "--garbage", path.to_str().unwrap()]).exit, Exit::Usage);
    let csv = run(&["heap", "--map", "--format", "csv", path.to_str().unwrap()]).out;
    assert_eq!(csv.lines().count(), rows(&all["data"]["map"], "rows").len() + 1);
    assert!(csv.lines().next().unwrap().ends_with("reserved,map"), "{csv}");
}

/// Returns the map of a synthetic process.
fn synthetic(spec: &Spec) -> (Exit, Value) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), spec.build().to_elf_core()).unwrap();
    let (exit, answer) = ask(file.path(), &["heap", "--map"]);
    (exit, answer["data"]["map"].clone())
}

#[test]
fn synthetic_segments_are_mapped_byte_by_byte() {
    for shape in Shape::ALL {
        for regions in [true, false] {
            for server in [None, Some(3)] {
                let (exit, map) = synthetic(&Spec { regions, server, ..Spec::standard(shape) });
                assert_eq!(exit, Exit::Ok);
                sound("synthetic", &map);
                let name = format!("{shape:?} {regions} {server:?}");
                for row in rows(&map, "rows") {
                    // One page of each is committed, the rest of 64 KiB reserved; nothing is missing.
                    assert_eq!((n(row, "committed"), n(row, "reserved"), n(row, "unknown")), (0x1000, 0xf000, 0), "{name}");
                    let cells = row["cells"].as_str().unwrap();
                    assert_eq!(cells, "u...............", "{name}: {row}");
                }
                // Everything but the objects that the builder wrote: header, contexts and unused parts of the pages.
                let held: u64 = rows(&map, "rows").iter().map(|r| mapped(r)[0] + mapped(r)[1]).sum();
                assert!(held > 0x400 && held + n(&map["totals"], "unused") == rows(&map, "rows").len() as u64 * 0x1000, "{name}: {held}");
            }
        }
    }
}

#[test]
fn more_segments_than_rows_are_merged() {
    let (exit, map) = synthetic(&Spec { server: Some(10), cpus: 10, ..Spec::standard(Shape::ALL[0]) });
    assert_eq!((exit, &map["by"]), (Exit::Ok, &"heap-generations".into()));
    sound("ten heaps", &map);
    let all = rows(&map, "rows");
    assert_eq!(all.iter().map(|r| n(r, "segments")).sum::<u64>(), 71);
    // gen0 and LOH have two segments each, so two cells.
    for row in all {
        let cells = row["cells"].as_str().unwrap().trim_end_matches('.').len() as u64;
        assert_eq!((cells, n(row, "committed")), (n(row, "segments"), n(row, "segments") * 0x1000), "{row}");
        assert_eq!(n(row, "segments"), if row["generation"] == "gen0" || row["generation"] == "loh" { 2 } else { 1 }, "{row}");
        assert!(row["segment"].is_null());
    }
}
