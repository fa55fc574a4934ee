//! References in both directions: those to an object are the reverse of the references of all objects.

use std::collections::BTreeMap;

use crate::common::{ask, each, every_dump, own_dump, random, run, sample};
use crate::harness::Tested;
use gcdump::Dump;
use gcdump::internals::base::Addr;
use serde_json::Value;

/// Number of references by both ends.
type Pairs = BTreeMap<(String, String), u64>;

fn pairs(list: &Value) -> Pairs {
    let mut all = Pairs::new();
    for row in list["list"].as_array().into_iter().flatten().filter(|row| row["via"] == "field") {
        let end = |key: &str| row[key].as_str().unwrap().to_string();
        *all.entry((end("from"), end("to"))).or_default() += 1;
    }
    all
}

#[test]
fn incoming_references_are_the_references_of_other_objects() -> Tested {
    let (dumps, _) = every_dump(|row| row["kind"] == "heap")?;
    let checked = each(&sample(dumps, 40), |dump| {
        let opened = Dump::open(&dump.path, &gcdump::OpenOptions::default()).unwrap();
        // Some dumps need the program's file, which only the others have beside them.
        let Some(heap) = opened.runtime().ok().and_then(|runtime| runtime.heap().ok()) else { return 0 };
        if heap.objects().take(200_001).count() > 200_000 {
            return 0;
        }
        // All references of the heap, by target.
        let mut into: BTreeMap<Addr, Pairs> = BTreeMap::new();
        for object in heap.objects() {
            for reference in object.references().into_iter().filter(|r| r.object.is_some()) {
                let pair = (object.address().to_string(), reference.address.to_string());
                *into.entry(reference.address).or_default().entry(pair).or_default() += 1;
            }
        }
        let targets: Vec<Addr> = into.keys().copied().collect();
        let mut random = random();
        let picked: Vec<Addr> = (0..8).filter(|_| !targets.is_empty()).map(|_| targets[random(targets.len())]).collect();
        for at in &picked {
            let (_, answer) = ask(&dump.path, &["refs", "--top", "0", &at.to_string()]);
            let data = &answer["data"];
            assert_eq!(pairs(&data["incoming"]), into[at], "{} {at}", dump.name);
            let object = heap.object(*at).unwrap();
            let mut own = Pairs::new();
            for reference in object.references().into_iter().filter(|r| r.object.is_some()) {
                *own.entry((at.to_string(), reference.address.to_string())).or_default() += 1;
            }
            assert_eq!(pairs(&data["outgoing"]), own, "{} {at}", dump.name);
        }
        picked.len()
    });
    assert!(checked.iter().sum::<usize>() >= 8, "{checked:?}");
    Tested::Ok(())
}

#[test]
fn references_of_a_type_add_up_to_those_of_its_objects() {
    let dump = own_dump();
    let dogs = ask(&dump, &["objects", "--type", "Lab.Dog", "--fields", "_age"]).1;
    let dogs: Vec<String> = dogs["data"]["objects"].as_array().unwrap().iter().map(|o| o["address"].as_str().unwrap().into()).collect();
    assert_eq!(dogs.len(), 100);
    let data = &ask(&dump, &["refs", "--type", "Lab.Dog", "--top", "0"]).1["data"];
    for direction in ["incoming", "outgoing"] {
        let single: u64 = dogs.iter().map(|at| ask(&dump, &["refs", at]).1["data"][direction]["references"].as_u64().unwrap()).sum();
        let merged: u64 = data[direction]["types"].as_array().unwrap().iter().map(|row| row["references"].as_u64().unwrap()).sum();
        assert_eq!((single, data[direction]["references"].as_u64()), (merged, Some(merged)), "{direction}");
    }
    let friend = data["incoming"]["types"].as_array().unwrap().iter().find(|row| row["field"] == "Friend").unwrap();
    assert_eq!((friend["references"].as_u64(), friend["from_type"].as_str()), (Some(100), Some("Lab.Dog")));
}

