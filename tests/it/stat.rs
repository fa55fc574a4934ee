//! `stat` and the references of the walk, compared with ClrMD and the programs' own records, on every shared dump.

use crate::common;
use crate::harness::Tested;
use std::collections::BTreeMap;

use crate::common::{Known, ask, known_dumps, needs_shared};
use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::internals::base::Silent;
use gcdump::internals::gc::{GcDesc, Object, Visitor};
use serde_json::Value;

type Types = BTreeMap<String, (String, u64, u64)>;

fn types(rows: &Value, mt: &str, name: &str, bytes: &str) -> Types {
    let row = |t: &Value| {
        let text = |k: &str| t[k].as_str().unwrap_or("").to_string();
        (text(mt), (text(name), t["count"].as_u64().unwrap(), t[bytes].as_u64().unwrap()))
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

/// The two kinds of names that ClrMD gets wrong (see `tests/it/type_names.rs`): function pointers, and generic arguments in
/// reflection syntax.
fn is_wrong_in_clrmd(name: &str) -> bool {
    name.is_empty() || name.contains("[[")
}

#[test]
fn types_counts_and_bytes_are_those_of_clrmd() -> Tested {
    let (dumps, missing) = known_dumps(|row| row["clrmd"].is_string())?;
    assert!(!dumps.is_empty(), "no dump is unpacked, {missing:?} are missing");
    let (mut exact, mut more) = (0, 0);
    for dump in &dumps {
        let Some(theirs) = dump.clrmd.as_ref().map(|c| &c["stat"]).filter(|s| s["types_table"].is_array()) else { continue };
        let (_, ours) = ask(&dump.path, &["stat"]);
        let data = &ours["data"];
        sums_add_up(&dump.name, data);
        let (ours, mut theirs) =
            (types(&data["types"], "method_table", "type", "bytes"), types(&theirs["types_table"], "mt", "name", "size"));
        // ClrMD counts free blocks as a type.
        let free: u64 = theirs.values().filter(|(name, ..)| name == "Free").map(|(_, count, _)| count).sum();
        theirs.retain(|_, (name, ..)| name != "Free");
        // Mini dumps contain few heap pages: ClrMD stops at the first gap, gcdump continues after it.
        let whole = matches!(dump.kind.as_str(), "heap" | "full" | "gcore" | "kernel");
        for (mt, (name, count, bytes)) in &theirs {
            let Some((our_name, our_count, our_bytes)) = ours.get(mt) else { panic!("{}: {name} is missing", dump.name) };
            let same = if whole { (our_count, our_bytes) == (count, bytes) } else { our_count >= count && our_bytes >= bytes };
            assert!(same, "{}: {name}: {our_count} objects, {our_bytes} bytes; ClrMD has {count}, {bytes}", dump.name);
            let named = our_name == name || is_wrong_in_clrmd(name) || our_name.contains("!0x02") || name.starts_with("System.Void(");
            assert!(named || name.contains("<unknown"), "{}: {our_name} is {name} to ClrMD", dump.name);
        }
        if whole {
            assert_eq!(ours.len(), theirs.len(), "{}", dump.name);
            assert_eq!(data["totals"]["free_count"], free, "{}", dump.name);
            exact += 1;
        } else {
            more += 1;
        }
        truth(dump, &ours);
    }
    println!("{exact} dumps exact, {more} mini dumps with at least what ClrMD finds");
    Ok(())
}

/// Types add up to the walked bytes, and these to the allocated ones, for every segment and grouping.
fn sums_add_up(name: &str, data: &Value) {
    let n = |v: &Value, k: &str| v[k].as_u64().unwrap();
    let (totals, c) = (&data["totals"], &data["coverage"]);
    let rows = data["types"].as_array().unwrap();
    assert_eq!(rows.iter().map(|t| n(t, "count")).sum::<u64>(), n(totals, "count"), "{name}");
    assert_eq!(rows.iter().map(|t| n(t, "bytes")).sum::<u64>(), n(totals, "bytes"), "{name}");
    let parts = ["walked_bytes", "context_bytes", "in_allocation_bytes", "skipped_bytes", "absent_bytes"];
    assert_eq!(parts.iter().map(|k| n(c, k)).sum::<u64>(), n(c, "allocated_bytes"), "{name}");
    assert!(n(c, "walked_bytes") >= n(totals, "bytes"), "{name}");
}

fn truth(dump: &Known, ours: &Types) {
    let Some(counts) = dump.truth.as_ref().and_then(|t| t["counts"].as_object()) else { return };
    if dump.kind != "heap" && dump.kind != "full" || dump.scenario == "busy" {
        return;
    }
    for (name, count) in counts {
        let name = name.replace(',', ", ").replace(",  ", ", ");
        let found: u64 = ours.values().filter(|(n, ..)| *n == name).map(|(_, count, _)| count).sum();
        assert_eq!(Some(found), count.as_u64(), "{}: {name}", dump.name);
    }
}

#[test]
fn totals_are_the_same_for_every_grouping_and_thread_count() {
    let dump = common::own_unpacked();
    let (_, by_type) = ask(&dump, &["stat"]);
    let totals = &by_type["data"]["totals"];
    for by in ["generation", "heap", "segment", "assembly", "namespace", "size"] {
        let (_, answer) = ask(&dump, &["stat", "--by", by]);
        assert_eq!(&answer["data"]["totals"], totals, "{by}");
        let groups = answer["data"]["groups"].as_array().unwrap();
        // Free blocks belong to no assembly or namespace.
        let of_types = ["assembly", "namespace"].contains(&by);
        for key in ["count", "bytes", "free_count", "free_bytes"].into_iter().filter(|key| !of_types || !key.starts_with("free")) {
            assert_eq!(groups.iter().map(|g| g[key].as_u64().unwrap()).sum::<u64>(), totals[key].as_u64().unwrap(), "{by} {key}");
        }
    }
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| ask(&dump, &["stat"]).1["data"].clone()), by_type["data"], "{threads} threads");
    }
    // Parts add up to the whole.
    let of = |generation: &str| ask(&dump, &["stat", "--generation", generation]).1["data"]["totals"]["count"].as_u64().unwrap();
    let sum: u64 = ["gen0", "gen1", "gen2", "loh", "poh", "frozen"].into_iter().map(of).sum();
    assert_eq!(Some(sum), totals["count"].as_u64());
}

