//! Synthetic processes of four architectures, in both containers.

use crate::common;
use crate::common::{full, sample};
use crate::support::{GcPart, Hostile, Spec, Target};
use gcdump::cli::Exit;
use serde_json::{Map, Value, json};

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

/// The answers of all commands, in the form of [`Target::expected`], and the `data` of each.
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
    if let Some(region) = segments["regions"].as_array().unwrap().iter().find(|r| r["segment"].is_object()) {
        let one = get(&["segments", "--at", region["address"].as_str().unwrap()]);
        assert_eq!((&one["segments"], &one["regions"]), (&json!([]), &json!([region])));
    }
    // The builder fills every segment exactly, except for the allocation contexts.
    for s in get(&["segments", "--walk"])["segments"].as_array().unwrap() {
        let n = |key: &str| s["walk"][key].as_u64().unwrap();
        assert_eq!(s["walk"]["complete"], true, "{s}");
        assert_eq!(n("bytes") + n("free_bytes") + n("context_bytes"), s["allocated_bytes"].as_u64().unwrap(), "{s}");
    }
    // Free blocks are not objects, neither of segments nor of types.
    let walks = get(&["segments", "--walk"]);
    let walked = walks["segments"].as_array().unwrap().iter().map(|s| s["walk"]["objects"].as_u64().unwrap()).sum::<u64>();
    let counts = get(&["stat"]);
    assert_eq!(walked, counts["types"].as_array().unwrap().iter().map(|t| t["count"].as_u64().unwrap()).sum::<u64>());
    // Every object of the builder, and the right number of each type.
    let objects: Vec<Value> = get(&["objects"])["objects"].as_array().unwrap().iter().filter(|o| o["type"] != "Free").cloned().collect();
    let stat = get(&["stat"]);
    for t in stat["types"].as_array().unwrap() {
        let sizes = objects.iter().filter(|o| o["method_table"] == t["method_table"]).map(|o| o["size"].as_u64().unwrap());
        assert_eq!((t["count"].as_u64(), t["bytes"].as_u64()), (Some(sizes.clone().count() as u64), Some(sizes.sum())), "{t}");
    }
    let objects = sorted(objects.iter().map(|o| json!([o["address"], o["method_table"]])).collect());
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
    let contexts = heap["allocation_contexts"].as_array().unwrap();
    let global = contexts.iter().find(|c| c["owner"] == "global").map(|c| json!([c["pointer"], c["limit"]]));
    let found = json!({
        "identifiers": gc["identifiers"], "server": gc["kind"] == "server", "heap_count": gc["heap_count"],
        "max_generation": gc["max_generation"], "lowest": gc["lowest_address"], "highest": gc["highest_address"],
        "gc_state": gc["state_value"], "structures_valid": gc["structures_valid"],
        "dynamic_adaptation_mode": gc["dynamic_adaptation_mode"],
        "global_context": global,
        "segments": sorted(segments["segments"].as_array().unwrap().iter().map(segment).collect()),
        "handles": sorted(rows(&handles["handles"], &["address", "type", "object", "method_table", "secondary"])),
        "handle_tables": handles["tables"],
        "oom": oom_rows.collect::<Vec<_>>(),
        "threads": threads["threads"].as_array().unwrap().iter().map(thread).collect::<Vec<_>>(),
        "heaps": heap_rows.collect::<Vec<_>>(),
        "objects": objects,
        "free": sorted(rows(&segments["regions"], &["list", "heap", "size_class", "address", "range", "bytes", "segment"])),
    });
    (found, data)
}