#[test]
fn retained_sizes_are_those_of_retained() {
    let dump = own_dump();
    let (_, answer) = ask(&dump, &["refs", "--type", "Lab.Dog[]", "--by", "type", "--retained"]);
    let of_list = &answer["data"]["incoming"]["types"][0];
    let (_, list) = ask(&dump, &["refs", "--type", "Lab.Dog[]", "--in", "--retained", "--by", "type"]);
    assert_eq!(of_list, &list["data"]["incoming"]["types"][0]);
    let at = ask(&dump, &["objects", "--type", "Lab.Dog[]"]).1["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    let refs = ask(&dump, &["refs", "--retained", "--sort", "retained", &at]).1;
    for row in refs["data"]["outgoing"]["list"].as_array().unwrap().iter().take(5) {
        let to = row["to"].as_str().unwrap();
        let one = ask(&dump, &["retained", "--object", to]).1;
        assert_eq!(row["retained"], one["data"]["object"]["retained"], "{to}");
    }
    assert_eq!(refs["data"]["object"]["retained"], ask(&dump, &["retained", "--object", &at]).1["data"]["object"]["retained"]);
}

#[test]
fn depth_follows_references_and_each_object_once() {
    let dump = own_dump();
    let at = ask(&dump, &["objects", "--type", "Lab.Dog"]).1["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    let depth = |n: &str| ask(&dump, &["refs", "--in", "--depth", n, &at]).1["data"]["incoming"].clone();
    let (one, three) = (depth("1"), depth("3"));
    let list = three["list"].as_array().unwrap();
    assert_eq!(list.iter().filter(|r| r["depth"] == 1).count(), one["list"].as_array().unwrap().len());
    assert!(list.iter().any(|r| r["depth"] == 3) && list.iter().all(|r| r["depth"].as_u64().unwrap() <= 3));
    let closure = depth("64");
    let sources: std::collections::BTreeSet<&str> =
        closure["list"].as_array().unwrap().iter().map(|r| r["from"].as_str().unwrap()).collect();
    assert_eq!(closure["objects"].as_u64(), Some(sources.len() as u64));
}

/// `path`, `object` and similar commands accept the names that `statics` and `path` print.
#[test]
fn objects_are_named_by_the_statics_that_refer_to_them() {
    let dump = own_dump();
    let data = |line: &[&str]| ask(&dump, line).1["data"].clone();
    let keep = data(&["object", "Lab.Program.Keep"])["address"].clone();
    let of_static = data(&["statics", "--type", "Lab.Program"]);
    let of_static = of_static["statics"].as_array().unwrap().iter().find(|s| s["name"] == "Keep").unwrap()["object"].clone();
    assert_eq!(keep, of_static);
    let dog = data(&["object", "Lab.Program.Keep[1][0]"])["address"].as_str().unwrap().to_string();
    assert_eq!(data(&["object", "Lab.Program.Keep._items[1][0]"])["address"], dog.as_str());
    for command in ["refs", "path", "objsize", "near", "where"] {
        assert_eq!(data(&[command, "Lab.Program.Keep[1][0]"]), data(&[command, &dog]), "{command}");
    }
    assert_eq!(data(&["retained", "--object", "Lab.Program.Keep[1][0]"]), data(&["retained", "--object", &dog]));
    // A type selects its objects.
    assert_eq!(data(&["path", "Lab.Dog"]), data(&["path", "--type", "Lab.Dog"]));
    assert_eq!(data(&["refs", "Lab.Dog"]), data(&["refs", "--type", "Lab.Dog"]));
    let field = of_root(&data(&["roots", "--kind", "static", "--type", "System.Collections.Generic.List<System.Object>"]));
    assert_eq!(data(&["whatif", "--dead", "Lab.Program.Keep"]), data(&["whatif", "--dead", &field]));
    for (line, why) in [
        ("object Lab.Program.Nope", "no field \"Nope\" in Lab.Program; it has"),
        ("object Lab.Program.Keep[99]", "has 11 elements; there is no element 99"),
        ("object No.Such", "there is no static field No.Such, and no object is of a type No.Such"),
        ("object Lab.Dog", "several objects are of the type Lab.Dog"),
        ("object 0xzz", "'0xzz' is not an address"),
        ("path No.Such", "No.Such"),
    ] {
        let words: Vec<&str> = line.split(' ').chain([dump.to_str().unwrap()]).collect();
        let ran = run(&words);
        assert!(ran.err.contains(why) && ran.exit != gcdump::cli::Exit::Ok, "{line}: {}", ran.err);
    }
}

fn of_root(roots: &Value) -> String {
    let keep = roots["roots"].as_array().unwrap().iter().find(|root| root["label"] == "Lab.Program.Keep").unwrap();
    keep["address"].as_str().unwrap().to_string()
}

#[test]
fn a_missing_or_superfluous_address_is_named() {
    let dump = own_dump();
    let refused = run(&["refs", dump.to_str().unwrap()]);
    assert!(refused.err.contains("refs: the address is missing: refs ADDRESS"), "{}", refused.err);
    let refused = run(&["refs", "--type", "Lab.Dog", "0x10", dump.to_str().unwrap()]);
    assert!(refused.err.contains("expected an address and a dump, or --type and a dump"), "{}", refused.err);
    let refused = run(&["refs", "--sort", "retained", "--type", "Lab.Dog", dump.to_str().unwrap()]);
    assert!(refused.err.contains("references by type can be sorted by references, size, type, field"), "{}", refused.err);
    let nothing = run(&["refs", "--type", "No.Such", dump.to_str().unwrap()]);
    assert!(nothing.err.contains("No.Such"), "{}", nothing.err);
}

/// In a carved heap no object has a generation, so nothing is known about references to younger objects.
#[test]
fn references_to_young_objects_are_not_known_without_generations() {
    let dump = own_dump();
    let (exit, answer) = ask(&dump, &["refs", "--young", "--carve", "always"]);
    assert_eq!(exit, gcdump::cli::Exit::Partial);
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("objects is not known: references between them are not counted"), "{warnings}");
    let (exit, answer) = ask(&dump, &["refs", "--young"]);
    assert_eq!((exit, answer["warnings"].to_string().contains("generation")), (gcdump::cli::Exit::Ok, false), "{}", answer["warnings"]);
}
