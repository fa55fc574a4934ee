//! Numbers that the GC counts and records: allocation totals, collections, failed allocations, segments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gcdump::cli::Exit;
use serde_json::{Value, json};

use crate::common::{Stopwatch, ask, known_dumps, number, own_unpacked, run};
use crate::verify::patient::{Patient, list};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn unpacked(name: &str) -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(corpus(name)).unwrap()).unwrap()
}

fn sum<'v>(rows: impl Iterator<Item = &'v Value>, key: &str) -> u64 {
    rows.map(|r| r[key].as_u64().unwrap_or_else(|| panic!("{key} of {r}"))).sum()
}

/// Before the first collection nothing has been freed: the heap has everything that the threads have allocated, and in addition only the
/// blocks that fill up contexts.
#[test]
fn allocation_totals_are_what_the_heap_holds_before_the_first_collection() {
    for (name, ended_threads) in [
        ("net10-svr-threads-heap", false),
        ("net10-wks-locks-heap", false),
        ("net10-seg-exactctx-heap", false),
        ("net8-wks-pool-heap", false),
        ("net10-wks-pool-heap", false),
        // The totals of threads that ended are lost.
        ("net10-wks-http-heap", true),
    ] {
        let (_, heap) = ask(&corpus(name), &["heap"]);
        let contexts = list(&heap["data"], "allocation_contexts");
        let (soh, uoh) = (sum(contexts.iter(), "allocated_bytes"), sum(contexts.iter(), "allocated_bytes_uoh"));
        let (_, segments) = ask(&corpus(name), &["segments", "--walk"]);
        let walked = |wanted: &[&str], key: &str| -> u64 {
            let of = |s: &&Value| wanted.iter().any(|g| s["generation"] == *g);
            list(&segments["data"], "segments").iter().filter(of).map(|s| s["walk"][key].as_u64().unwrap()).sum()
        };
        let (young, large) = (["gen0", "gen1", "gen2", "ephemeral"], ["loh", "poh"]);
        let all = |wanted: &[&str]| walked(wanted, "bytes") + walked(wanted, "free_bytes");
        assert!(soh <= all(&young) && uoh <= all(&large), "{name}: {soh} {uoh}");
        if !ended_threads {
            assert!(soh >= walked(&young, "bytes"), "{name}: {soh}");
            assert_eq!(uoh, walked(&large, "bytes"), "{name}");
        }
    }
}

#[test]
fn the_global_context_is_a_row_even_if_it_is_empty() {
    for name in ["net10-wks-locks-heap", "net9-wks-basics-heap", "net8-wks-pool-heap", "win-net10-wks-basics-full"] {
        let (_, heap) = ask(&corpus(name), &["heap"]);
        let rows: Vec<&Value> = list(&heap["data"], "allocation_contexts").iter().filter(|c| c["owner"] == "global").collect();
        assert_eq!(rows.len(), 1, "{name}");
        assert_eq!((&rows[0]["pointer"], &rows[0]["limit"]), (&"0x0".into(), &"0x0".into()), "{name}");
        assert_eq!(rows[0]["allocated_bytes"], 0, "{name}");
    }
    // A context that is not in the dump has no row.
    let (_, heap) = ask(&corpus("win-net10-wks-basics-mini"), &["heap"]);
    let contexts = list(&heap["data"], "allocation_contexts");
    let global = contexts.iter().find(|c| c["owner"] == "global");
    assert!(global.is_none_or(|c| c["pointer"] == "0x0"), "{contexts:?}");
}