#[derive(Default)]
struct Edges {
    objects: u64,
    with_pointers: u64,
    references: u64,
    checksum: u64,
}

fn splitmix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Visitor for Edges {
    fn object(&mut self, object: &Object<'_>) {
        self.objects += 1;
        // ClrMD includes the reference of collectible objects to their loader allocator.
        self.with_pointers += u64::from(object.ty.gc_desc != GcDesc::None || object.ty.is_collectible);
        let from = object.address.0.wrapping_mul(31);
        object.references(|_, target| {
            self.references += 1;
            self.checksum = self.checksum.wrapping_add(splitmix64(from.wrapping_add(target.0)));
        });
    }
}

#[test]
fn references_are_those_of_clrmd() -> Tested {
    let (dumps, _) = known_dumps(|row| row["clrmd"].is_string() && matches!(row["kind"].as_str(), Some("heap" | "full" | "gcore")))?;
    let mut checked = 0;
    for dump in &dumps {
        let Some(walk) = dump.clrmd.as_ref().map(|c| &c["refs"]["walks"][0]).filter(|w| w.is_object()) else { continue };
        let process = Dump::open(&dump.path, &gcdump::OpenOptions::default()).unwrap();
        let runtime = process.runtime().unwrap();
        let heap = common::walker(&runtime);
        let mut sum = Edges::default();
        for part in heap.walk(&Silent, Edges::default).visitors {
            sum.objects += part.objects;
            sum.with_pointers += part.with_pointers;
            sum.references += part.references;
            sum.checksum = sum.checksum.wrapping_add(part.checksum);
        }
        let checksum = format!("{:#x}", sum.checksum);
        let ours = (sum.objects, sum.with_pointers, sum.references, checksum.as_str());
        let n = |k: &str| walk[k].as_u64().unwrap();
        let theirs = (n("objects"), n("objects_with_pointers"), n("refs"), walk["checksum"].as_str().unwrap());
        assert_eq!(ours, theirs, "{}", dump.name);
        checked += 1;
    }
    println!("{checked} dumps with equal references");
    assert!(checked > 0);
    Ok(())
}

