//! `bridge`, `whatif`, `unreachable` and `simulate` on real dumps, compared with the programs' own records.

use crate::harness::{Ignored, Tested};
use std::collections::BTreeSet;

use crate::common::{Known, ask, known_dumps, number, own_unpacked, run};
use crate::support::Spec;
use gcdump::cli::Exit;
use serde_json::{Value, json};

fn dump(name: &str) -> Result<Known, Ignored> {
    let (mut dumps, _) = known_dumps(|row| row["name"] == name)?;
    dumps.pop().ok_or_else(|| Ignored(format!("the manifest has no {name}")))
}

fn n(v: &Value) -> u64 {
    v.as_u64().unwrap()
}

fn rows(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn texts<'v>(rows: &'v [Value], key: &str) -> BTreeSet<&'v str> {
    rows.iter().map(|r| r[key].as_str().unwrap()).collect()
}

fn addresses(v: &Value) -> BTreeSet<&str> {
    rows(v).iter().map(|a| a.as_str().unwrap()).collect()
}

/// Types of garbage, without those that weak handles hold, as arguments of `bridge`.
fn bridged_garbage(garbage: &[Value]) -> Vec<String> {
    let held = |ty: &Value| garbage.iter().any(|o| o["type"] == *ty && o["class"] == "weak-only");
    let types: BTreeSet<&str> = garbage.iter().filter(|o| !held(&o["type"])).map(|o| o["method_table"].as_str().unwrap()).collect();
    types.into_iter().flat_map(|mt| ["--bridged".to_string(), mt.to_string()]).collect()
}

#[test]
fn weak_links_to_dead_bridged_objects_are_nulled_and_others_stay() {
    let (mut nulled, mut stay, mut registered) = (0, 0, 0);
    let names = ["net10-wks-deadlock-heap", "net10-wks-crash-heap", "net8-wks-keys-heap", "win-net10-wks-crash-full"];
    for name in names {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"));
        let (_, answer) = ask(&path, &["unreachable", "--objects", "--top", "0"]);
        let garbage = rows(&answer["data"]["objects"]);
        let dead = texts(garbage, "address");
        let mut command = vec!["bridge".to_string()];
        command.extend(bridged_garbage(garbage));
        let (_, answer) = ask(&path, &command.iter().map(String::as_str).collect::<Vec<_>>());
        let data = &answer["data"];
        let objects: Vec<&Value> = rows(&data["sccs"]).iter().flat_map(|s| rows(&s["objects"])).collect();
        let bridged: BTreeSet<&str> = objects.iter().map(|o| o["address"].as_str().unwrap()).collect();

        // `finalizers` lists the objects that are registered for finalization.
        let (_, queues) = ask(&path, &["finalizers", "--objects", "--top", "0"]);
        let queued: Vec<Value> = rows(&queues["data"]["objects"]).iter().filter(|o| o["state"] == "registered").cloned().collect();
        let queued = texts(&queued, "object");
        for object in &objects {
            // Of the objects in the queue, those whose finalizers were suppressed are not finalized.
            let is_queued = queued.contains(object["address"].as_str().unwrap());
            assert!(object["registered"] == false || is_queued, "{name}: {object}");
            registered += usize::from(object["registered"] == true);
        }

        // Every weak handle to a dead bridged object is listed, and only these are nulled.
        let (_, handles) = ask(&path, &["handles", "--type", "weak-short,weak-long", "--top", "0"]);
        let handles = rows(&handles["data"]["handles"]);
        let links = rows(&data["weak_links"]);
        for handle in handles.iter().filter(|h| bridged.contains(h["object"].as_str().unwrap())) {
            assert!(links.iter().any(|l| l["handle"] == handle["address"]), "{name}: {handle}");
        }
        for link in links {
            let object = link["object"].as_str().unwrap();
            assert!(handles.iter().any(|h| h["address"] == link["handle"] && h["object"] == object && h["type"] == link["kind"]), "{link}");
            assert!(dead.contains(object), "{name}: {link}");
            assert_eq!((&link["bridged"], &link["nulled"]), (&json!(bridged.contains(object)), &link["bridged"]), "{name}: {link}");
            if let Some(scc) = link["scc"].as_u64().filter(|_| link["bridged"] == true) {
                assert!(texts(rows(&data["sccs"][scc as usize]["objects"]), "address").contains(object), "{name}: {link}");
            }
            *(if link["nulled"] == true { &mut nulled } else { &mut stay }) += 1;
        }
        let shown = run(&[command.as_slice(), &[path.to_str().unwrap().into()]].concat());
        assert_eq!(shown.out.contains("Weak handles, if the other collector"), !links.is_empty());
    }
    assert!(nulled > 0 && stay > 0 && registered > 0, "{nulled} nulled, {stay} stay, {registered} registered");
}

