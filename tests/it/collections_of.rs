//! Collections: kinds, counts and contents, compared with the records of the dumped programs.

use crate::harness::{Ignored, Tested};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::internals::dump::{self, Bytes};
use gcdump::{Dump, OpenOptions};
use serde_json::Value;

use crate::common::{Known, ask, bytes_of, known_dumps, run, sample};

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

fn dumps() -> Result<Vec<Known>, Ignored> {
    Ok(known_dumps(|row| row["scenario"] == "colls" && row["truth"].is_string())?.0)
}

fn recorded(dump: &Known) -> &[Value] {
    dump.truth.as_ref().unwrap()["collections"].as_array().unwrap()
}

/// Returns the `collection` of an object, with `items` of its elements.
fn collection(dump: &Known, recorded: &Value, items: &str) -> Value {
    let (exit, answer) = ask(&dump.path, &["object", "--items", items, text(recorded, "address")]);
    assert_eq!(exit, Exit::Ok, "{}: {recorded}: {answer}", dump.name);
    answer["data"]["collection"].clone()
}

#[test]
fn every_kind_is_counted() -> Tested {
    let (dumps, mut right, mut kinds) = (dumps()?, 0, BTreeSet::new());
    for dump in &dumps {
        for recorded in recorded(dump) {
            let found = collection(dump, recorded, "1000");
            assert_eq!(found["count"], recorded["count"], "{}: {recorded}: {found}", dump.name);
            let listed = found["items"].as_array().unwrap().len() as u64;
            let elements = !["string-builder", "memory-stream", "bit-array", "array"].contains(&text(&found, "kind"));
            assert_eq!(listed, if elements { recorded["count"].as_u64().unwrap() } else { 0 }, "{}: {recorded}", dump.name);
            kinds.insert(text(&found, "kind").to_string());
            right += 1;
        }
    }
    let all: usize = dumps.iter().map(|d| recorded(d).len()).sum();
    println!("{right} of {all} collections counted, of {} kinds", kinds.len());
    assert!(right == all && (dumps.is_empty() || kinds.len() >= 24), "{kinds:?}");
    Ok(())
}

/// The elements with which the programs fill their collections are in `Colls.cs` of the lab.
#[test]
fn contents_are_those_of_the_program() -> Tested {
    let mut compared = 0;
    for dump in &dumps()? {
        for recorded in recorded(dump) {
            let found = collection(dump, recorded, "1000");
            let of = |item: &Value, part: &str| text(&item[part], "text").trim_matches('"').to_string();
            let items: Vec<(String, String)> = found["items"].as_array().unwrap().iter().map(|i| (of(i, "key"), of(i, "value"))).collect();
            let pairs: BTreeMap<&String, &String> = items.iter().map(|(k, v)| (k, v)).collect();
            let prefix = match text(recorded, "name") {
                "Dictionary<string,int>" => "k",
                "ConcurrentDictionary<string,int>" => "c",
                "SortedDictionary<int,string>" | "SortedList<int,string>" | "ImmutableDictionary<int,string>" => {
                    // Keys are numbers, and each value ends with its key.
                    assert_eq!(pairs.len(), items.len(), "{recorded}");
                    assert!(items.iter().all(|(k, v)| v.ends_with(k.as_str()) && k.parse::<i32>().is_ok()), "{recorded}: {items:?}");
                    compared += 1;
                    continue;
                }
                "Stack<string>" => {
                    let expected: Vec<String> = (0..items.len()).rev().map(|i| format!("s{i}")).collect();
                    assert_eq!(items.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>(), expected, "{recorded}");
                    compared += 1;
                    continue;
                }
                "SortedSet<int>" | "LinkedList<int>" | "List<long>" | "Queue<int>" | "ConcurrentQueue<int>" => {
                    let numbers: Vec<i64> = items.iter().map(|(_, v)| v.parse().unwrap()).collect();
                    assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{recorded}: {numbers:?}");
                    compared += 1;
                    continue;
                }
                _ => continue,
            };
            // Every third key up to 90 was removed from one of them, `c7` from the other.
            let removed = |n: u32| if prefix == "k" { n.is_multiple_of(3) && n < 90 } else { n == 7 };
            let kept = (0..if prefix == "k" { 100 } else { 200 }).filter(|n| !removed(*n)).map(|n| format!("{prefix}{n}"));
            assert_eq!(kept.collect::<BTreeSet<_>>(), pairs.keys().map(ToString::to_string).collect(), "{recorded}");
            assert_eq!(pairs.len(), items.len(), "{recorded}");
            assert!(items.iter().all(|(k, v)| *k == format!("{prefix}{v}")), "{recorded}: {items:?}");
            compared += 1;
        }
    }
    println!("contents of {compared} collections compared");
    Ok(())
}

