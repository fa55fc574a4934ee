//! `inspect` compared with the programs' own records.

use std::path::{Path, PathBuf};

use crate::common::{ask, file_offset, known_dumps, number};
use crate::harness::{Ignored, Tested};
use gcdump::internals::base::Addr;
use serde_json::Value;

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Returns the rows of an inspection.
fn rows<'v>(answer: &'v Value, id: &str) -> &'v [Value] {
    let all = answer["data"]["inspections"].as_array().unwrap();
    all.iter().find(|i| text(i, "id") == id).unwrap()["rows"].as_array().unwrap()
}

/// Sums the counts of the `wanted` rows.
fn count(answer: &Value, id: &str, wanted: impl Fn(&Value) -> bool) -> u64 {
    rows(answer, id).iter().filter(|r| wanted(r)).map(|r| r["count"].as_u64().unwrap()).sum()
}

/// Returns the answer for each dump of a scenario, with the truth.
fn answers(scenario: &str) -> Result<Vec<(String, Value, Value)>, Ignored> {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && text(row, "scenario") == scenario)?;
    let answer = |d: crate::common::Known| {
        let (exit, answer) = ask(&d.path, &["inspect", "--top", "0"]);
        assert_eq!(exit.code(), 0, "{}: {}", d.name, answer["warnings"]);
        (d.name, answer, d.truth.unwrap())
    };
    Ok(dumps.into_iter().map(answer).collect())
}

#[test]
fn waste_is_what_the_program_recorded() -> Tested {
    for (name, answer, truth) in answers("inspect")? {
        let of_type = |part: &'static str| move |r: &Value| text(r, "type").starts_with(part);
        let is = |object: &Value| {
            let object = object.clone();
            move |r: &Value| r["object"] == object
        };
        let n = |key: &str| truth[key].as_u64().unwrap();
        // The literal is an additional string.
        let texts = count(&answer, "equal-strings", |r| r["detail"] == truth["duplicate_text"]);
        assert_eq!(texts, n("duplicates") + 1, "{name}");
        assert!(
            count(&answer, "empty-collections", of_type("System.Collections.Generic.List<System.Int32>")) >= n("empty_lists"),
            "{name}"
        );
        let empty = count(&answer, "empty-collections", of_type("System.Collections.Generic.Dictionary<System.String, System.Int32>"));
        assert!(empty >= n("empty_dictionaries"), "{name}: {empty}");
        assert_eq!(count(&answer, "sparse-arrays", is(&truth["sparse_array"])), 1, "{name}");
        assert_eq!(count(&answer, "zero-arrays", is(&truth["zero_array"])), 1, "{name}");
        assert_eq!(count(&answer, "oversized-collections", is(&truth["roomy_list"])), 1, "{name}");
        // The framework boxes some as well.
        let boxed = count(&answer, "boxed-values", |r| text(r, "type") == "System.Int32");
        assert!((n("boxed_ints")..n("boxed_ints") + 50).contains(&boxed), "{name}: {boxed}");
        let publisher = text(&truth, "publisher");
        let event = rows(&answer, "event-leaks").iter().find(|r| text(r, "detail").contains(publisher)).unwrap();
        assert_eq!(event["count"], truth["subscribers"], "{name}");
        assert!(text(event, "detail").contains("150 of 150 targets"), "{name}: {event}");
        println!("{name}: {texts} equal strings, {boxed} boxed integers, {event}");
    }
    Ok(())
}

#[test]
fn held_objects_are_those_that_the_program_recorded() -> Tested {
    for (name, answer, truth) in answers("colls")? {
        let n = |key: &str| truth[key].as_u64().unwrap();
        assert_eq!(count(&answer, "equal-strings", |r| text(r, "detail") == "d".repeat(30)), n("dup_strings"), "{name}");
        let arrays = rows(&answer, "equal-arrays").iter().find(|r| text(r, "type") == "System.Byte[]" && r["count"] == truth["dup_arrays"]);
        assert!(arrays.is_some(), "{name}");
        assert_eq!(count(&answer, "undisposed", |r| text(r, "type") == "StateLab.Res"), n("res_undisposed"), "{name}");
        // The framework boxes some, if its methods are not precompiled.
        let boxed = count(&answer, "boxed-values", |r| text(r, "type") == "System.Boolean");
        assert!((n("boxed_bool")..n("boxed_bool") + 5).contains(&boxed), "{name}: {boxed}");
        assert_eq!(count(&answer, "boxed-values", |r| text(r, "type") == "System.DateTime"), n("boxed_datetime"), "{name}");
        assert_eq!(count(&answer, "open-handles", |r| text(r, "type") == "Microsoft.Win32.SafeHandles.SafeFileHandle"), 1, "{name}");
        let events = rows(&answer, "event-leaks");
        let event = |holder: &str| events.iter().find(|r| text(r, "detail").contains(holder)).unwrap_or_else(|| panic!("{name}: {holder}"));
        let expect_leak = |holder: &str, only: u64, all: u64| {
            let row = event(holder);
            assert_eq!(row["count"], all, "{name}: {row}");
            assert!(text(row, "detail").contains(&format!("{only} of {all} targets")), "{name}: {row}");
            // All subscribers have one type.
            let bytes = row["bytes"].as_u64().unwrap();
            assert_eq!(bytes > 0, only > 0, "{name}: {row}");
            assert_eq!(bytes.checked_rem(only).unwrap_or(0), 0, "{name}: {row}");
        };
        expect_leak("Changed of StateLab.Bus", n("bus_changed_only_event"), n("bus_changed"));
        expect_leak("Other of StateLab.Bus", n("bus_other"), n("bus_other"));
        expect_leak("StaticChanged", n("static_changed"), n("static_changed"));
        let contexts = rows(&answer, "load-contexts");
        let held: Vec<&Value> =
            truth["alcs"].as_array().unwrap().iter().filter(|a| text(a, "state").starts_with("unload requested")).collect();
        assert_eq!(contexts.len(), held.len(), "{name}: {contexts:?}");
        let detail = format!("\"{}\" is held by an object of its types: StateLab.Screen at 0x", text(held[0], "name"));
        assert!(text(&contexts[0], "detail").starts_with(&detail), "{name}: {}", contexts[0]);
    }
    Ok(())
}