#[test]
fn components_of_peers_are_the_cycles_made_by_the_program() -> Tested {
    let dump = dump("net10-wks-bridge-heap")?;
    let truth = dump.truth.as_ref().unwrap();
    let (exit, answer) = ask(&dump.path, &["bridge", "--bridged", "Lab.Peer", "--all"]);
    let data = &answer["data"];
    assert_eq!((exit, n(&data["bridged"]), n(&data["dead"])), (Exit::Ok, 9, 0));
    let sccs: Vec<BTreeSet<&str>> = rows(&data["sccs"]).iter().map(|s| texts(rows(&s["objects"]), "address")).collect();
    let alone: BTreeSet<&str> = [truth["alone"].as_str().unwrap()].into();
    assert_eq!(sccs, [addresses(&truth["ring_a"]), addresses(&truth["ring_b"]), alone]);
    // Only b refers to the third component: a has no reference to it.
    assert_eq!(data["xrefs"], json!([{ "src": 0, "dst": 1 }, { "src": 1, "dst": 2 }]));
    assert!(rows(&data["sccs"]).iter().all(|s| s["alive"] == true));
    // Lists between the peers belong to the cycles.
    assert!(n(&data["sccs"][0]["members"]) > 3);

    // All are held by handles and lists: none is dead.
    let (_, answer) = ask(&dump.path, &["bridge", "--bridged", "Lab.Peer"]);
    assert_eq!(answer["data"]["sccs"], json!([]));
    // If opaque, every peer is its own component.
    let (_, answer) = ask(&dump.path, &["bridge", "--bridged", "Lab.Peer", "--all", "--opaque", "Lab.*"]);
    assert_eq!((rows(&answer["data"]["sccs"]).len(), rows(&answer["data"]["xrefs"]).len()), (9, 0));
    assert_eq!(answer["data"]["classes"][0]["kind"], "opaque-bridge");
    let same = ["bridge", "--bridged", "Lab.Peer", "--all", "--opaque", "Lab.*", "--transparent", "Lab.Peer*"];
    assert_eq!(ask(&dump.path, &same).1["data"]["sccs"], data["sccs"]);
    // The references go through the lists.
    let lists = ["bridge", "--bridged", "Lab.Peer", "--all", "--opaque", "System.Collections.Generic.List<*"];
    assert_eq!(rows(&ask(&dump.path, &lists).1["data"]["sccs"]).len(), 9);

    let path = dump.path.to_str().unwrap();
    let ran = run(&["bridge", "--bridged", "Lab.Peer", "--all", "--dot", path]);
    assert!(ran.out.starts_with("digraph bridge {") && ran.out.contains("s0 -> s1;") && ran.out.contains("s1 -> s2;"), "{}", ran.out);
    assert!(!ran.out.contains("s0 -> s2;"));
    assert_eq!(run(&["bridge", "--dot", "--json", path]).exit, Exit::Usage);
    Ok(())
}

#[test]
fn without_its_roots_an_object_is_freed_and_its_weak_handle_cleared() -> Tested {
    let dump = dump("net10-wks-roots-heap")?;
    let truth = dump.truth.as_ref().unwrap();
    // A temporary slot of the unoptimized frame still holds the dog that should only be held weakly: it survived the
    // program's own collections. Without all of its roots it is freed, and its weak handle cleared.
    let (_, weak) = ask(&dump.path, &["roots", "--kind", "weak", "--type", "Lab.Dog"]);
    let weak = &rows(&weak["data"]["roots"])[0];
    let (_, roots) = ask(&dump.path, &["roots", "--type", "Lab.Dog"]);
    let own: Vec<&Value> = rows(&roots["data"]["roots"]).iter().filter(|r| r["object"] == weak["object"]).collect();
    if own.iter().all(|r| r["address"].is_string()) {
        let places: Vec<&str> = own.iter().map(|r| r["address"].as_str().unwrap()).collect();
        let (exit, answer) = ask(&dump.path, &["whatif", "--dead", &places.join(",")]);
        let data = &answer["data"];
        assert_eq!(exit, Exit::Ok);
        let dogs = rows(&data["freed"]["types"]).iter().find(|t| t["type"] == "Lab.Dog").unwrap();
        assert_eq!(n(&dogs["count"]), 1);
        let row = rows(&data["weak_handles"]).iter().find(|w| w["address"] == weak["address"]).unwrap();
        assert_eq!((&row["survives"], &row["reached_now"]), (&json!(false), &json!(true)));
    }
    let (_, strict) = ask(&dump.path, &["unreachable", "--objects", "--stacks", "none"]);
    let dog = rows(&strict["data"]["objects"]).iter().find(|o| o["address"] == weak["object"]).unwrap();
    assert_eq!(dog["class"], "weak-only");
    // An object held only by a weak handle survives if assumed to be rooted.
    let (_, garbage) = ask(&dump.path, &["unreachable", "--objects"]);
    let lost = rows(&garbage["data"]["objects"]).iter().find(|o| o["class"] == "weak-only").unwrap();
    let address = lost["address"].as_str().unwrap();
    let (_, answer) = ask(&dump.path, &["whatif", "--alive", address]);
    let data = &answer["data"];
    assert!(n(&data["survivors"]["count"]) > 0 && n(&data["freed"]["count"]) == 0);
    let row = rows(&data["weak_handles"]).iter().find(|w| w["object"] == address).unwrap();
    assert_eq!((&row["survives"], &row["reached_now"]), (&json!(true), &json!(false)));
    // Removing one of several roots changes nothing; an invalid handle is an error.
    let handle = truth["handle"].as_str().unwrap();
    assert_eq!(ask(&dump.path, &["whatif", "--dead", handle]).0, Exit::Ok);
    let path = dump.path.to_str().unwrap();
    assert_eq!(run(&["whatif", "--dead", "0x10", path]).exit, Exit::Negative);
    assert_eq!(run(&["whatif", "--alive", "0x10", path]).exit, Exit::Negative);
    assert_eq!(run(&["whatif", path]).exit, Exit::Usage);
    // Everything recorded as held is reachable.
    let garbage = texts(rows(&garbage["data"]["objects"]), "address");
    for key in ["static_deep", "stack", "via_stack", "via_handle", "dependent", "thread_static"] {
        assert!(!garbage.contains(truth[key].as_str().unwrap()), "{key}");
    }
    Ok(())
}