#[test]
fn tables_list_elements() -> Tested {
    for dump in &dumps()? {
        let all = recorded(dump);
        let dictionary = all.iter().find(|c| c["name"] == "Dictionary<string,int>").unwrap();
        let shown = run(&["object", "--items", "2", "--no-local-files", text(dictionary, "address"), dump.path.to_str().unwrap()]);
        for expected in ["Count         70", "Capacity      197", "\"k1\"  1", "Showing 2 of 70 elements"] {
            assert!(shown.out.contains(expected), "{expected} is not in\n{}", shown.out);
        }
    }
    Ok(())
}

/// Returns the last steps of the paths to `object`: type of the holder and key.
fn last_keys(dump: &Known, object: &str) -> Vec<(String, Option<String>)> {
    let (exit, answer) = ask(&dump.path, &["path", "--paths", "8", object]);
    assert_eq!(exit, Exit::Ok, "{}: {answer}", dump.name);
    let paths = answer["data"]["paths"].as_array().unwrap().iter();
    let last = |path: &Value| {
        let steps = path["steps"].as_array().unwrap();
        let holder = steps.len().checked_sub(2)?;
        Some((text(&steps[holder], "type").to_string(), steps[holder + 1]["key"].as_str().map(str::to_string)))
    };
    paths.filter_map(last).collect()
}

#[test]
fn paths_through_dictionaries_name_the_key() -> Tested {
    for dump in &dumps()? {
        let mut named = BTreeMap::new();
        for recorded in recorded(dump) {
            let (name, holder) = (text(recorded, "name"), ["+Entry", "+Bucket", "+Node", "SortedInt32KeyNode", "System.String[]"]);
            let numbered = ["SortedDictionary<int,string>", "SortedList<int,string>", "ImmutableDictionary<int,string>"];
            if !["Dictionary<Key2,object>", "Hashtable"].contains(&name) && !numbered.contains(&name) {
                continue;
            }
            for item in collection(dump, recorded, "3")["items"].as_array().unwrap() {
                let (key, value) = (&item["key"], text(&item["value"], "object"));
                let expected = match name {
                    // A boxed number.
                    "Hashtable" => {
                        let (_, boxed) = ask(&dump.path, &["object", text(key, "object")]);
                        text(&boxed["data"]["boxed"], "text").to_string()
                    }
                    _ if numbered.contains(&name) => text(key, "text").to_string(),
                    _ => text(key, "type").to_string(),
                };
                let keys = last_keys(dump, value);
                let of: Vec<_> = keys.iter().filter(|(of, _)| holder.iter().any(|h| of.contains(h))).collect();
                assert!(
                    !of.is_empty() && of.iter().all(|(_, key)| key.as_deref() == Some(&expected)),
                    "{}: {expected}: {keys:?}",
                    dump.name
                );
                *named.entry(name).or_insert(0) += 1;
            }
        }
        assert_eq!(named.len(), 5, "{}: {named:?}", dump.name);
        // A string is quoted, and in brackets for people.
        let (_, answer) = ask(&dump.path, &["objects", "--type", "System.Collections.Generic.Dictionary<System.String, System.Object>"]);
        let all = answer["data"]["objects"].as_array().unwrap();
        let items = all.iter().flat_map(|o| {
            let (_, answer) = ask(&dump.path, &["object", text(o, "address")]);
            answer["data"]["collection"]["items"].as_array().cloned().unwrap_or_default()
        });
        let with_text: Vec<Value> = items.filter(|i| i["key"]["kind"] == "string" && i["value"]["object"].is_string()).take(3).collect();
        assert!(!with_text.is_empty(), "{}", dump.name);
        for item in with_text {
            let (key, value) = (text(&item["key"], "text"), text(&item["value"], "object"));
            assert!(last_keys(dump, value).iter().any(|(_, k)| k.as_deref() == Some(key)), "{}: {key}", dump.name);
            let shown = run(&["path", "--paths", "8", "--no-local-files", value, dump.path.to_str().unwrap()]);
            assert!(shown.out.contains(&format!("-> [{key}] {value} ")), "{key} is not in\n{}", shown.out);
        }
    }
    Ok(())
}