/// Contexts without an object of their types; `dumps/corpus/programs/contexts.cs` lists what holds each.
#[test]
fn a_load_context_without_objects_is_held_by_references_to_its_allocator() {
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-contexts-heap.dmp.zst");
    let (exit, answer) = ask(&dump, &["inspect", "--only", "load-contexts", "--top", "0"]);
    assert_eq!(exit.code(), 0, "{}", answer["warnings"]);
    let rows = rows(&answer, "load-contexts");
    let held = [
        ("type", "the Type object of Plug.Thing at 0x"),
        ("array-type", "the Type object of Plug.Thing[] at 0x"),
        ("generic-type", "the Type object of System.Collections.Generic.List<Plug.Thing> at 0x"),
        ("pointer-type", "a Type object of its types at 0x"),
        ("method", "System.Reflection.RuntimeMethodInfo of Plug.Thing at 0x"),
        ("field", "System.Reflection.RtFieldInfo of Plug.Thing at 0x"),
        ("ctor", "System.Reflection.RuntimeConstructorInfo of Plug.Thing at 0x"),
        ("parameter", "System.Reflection.RuntimeParameterInfo of Plug.Thing at 0x"),
        ("generic-method", "System.Reflection.RuntimeMethodInfo at 0x"),
        ("assembly", "System.Reflection.RuntimeAssembly at 0x"),
        ("module", "System.Reflection.RuntimeModule at 0x"),
        ("static-delegate", "System.Action at 0x"),
        ("thread", "code of Plug.Thing.Loop(System.Threading.ManualResetEvent) thread 4"),
        ("thread-generic", "code of Contexts.Host<System.__Canon>(System.Threading.ManualResetEvent) thread 5"),
    ];
    assert_eq!(rows.len(), held.len(), "{rows:?}");
    for (name, by) in held {
        let start = format!("\"{name}\" is held by {by}");
        assert!(rows.iter().any(|row| text(row, "detail").starts_with(&start)), "{start}: {rows:?}");
    }
}

/// A frame keeps the loader allocator of its code alive, which holds the statics of collectible types.
#[test]
fn code_on_a_stack_is_a_root_of_its_loader_allocator() {
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-contexts-heap.dmp.zst");
    let (_, answer) = ask(&dump, &["roots", "--kind", "stack"]);
    let roots = answer["data"]["roots"].as_array().unwrap();
    let of_code: Vec<&Value> = roots.iter().filter(|r| text(r, "label").starts_with("code of ")).collect();
    assert_eq!(of_code.len(), 2, "{roots:?}");
    for root in of_code {
        assert_eq!(root["address"], Value::Null, "{root}");
        let (exit, path) = ask(&dump, &["path", text(root, "object")]);
        assert_eq!(exit.code(), 0, "{path}");
        assert_eq!(path["data"]["paths"][0]["roots"][0]["label"], root["label"], "{path}");
        let (_, conservative) = ask(&dump, &["path", "--stacks", "conservative", text(root, "object")]);
        assert_ne!(conservative["data"]["roots"], 0, "{conservative}");
    }
}