/// Removes inherent differences between the containers.
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
    for key in ["segments", "handles", "free", "objects"] {
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
fn every_architecture_with_every_collector() {
    for shape in crate::common::shapes() {
        for server in [None, Some(1), Some(3)] {
            for regions in sample([true, false].into_iter().skip(usize::from(!full() && shape.big)), 2) {
                check(&Spec { server, regions, global_context: true, ..Spec::standard(shape) }, Exit::Ok);
            }
        }
    }
}

#[test]
fn the_synthetic_process_is_not_trivial() {
    // Comparing empty lists would be meaningless.
    for shape in crate::common::shapes() {
        let target = Spec { server: Some(3), stray_handle: true, ..Spec::standard(shape) }.build();
        let expected = target.expected();
        let count = |key: &str| expected[key].as_array().unwrap().len();
        assert_eq!((count("segments"), count("threads"), count("heaps"), count("oom")), (1 + 3 * 7, 4, 3, 3));
        assert_eq!((count("handles"), expected["handle_tables"].as_u64()), (28 + 2 + 2, Some(4)));
        assert!(count("free") > 15 && count("objects") > 60);
        assert!(target.to_elf_core().len() < 200 << 10 && target.to_minidump().len() < 200 << 10);
        // Both containers have the image at the same address, and the same memory otherwise.
        assert_eq!(target.ranges().len(), target.memory.ranges.len() + 1);
    }
}

#[test]
fn every_way_to_write_a_descriptor() {
    for shape in crate::common::shapes() {
        for descriptor_version in 0..=2 {
            // A short run has three of four ways, one for each version.
            for n in sample((0..4).skip(if full() { 0 } else { descriptor_version as usize }), 4) {
                let (string_contracts, typed) = (n & 1 != 0, n & 2 != 0);
                let server = (n == 1).then_some(2);
                check(&Spec { descriptor_version, string_contracts, typed, server, ..Spec::standard(shape) }, Exit::Ok);
            }
        }
    }
}

#[test]
fn without_an_export_the_root_is_found_by_its_magic() {
    for shape in crate::common::shapes() {
        let spec = Spec { export: false, ..Spec::standard(shape) };
        check(&spec, Exit::Ok);
        let target = spec.build();
        for bytes in [target.to_elf_core(), target.to_minidump()] {
            let (_, all) = ask_bytes(&bytes, &["info"]);
            let runtime = &all["data"]["runtimes"][0];
            assert_eq!(runtime["descriptor_found_by"], "its magic bytes in the module's data");
            assert_eq!((runtime["vm"].as_str(), runtime["gc"].as_str()), (Some("descriptor"), Some("descriptor")));
        }
    }
}

fn kinds(all: &Value) -> Vec<&str> {
    all["warnings"].as_array().unwrap().iter().map(|w| w["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_collection_in_progress_is_reported() {
    for shape in crate::common::shapes() {
        for server in [None, Some(2)] {
            let spec = Spec { gc_in_progress: true, server, ..Spec::standard(shape) };
            check(&spec, Exit::Ok);
            let target = spec.build();
            for command in [&["heap"][..], &["segments"], &["handles"], &["stat"], &["verify"], &["finalizers"]] {
                let (exit, all) = ask_bytes(&target.to_elf_core(), command);
                assert_eq!((exit, kinds(&all)), (Exit::Ok, vec!["gc-moving"]), "{command:?}");
            }
            // A collection does not move the history of failed allocations.
            let (exit, all) = ask_bytes(&target.to_elf_core(), &["oom"]);
            assert_eq!((exit, kinds(&all)), (Exit::Ok, vec![]));
            let (exit, info) = ask_bytes(&target.to_minidump(), &["info"]);
            let gc = &info["data"]["gc"];
            assert_eq!((exit, &gc["gc_in_progress"], &gc["phase"]), (Exit::Ok, &true.into(), &"moving".into()));
        }
    }
}

/// Runs a command that must fail; returns exit and message.
fn refuse(target: &Target, command: &[&str]) -> (Exit, String) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), target.to_minidump()).unwrap();
    let mini = common::run(&[command, &["--json", "--no-local-files", file.path().to_str().unwrap()]].concat());
    std::fs::write(file.path(), target.to_elf_core()).unwrap();
    let core = common::run(&[command, &["--json", "--no-local-files", file.path().to_str().unwrap()]].concat());
    assert_eq!(mini.exit, core.exit);
    (core.exit, core.err)
}