/// Every dictionary of the program has a marker with the key `k3`, which names the dictionary.
#[test]
fn paths_name_the_keys_of_every_dictionary() {
    for (runtime, kinds) in [("net8", 13), ("net10", 14)] {
        let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{runtime}-wks-keys-heap.dmp.zst"));
        let (_, answer) = ask(&dump, &["objects", "--type", "Extra.Marker"]);
        let markers = answer["data"]["objects"].as_array().unwrap();
        assert_eq!(markers.len(), kinds, "{runtime}");
        for marker in sample(markers, 3) {
            let (_, answer) = ask(&dump, &["path", text(marker, "address")]);
            let steps = answer["data"]["paths"][0]["steps"].as_array().unwrap();
            assert_eq!(steps.last().unwrap()["key"], "\"k3\"", "{runtime}: {steps:?}");
        }
    }
}

/// A reference to a `Type` names the type, which is the only part of its object that people recognize.
#[test]
fn types_are_shown_by_name() {
    for runtime in ["net8", "net10"] {
        let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{runtime}-wks-keys-heap.dmp.zst"));
        let (_, answer) = ask(&dump, &["objects", "--type", "System.Reflection.RuntimeParameterInfo"]);
        let class_of = |parameter: &Value| {
            let (_, answer) = ask(&dump, &["object", text(parameter, "address")]);
            let fields = answer["data"]["fields"].as_array().unwrap();
            fields.iter().find(|f| f["name"] == "ClassImpl" && f["object"].is_string()).cloned()
        };
        let class = &answer["data"]["objects"].as_array().unwrap().iter().find_map(class_of).unwrap();
        assert!(text(class, "text").contains(" System.RuntimeType typeof("), "{runtime}: {class}");
    }
}

/// The corpus dump of collections without the range that `hole` returns for the first object of a type. Returns the object, whose contents were
/// read before.
fn without_a_part(type_name: &str, hole: impl Fn(&Dump, Addr) -> AddrRange) -> (Dump, Addr) {
    const NAME: &str = "net10-wks-colls-heap";
    let (_, answer) = ask(&crate::corpus::dump(NAME), &["objects", "--type", type_name]);
    let bytes = bytes_of(NAME).unwrap();
    let read = || dump::open_bytes(Bytes::Owned(bytes.clone()), NAME.as_ref(), &dump::OpenOptions::default()).unwrap();
    let whole = Dump::of(read(), &OpenOptions::default());
    let heap = whole.runtime().unwrap().heap().unwrap();
    let is_read = |at: &Addr| heap.object(*at).unwrap().collection().is_ok();
    let objects = answer["data"]["objects"].as_array().unwrap().iter().map(|o| {
        let digits = text(o, "address").strip_prefix("0x").unwrap();
        Addr(u64::from_str_radix(digits, 16).unwrap())
    });
    let object = objects.into_iter().find(is_read).unwrap();
    let mut less = read();
    less.remove(hole(&whole, object));
    (Dump::of(less, &OpenOptions::default()), object)
}

/// Absent parts are neither null nor zero.
#[test]
fn absent_parts_are_not_empty_ones() {
    // The first field of a list is the array of its elements.
    let of_array = |dump: &Dump, list: Addr| {
        let array = dump.memory().ptr(list.plus(8)).unwrap();
        AddrRange::of(array, 24)
    };
    let (dump, list) = without_a_part("System.Collections.Generic.List<System.String>", of_array);
    let heap = dump.runtime().unwrap().heap().unwrap();
    let found = heap.object(list).unwrap().collection().unwrap();
    assert!(found.count() > 0 && found.capacity().is_none(), "{found:?}");
    assert!(found.items().is_err());
    // The first field of a `Lazy` is its state, which is null once the value exists.
    let (dump, lazy) = without_a_part("System.Lazy<System.String>", |_, lazy| AddrRange::new(lazy.plus(8), lazy.plus(16)));
    let heap = dump.runtime().unwrap().heap().unwrap();
    assert!(heap.object(lazy).unwrap().collection().is_err());
}