/// The truth of the lab's program: `GC.CollectionCount`, `GC.GetGCMemoryInfo`.
#[test]
fn collections_are_those_that_the_program_recorded() {
    let (exit, heap) = ask(&own_unpacked(), &["heap", "--detail"]);
    assert_eq!(exit, Exit::Ok);
    let ours = &heap["data"]["collections"];
    assert_eq!(ours["counts"], serde_json::json!([3, 3, 3]));
    let last = &ours["last"];
    assert_eq!((&last["index"], &last["generation"], &last["reason"]), (&3.into(), &2.into(), &"induced".into()));
    assert_eq!((&last["compacting"], &last["latency_mode"]), (&false.into(), &"interactive".into()));
    let recorded = list(ours, "recorded");
    assert_eq!(recorded.len(), 1);
    let figures = ["heap_bytes", "committed_bytes", "fragmented_bytes", "pinned_objects", "finalization_pending"];
    assert_eq!(figures.map(|k| recorded[0][k].as_u64().unwrap()), [911_728, 1_396_736, 6_472, 1, 0]);
    assert_eq!(recorded[0]["kind"], "full-blocking");
    assert_eq!(recorded[0]["generations"][2]["size_after"], 179_088);
    let budgets = list(&heap["data"]["heaps"][0]["detail"], "budgets");
    assert_eq!(budgets.len(), 5);
    assert_eq!((&budgets[2]["last_collection"], &budgets[3]["last_collection"]), (&3.into(), &Value::Null));
    let (_, info) = ask(&own_unpacked(), &["info"]);
    assert_eq!(info["data"]["gc"]["collections"], *ours);
}

/// Server GC has the budgets in each heap, and a standalone GC has everything in another image. A failed allocation records the index of the
/// last collection in another variable.
#[test]
fn collections_of_server_and_standalone_gcs() {
    for (name, counts) in [
        ("net10-svr-oom-heap", [5, 5, 5]),
        ("net10-segsvr-basics-heap", [3, 3, 3]),
        ("net8-seg-basics-heap", [3, 3, 3]),
        ("net8-svr-handles-heap", [3, 3, 3]),
        ("net9-segsvr-basics-heap", [3, 3, 3]),
        ("win-net10-seg-basics-full", [3, 3, 3]),
        ("win-net10-svr-basics-full", [3, 3, 3]),
        ("net11shape-svr-handles-heap", [3, 3, 3]),
        ("net10-svr-threads-heap", [0, 0, 0]),
    ] {
        let (exit, heap) = ask(&corpus(name), &["heap", "--detail"]);
        let ours = &heap["data"]["collections"];
        assert_eq!((exit, &ours["counts"]), (Exit::Ok, &serde_json::json!(counts)), "{name}");
        assert_eq!(ours["last"].is_null(), counts[0] == 0, "{name}");
        for h in list(&heap["data"], "heaps") {
            assert_eq!(h["detail"]["budgets"][2]["collections"], counts[2], "{name}");
        }
    }
    let (_, oom) = ask(&corpus("net10-svr-oom-heap"), &["oom"]);
    assert!(list(&oom["data"], "heaps").iter().any(|h| h["gc_index"] == 5));
    let (_, heap) = ask(&corpus("net10-svr-oom-heap"), &["heap", "--detail"]);
    let ours = &heap["data"]["collections"];
    assert_eq!((&ours["last"]["reason"], &ours["last"]["compacting"]), (&"out-of-space-loh".into(), &true.into()));
    let kinds: Vec<&Value> = list(ours, "recorded").iter().map(|r| &r["kind"]).collect();
    assert_eq!(kinds, ["full-blocking", "background"]);
}

/// The GC's identifiers describe the build, the latency mode the setting in force: in the lab's programs it is `Batch` if
/// `System.GC.Concurrent` is false, and `Interactive` if it is true, even with `DOTNET_gcConcurrent=0` (.NET 8, 10, 11).
#[test]
fn the_abilities_of_the_build_are_not_the_setting_in_force() {
    let patient = Patient::real();
    let of = |patient: &Patient| {
        let (_, info) = patient.ask(&["info"]);
        let text = run(&["info", "--no-local-files", patient.path.to_str().unwrap()]).out;
        let line = text.lines().find(|l| l.starts_with("gc ")).unwrap().split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        (info["gc"]["background"].clone(), info["gc"]["concurrent"].clone(), line)
    };
    let on = (Value::from(true), Value::from(true), "workstation, regions, concurrent, 1 heap".to_string());
    assert_eq!(of(&patient), on);
    let mut mode = 0;
    patient.gc(|gc, dump| {
        let last = gc.collections().as_ref().unwrap().process.last.clone().unwrap();
        let runtime = dump.runtime().unwrap();
        let offset = |field: &str| runtime.descriptor().offset("GCMechanisms", field).unwrap();
        let image = runtime.description().gc_image.as_ref().unwrap();
        let words = image.writable.iter().flat_map(|range| dump.memory().words(*range));
        let places = words.filter(|(at, word)| {
            let available = dump.memory().u64(at.plus(offset("EntryAvailablePhysicalMem")));
            **word == last.index.to_le_bytes() && available == Ok(last.entry_available_bytes)
        });
        mode = places.map(|(at, _)| at.plus(offset("PauseMode")).0).next().unwrap();
    });
    for (value, concurrent, word) in
        [(0, Value::from(false), "non-concurrent, "), (2, Value::Null, ""), (3, Value::from(true), "concurrent, "), (4, Value::Null, "")]
    {
        patient.with(&[patient.put32(mode, value)], || {
            assert_eq!(of(&patient), (true.into(), concurrent, format!("workstation, regions, {word}1 heap")), "{value}");
        });
    }
    // Before the first collection the setting in force is unknown.
    let (_, info) = ask(&corpus("net10-wks-locks-heap"), &["info"]);
    assert_eq!((&info["data"]["gc"]["background"], &info["data"]["gc"]["concurrent"]), (&true.into(), &Value::Null));
}

