//! `type --methods` compared with the methods on stacks, which have code, and with the metadata.

use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{ask, known_dumps};

const SCENARIOS: [&str; 3] = ["basics", "stacks", "crash"];

#[test]
fn methods_on_stacks_are_listed_with_their_code() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"].as_str().is_some_and(|s| SCENARIOS.contains(&s)))?;
    let mut total = 0;
    for dump in &dumps {
        let (_, answer) = ask(&dump.path, &["stacks"]);
        let threads = answer["data"]["threads"].as_array().into_iter().flatten();
        let frames = threads.flat_map(|t| t["frames"].as_array().unwrap()).filter(|f| f["kind"] == "managed");
        // The kind of code of each method.
        let mut wanted: BTreeMap<&str, &Value> = BTreeMap::new();
        for frame in frames.filter(|f| f["module"] == "lab.dll" || f["module"] == "stacks.dll") {
            wanted.insert(frame["method_desc"].as_str().unwrap(), frame);
        }
        let mut seen = BTreeSet::new();
        let mut found = 0;
        for (method, frame) in &wanted {
            let (_, at) = ask(&dump.path, &["where", frame["ip"].as_str().unwrap()]);
            let name = at["data"]["code"]["method"].as_str().unwrap();
            let owner = name.split('(').next().unwrap().rsplit_once('.').unwrap().0.trim_end_matches('.');
            if !seen.insert(owner.to_string()) || owner.contains('<') {
                continue;
            }
            let (_, types) = ask(&dump.path, &["type", owner, "--methods"]);
            let Some(list) = types["data"]["layout"]["methods"].as_array() else { continue };
            let unclear = types["warnings"].as_array().unwrap().iter().any(|w| w.to_string().contains("cannot be identified"));
            assert!(!unclear, "{}: {owner} {}", dump.name, types["warnings"]);
            let slots: BTreeSet<u64> = list.iter().filter_map(|m| m["slot"].as_u64()).collect();
            let descs: BTreeSet<&str> = list.iter().map(|m| m["method_desc"].as_str().unwrap()).collect();
            assert_eq!(descs.len(), list.len(), "{}: {owner}", dump.name);
            assert!(slots.len() * 10 >= list.len() * 9, "{}: {owner}: {} slots of {} methods", dump.name, slots.len(), list.len());
            let listed = list.iter().find(|m| m["method_desc"] == *method).unwrap_or_else(|| panic!("{}: {method} of {owner}", dump.name));
            assert_eq!(listed["name"], name, "{}", dump.name);
            // A method may have been compiled again while it runs, but it has code.
            assert!(listed["code"] == "jit" || listed["code"] == frame["code"], "{}: {listed} {frame}", dump.name);
            found += 1;
        }
        println!("{:<32} {found} methods of as many types on stacks", dump.name);
        total += found;
    }
    assert!(dumps.is_empty() || total > 20, "{total}");
    Ok(())
}

/// Words of a MethodDesc that are not addresses, such as the flags of generic methods, are not losses.
#[test]
fn full_dumps_show_whether_each_method_has_code() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "basics" && row["kind"] == "full")?;
    for dump in dumps.iter().filter(|d| !d.name.contains("aot")) {
        for name in ["System.String", "System.Object", "System.Threading.Thread"] {
            let (exit, types) = ask(&dump.path, &["type", name, "--methods"]);
            let list = types["data"]["layout"]["methods"].as_array().unwrap();
            let unknown: Vec<&Value> = list.iter().filter(|m| m["code"].is_null()).map(|m| &m["name"]).collect();
            assert_eq!((unknown.len(), exit), (0, Exit::Ok), "{}: {name}: {unknown:?} {}", dump.name, types["warnings"]);
            assert!(list.iter().any(|m| m["code"] == "none") && list.iter().any(|m| m["code"] != "none"), "{}: {name}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn each_row_of_the_metadata_is_a_method() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "basics" && row["kind"] == "heap")?;
    for dump in &dumps {
        for name in ["System.String", "System.Object", "Lab.Program"] {
            let (exit, types) = ask(&dump.path, &["type", name, "--methods"]);
            let list =
                types["data"]["layout"]["methods"].as_array().unwrap_or_else(|| panic!("{}: {name} {}", dump.name, types["warnings"]));
            let tokens: BTreeSet<u64> =
                list.iter().map(|m| u64::from_str_radix(m["token"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()).collect();
            // Rows of a type are consecutive.
            let (first, last) = (tokens.first().unwrap(), tokens.last().unwrap());
            assert_eq!(tokens.len(), list.len(), "{}: {name}", dump.name);
            assert_eq!(last - first + 1, tokens.len() as u64, "{}: {name} {}", dump.name, exit.code());
            assert!(list.iter().all(|m| m["name"].as_str().unwrap().starts_with(name)), "{}: {name}", dump.name);
        }
    }
    Ok(())
}
