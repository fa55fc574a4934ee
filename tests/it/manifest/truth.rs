//! Comparison with the workload program's own records, and with the expectations for the 11-shaped dumps.

use serde_json::Value;

use super::{Findings, by_address, fields, list, text};
use crate::common::{Known, ask};

/// The program records names in reflection syntax, ``Lab.Pair`2[A,B]``; gcdump prints `Lab.Pair<A, B>`.
fn as_printed(reflection: &str) -> String {
    match (reflection.find('`'), reflection.split_once('[')) {
        (Some(tick), Some((_, arguments))) if reflection.ends_with(']') && !arguments.starts_with(']') => {
            let arguments = arguments.trim_end_matches(']').replace(',', ", ");
            format!("{}<{arguments}>", &reflection[..tick])
        }
        _ => reflection.to_string(),
    }
}

pub fn truths(dump: &Known, truth: &Value, has_heap: bool, f: &mut Findings) {
    collections(dump, truth, f);
    if has_heap && !list(&truth["handles"]).is_empty() {
        let (_, ours) = ask(&dump.path, &["handles"]);
        let own = by_address(list(&ours["data"]["handles"]), &["type", "object", "secondary", "object_type"]);
        let mut missing = Vec::new();
        for h in list(&truth["handles"]) {
            let secondary = text(&h["secondary"]);
            let kind = text(&h["type"]).replace('_', "-");
            let name = as_printed(&text(&h["object_type"]));
            let row = format!("type={kind} object={} secondary={secondary} object_type={name}", text(&h["object"]));
            if own.get(&text(&h["handle"])) != Some(&row) {
                missing.push(format!("{}: {:?}, expected {row}", text(&h["handle"]), own.get(&text(&h["handle"]))));
            }
        }
        if missing.is_empty() {
            f.note("truth", format!("{} handles", list(&truth["handles"]).len()));
        } else {
            f.wrong("truth", format!("{} handles: {}", missing.len(), missing.iter().take(4).cloned().collect::<Vec<_>>().join("; ")));
        }
    }
    if let Some(request) = truth["oom_last_request"].as_u64() {
        let (_, ours) = ask(&dump.path, &["oom"]);
        let recorded: Vec<&Value> = list(&ours["data"]["heaps"]).iter().filter(|h| h["reason"] != "none").collect();
        // The recorded size is the request rounded up, plus 32 bytes on the LOH: 3 000 021 elements become 3 000 080.
        let fits = recorded.iter().any(|h| h["alloc_size"].as_u64().is_some_and(|n| n >= request && n <= request + 96));
        let index = recorded.iter().any(|h| h["gc_index"] == truth["gc"]["index"]);
        if recorded.len() == 1 && fits && index {
            f.note("truth", format!("oom of {request} bytes"));
        } else {
            f.wrong("truth", format!("oom of {request} bytes is recorded as {recorded:?}"));
        }
    }
}

/// Compares with the results of `GC.CollectionCount` and `GC.GetGCMemoryInfo` in the program. Records that have none, or after which a
/// collection ran before the dump, are left out.
fn collections(dump: &Known, truth: &Value, f: &mut Findings) {
    let track = if dump.name.ends_with(".before") { &truth["collections_before"] } else { &truth["collections_after"] };
    let gc = match dump.name.rsplit_once('.') {
        Some((_, moment)) if truth[format!("gc_{moment}")].is_object() => &truth[format!("gc_{moment}")],
        _ => &truth["gc"],
    };
    let counts = if track.is_array() { track } else { &gc["collections"] };
    if !counts.is_array() || dump.scenario == "busy" {
        return;
    }
    let (_, heap) = ask(&dump.path, &["heap", "--detail"]);
    let (_, info) = ask(&dump.path, &["info"]);
    let ours = &heap["data"]["collections"];
    let mut differences = Vec::new();
    let mut compare = |what: &str, own: &Value, their: &Value| {
        if own != their {
            differences.push(format!("{what}: {own}, expected {their}"));
        }
    };
    compare("info", &info["data"]["gc"]["collections"], ours);
    compare("counts", &ours["counts"], counts);
    for h in list(&heap["data"]["heaps"]).iter().filter(|_| heap["data"]["heaps"][0]["detail"].is_object()) {
        for (g, n) in list(counts).iter().enumerate() {
            compare("count of a heap", &h["detail"]["budgets"][g]["collections"], n);
        }
    }
    let newest = &ours["recorded"][0];
    let collected = gc["index"].as_u64().is_some_and(|n| n > 0);
    if collected {
        compare("index", &ours["last"]["index"], &gc["index"]);
        compare("latency mode", &ours["last"]["latency_mode"], &text(&gc["latency"]).to_lowercase().into());
        let keys = [
            ("index", "index"),
            ("heap_bytes", "heap_size"),
            ("committed_bytes", "committed"),
            ("fragmented_bytes", "fragmented"),
            ("pinned_objects", "pinned"),
            ("finalization_pending", "finalization_pending"),
        ];
        for (own, their) in keys {
            compare(their, &newest[own], &gc[their]);
        }
        for (own, their) in list(&newest["generations"]).iter().zip(list(&gc["generations"])) {
            compare("size after", &own["size_after"], &their["size_after"]);
            compare("fragmentation after", &own["fragmentation_after"], &their["fragmentation_after"]);
        }
    }
    if differences.is_empty() {
        f.note("collections", if collected { "figures exact".into() } else { "counts exact".to_string() });
    } else {
        f.wrong("collections", differences.join("; "));
    }
}