#[test]
fn unobserved_exceptions_of_tasks_are_reported() -> Tested {
    let (dumps, _) = known_dumps(|row| row["truth"].is_string() && text(row, "scenario") == "asyncmix")?;
    for d in dumps {
        let (_, answer) = ask(&d.path, &["inspect", "--only", "unobserved-exceptions", "--top", "0"]);
        let found: Vec<&str> = rows(&answer, "unobserved-exceptions").iter().map(|r| text(r, "object")).collect();
        let truth = &d.truth.as_ref().unwrap()["async"];
        let expected: Vec<&str> = match &truth["unobserved"] {
            Value::Array(list) => list.iter().map(|o| o.as_str().unwrap()).collect(),
            one => vec![one.as_str().unwrap()],
        };
        assert!(expected.iter().all(|o| found.contains(o)), "{}: {found:?}, not {expected:?}", d.name);
    }
    Ok(())
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// Returns the field of an object.
fn field<'v>(object: &'v Value, name: &str) -> &'v Value {
    object["fields"].as_array().unwrap().iter().find(|f| text(f, "name") == name).unwrap()
}

#[test]
fn bytes_of_collections_are_those_of_their_arrays() {
    let (mut empty, mut oversized) = (0, 0);
    for name in ["net10-wks-inspect-heap", "net10-wks-colls-heap", "net10-wks-keys-heap"] {
        let dump = corpus(name);
        let object = |at: &Value| ask(&dump, &["object", at.as_str().unwrap()]).1["data"].clone();
        let (exit, answer) = ask(&dump, &["inspect", "--only", "empty-collections", "--only", "oversized-collections", "--top", "0"]);
        assert_eq!(exit.code(), 0, "{name}: {}", answer["warnings"]);
        let arrays = |collection: &Value| -> Option<u64> {
            let fields = collection["fields"].as_array()?.iter().filter(|f| text(f, "object_type").ends_with("[]"));
            let sizes = fields.map(|f| object(&f["object"])).filter(|array| array["length"] != 0).map(|array| array["size"].as_u64());
            sizes.collect::<Option<Vec<u64>>>().filter(|all| !all.is_empty()).map(|all| all.iter().sum())
        };
        for row in rows(&answer, "empty-collections").iter().filter(|row| row["count"] == 1) {
            let collection = object(&row["object"]);
            if let Some(bytes) = arrays(&collection) {
                assert_eq!(row["bytes"], bytes + collection["size"].as_u64().unwrap(), "{name}: {row}");
                empty += 1;
            }
        }
        for row in rows(&answer, "oversized-collections") {
            if let Some(bytes) = arrays(&object(&row["object"])) {
                // More than three quarters are not used.
                let unused = row["bytes"].as_u64().unwrap();
                assert!((bytes * 3 / 4 - 64..bytes).contains(&unused), "{name}: {row}, arrays of {bytes}");
                oversized += 1;
            }
        }
    }
    assert!(empty > 0 && oversized > 1, "{empty} empty, {oversized} oversized");
}

#[test]
fn a_target_that_only_other_objects_of_the_event_refer_to_is_held_by_the_event_alone() {
    let dump = corpus("net10-wks-inspect-heap");
    let events = |path: &Path| rows(&ask(path, &["inspect", "--only", "event-leaks"]).1, "event-leaks")[0].clone();
    let event = events(&dump)["object"].clone();
    let (_, delegate) = ask(&dump, &["object", event.as_str().unwrap(), "--items", "200"]);
    let delegate = &delegate["data"];
    let parts = delegate["delegate"]["parts"].as_array().unwrap();
    let (first, last) = (&parts[0], parts.last().unwrap());
    let (_, rest) = ask(&dump, &["object", last["object"].as_str().unwrap()]);
    let opened = gcdump::open(&dump).unwrap();
    let offset = |field: &Value| file_offset(opened.runtime().unwrap().file(), Addr(number(&field["address"]))).unwrap();
    let places = [offset(field(delegate, "_invocationCount")), offset(field(&rest["data"], "_target"))];
    let mut bytes = zstd::decode_all(std::fs::File::open(&dump).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("changed.dmp");
    // The event loses its last part, but the list still has it, and it refers to the target of another part.
    for (at, value) in places.into_iter().zip([parts.len() as u64 - 1, number(&first["target"])]) {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    std::fs::write(&changed, &bytes).unwrap();
    let found = events(&changed);
    assert!(found["count"] == 149 && text(&found, "detail").contains("149 of 149 targets"), "{found}");
}

#[test]
fn registrations_have_their_size_and_the_method_that_is_registered_most() {
    for (name, count, callback) in [
        ("net10-wks-holders-heap", 1100, "Shop.Watcher.Stop()"),
        ("net10-wks-keys-heap", 500, "System.Threading.CancellationTokenSource+LinkedNCancellationTokenSource"),
    ] {
        let (_, answer) = ask(&corpus(name), &["inspect", "--only", "registrations"]);
        let [source] = rows(&answer, "registrations") else { panic!("{name}: {answer}") };
        // A node has seven references, a number of 8 bytes, and 16 bytes of header.
        assert_eq!((&source["count"], &source["bytes"]), (&count.into(), &(count * 80).into()), "{name}");
        let of_all = format!("{} of them for {callback}", if count == 1100 { "1,100" } else { "500" });
        assert!(text(source, "detail").starts_with(&of_all), "{name}: {source}");
    }
}