/// Kernel cores contain no metadata: the application's folder supplies names and changes nothing else.
#[test]
fn modules_name_the_types_of_a_kernel_core_and_change_no_figure() -> Tested {
    let shared = needs_shared()?;
    let lab = common::needs_lab()?;
    let (dumps, _) = known_dumps(|row| row["kind"] == "kernel" && row["runtime"] != "net11")?;
    for dump in &dumps {
        let folders = [lab.join(&dump.runtime), shared.join("modules/net10")].map(|f| f.to_str().unwrap().to_string());
        let (_, without) = ask(&dump.path, &["stat"]);
        let (_, with) = ask(&dump.path, &["stat", "--modules", &folders[0], "--modules", &folders[1]]);
        let names = |answer: &Value| -> Vec<String> {
            answer["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap().to_string()).collect()
        };
        assert!(names(&without).iter().any(|n| n.contains("!0x02")), "{}", dump.name);
        assert!(names(&with).iter().all(|n| !n.contains("!0x02")), "{}", dump.name);
        assert!(names(&with).iter().any(|n| n == "Lab.Node"), "{}", dump.name);
        // Everything except names, and the order of rows of equal size.
        let figures = |answer: &Value| {
            let mut rows = types(&answer["data"]["types"], "method_table", "type", "bytes");
            rows.values_mut().for_each(|row| row.0.clear());
            (rows, answer["data"]["totals"].clone(), answer["data"]["coverage"].clone())
        };
        assert_eq!(figures(&without), figures(&with), "{}", dump.name);
        println!("{}: {} types named", dump.name, names(&with).len());
    }
    Ok(())
}

/// Conditions select the same objects as other options, and those that the program recorded.
#[test]
fn conditions_select_objects() {
    let dump = crate::common::own_unpacked();
    let totals = |args: &[&str]| ask(&dump, &[&["stat"], args].concat()).1["data"]["totals"].clone();
    for (condition, options) in [
        ("size >= 1K", &["--min-size", "1K"][..]),
        ("size <= 100 and size >= 30", &["--min-size", "30", "--max-size", "100"]),
        ("type = Lab.Node", &["--type", "Lab.Node"]),
        ("type ~ 'Lab.*'", &["--type", "Lab.*"]),
        ("gen = gen2 or gen = loh", &["--generation", "gen2", "--generation", "loh"]),
        ("heap = 0", &[]),
        ("not (heap = 0)", &["--heap", "77"]),
    ] {
        assert_eq!(totals(&["--where", condition]), totals(options), "{condition}");
    }
    let (_, list) = ask(&dump, &["objects", "--where", "type = Lab.Everything and field('I32') < 0", "--select", "I32,Inline.At.Y"]);
    let found = list["data"]["objects"].as_array().unwrap();
    assert!(found.iter().all(|o| o["fields"]["I32"].as_i64().unwrap() < 0), "{list}");
    let (_, all) = ask(&dump, &["objects", "--type", "Lab.Everything", "--fields", "I32"]);
    let negative = all["data"]["objects"].as_array().unwrap().iter().filter(|o| o["fields"]["I32"].as_i64() < Some(0)).count();
    assert!(negative > 0 && found.len() == negative, "{all}");
    let ran = crate::common::run(&["objects", "--where", "size > and gen = gen2", dump.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Usage);
    assert!(ran.err.contains("  size > and gen = gen2\n             ^"), "{}", ran.err);
}

#[test]
fn groups_that_are_not_listed_are_counted() {
    let dump = crate::common::own_unpacked();
    let dump = dump.to_str().unwrap();
    let all = crate::common::run(&["stat", "--by", "namespace", "--no-local-files", dump]).out;
    assert!(!all.contains("more group"), "{all}");
    let (_, answer) = ask(dump.as_ref(), &["stat", "--by", "namespace"]);
    let groups = answer["data"]["groups"].as_array().unwrap().len();
    for (top, more) in [(groups - 1, "… 1 more group (".to_string()), (1, format!("… {} more groups (", groups - 1))] {
        let cut = crate::common::run(&["stat", "--by", "namespace", "--top", &top.to_string(), "--no-local-files", dump]).out;
        assert!(cut.contains(&more), "{cut}");
    }
}

/// Types of the lab in a list, with the name of their assembly, and addresses without a method table.
#[test]
fn types_are_selected_by_lists_and_wrong_addresses_are_named() {
    let dump = common::own_unpacked();
    let count = |pattern: &str| {
        let (exit, answer) = ask(&dump, &["stat", "--type", pattern]);
        let warned: Vec<String> =
            answer["warnings"].as_array().unwrap().iter().map(|w| w["message"].as_str().unwrap().to_owned()).collect();
        (exit, answer["data"]["totals"]["count"].as_u64().unwrap(), warned)
    };
    let (dogs, nodes) = (count("Lab.Dog").1, count("Lab.Node").1);
    assert!(dogs > 0 && nodes > 0);
    assert_eq!(count("Lab.Dog,Lab.Node"), (Exit::Ok, dogs + nodes, Vec::new()));
    assert_eq!(count("Lab.Dog, lab, Version=1.0.0.0, Culture=neutral").1, dogs);
    assert_eq!(count("Lab.Dog, lab").1, dogs);
    assert_eq!(count("Lab.Dog, Nonsense"), (Exit::Ok, dogs, vec!["no type matches 'Nonsense'".to_owned()]));
    let (_, listed) = ask(&dump, &["objects", "--type", "Lab.Dog", "--top", "1"]);
    let dog = listed["data"]["objects"][0]["address"].as_str().unwrap().to_owned();
    let (exit, found, warned) = count(&dog);
    assert_eq!((exit, found), (Exit::Negative, 0));
    assert_eq!(
        warned,
        [format!("no type has the method table {dog}: an object of type Lab.Dog is there; `gcdump where {dog}` says what is there")]
    );
    let (exit, _, warned) = count("0x12345");
    assert!(exit == Exit::Negative && warned.len() == 1 && warned[0].contains("0x12345"), "{warned:?}");
}