/// Checks an 11-shaped dump, in which everything is read through the descriptor.
pub fn expected(dump: &Known, expect: &Value, f: &mut Findings) {
    let (_, info) = ask(&dump.path, &["info"]);
    let gc = &info["data"]["gc"];
    let mut differences = Vec::new();
    let mut compare = |what: &str, own: &Value, their: &Value| {
        if own != their {
            differences.push(format!("{what}: {own}, expected {their}"));
        }
    };
    compare("gc source", &info["runtime"]["gc"], &"descriptor".into());
    compare("vm source", &info["runtime"]["vm"], &"descriptor".into());
    compare("identifiers", &gc["identifiers"], &expect["identifiers"]);
    compare("heap count", &gc["heap_count"], &expect["heap_count"]);
    compare("max generation", &gc["max_generation"], &expect["max_generation"]);
    compare("structures valid", &gc["structures_valid"], &expect["structures_valid"]);
    compare("state", &gc["state_value"], &expect["gc_state"]);
    compare("lowest", &gc["lowest_address"], &expect["lowest"]);
    compare("highest", &gc["highest_address"], &expect["highest"]);
    compare("adaptation mode", &gc["dynamic_adaptation_mode"], &expect["dynamic_adaptation_mode"]);
    compare("threads", &info["data"]["managed_threads"], &expect["threads"]);
    let (_, heap) = ask(&dump.path, &["heap", "--detail"]);
    for (own, their) in list(&heap["data"]["heaps"]).iter().zip(list(&expect["heaps"])) {
        let d = &own["detail"];
        compare("heap address", &own["address"], &their["address"]);
        compare("alloc_allocated", &d["alloc_allocated"], &their["alloc_allocated"]);
        compare("ephemeral_segment", &d["ephemeral_segment"], &their["ephemeral_segment"]);
        compare("fill_pointers", &d["finalize_queue"]["fill_pointers"], &their["fill_pointers"]);
        compare("mark_array", &d["mark_array"], &their["mark_array"]);
        compare("card_table", &d["card_table"], &their["card_table"]);
        compare("next_sweep_obj", &d["next_sweep_object"], &their["next_sweep_obj"]);
        let keys = ["generation", "start_segment", "allocation_start", "context_pointer", "context_limit"];
        let table = |v: &Value| Value::from(list(&v["generation_table"]).iter().map(|g| fields(g, &keys)).collect::<Vec<_>>());
        compare("generation_table", &table(d), &table(their));
    }
    compare("heaps", &list(&heap["data"]["heaps"]).len().into(), &list(&expect["heaps"]).len().into());
    let (_, oom) = ask(&dump.path, &["oom"]);
    for (own, their) in list(&oom["data"]["heaps"]).iter().zip(list(&expect["heaps"])) {
        let their = &their["oom"];
        for key in ["alloc_size", "reserved", "allocated", "gc_index", "size", "available_pagefile_mb"] {
            compare(key, &own[key], &their[key]);
        }
        let reasons = ["none", "budget", "cant-commit", "cant-reserve", "loh", "low-mem", "unproductive-full-gc"];
        compare("reason", &own["reason"], &reasons[usize::try_from(their["reason"].as_u64().unwrap()).unwrap()].into());
        compare("loh", &own["loh"], &(their["loh"] != 0).into());
    }
    if differences.is_empty() {
        f.note("facts", "exact".into())
    } else {
        f.wrong("facts", differences.join("; "))
    }
    let keys = ["heap", "generation", "start", "allocated", "committed", "reserved", "used"];
    let (_, segments) = ask(&dump.path, &["segments"]);
    f.same("segments", &by_address(list(&segments["data"]["segments"]), &keys), &by_address(list(&expect["segments"]), &keys));
    let (_, walked) = ask(&dump.path, &["segments", "--walk"]);
    let keys = ["free_objects", "free_bytes", "context_bytes"];
    let n = |walk: &Value, key: &str| walk[key].as_u64().unwrap_or(0);
    let own = list(&walked["data"]["segments"]).iter().map(|s| {
        let walk = &s["walk"];
        let all = ["objects", "bytes"].map(|key| n(walk, key) + n(walk, &format!("free_{key}")));
        (text(&s["address"]), format!("{} {all:?}", fields(walk, &keys)))
    });
    // The recorded objects include free blocks.
    let theirs = list(&expect["segments"]).iter().map(|s| {
        let all = ["objects", "bytes"].map(|key| n(s, key));
        (text(&s["address"]), format!("{} {all:?}", fields(s, &keys)))
    });
    f.same("walk", &own.collect(), &theirs.collect());
    let (_, handles) = ask(&dump.path, &["handles"]);
    let keys = ["type", "object", "secondary"];
    f.same("handles", &by_address(list(&handles["data"]["handles"]), &keys), &by_address(list(&expect["handles"]), &keys));
}