#[test]
fn three_ways_to_have_no_gc_contract() {
    let cases = [
        (GcPart::NotYet, "does not advertise the contract GC"),
        (GcPart::NotAdvertised, "does not advertise the contract GC"),
        (GcPart::Version("c99".into()), "in version c99, which this gcdump does not know"),
    ];
    for shape in crate::common::shapes() {
        for (gc, message) in cases.clone() {
            let target = Spec { gc, ..Spec::standard(shape) }.build();
            for command in [&["heap"][..], &["segments"], &["handles"], &["oom"]] {
                let (exit, text) = refuse(&target, &[command, &["--carve", "never"]].concat());
                assert_eq!(exit, Exit::NoRuntime, "{text}");
                assert!(text.contains(message), "{shape:?} {command:?}: {text}");
            }
            // The heap is carved out of memory otherwise.
            let (exit, heap) = ask_bytes(&target.to_elf_core(), &["heap"]);
            assert_eq!(exit, Exit::Partial, "{}", heap["warnings"]);
            assert!(heap["data"]["carved"]["because"].as_str().is_some_and(|why| why.contains(message)), "{}", heap["data"]["carved"]);
            // Threads do not need the GC.
            let (_, all) = ask_bytes(&target.to_elf_core(), &["threads"]);
            assert_eq!(all["data"]["threads"].as_array().unwrap().len(), 4);
        }
    }
}

/// A runtime that is loaded but not started has neither a GC nor threads.
#[test]
fn a_runtime_that_is_not_started_is_reported() {
    for shape in crate::common::shapes() {
        let mut target = Spec { gc: GcPart::NotYet, ..Spec::standard(shape) }.build();
        let file = gcdump::internals::dump::open_bytes(
            gcdump::internals::dump::Bytes::Owned(target.to_elf_core()),
            "x".as_ref(),
            &gcdump::internals::dump::OpenOptions::default(),
        );
        let dump = gcdump::Dump::of(file.unwrap(), &gcdump::OpenOptions::default());
        let store = dump.runtime().unwrap().descriptor().pointer("ThreadStore").unwrap();
        target.memory.p(store.0, 0);
        for bytes in [target.to_elf_core(), target.to_minidump()] {
            let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            for command in ["stat", "threads", "stacks"] {
                let ran = common::run(&[command, "--no-local-files", file.path().to_str().unwrap()]);
                assert_eq!(ran.exit, Exit::NoRuntime, "{command}: {}", ran.err);
                let said = "the runtime had not been started yet when the dump was taken: .NET 11.0.0";
                assert!(ran.err.contains(said), "{command}: {}", ran.err);
            }
        }
    }
}

#[test]
fn hostile_descriptors_end_with_a_clear_message() {
    for shape in crate::common::shapes() {
        let started = std::time::Instant::now();
        check(&Spec { hostile: Hostile::Cycle, ..Spec::standard(shape) }, Exit::Ok);
        let cases = [
            (Hostile::HugeJson, "bytes of JSON, more than the limit"),
            (Hostile::HugeSlots, "slots, more than the limit"),
            (Hostile::CutJson, "malformed"),
        ];
        for (hostile, note) in cases {
            let target = Spec { hostile, ..Spec::standard(shape) }.build();
            for bytes in [target.to_elf_core(), target.to_minidump()] {
                let (exit, all) = ask_bytes(&bytes, &["info"]);
                assert_eq!(exit, Exit::NoRuntime);
                let notes = all["warnings"].as_array().unwrap();
                let found = notes.iter().any(|n| n["kind"] == "descriptor" && n["message"].as_str().unwrap().contains(note));
                assert!(found, "{hostile:?}: {notes:?}");
            }
            assert_eq!(refuse(&target, &["heap"]).0, Exit::NoRuntime);
        }
        assert!(started.elapsed().as_secs() < 10);
    }
}

#[test]
fn missing_memory_makes_the_answer_partial() {
    for shape in crate::common::shapes() {
        let target = Spec { server: Some(2), ..Spec::standard(shape) }.build();
        let expected = target.expected();
        let number = |v: &Value| u64::from_str_radix(&v.as_str().unwrap()[2..], 16).unwrap();
        // The objects of a segment: its row remains, without captured bytes.
        let first = &expected["segments"][0];
        let start = number(&first["start"]);
        let cut = target.without(start, number(&first["allocated"]) - start);
        for bytes in [cut.to_elf_core(), cut.to_minidump()] {
            let (exit, all) = ask_bytes(&bytes, &["segments"]);
            let row = all["data"]["segments"].as_array().unwrap().iter().find(|s| s["address"] == first["address"]).unwrap();
            assert_eq!((exit, row["captured_bytes"].as_u64()), (Exit::Ok, Some(0)));
        }
        // The second heap's structure.
        let cut = target.without(number(&expected["heaps"][1]["address"]), shape.ptr * 0x60);
        for bytes in [cut.to_elf_core(), cut.to_minidump()] {
            let (exit, all) = ask_bytes(&bytes, &["heap", "--detail"]);
            assert_eq!((exit, all["data"]["complete"].as_bool()), (Exit::Partial, Some(false)));
            assert!(kinds(&all).contains(&"missing"));
        }
        // The last thread: those before it are listed.
        let cut = target.without(number(&expected["threads"][3]["address"]), 0x20);
        let (exit, all) = ask_bytes(&cut.to_elf_core(), &["threads"]);
        assert!(all["data"]["threads"].as_array().unwrap().len() >= 3);
        assert!(matches!(exit, Exit::Ok | Exit::Partial));
    }
}

