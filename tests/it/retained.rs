//! Paths and retained sizes, compared with the programs' own records, on the shared dumps.

use crate::common;
use crate::common::{Known, ask, known_dumps};
use crate::harness::{Ignored, Tested};
use gcdump::cli::Exit;
use serde_json::Value;

fn scenario(name: &str) -> Result<Vec<Known>, Ignored> {
    let (dumps, _) =
        known_dumps(|row| row["scenario"] == name && matches!(row["kind"].as_str(), Some("heap" | "full")) && row["truth"].is_string())?;
    Ok(dumps)
}

fn truth<'d>(dump: &'d Known, key: &str) -> &'d Value {
    &dump.truth.as_ref().unwrap()[key]
}

#[test]
fn the_cache_is_the_suspect_without_the_shared_index() -> Tested {
    let dumps = scenario("suspects")?;
    assert!(!dumps.is_empty());
    for dump in dumps {
        let (exit, answer) = ask(&dump.path, &["retained", "--suspects"]);
        assert_eq!(exit, Exit::Ok, "{}", dump.name);
        let suspects = answer["data"]["suspects"].as_array().unwrap();
        let cache = suspects.iter().find(|s| s["address"] == *truth(&dump, "cache")).unwrap_or_else(|| panic!("{}: {answer}", dump.name));
        let retained = cache["retained"].as_u64().unwrap();
        let only = truth(&dump, "value_bytes_only_in_cache").as_u64().unwrap();
        // The size consists of values with a header of 24 bytes, entries of 40 bytes, and the table; the index of 50,000 bytes is not part of
        // it.
        let entries = 1900 * (24 + 40);
        assert!(retained > only + entries && retained < only + entries + 150_000, "{}: {retained}", dump.name);
        assert!(
            cache["roots"].as_array().unwrap().iter().any(|r| r["kind"] == "static" && r["label"] == "Lab.Program.theCache"),
            "{cache}"
        );
        assert_eq!(cache["below"][0]["type"], "Lab.Program+Entry");
        assert_eq!(cache["below"][0]["count"], 1900);

        // The shared index has no dominator, and refers to the table of the cache.
        let index = truth(&dump, "shared").as_str().unwrap();
        let (_, one) = ask(&dump.path, &["retained", "--object", index]);
        assert_eq!(one["data"]["object"]["chain"].as_array().map(Vec::len), Some(0), "{one}");
        assert_eq!(one["data"]["object"]["dominated"], 2);
        let (_, size) = ask(&dump.path, &["objsize", truth(&dump, "cache").as_str().unwrap()]);
        let closure = size["data"]["closure_bytes"].as_u64().unwrap();
        assert!(closure > retained + 50_000 + 100 * 1000, "{closure}: with the index and the entries held twice");
        assert_eq!(size["data"]["shared_bytes"].as_u64().unwrap(), closure - retained);
    }
    Ok(())
}

/// Root kinds, fields on the path, root labels.
type Path = (Vec<String>, Vec<String>, String);

/// The paths to an object: root kinds and fields.
fn paths(dump: &Known, object: &str, more: &[&str]) -> Vec<Path> {
    let mut args = vec!["path", object, dump.path.to_str().unwrap(), "--json", "--no-local-files"];
    args.extend(more);
    let ran = common::run(&args);
    let text = |v: &Value| v.as_str().unwrap_or("").to_string();
    let answer = ran.json();
    let path = |p: &Value| {
        let roots = p["roots"].as_array().unwrap();
        let fields = p["steps"].as_array().unwrap().iter().skip(1).map(|s| text(&s["field"])).collect();
        let labels = roots.iter().map(|r| text(&r["label"])).collect::<Vec<_>>().join("|");
        (roots.iter().map(|r| text(&r["kind"])).collect(), fields, labels)
    };
    answer["data"]["paths"].as_array().unwrap().iter().map(path).collect()
}

#[test]
fn every_kind_of_root_is_found_by_its_path() -> Tested {
    let dumps = scenario("roots")?;
    assert!(!dumps.is_empty());
    for dump in &dumps {
        let name = &dump.name;
        let of = |key: &str| paths(dump, truth(dump, key).as_str().unwrap(), &["--paths", "20"]);
        let has = |found: &[Path], kind: &str, fields: &[&str], label: &str| {
            found.iter().any(|(kinds, f, l)| kinds.iter().any(|k| k == kind) && f == fields && l.contains(label))
        };
        let found = of("static_deep");
        assert!(has(&found, "static", &["Friend", "Friend"], "Lab.Program.staticDog"), "{name}: {found:?}");
        let found = of("via_handle");
        assert!(has(&found, "strong-handle", &["Friend"], "strong handle"), "{name}: {found:?}");
        let found = of("via_stack");
        assert!(
            found
                .iter()
                .any(|(kinds, f, _)| kinds.iter().any(|k| k == "stack" || k == "register") && f.last().is_some_and(|f| f == "Friend")),
            "{name}: {found:?}"
        );
        let found = of("thread_static");
        assert!(has(&found, "thread-static", &[], "Lab.Everything.ThreadOne"), "{name}: {found:?}");
        // The value of a dependent handle: the last edge is not a field.
        let found = of("dependent");
        assert!(found.iter().any(|(_, f, _)| f.last().is_some_and(String::is_empty)), "{name}: {found:?}");
    }
    Ok(())
}

