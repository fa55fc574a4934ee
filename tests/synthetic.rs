//! gcdump on fake processes of four kinds of machines, in both containers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::string_slice,
    missing_docs,
    dead_code
)]

mod common;
mod support;

use gcdump::cli::Exit;
use serde_json::{Map, Value, json};
use support::{GcPart, Hostile, Shape, Spec, Target};

/// Runs a command on a container.
fn ask_bytes(bytes: &[u8], command: &[&str]) -> (Exit, Value) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    common::ask(file.path(), command)
}

fn pick(value: &Value, keys: &[&str]) -> Value {
    Value::Object(keys.iter().map(|k| ((*k).to_string(), value[*k].clone())).collect())
}

fn rows(value: &Value, keys: &[&str]) -> Vec<Value> {
    value.as_array().unwrap().iter().map(|v| pick(v, keys)).collect()
}

fn sorted(mut list: Vec<Value>) -> Vec<Value> {
    list.sort_by_key(Value::to_string);
    list
}

const REASONS: [&str; 7] = ["none", "budget", "cant-commit", "cant-reserve", "loh", "low-mem", "unproductive-full-gc"];
const CALLS: [&str; 6] = ["none", "reserve-segment", "commit-segment-beginning", "commit-ephemeral-segment", "grow-table", "commit-table"];

/// Every command's answer, in the form of [`Target::expected`], and the `data` of each.
fn answers(bytes: &[u8], exit: Exit) -> (Value, Vec<Value>) {
    let mut data = Vec::new();
    let mut get = |command: &[&str]| {
        let (code, all) = ask_bytes(bytes, command);
        assert_eq!(code, exit, "{command:?}: {}", all["warnings"]);
        data.push(all["data"].clone());
        all["data"].clone()
    };
    let info = get(&["info"]);
    let heap = get(&["heap", "--detail"]);
    let segments = get(&["segments", "--free"]);
    let plain = get(&["segments"]);
    let handles = get(&["handles"]);
    let oom = get(&["oom"]);
    let threads = get(&["threads"]);
    let contracts = get(&["contracts"]);
    assert_eq!(plain["segments"], segments["segments"]);
    for check in contracts["checks"].as_array().unwrap() {
        assert_eq!(check["outcome"], "passed", "{check}");
    }
    let gc = &info["gc"];
    assert_eq!(info["runtimes"][0]["version"], "11.0.0-synthetic");
    let number = |names: &[&str], v: &Value| json!(names.iter().position(|n| v == n));
    let segment_keys = [
        "address",
        "heap",
        "generation",
        "start",
        "allocated",
        "committed",
        "reserved",
        "used",
        "allocated_bytes",
        "committed_bytes",
        "reserved_bytes",
        "captured_bytes",
    ];
    let segment = |s: &Value| {
        let mut row = pick(s, &segment_keys);
        row["flags"] = s["flags_value"].clone();
        row
    };
    let oom_rows = oom["heaps"].as_array().unwrap().iter().map(|o| {
        let keys = ["heap", "alloc_size", "reserved", "allocated", "gc_index", "size", "available_pagefile_mb", "loh"];
        let mut row = pick(o, &keys);
        row["reason"] = number(&REASONS, &o["reason"]);
        row["fgm"] = number(&CALLS, &o["fgm"]);
        row
    });
    let heap_rows = heap["heaps"].as_array().unwrap().iter().map(|h| {
        let queue = &h["detail"]["finalize_queue"];
        let mut detail = Map::new();
        for (key, value) in h["detail"].as_object().unwrap() {
            let counts = |list: &Vec<Value>| list.iter().map(|c| c["count"].clone()).collect::<Vec<_>>();
            match value {
                Value::Null => {}
                _ if key == "finalize_queue" => {}
                Value::Array(list) if key != "generation_table" => drop(detail.insert(key.clone(), json!(counts(list)))),
                other => drop(detail.insert(key.clone(), other.clone())),
            }
        }
        json!({"index": h["index"], "address": h["address"], "fill_pointers": queue["fill_pointers"], "registered": queue["registered"],
            "ready": queue["ready"], "detail": detail})
    });
    let exception = |t: &Value| match &t["exception"] {
        Value::Null => Value::Null,
        e => pick(e, &["address", "method_table", "current"]),
    };
    let thread = |t: &Value| {
        let keys = ["managed_id", "os_id", "address", "state_value", "alloc_pointer", "alloc_limit", "object", "finalizer", "gc_mode"];
        let mut row = pick(t, &keys);
        row["exception"] = exception(t);
        row
    };
    let found = json!({
        "identifiers": gc["identifiers"], "server": gc["kind"] == "server", "heap_count": gc["heap_count"],
        "max_generation": gc["max_generation"], "lowest": gc["lowest_address"], "highest": gc["highest_address"],
        "gc_state": gc["state_value"], "structures_valid": gc["structures_valid"],
        "dynamic_adaptation_mode": gc["dynamic_adaptation_mode"],
        "segments": sorted(segments["segments"].as_array().unwrap().iter().map(segment).collect()),
        "handles": sorted(rows(&handles["handles"], &["address", "type", "object", "method_table", "secondary"])),
        "handle_tables": handles["tables"],
        "oom": oom_rows.collect::<Vec<_>>(),
        "threads": threads["threads"].as_array().unwrap().iter().map(thread).collect::<Vec<_>>(),
        "heaps": heap_rows.collect::<Vec<_>>(),
        "free": sorted(rows(&segments["regions"], &["list", "heap", "size_class", "address", "range", "bytes"])),
    });
    (found, data)
}

/// What differs between the two containers by nature.
fn without_container(mut data: Vec<Value>) -> Vec<Value> {
    let info = data[0].as_object_mut().unwrap();
    for key in
        ["format", "os", "kind", "kind_evidence", "writer", "file_bytes", "captured_bytes", "mapped_bytes", "time", "next", "process_name"]
    {
        info.remove(key);
    }
    for runtime in info["runtimes"].as_array_mut().unwrap() {
        for key in ["module", "build_id"] {
            runtime.as_object_mut().unwrap().remove(key);
        }
    }
    data
}

fn check(spec: &Spec, exit: Exit) {
    let target = spec.build();
    let mut expected = target.expected();
    expected.as_object_mut().unwrap().remove("objects");
    for key in ["segments", "handles", "free"] {
        expected[key] = Value::Array(sorted(expected[key].as_array().unwrap().clone()));
    }
    let (core, core_data) = answers(&target.to_elf_core(), exit);
    for (key, wanted) in expected.as_object().unwrap() {
        let found = &core[key];
        if let (Some(f), Some(w)) = (found.as_array(), wanted.as_array()) {
            for (f, w) in f.iter().zip(w) {
                assert_eq!(f, w, "{key}: {spec:?}");
            }
            assert_eq!(f.len(), w.len(), "{key}: {spec:?}");
        }
        assert_eq!(found, wanted, "{key}: {spec:?}");
    }
    let (mini, mini_data) = answers(&target.to_minidump(), exit);
    assert_eq!(mini, core, "{spec:?}");
    let (mini_data, core_data) = (without_container(mini_data), without_container(core_data));
    for (m, c) in mini_data.iter().zip(&core_data) {
        assert_eq!(m, c, "{spec:?}");
    }
}

#[test]
fn every_machine_with_every_collector() {
    for shape in Shape::ALL {
        for server in [None, Some(1), Some(3)] {
            for regions in [true, false] {
                check(&Spec { server, regions, ..Spec::standard(shape) }, Exit::Ok);
            }
        }
    }
}
