//! Delegates: the method and the target of each, compared with the records of the dumped programs.

use crate::harness::Tested;
use gcdump::analysis::{ObjectQuery, object};
use gcdump::cli::Exit;
use gcdump::{Addr, Object};
use serde_json::Value;

use crate::common::{Known, ask, each, known_dumps, number, run};

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

/// Returns the name of a method without type and arguments: `<Go>b__7_5` for `Lab.Program+<>c.<Go>b__7_5(Int32)`.
fn own_name(method: &str) -> &str {
    let mut method = method.split('(').next().unwrap();
    // Arguments of a generic method: `Inst.G<System.String>`, unlike the brackets of `<Go>b__4`.
    if let Some(open) = method.strip_suffix('>').and_then(|m| m.rfind('<')).filter(|_| !method.contains(">b__")) {
        method = &method[..open];
    }
    let from = method.find(".<").or_else(|| method.rfind('.')).unwrap();
    &method[from + 1..]
}

#[test]
fn own_names() {
    for (method, name) in [
        ("StateLab.Colls+<>c__DisplayClass7_0.<Go>b__4(Int32)", "<Go>b__4"),
        ("StateLab.Colls+Inst.G<System.String>(Int32)", "G"),
        ("DynamicClass.dynop(Int32)", "dynop"),
    ] {
        assert_eq!(own_name(method), name);
    }
}

#[test]
fn methods_and_targets_are_those_of_the_program() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "colls" && row["truth"].is_string())?;
    let (mut right, mut all) = (0, 0);
    for dump in &dumps {
        for truth in dump.truth.as_ref().unwrap()["delegates"].as_array().unwrap() {
            let (exit, answer) = ask(&dump.path, &["object", text(truth, "address")]);
            let (found, at) = (&answer["data"]["delegate"], format!("{}: {truth}", dump.name));
            assert_eq!(exit, Exit::Ok, "{at}: {answer}");
            assert_eq!(own_name(text(found, "method")), text(truth, "method"), "{at}");
            // The truth has full names, which reflection does not.
            let name = text(truth, "name").split(' ').next().unwrap();
            assert!(!name.starts_with("StateLab") || text(found, "method").split('(').next() == Some(name), "{at}: {found}");
            let target = Some(text(truth, "target")).filter(|t| *t != "0x0");
            assert_eq!(found["target"].as_str(), target, "{at}");
            let parts = found["parts"].as_array().unwrap();
            assert_eq!(parts.len(), if text(truth, "name") == "multicast 3" { 3 } else { 0 }, "{at}");
            if let Some(last) = parts.last() {
                assert_eq!((&last["method"], &last["target"]), (&found["method"], &found["target"]), "{at}");
                assert!(parts.iter().all(|p| p["method"].is_string() && number(&p["object"]) != 0), "{at}: {parts:?}");
            }
            right += 1;
        }
        all += dump.truth.as_ref().unwrap()["delegates"].as_array().unwrap().len();
    }
    println!("{right} of {all} delegates of the programs");
    assert!(right == all && (dumps.is_empty() || all >= 13));
    Ok(())
}

/// Returns the number of delegates on the heap, and those whose method is not found.
fn resolved(dump: &Known) -> (usize, Vec<String>) {
    let heap = gcdump::open(&dump.path).unwrap().runtime().unwrap().heap().unwrap();
    let mut types = std::collections::HashMap::new();
    let mut is = |o: &Object| *types.entry(o.method_table()).or_insert_with(|| o.ty().is_a("System.MulticastDelegate"));
    let all: Vec<Addr> = heap.objects().filter(|o| is(o)).map(|o| o.address()).collect();
    let mut lost = Vec::new();
    for at in &all {
        let answer = object(&heap, &ObjectQuery { fields: false, ..ObjectQuery::at(*at) }).unwrap();
        let delegate = answer.data.delegate.as_ref().expect("a delegate");
        let found = delegate.method.is_some() && delegate.parts.iter().all(|p| p.method.is_some());
        if !found {
            lost.push(format!("{} {at} {:?}", dump.name, delegate.method));
        }
    }
    (all.len(), lost)
}

#[test]
fn the_method_of_every_delegate_of_a_heap_is_found() -> Tested {
    let heap = |row: &Value| ["heap", "full"].iter().any(|kind| row["kind"] == *kind);
    let (dumps, _) = known_dumps(|row| heap(row) && !text(row, "runtime").starts_with("net11"))?;
    let found = each(&dumps, resolved);
    let (all, lost) = found.iter().fold((0, 0), |(all, lost), (n, bad)| (all + n, lost + bad.len()));
    println!("{} of {all} delegates resolved in {} dumps", all - lost, dumps.len());
    let lost: Vec<&String> = found.iter().flat_map(|f| &f.1).take(20).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(dumps.is_empty() || all >= dumps.len(), "there are too few");
    Ok(())
}

#[test]
fn tables_show_parts_and_fields_show_methods() -> Tested {
    let (dumps, _) = known_dumps(|row| row["name"] == "net10-wks-colls-heap")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap()["delegates"].as_array().unwrap();
        let multicast = truth.iter().find(|d| d["name"] == "multicast 3").unwrap();
        let shown = run(&["dumpdelegate", text(multicast, "address"), dump.path.to_str().unwrap(), "--no-local-files"]);
        assert_eq!(shown.exit, Exit::Ok, "{}", shown.err);
        for expected in ["Method        StateLab.Colls+Derived.V(Int32)", "Parts         3", "StateLab.Colls+Inst.M(Int32)"] {
            assert!(shown.out.contains(expected), "{expected} is not in\n{}", shown.out);
        }
        let bus = run(&["object", text(dump.truth.as_ref().unwrap(), "bus"), dump.path.to_str().unwrap(), "--no-local-files"]);
        assert!(bus.out.contains("→ StateLab.") && bus.out.contains("and 39 more"), "{}", bus.out);
        let (_, statics) = ask(&dump.path, &["statics", "--type", "StateLab.Bus"]);
        let event = statics["data"]["statics"].as_array().unwrap().iter().find(|s| s["name"] == "StaticChanged").unwrap();
        let has = |part: &str| text(event, "text").contains(part);
        assert!(has("→ StateLab.Screen.On(System.Object, System.EventArgs) on 0x") && has("and 24 more"), "{event}");
    }
    Ok(())
}
