//! NativeAOT programs: real dumps of one against what it wrote down of itself, and each kind of dump against the others.

use crate::harness::{Ignored, Tested};
use std::collections::BTreeMap;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{self, Known, ask, every_dump, further_dumps, number};

/// The dumps of a scenario whose answers can be checked: with the program at hand.
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

/// The program's names are those of reflection: ``Lab.Pair`2[A,B]``.
fn as_printed(reflection: &str) -> String {
    match reflection.split_once('`') {
        Some((name, rest)) => format!("{name}<{}>", rest.trim_start_matches(|c| c != '[').trim_matches(['[', ']']).replace(',', ", ")),
        None => reflection.to_string(),
    }
}

/// A complete answer.
fn data(dump: &Known, command: &[&str]) -> Value {
    let (exit, mut answer) = ask(&dump.path, command);
    assert_eq!(exit, Exit::Ok, "{} {command:?}: {}", dump.name, answer["warnings"]);
    answer["data"].take()
}

#[test]
fn the_walk_is_whole_and_counts_are_those_of_the_program() -> Tested {
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
                // Also what `GC.GetGeneration` says of large and pinned objects.
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
            // The runtime has used them again since, but not for the program's objects.
            let row = rows.get(&number(freed));
            assert!(row.is_none_or(|r| !text(r, "object_type").starts_with("Lab.")), "{}: {freed} is free", dump.name);
        }
        println!("{}: {} handles", dump.name, list(truth, "handles").len());
    }
    Ok(())
}