#[test]
fn collectible_types_keep_their_loader_alive() -> Tested {
    for dump in scenario("dynamic")? {
        // The loader allocator, which keeps an emitted type alive, is reachable from its objects.
        let widget = truth(&dump, "widget0").as_str().unwrap();
        let (exit, answer) = ask(&dump.path, &["path", "--type", "System.Reflection.LoaderAllocator", "--paths", "50"]);
        assert_eq!(exit, Exit::Ok, "{}", dump.name);
        assert_eq!(answer["data"]["reachable"], answer["data"]["targets"], "{}", dump.name);
        let (_, size) = ask(&dump.path, &["objsize", widget]);
        assert!(size["data"]["closure_objects"].as_u64().unwrap() > 2, "{}: {size}", dump.name);
    }
    Ok(())
}

#[test]
fn totals_and_trees_agree() {
    let dump = common::own_unpacked();
    let (_, all) = ask(&dump, &["retained", "--top", "0"]);
    let data = &all["data"];
    let n = |v: &Value| v.as_u64().unwrap();
    let objects = data["objects"].as_array().unwrap();
    assert_eq!(objects.len() as u64, n(&data["totals"]["reachable_objects"]));
    // The top of the tree adds up to all reachable objects.
    let tops: u64 = objects.iter().filter(|o| o["dominator"].is_null()).map(|o| n(&o["retained"])).sum();
    assert_eq!(tops, n(&data["totals"]["reachable_bytes"]));
    for t in data["types"].as_array().unwrap() {
        assert!(n(&t["retained"]) >= n(&t["bytes"]), "{t}");
    }
    // `stat` counts the same objects.
    let (_, stat) = ask(&dump, &["stat"]);
    let totals = &stat["data"]["totals"];
    assert_eq!(n(&data["totals"]["objects"]), n(&totals["count"]));
    assert_eq!(n(&data["totals"]["bytes"]), n(&totals["bytes"]));
    let (_, tree) = ask(&dump, &["retained", "--tree", "--depth", "2", "--threshold", "0", "--top", "0"]);
    assert!(tree["data"]["tree"].as_array().unwrap().len() > 10);
    let refused = common::run(&["retained", "--max-memory", "1K", dump.to_str().unwrap()]);
    assert_eq!(refused.exit, Exit::Usage, "{}", refused.err);
    assert!(refused.err.contains("--max-memory"));
}

/// The list `Lab.Program.Keep` has elements of many types: none is stated as that of all.
#[test]
fn elements_of_many_types_are_not_said_to_be_of_one() {
    let dump = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-crash-heap.dmp.zst");
    let (_, answer) = ask(&dump, &["retained", "--suspects"]);
    let suspects = answer["data"]["suspects"].as_array().unwrap();
    let list = suspects.iter().find(|s| s["elements"]["count"] == 11).unwrap_or_else(|| panic!("{suspects:?}"));
    let (elements, read) = (&list["elements"], &list["elements"]["values"]);
    assert_eq!((&elements["value"], &read["of_type"], &elements["keys"]), (&"System.Object".into(), &0.into(), &serde_json::Value::Null));
    let words = format!("has 11 elements of {} types.", read["types"]);
    assert!(read["types"].as_u64().unwrap() > 5 && list["text"].as_str().unwrap().ends_with(&words), "{list}");
}

/// The method `Collect` makes a list of 100,000 nodes.
#[test]
fn a_linked_list_is_described_by_all_of_its_nodes() {
    let dump = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net8-wks-spin-heap.dmp.zst");
    let (_, answer) = ask(&dump, &["retained", "--suspects"]);
    let list = &answer["data"]["suspects"][0];
    let nodes = &list["by_type"][0];
    assert_eq!((&nodes["type"], &nodes["count"], &nodes["bytes"]), (&list["type"], &100_000.into(), &list["retained"]), "{list}");
    assert_eq!(list["accumulation"], Value::Null);
    let text = list["text"].as_str().unwrap();
    assert!(text.ends_with("It holds 100,000 × Stacks.Program+Node (3.0 MiB)."), "{text}");
    let (_, one) = ask(&dump, &["retained", "--object", list["address"].as_str().unwrap()]);
    assert_eq!(one["data"]["object"]["by_type"], list["by_type"]);
    // Other objects have no such field.
    let field = |s: &Value| s.get("by_type").is_some_and(|types| types.as_array().is_none_or(Vec::is_empty));
    assert!(!answer["data"]["suspects"].as_array().unwrap().iter().any(field), "{answer}");
}
