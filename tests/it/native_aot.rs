//! NativeAOT programs: real dumps of one compared with its own records, and each kind of dump with the others.

use crate::harness::{Ignored, Tested};
use std::collections::BTreeMap;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{self, Known, ask, every_dump, number};

/// The dumps of a scenario whose answers can be checked because the program is available.
fn dumps(scenario: &str) -> Result<Vec<Known>, Ignored> {
    common::needs_native_aot_program()?;
    Ok(every_dump(|row| row["runtime"] == "aot9" && (scenario.is_empty() || row["scenario"] == scenario))?.0)
}

fn list<'v>(v: &'v Value, key: &str) -> &'v [Value] {
    v[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

/// Converts the program's names, which are those of reflection: ``Lab.Pair`2[A,B]``.
fn as_printed(reflection: &str) -> String {
    match reflection.split_once('`') {
        Some((name, rest)) => format!("{name}<{}>", rest.trim_start_matches(|c| c != '[').trim_matches(['[', ']']).replace(',', ", ")),
        None => reflection.to_string(),
    }
}

/// Returns a complete answer.
fn data(dump: &Known, command: &[&str]) -> Value {
    let (exit, mut answer) = ask(&dump.path, command);
    assert_eq!(exit, Exit::Ok, "{} {command:?}: {}", dump.name, answer["warnings"]);
    answer["data"].take()
}

#[test]
fn the_walk_is_complete_and_counts_are_those_of_the_program() -> Tested {
    let (mut objects, mut counted) = (0, 0);
    for dump in dumps("")? {
        let stat = data(&dump, &["stat", "--top", "0"]);
        assert_eq!(stat["coverage"]["corrupt_bytes"].as_u64().unwrap_or(0), 0, "{}: {}", dump.name, stat["coverage"]);
        let counts: BTreeMap<&str, u64> = list(&stat, "types").iter().map(|t| (text(t, "type"), t["count"].as_u64().unwrap())).collect();
        for (name, count) in dump.truth.iter().flat_map(|t| t["counts"].as_object().into_iter().flatten()) {
            // `Pair<Int32,String>` in the program's spelling.
            let printed = name.replace(',', ", ");
            assert_eq!(counts.get(printed.as_str()), count.as_u64().as_ref(), "{} {name}", dump.name);
            counted += 1;
        }
        let verify = data(&dump, &["verify"]);
        assert!(list(&verify, "findings").is_empty(), "{}: {verify}", dump.name);
        objects += stat["totals"]["count"].as_u64().unwrap();
    }
    println!("{objects} objects, {counted} counts");
    Ok(())
}

#[test]
fn sample_objects_have_their_types_generations_and_sizes() -> Tested {
    let types = [("node_head", "Lab.Node"), ("dog0", "Lab.Dog"), ("bigstring", "System.String"), ("literal", "System.String")];
    for dump in dumps("wait")?.iter().chain(&dumps("crash")?) {
        let truth = dump.truth.as_ref().unwrap();
        let object = |address: &Value| data(dump, &["object", address.as_str().unwrap()]);
        for (name, type_name) in types {
            assert_eq!(object(&truth["samples"][name])["type"], type_name, "{} {name}", dump.name);
        }
        let loh = list(&truth["samples"], "loh").iter().zip(list(&truth["sizes"], "loh"));
        let poh = list(&truth["samples"], "poh").iter().zip(list(&truth["sizes"], "poh"));
        for (at, length) in loh.chain(poh) {
            let array = object(at);
            assert_eq!((&array["type"], &array["dimensions"][0]["length"]), (&"System.Byte[]".into(), length), "{} {array}", dump.name);
        }
        for (name, generation) in truth["generations"].as_object().unwrap() {
            let at = truth["samples"].get(name).or_else(|| truth["samples"][name.trim_end_matches('0')].get(0)).unwrap();
            let object = object(at);
            let found = object["segment"]["generation"].as_str().unwrap_or_else(|| panic!("{object}"));
            let expected = match generation.as_u64().unwrap() {
                2147483647 => ["frozen"].as_slice(),
                // `GC.GetGeneration` returns the same for large and pinned objects.
                2 => &["gen2", "loh", "poh"],
                n => panic!("generation {n}"),
            };
            assert!(expected.contains(&found), "{} {name}: {found}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn every_handle_of_the_program_is_found() -> Tested {
    for dump in dumps("handles")? {
        let truth = dump.truth.as_ref().unwrap();
        let found = data(&dump, &["handles"]);
        let rows: BTreeMap<u64, &Value> = list(&found, "handles").iter().map(|h| (number(&h["address"]), h)).collect();
        for handle in list(truth, "handles") {
            let row = rows.get(&number(&handle["handle"])).unwrap_or_else(|| panic!("{}: {handle}", dump.name));
            let kind = text(handle, "type").replace('_', "-");
            assert_eq!((text(row, "type"), &row["object"]), (kind.as_str(), &handle["object"]), "{}: {row}", dump.name);
            assert_eq!(text(row, "object_type"), as_printed(text(handle, "object_type")), "{}: {row}", dump.name);
            assert!(handle["secondary"].is_null() || row["secondary"] == handle["secondary"], "{}: {row}", dump.name);
        }
        for freed in list(truth, "freed") {
            // The runtime has used the handles again, but not for the program's objects.
            let row = rows.get(&number(freed));
            assert!(row.is_none_or(|r| !text(r, "object_type").starts_with("Lab.")), "{}: {freed} is free", dump.name);
        }
        println!("{}: {} handles", dump.name, list(truth, "handles").len());
    }
    Ok(())
}

#[test]
fn the_crash_shows_its_exception() -> Tested {
    for dump in dumps("crash")? {
        let info = data(&dump, &["info"]);
        let report = &info["crash_report"];
        assert_eq!(report["reason"], "unhandled exception", "{report}");
        assert_eq!(report["exception"]["type"], "System.ApplicationException", "{report}");
        assert_eq!(report["exception"]["inner"][0]["type"], "System.InvalidOperationException", "{report}");
        assert!(text(&report["exception"]["stack"][0], "method").starts_with("Lab.Program.Crash("), "{report}");
        assert_eq!(info["runtimes"][0]["kind"], "native-aot");

        let threads = data(&dump, &["threads"]);
        let crashed: Vec<&Value> = list(&threads, "threads").iter().filter(|t| !t["exception"].is_null()).collect();
        let [thread] = crashed.as_slice() else { panic!("{threads}") };
        assert_eq!((thread["os_id"].as_u64(), &thread["crashed"]), (report["thread"].as_u64(), &true.into()), "{thread}");
        let exception = &thread["exception"];
        assert_eq!((&exception["address"], &exception["message"]), (&report["exception"]["address"], &report["exception"]["message"]));
        assert_eq!(exception["inner"]["type"], "System.InvalidOperationException");
        let methods: Vec<&str> = list(exception, "stack").iter().map(|f| text(f, "method")).collect();
        assert_eq!(methods.first(), Some(&"Lab.Program.Crash"), "{methods:?}");
    }
    Ok(())
}

/// Answers that do not depend on the kind of dump if the program is available.
const SAME: [&[&str]; 7] = [
    &["stat", "--top", "0"],
    &["heap"],
    &["segments"],
    &["handles"],
    &["finalizers"],
    &["objects", "--type", "Lab.*", "--count", "0"],
    &["strings", "--top", "0"],
];

#[test]
fn every_kind_of_dump_of_a_process_gives_the_same_answers() -> Tested {
    let all = dumps("")?;
    let mut compared = 0;
    for full in all.iter().filter(|d| d.name.ends_with("-full")) {
        let stem = full.name.trim_end_matches("full");
        for other in all.iter().filter(|d| d.name.starts_with(stem) && d.name != full.name) {
            for command in SAME {
                assert_eq!(data(full, command), data(other, command), "{command:?} of {} and {}", full.name, other.name);
                compared += 1;
            }
        }
    }
    assert!(all.is_empty() || compared >= 5 * SAME.len(), "{compared}");
    Ok(())
}

#[test]
fn without_the_program_a_dump_says_what_is_missing() -> Tested {
    for dump in every_dump(|row| row["runtime"] == "aot9")?.0 {
        let path = dump.path.to_str().unwrap();
        let ran = common::run(&["stat", "--json", "--no-local-files", path]);
        let named = ran.exit == Exit::Ok && list(&ran.json()["data"], "types").iter().any(|t| text(t, "type") == "System.String");
        match dump.kind.as_str() {
            "full" => assert!(named, "{}: {:?}", dump.name, ran.exit),
            // The GC's variables point to tables of the program file.
            "heap" => assert!(ran.exit == Exit::NoRuntime && ran.err.contains("--modules"), "{}: {}", dump.name, ran.err),
            _ => assert!(named || ran.exit == Exit::Partial || ran.err.contains("--modules"), "{}: {:?} {}", dump.name, ran.exit, ran.err),
        }
    }
    Ok(())
}

#[test]
fn locks_and_waits_are_those_of_the_program() -> Tested {
    for dump in dumps("locks")? {
        let truth = dump.truth.as_ref().unwrap();
        let found = data(&dump, &["locks"]);
        let lock =
            |object: &Value| list(&found, "locks").iter().find(|l| l["object"] == *object).unwrap_or_else(|| panic!("{object}: {found}"));
        let contended = lock(&truth["contended"]);
        assert_eq!(contended["owner"]["managed_id"], truth["owner_managed_id"], "{}: {contended}", dump.name);
        assert_eq!(list(contended, "waiters").len() as u64, truth["waiters"].as_u64().unwrap(), "{}: {contended}", dump.name);
        assert_eq!(lock(&truth["both"])["owner"]["managed_id"], truth["owner_managed_id"], "{}", dump.name);
        let thin = lock(&truth["thin"]);
        assert_eq!((&thin["owner"]["managed_id"], &thin["recursion"]), (&truth["thin_owner_managed_id"], &truth["thin_recursion"]));
        let waits = list(&found, "waits").iter().filter(|w| w["object"] == truth["contended"]);
        let evidence: Vec<&str> = waits.map(|w| text(w, "evidence")).collect();
        assert_eq!(evidence, ["exact"; 3], "{}", dump.name);
        assert_eq!(list(&found, "deadlocks").len(), 0, "{}", dump.name);
        let threads = data(&dump, &["threads"]);
        let names: Vec<&str> = list(&threads, "threads").iter().filter_map(|t| t["name"].as_str()).collect();
        assert_eq!(names, ["waiter2", "waiter1", "waiter0", "owner"], "{}", dump.name);
    }
    Ok(())
}

#[test]
fn asynchronous_chains_and_timers_are_those_of_the_program() -> Tested {
    for dump in dumps("async")? {
        let truth = dump.truth.as_ref().unwrap();
        let found = data(&dump, &["async"]);
        let chains: Vec<&Value> = list(&found, "chains").iter().filter(|c| c["root"]["object"] == truth["never"]).collect();
        assert_eq!(chains.len() as u64, truth["async_chains"].as_u64().unwrap(), "{}", dump.name);
        for chain in chains {
            let methods: Vec<&str> = list(chain, "frames").iter().map(|f| text(f, "method").rsplit('.').next().unwrap()).collect();
            assert_eq!(methods, list(truth, "frames_per_chain").iter().map(|n| n.as_str().unwrap()).collect::<Vec<_>>(), "{}", dump.name);
        }
        let timers = data(&dump, &["timers"]);
        assert_eq!(list(&timers, "timers").len() as u64, truth["timers"].as_u64().unwrap(), "{}", dump.name);
    }
    Ok(())
}

#[test]
fn fields_and_static_fields_have_names_and_values() -> Tested {
    for dump in dumps("wait")? {
        let truth = dump.truth.as_ref().unwrap();
        let node = data(&dump, &["object", truth["samples"]["node_head"].as_str().unwrap()]);
        let names: Vec<&str> = list(&node, "fields").iter().map(|f| text(f, "name")).collect();
        assert_eq!(names, ["Next", "Data", "Index"], "{}", dump.name);
        assert_eq!(node["fields"][2]["value"], 999, "{}", dump.name);
        if dump.kind == "heap" {
            // The pages of the slots are not in such dumps.
            continue;
        }
        let statics = data(&dump, &["statics", "--type", "Lab.Program"]);
        let keep = list(&statics, "statics").iter().find(|s| s["name"] == "Keep").unwrap_or_else(|| panic!("{statics}"));
        assert_eq!(keep["object_type"], "System.Collections.Generic.List<System.Object>", "{}: {keep}", dump.name);
    }
    Ok(())
}

#[test]
fn every_block_of_static_fields_is_a_root() -> Tested {
    for dump in dumps("")? {
        let roots = data(&dump, &["roots", "--top", "0"]);
        let of = |what: &str, kind: &str| list(&roots, what).iter().find(|k| k["kind"] == kind).unwrap_or_else(|| panic!("{kind}")).clone();
        assert_eq!(of("counts", "static")["count"], 438, "{}", dump.name);
        for kind in ["static", "thread-static"] {
            assert_eq!(of("coverage", kind)["coverage"], "complete", "{}", dump.name);
        }
    }
    Ok(())
}