#[test]
fn the_crash_tells_its_exception() -> Tested {
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

/// Answers that do not depend on the kind of dump, where the program is at hand.
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
fn without_the_program_a_dump_says_what_it_lacks() -> Tested {
    for dump in every_dump(|row| row["runtime"] == "aot9")?.0 {
        let path = dump.path.to_str().unwrap();
        let ran = common::run(&["stat", "--json", "--no-local-files", path]);
        let named = ran.exit == Exit::Ok && list(&ran.json()["data"], "types").iter().any(|t| text(t, "type") == "System.String");
        match dump.kind.as_str() {
            "full" => assert!(named, "{}: {:?}", dump.name, ran.exit),
            // The variables of the GC lead to tables of the program file.
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

/// Dumps of programs of .NET 8, 10 and 11. Those of 8 and 10 are read without the program, which is not handed over.
fn others(wanted: impl Fn(&Value) -> bool) -> Result<Vec<Known>, Ignored> {
    let of_releases = |row: &Value| ["net8aot", "net10aot", "net11aot"].contains(&row["runtime"].as_str().unwrap());
    // The program of that with server GC is a patch, which needs the zstd program.
    let at_hand = |row: &Value| row["kind"] == "full" || row["gc"] != "svr";
    Ok(further_dumps(|row| of_releases(row) && at_hand(row) && wanted(row))?.0)
}

/// An answer that is complete or partial.
fn partly(dump: &Known, command: &[&str]) -> Value {
    let (exit, mut answer) = ask(&dump.path, command);
    assert!([Exit::Ok, Exit::Partial].contains(&exit), "{} {command:?}: {}", dump.name, answer["warnings"]);
    answer["data"].take()
}

#[test]
fn programs_of_each_release_are_walked_with_names_and_references() -> Tested {
    let mut counted = 0;
    for dump in others(|_| true)? {
        let truth = dump.truth.as_ref().unwrap();
        let stat = data(&dump, &["stat", "--top", "0"]);
        let counts: BTreeMap<&str, u64> = list(&stat, "types").iter().map(|t| (text(t, "type"), t["count"].as_u64().unwrap())).collect();
        for (name, count) in truth["counts"].as_object().into_iter().flatten() {
            assert_eq!(counts.get(name.replace(',', ", ").as_str()), count.as_u64().as_ref(), "{} {name}", dump.name);
            counted += 1;
        }
        // Allocation contexts among them.
        let verify = data(&dump, &["verify"]);
        assert!(list(&verify, "findings").is_empty(), "{}: {verify}", dump.name);
        assert_eq!(verify["coverage"]["share"], 1.0, "{}: {verify}", dump.name);
        let handles = data(&dump, &["handles", "--top", "0"]);
        let rows: BTreeMap<u64, &Value> = list(&handles, "handles").iter().map(|h| (number(&h["address"]), h)).collect();
        for handle in list(truth, "handles") {
            let row = rows.get(&number(&handle["handle"])).unwrap_or_else(|| panic!("{}: {handle}", dump.name));
            assert_eq!((text(row, "type"), &row["object"]), (text(handle, "type").replace('_', "-").as_str(), &handle["object"]));
        }
    }
    println!("{counted} counts");
    Ok(())
}

#[test]
fn locks_waits_and_hash_codes_of_each_release_are_those_of_the_program() -> Tested {
    for dump in others(|row| ["all", "locks"].contains(&row["scenario"].as_str().unwrap()))? {
        let truth = dump.truth.as_ref().unwrap();
        let found = partly(&dump, &["locks"]);
        let lock =
            |object: &Value| list(&found, "locks").iter().find(|l| l["object"] == *object).unwrap_or_else(|| panic!("{object}: {found}"));
        let contended = lock(&truth["contended"]);
        assert_eq!(contended["owner"]["managed_id"], truth["owner_managed_id"], "{}: {contended}", dump.name);
        assert_eq!(list(contended, "waiters").len() as u64, truth["waiters"].as_u64().unwrap(), "{}: {contended}", dump.name);
        assert_eq!(contended["waiting"], truth["waiters"], "{}: {contended}", dump.name);
        assert_eq!(lock(&truth["both"])["owner"]["managed_id"], truth["owner_managed_id"], "{}", dump.name);
        let thin = lock(&truth["thin"]);
        assert_eq!((&thin["owner"]["managed_id"], &thin["recursion"]), (&truth["thin_owner_managed_id"], &truth["thin_recursion"]));
        assert!(list(&found, "locks").iter().all(|l| l["owner"]["orphaned"] != true), "{}: {found}", dump.name);
        for (object, hash) in [("hashed", "hash"), ("both", "hash_both")] {
            let object = data(&dump, &["object", truth[object].as_str().unwrap()]);
            assert_eq!(object["header"]["hash_code"], truth[hash], "{} {hash}", dump.name);
        }
        // A thread in `Task.Wait` waits for the task.
        let blocked = list(&found, "waits").iter().find(|w| w["managed_id"] == truth["taskwait_managed_id"]);
        if let Some(task) = truth.get("never").filter(|_| !truth["taskwait_managed_id"].is_null()) {
            assert_eq!(blocked.map(|w| (&w["kind"], &w["object"])), Some((&"task".into(), task)), "{}: {found}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn exceptions_thread_names_and_paths_of_each_release_are_those_of_the_program() -> Tested {
    for dump in others(|row| row["scenario"] == "all")? {
        let truth = dump.truth.as_ref().unwrap();
        let threads = data(&dump, &["threads"]);
        let names: Vec<&str> = list(&threads, "threads").iter().filter_map(|t| t["name"].as_str()).collect();
        assert!(list(truth, "thread_names").iter().all(|name| names.contains(&name.as_str().unwrap())), "{}: {names:?}", dump.name);
        let catcher = list(&threads, "threads").iter().find(|t| t["managed_id"] == truth["catcher_managed_id"]).unwrap();
        assert_eq!(catcher["exception"]["address"], truth["held_exception"], "{}: {catcher}", dump.name);
        assert_eq!(catcher["exception"]["message"], truth["held_exception_message"], "{}: {catcher}", dump.name);
        let methods: Vec<&str> = list(&catcher["exception"], "stack").iter().map(|f| text(f, "method")).collect();
        let expected: Vec<String> =
            list(truth, "held_exception_frames").iter().map(|f| format!("Lab.Program.{}", f.as_str().unwrap())).collect();
        assert!(expected.iter().zip(&methods).all(|(wanted, method)| method.starts_with(wanted.as_str())), "{}: {methods:?}", dump.name);
        for (object, kind) in [("static_deep", "static"), ("via_handle", "strong-handle"), ("thread_static", "thread-static")] {
            let paths = partly(&dump, &["path", truth[object].as_str().unwrap()]);
            let mut kinds = list(&paths, "paths").iter().flat_map(|p| list(p, "roots")).map(|r| text(r, "kind"));
            assert!(kinds.any(|k| k == kind), "{} {object}: {paths}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn the_crash_report_of_net_11_is_found() -> Tested {
    for dump in others(|row| row["scenario"] == "crash")? {
        let info = data(&dump, &["info"]);
        let report = &info["crash_report"];
        assert_eq!(
            (&report["reason"], &report["exception"]["type"]),
            (&"unhandled exception".into(), &"System.ApplicationException".into())
        );
        assert!(text(&report["exception"]["stack"][0], "method").starts_with("Lab.Program.Crash("), "{report}");
        assert_eq!((&info["runtimes"][0]["version"], &info["runtimes"][0]["version_source"]), (&"11.0.0".into(), &"descriptor".into()));
    }
    Ok(())
}

#[test]
fn a_program_whose_exports_are_not_in_the_dump_is_named_with_its_build_id() -> Tested {
    let wanted = |row: &Value| ["net11aot", "net10trim"].contains(&row["runtime"].as_str().unwrap()) && row["kind"] == "heap";
    for dump in further_dumps(wanted)?.0 {
        let path = dump.path.to_str().unwrap();
        let ran = common::run(&["stat", "--no-local-files", path]);
        assert_eq!(ran.exit, Exit::NoRuntime, "{}", dump.name);
        assert!(!ran.err.contains("no .NET runtime found"), "{}: {}", dump.name, ran.err);
        let id = ran.err.split("build id ").nth(1).map_or("", |rest| rest.split(')').next().unwrap());
        assert!(id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{}: {}", dump.name, ran.err);
        assert!(ran.err.contains("/lab (build id") && ran.err.contains("--modules"), "{}: {}", dump.name, ran.err);
        // Another program of that name is not used, and the answer says why.
        let Some(folder) = common::native_aot_program() else { continue };
        let ran = common::run(&["stat", "--no-local-files", "--modules", folder.to_str().unwrap(), path]);
        assert!(ran.exit == Exit::NoRuntime && ran.err.contains("is not the lab of this process"), "{}: {}", dump.name, ran.err);
    }
    Ok(())
}