#[test]
fn heap_shows_one_heap() {
    let path = corpus("net10-svr-basics-heap");
    let (_, all) = ask(&path, &["heap"]);
    let (exit, one) = ask(&path, &["heap", "--heap", "1"]);
    assert_eq!(exit, Exit::Ok);
    let heaps = list(&one["data"], "heaps");
    assert_eq!(heaps.len(), 1);
    assert_eq!(heaps[0], all["data"]["heaps"][1]);
    assert_eq!(one["data"]["totals"], all["data"]["heaps"][1]["totals"]);
    let ran = run(&["heap", "--heap", "9", path.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Usage, "{}", ran.err);
    assert!(ran.err.contains("there is no heap 9"), "{}", ran.err);
}

/// Makes a process whose runtime does not publish these fields of a failure, and in which a heap has recorded one. Returns the address of the
/// record, too.
fn without_oom_fields(names: &[&str]) -> (Patient, u64) {
    let mut bytes = unpacked("net11shape-wks-basics-full");
    let published = b"\"OomHistory\":{\"Reason\":0,\"AllocSize\":8,\"Reserved\":16,\"Allocated\":24,\"GcIndex\":32,\"Fgm\":40,\"Size\":48,";
    let at = memchr::memmem::find(&bytes, published).expect("the descriptor");
    for name in names {
        // The quotes distinguish the name from `AllocSize`, which contains it.
        let quoted = format!("\"{name}\"");
        let from = at + memchr::memmem::find(&bytes[at..], quoted.as_bytes()).unwrap();
        bytes[from + 1] = b'_';
    }
    let patient = Patient::new(&bytes);
    let mut reason = 0;
    patient.gc(|_, dump| {
        reason = dump.runtime().unwrap().descriptor().pointer("GCHeapOomData").unwrap().0;
    });
    (patient, reason)
}

/// Fields of the failure that the runtime does not publish are absent, not zero: "after GC 0" would be another failure.
#[test]
fn oom_fields_that_are_not_published_are_absent() {
    let (patient, reason) = without_oom_fields(&["Reserved", "Allocated", "GcIndex", "Fgm", "Size", "AvailablePagefileMb", "LohP"]);
    patient.with(&[patient.put32(reason, 2), patient.put(reason + 8, 3_000_080)], || {
        let (exit, oom) = ask(&patient.path, &["oom"]);
        assert_eq!(exit, Exit::Partial);
        let said = oom["warnings"].to_string();
        assert!(said.contains("does not describe Reserved, Allocated, GcIndex, Fgm, Size, AvailablePagefileMb, LohP"), "{said}");
        let heap = &oom["data"]["heaps"][0];
        for key in ["reserved", "allocated", "gc_index", "fgm", "size", "available_pagefile_mb", "loh"] {
            assert!(heap[key].is_null(), "{key}: {heap}");
        }
        assert_eq!(heap["text"], "3,000,080-byte allocation failed: could not commit memory");
        let ran = run(&["oom", "--format", "csv", patient.path.to_str().unwrap()]);
        assert!(ran.out.lines().nth(1).is_some_and(|l| l.starts_with("0,cant-commit,3000080,,,,,,,")), "{}", ran.out);
    });
}

#[test]
fn a_failure_is_reported_without_its_reason_or_size() {
    let failure =
        |patient: &Patient, reason: u64| [patient.put32(reason, 2), patient.put(reason + 8, 3_000_080), patient.put(reason + 32, 7)];
    let cases = [
        (&["Reason"][..], json!([null, 3_000_080, 7]), "3,000,080-byte allocation failed after GC #7: the reason is unknown"),
        (&["AllocSize"], json!(["cant-commit", null, 7]), "An allocation failed after GC #7: could not commit memory"),
    ];
    for (missing, values, text) in cases {
        let (patient, reason) = without_oom_fields(missing);
        let (exit, oom) = patient.ask(&["oom"]);
        assert_eq!(
            (exit, &oom["any"], &oom["heaps"][0]["text"]),
            (Exit::Partial, &false.into(), &"no failed allocation recorded".into()),
            "{missing:?}"
        );
        patient.with(&failure(&patient, reason), || {
            let (exit, oom) = patient.ask(&["oom"]);
            let heap = &oom["heaps"][0];
            assert_eq!((exit, &oom["any"]), (Exit::Partial, &true.into()), "{missing:?}");
            assert_eq!(json!([heap["reason"], heap["alloc_size"], heap["gc_index"]]), values);
            assert_eq!(heap["text"], text);
            let (_, found) = patient.ask(&["analyze", "--only", "oom"]);
            let finding = &found["findings"][0];
            assert!(finding["title"].as_str().unwrap().starts_with(text) && finding["bytes"] == values[1], "{finding}");
        });
    }
    // Neither: nothing says whether there was one.
    let (patient, reason) = without_oom_fields(&["Reason", "AllocSize"]);
    patient.with(&failure(&patient, reason), || {
        let (exit, oom) = patient.ask(&["oom"]);
        assert_eq!((exit, &oom["any"], &oom["heaps"][0]["gc_index"]), (Exit::Partial, &Value::Null, &7.into()));
        assert_eq!(oom["heaps"][0]["text"], "the out-of-memory history cannot be read");
    });
}

/// The address of a range determines its heap.
#[test]
fn allocation_contexts_of_threads_have_their_heap() {
    let mut seen = [0; 2];
    for name in [
        "net10-svr-threads-heap",
        "net8-segsvr-basics-heap",
        "net9-svr-handles-heap",
        "net11shape-svr-handles-heap",
        "win-net10-svr-basics-full",
    ] {
        let (_, heap) = ask(&corpus(name), &["heap"]);
        let (_, segments) = ask(&corpus(name), &["segments"]);
        for context in list(&heap["data"], "allocation_contexts").iter().filter(|c| c["owner"] == "thread" && c["pointer"] != "0x0") {
            let at = number(&context["pointer"]);
            let of = |s: &&Value| number(&s["start"]) <= at && at < number(&s["reserved"]);
            let segment = list(&segments["data"], "segments").iter().find(of).unwrap();
            assert_eq!(context["heap"], segment["heap"], "{name}: {context}");
            seen[context["heap"].as_u64().unwrap() as usize] += 1;
        }
        let last = (list(&heap["data"], "heaps").len() - 1) as u64;
        let (_, one) = ask(&corpus(name), &["heap", "--heap", &last.to_string()]);
        let others = list(&one["data"], "allocation_contexts").iter().filter(|c| c["heap"].as_u64().is_some_and(|h| h != last)).count();
        assert_eq!(others, 0, "{name}");
    }
    assert!(seen.iter().all(|n| *n > 2), "{seen:?}");
    // What server GC keeps in a context; copies of dumps that were trimmed earlier do not have it.
    let (dumps, _) = known_dumps(|d| d["gc"] == "svr" && d["scenario"] == "threads").unwrap_or_default();
    for dump in &dumps {
        let (_, heap) = ask(&dump.path, &["heap"]);
        for context in list(&heap["data"], "allocation_contexts").iter().filter(|c| c["owner"] == "thread") {
            assert!(context["alloc_heap"].is_u64() && context["home_heap"].is_u64(), "{}: {context}", dump.name);
            assert!(context["heap"].is_null() || context["heap"] == context["alloc_heap"], "{}: {context}", dump.name);
        }
    }
}

#[test]
fn segments_show_stored_values() {
    let patient = Patient::real();
    let (exit, data) = patient.ask(&["segments"]);
    assert_eq!(exit, Exit::Ok);
    let (allocated, next) = (patient.offset("HeapSegment", "Allocated"), patient.offset("HeapSegment", "Next"));
    let segments = list(&data, "segments");
    let mut behind = 0;
    for s in segments {
        let at = number(&s["address"]);
        assert_eq!(number(&s["stored_allocated"]), patient.word(at + allocated), "{s}");
        assert_eq!(number(&s["next"]), patient.word(at + next), "{s}");
        behind += usize::from(s["stored_allocated"] != s["allocated"]);
    }
    // Only the region that is allocated from has another end.
    assert_eq!(behind, 1);
    let text = run(&["segments", patient.path.to_str().unwrap()]).out;
    assert!(text.contains("STORED ALLOCATED") && text.contains("NEXT"), "{text}");
}

#[test]
fn one_segment_by_its_address() {
    let patient = Patient::real();
    let (_, data) = patient.ask(&["segments", "--free"]);
    for s in list(&data, "segments") {
        let inside = number(&s["start"]) + 8;
        for at in [number(&s["address"]), inside] {
            let (exit, one) = patient.ask(&["segments", "--at", &format!("{at:#x}")]);
            assert_eq!((exit, &one["segments"][0], list(&one, "segments").len()), (Exit::Ok, s, 1), "{at:#x}");
        }
    }
    let ran = run(&["segments", "--at", "0x10", patient.path.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Negative, "{}", ran.err);
}

/// The list of LOH regions continues in the list of POH regions: the region stays in its generation, and the answer is partial.
#[test]
fn a_list_that_continues_in_another_is_reported() {
    let patient = Patient::real();
    let (_, data) = patient.ask(&["segments"]);
    let of = |generation: &str| number(&list(&data, "segments").iter().find(|s| s["generation"] == generation).unwrap()["address"]);
    let (loh, poh, gen1, next) = (of("loh"), of("poh"), of("gen1"), patient.offset("HeapSegment", "Next"));
    for (from, to, name) in [(loh, poh, "loh"), (poh, loh, "poh"), (gen1, loh, "gen1")] {
        patient.with(&[patient.put(from + next, to)], || {
            let (exit, answer) = ask(&patient.path, &["segments"]);
            assert_eq!(exit, Exit::Partial, "{name}");
            let warnings = answer["warnings"].to_string();
            assert!(warnings.contains(&format!("the {name} segment list runs into")), "{warnings}");
            let found = |v: &Value| {
                v["segments"].as_array().unwrap().iter().map(|s| (s["address"].clone(), s["generation"].clone())).collect::<Vec<_>>()
            };
            assert_eq!(found(&answer["data"]), found(&data), "{name}");
        });
    }
    // A flag by itself does not remove a region from the only list that has it.
    let flags = patient.offset("HeapSegment", "Flags");
    patient.with(&[patient.put(loh + flags, 0x200)], || {
        let (exit, answer) = ask(&patient.path, &["segments"]);
        assert_eq!(exit, Exit::Partial);
        assert_eq!(list(&answer["data"], "segments").len(), list(&data, "segments").len());
    });
}

/// Found by the mutation campaign: `info` compared the counts of four billion generations at each word of the GC's variables.
#[test]
fn a_gc_with_four_billion_generations_is_reported_at_once() {
    let patient = Patient::new(&unpacked("net11shape-wks-basics-full"));
    let globals = patient.ask(&["contracts"]).1;
    let at = number(&list(&globals, "globals").iter().find(|g| g["name"] == "MaxGeneration").unwrap()["address"]);
    let intact = patient.ask(&["heap"]).1;
    patient.with(&[patient.put32(at, u32::MAX.into())], || {
        let started = Stopwatch::start();
        let (exit, info) = ask(&patient.path, &["info"]);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        let reported =
            list(&info, "warnings").iter().any(|w| w["kind"] == "invalid" && w["address"].is_string() && number(&w["address"]) == at);
        assert!(exit == Exit::Partial && reported && info["data"]["gc"]["max_generation"].is_null(), "{exit:?} {}", info["warnings"]);
        assert_eq!(patient.ask(&["heap"]).1["heaps"], intact["heaps"]);
    });
}