/// In a process with two runtimes, each answer is about one of them and says that there is another.
#[test]
fn every_answer_says_that_there_are_two_runtimes() {
    let about = |answer: &Value, index: u64| {
        assert_eq!((&answer["runtimes"], &answer["runtime"]["index"]), (&2.into(), &index.into()), "{answer}");
        let of: Vec<&Value> = answer["warnings"].as_array().unwrap().iter().filter(|w| w["kind"] == "other-runtimes").collect();
        let said = format!("one of 2 runtimes in the process; runtime {} is .NET 11.0.0-synthetic; --runtime N selects another", 1 - index);
        assert!(of.len() == 1 && of[0]["message"].as_str().unwrap().contains(&said), "{}", answer["warnings"]);
    };
    for shape in crate::common::shapes() {
        let one = Spec::standard(shape);
        let two = Spec { at: 0x0800_0000, server: Some(2), ..Spec::standard(shape) };
        let expected = [one.build().expected(), two.build().expected()];
        let target = one.build().with(two.build());
        for bytes in [target.to_elf_core(), target.to_minidump()] {
            let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            let path = file.path().to_str().unwrap();
            for index in [0, 1] {
                let runtime = format!("--runtime={index}");
                for command in [&["heap"][..], &["stat"], &["analyze"], &["objects"], &["memory"], &["info"], &["contracts"], &["statics"]]
                {
                    let ran = common::run(&[command, &[&runtime, "--json", "--no-local-files", path]].concat());
                    assert_ne!(ran.exit, Exit::Usage, "{command:?}: {}", ran.err);
                    if ran.exit != Exit::NoRuntime {
                        about(&ran.json(), index);
                    }
                }
                // The note does not make the answer partial.
                let (exit, threads) = common::ask(file.path(), &["threads", &runtime]);
                assert_eq!((exit, &threads["data"]["complete"]), (Exit::Ok, &true.into()), "{}", threads["warnings"]);
                let (_, segments) = common::ask(file.path(), &["segments", &runtime]);
                let starts = |list: &Value| sorted(list.as_array().unwrap().iter().map(|s| s["start"].clone()).collect());
                assert_eq!(starts(&segments["data"]["segments"]), starts(&expected[index as usize]["segments"]));
            }
            let shown = common::run(&["threads", "--no-local-files", path]);
            assert!(
                shown.err.contains(
                    "note: this answer is about .NET 11.0.0-synthetic, one of 2 runtimes in the process; runtime 1 is .NET 11.0.0-synthetic; --runtime N \
                     selects another"
                ),
                "{}",
                shown.err
            );
            let info = common::run(&["info", "--no-local-files", path]).out;
            let listed: Vec<&str> = info.lines().filter(|l| l.starts_with("runtime ")).collect();
            assert!(listed.len() == 2 && listed[0].contains(" 0: .NET 11") && listed[1].contains(" 1: .NET 11"), "{info}");
            let page = common::run(&["report", "--no-graph", "--format", "html", "--no-local-files", path]);
            assert!(
                page.out.contains("one of 2 runtimes in the process; runtime 1 is .NET 11.0.0-synthetic; --runtime N selects another"),
                "{}",
                page.err
            );
        }
        // With one runtime, this note is absent.
        let (_, answer) = ask_bytes(&one.build().to_elf_core(), &["threads"]);
        assert_eq!((&answer["runtimes"], &answer["runtime"]["index"]), (&1.into(), &0.into()));
        assert!(!answer["warnings"].to_string().contains("other-runtimes"));
    }
}