#[test]
fn totals_of_garbage_and_of_collections_add_up() {
    let (dumps, _) = known_dumps(|row| {
        matches!(row["kind"].as_str(), Some("heap")) && row["name"].as_str().is_some_and(|n| n.contains("seg") || n.contains("wks"))
    })
    .unwrap_or_default();
    let mut paths: Vec<std::path::PathBuf> = dumps.into_iter().map(|d| d.path).collect();
    paths.push(own_unpacked());
    let mut checked = 0;
    for path in &paths {
        let what = path.display();
        let (exit, garbage) = ask(path, &["unreachable"]);
        if exit != Exit::Ok {
            continue;
        }
        let data = &garbage["data"];
        let (_, stat) = ask(path, &["stat"]);
        let totals = &stat["data"]["totals"];
        for key in ["count", "bytes"] {
            let all = n(&data["reached"][key]) + n(&data["unreachable"][key]);
            assert_eq!(all, n(&totals[key]), "{what}");
            for part in ["classes", "types"] {
                assert_eq!(rows(&data[part]).iter().map(|r| n(&r[key])).sum::<u64>(), n(&data["unreachable"][key]), "{what} {part}");
            }
        }
        assert!(!rows(&data["coverage"]).is_empty());
        let finalizer_only = &rows(&data["classes"])[2];
        let mut before = 0;
        for generation in ["0", "1", "2"] {
            let (exit, answer) = ask(path, &["simulate", "collect", "--generation", generation]);
            assert_eq!(exit, Exit::Ok, "{what}");
            let c = &answer["data"];
            for key in ["count", "bytes"] {
                let parts = n(&c["freed"][key]) + n(&c["survivors"][key]) + n(&c["resurrected"][key]) + n(&c["untouched"][key]);
                assert_eq!(parts, n(&totals[key]), "{what}");
                for part in ["freed", "survivors", "resurrected"] {
                    assert_eq!(rows(&c["generations"]).iter().map(|g| n(&g[part][key])).sum::<u64>(), n(&c[part][key]), "{what} {part}");
                }
            }
            // A collection of an older generation frees at least as much.
            assert!(n(&c["freed"]["count"]) + n(&c["resurrected"]["count"]) >= before, "{what}");
            before = n(&c["freed"]["count"]) + n(&c["resurrected"]["count"]);
            if generation == "2" {
                assert_eq!(before, n(&data["unreachable"]["count"]), "{what}");
                assert_eq!(n(&c["resurrected"]["count"]), n(&finalizer_only["count"]), "{what}");
            }
        }
        checked += 1;
    }
    println!("{checked} dumps add up");
    assert!(checked > 0);
}

/// An object with several peers in the other runtime has one handle for each.
#[test]
fn every_cross_reference_handle_of_an_object_is_shown() {
    for shape in crate::common::shapes() {
        let mut target = Spec::standard(shape).build();
        let expected = target.expected();
        let handles: Vec<&Value> = rows(&expected["handles"]).iter().filter(|h| h["type"] == "cross-reference").collect();
        let [first, second] = handles[..] else { panic!("{handles:?}") };
        target.memory.p(number(&second["address"]), number(&first["object"]));
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), target.to_elf_core()).unwrap();
        let (_, answer) = ask(file.path(), &["bridge", "--all"]);
        assert_eq!(answer["data"]["bridged"], 1, "{shape:?}");
        let object = &answer["data"]["sccs"][0]["objects"][0];
        let expected = |h: &Value| json!({ "handle": h["address"], "context": h["secondary"] });
        assert_eq!(json!({ "handle": object["handle"], "context": object["context"] }), expected(first), "{shape:?}");
        assert_eq!(object["further_handles"], json!([expected(second)]), "{shape:?}");
        let text = run(&["bridge", "--all", "--format", "csv", "--no-local-files", file.path().to_str().unwrap()]).out;
        for handle in [first, second] {
            assert!(text.contains(handle["address"].as_str().unwrap()), "{shape:?}: {text}");
        }
    }
}
