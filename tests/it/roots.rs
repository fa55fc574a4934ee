//! Roots, finalization queues and the object index, compared with ClrMD and the programs' own records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::common::{Known, ask, known_dumps, own_unpacked, walker};
use crate::harness::{Ignored, Tested};
use gcdump::Dump;
use gcdump::internals::base::{Addr, Index, Silent};
use gcdump::internals::gc::{ObjectId, ObjectStarts};
use serde_json::Value;

fn rows(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or("")
}

/// Dumps with ClrMD answers: not kernel cores and 11-shaped dumps.
fn with_answers() -> Result<Vec<Known>, Ignored> {
    Ok(known_dumps(|row| row["clrmd"].is_string())?.0)
}

/// Small dumps contain only parts of the heap and of the runtime's structures.
fn small(dump: &Known) -> bool {
    matches!(dump.kind.as_str(), "mini" | "triage")
}

#[test]
fn finalization_queues_are_those_of_clrmd() -> Tested {
    let (mut whole, mut objects, mut due) = (0, 0, 0);
    for dump in &with_answers()? {
        let theirs = &dump.clrmd.as_ref().unwrap()["finalizer"];
        if !theirs["finalizable"].is_array() {
            continue;
        }
        let (exit, answer) = ask(&dump.path, &["finalizers", "--objects"]);
        let data = &answer["data"];
        let list = rows(&data["objects"]);
        let ours: BTreeSet<&str> = list.iter().map(|o| text(o, "object")).collect();
        // ClrMD lists ready objects among the registered ones, because its ranges are shifted by one; its list of ready ones is
        // correct.
        let mut registered: BTreeSet<&str> = rows(&theirs["finalizable"]).iter().map(|o| text(o, "address")).collect();
        let ready: BTreeSet<&str> = rows(&theirs["ready"]).iter().map(|o| text(o, "object")).collect();
        registered.extend(&ready);
        let our_ready: BTreeSet<&str> = list.iter().filter(|o| text(o, "state") != "registered").map(|o| text(o, "object")).collect();
        if small(dump) {
            // ClrMD omits objects that are not in the dump.
            assert!(registered.is_subset(&ours) && ready.is_subset(&our_ready), "{}", dump.name);
            continue;
        }
        assert_eq!(ours, registered, "{}", dump.name);
        assert_eq!(our_ready, ready, "{}", dump.name);
        assert_eq!(exit, gcdump::cli::Exit::Ok, "{}: {}", dump.name, answer["warnings"]);
        let types: BTreeMap<&str, &str> = rows(&theirs["finalizable"]).iter().map(|o| (text(o, "address"), text(o, "mt"))).collect();
        for o in list {
            assert!(types.get(text(o, "object")).is_none_or(|mt| *mt == text(o, "method_table")), "{}: {o}", dump.name);
            // No collection since: the queue generation is that of the object.
            if text(o, "state") == "registered" && dump.scenario != "busy" {
                let theirs = rows(&theirs["finalizable"]).iter().find(|t| text(t, "address") == text(o, "object"));
                let theirs = text(theirs.unwrap(), "generation").replace("Generation", "gen").replace("Large", "loh");
                // An object re-registered in its finalizer is queued in generation 0, whatever its own generation.
                let again = text(o, "generation") == "gen0" && text(o, "type") == "System.Gen2GcCallback";
                assert!(text(o, "generation") == theirs || again, "{}: {o} is in {theirs}", dump.name);
            }
        }
        sums(data, &dump.name);
        whole += 1;
        objects += list.len();
        due += our_ready.len();
    }
    println!("{whole} dumps with the queue of ClrMD: {objects} objects, {due} of them due");
    Ok(())
}

/// Checks that totals agree with the counts of heaps, types and objects.
fn sums(data: &Value, name: &str) {
    for state in ["registered", "ready", "critical"] {
        let total = data[state].as_u64().unwrap();
        let sum = |key: &str| rows(&data[key]).iter().map(|r| r[state].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("heaps"), sum("types")), (total, total), "{name} {state}");
        assert_eq!(rows(&data["objects"]).iter().filter(|o| text(o, "state") == state).count() as u64, total, "{name} {state}");
    }
    let by_generation = |h: &Value| rows(&h["generations"]).iter().map(|g| g["count"].as_u64().unwrap()).sum::<u64>();
    assert!(rows(&data["heaps"]).iter().all(|h| by_generation(h) == h["registered"].as_u64().unwrap()), "{name}");
}

#[test]
fn roots_are_those_of_clrmd() -> Tested {
    let (mut dumps, mut handles, mut more, mut finalizer, mut precise, mut in_registers) = (0, 0, 0, 0, 0, 0);
    let (mut conservative, mut small_found) = (0, 0);
    for dump in &with_answers()? {
        let theirs = &dump.clrmd.as_ref().unwrap()["roots"];
        if !theirs["roots"].is_array() {
            continue;
        }
        let (_, answer) = ask(&dump.path, &["roots", "--stacks", "conservative"]);
        let ours = rows(&answer["data"]["roots"]);
        let pair = |r: &Value| (text(r, "address").to_string(), text(r, "object").to_string());
        let of =
            |kinds: &[&str]| -> BTreeSet<(String, String)> { ours.iter().filter(|r| kinds.contains(&text(r, "kind"))).map(pair).collect() };
        let clrmd = |kinds: &[&str]| -> BTreeSet<(String, String)> {
            rows(&theirs["roots"]).iter().filter(|r| kinds.contains(&text(r, "kind"))).map(pair).collect()
        };
        // A strong handle holds an exception in flight.
        let mut kinds = vec!["strong-handle", "pinned-handle", "async-pinned-handle", "sized-ref-handle"];
        // In .NET 11 a structure on the stack holds the exception.
        kinds.extend((dump.runtime != "net11").then_some("exception"));
        let our_handles = of(&kinds);
        let conditional = of(&["ref-counted-handle"]);
        let their_handles = clrmd(&["StrongHandle", "PinnedHandle", "AsyncPinnedHandle", "SizedRefHandle", "RefCountedHandle"]);
        let missing: Vec<_> = their_handles.difference(&our_handles).filter(|h| !conditional.contains(*h)).collect();
        assert!(missing.is_empty(), "{}: handles {missing:?}", dump.name);
        let extra = our_handles.difference(&their_handles).count();
        // ClrMD misses handle tables of server GC beyond the heap count, and handles to objects missing from a small dump.
        let server = dump.gc.contains("svr") || dump.gc.contains("datas");
        assert!(extra == 0 || server || small(dump), "{}: {:?}", dump.name, our_handles.difference(&their_handles));
        (handles, more) = (handles + their_handles.len(), more + extra);
        let (our_ready, their_ready) = (of(&["finalizer-ready"]), clrmd(&["FinalizerQueue"]));
        assert!(our_ready == their_ready || small(dump), "{}", dump.name);
        finalizer += our_ready.len();
        // The conservative stack scan must include every root of ClrMD's precise one.
        let registers = of(&["register"]);
        let ours_at: BTreeMap<String, String> = of(&["stack"]).into_iter().collect();
        let objects: BTreeSet<&str> = ours_at.values().chain(registers.iter().map(|r| &r.1)).map(String::as_str).collect();
        // If a crash left a register invalid, ClrMD reports all ones as an object without method table.
        let is_object = |r: &&Value| text(r, "kind") == "Stack" && text(r, "mt") != "0x0";
        let theirs_on_stacks: Vec<&Value> = rows(&theirs["roots"]).iter().filter(is_object).collect();
        let missing: Vec<_> = theirs_on_stacks.iter().filter(|r| !objects.contains(text(r, "object"))).collect();
        if small(dump) {
            small_found += theirs_on_stacks.len() - missing.len();
            continue;
        }
        assert!(missing.is_empty(), "{}: {} of {} on stacks: {missing:#?}", dump.name, missing.len(), theirs_on_stacks.len());
        // The same stack word must point to the same object.
        let differs = theirs_on_stacks.iter().filter(|r| ours_at.get(text(r, "address")).is_some_and(|o| o != text(r, "object")));
        assert_eq!(differs.count(), 0, "{}", dump.name);
        dumps += 1;
        precise += theirs_on_stacks.len();
        in_registers += theirs_on_stacks.iter().filter(|r| !ours_at.values().any(|o| o == text(r, "object"))).count();
        conservative += ours_at.len() + registers.len();
    }
    println!(
        "{dumps} dumps: {handles} handles equal, {more} that ClrMD misses; {finalizer} in finalization queues equal; {precise} precise \
         stack roots ({in_registers} of them only in registers) are among {conservative} conservative ones; {small_found} found in small dumps"
    );
    Ok(())
}

#[test]
fn recorded_roots_are_found() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "roots")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let noted = |key: &str| text(truth, key).to_string();
        let (_, answer) = ask(&dump.path, &["roots"]);
        let roots = rows(&answer["data"]["roots"]);
        let handle = roots.iter().find(|r| text(r, "address") == noted("handle")).unwrap();
        assert_eq!(text(handle, "kind"), "strong-handle", "{}", dump.name);
        // `handle` is the handle that holds an object that holds `via_handle`.
        let on_stack = |o: &str| roots.iter().any(|r| text(r, "kind") == "stack" && text(r, "object") == o);
        assert!(on_stack(&noted("stack")), "{}", dump.name);
        let dependents = rows(&answer["data"]["dependents"]);
        let dependent = dependents.iter().find(|d| text(d, "secondary") == noted("dependent")).unwrap();
        assert!(text(dependent, "secondary_type").starts_with("Lab."), "{}: {dependent}", dump.name);
        // `handles` shows both sides as well.
        let (_, handles) = ask(&dump.path, &["handles", "--type", "dependent"]);
        let row = rows(&handles["data"]["handles"]).iter().find(|h| text(h, "secondary") == noted("dependent")).unwrap();
        assert_eq!(row["secondary_type"], dependent["secondary_type"]);
        assert_eq!(row["object"], dependent["primary"]);
    }
    println!("{} dumps", dumps.len());
    Ok(())
}

#[test]
fn recorded_finalizers_are_found() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "finalizers")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let (_, answer) = ask(&dump.path, &["finalizers", "--type", "Lab.Finalizable"]);
        let data = &answer["data"];
        assert_eq!(data["registered"], truth["finalizable_live"], "{}", dump.name);
        // The finalizer thread has dequeued one object, which is on its stack.
        let dead = truth["finalizable_dead"].as_u64().unwrap();
        assert_eq!(data["ready"].as_u64().unwrap() + 1, dead, "{}", dump.name);
        let thread = &data["thread"]["managed_id"];
        let (_, roots) = ask(&dump.path, &["roots", "--kind", "stack", "--type", "Lab.Finalizable"]);
        assert!(rows(&roots["data"]["roots"]).iter().any(|r| r["thread"] == *thread), "{}", dump.name);
        let (_, threads) = ask(&dump.path, &["threads"]);
        let finalizer = rows(&threads["data"]["threads"]).iter().find(|t| t["finalizer"] == true).unwrap();
        assert_eq!((&finalizer["managed_id"], &finalizer["os_id"]), (thread, &data["thread"]["os_id"]));
    }
    println!("{} dumps", dumps.len());
    Ok(())
}

#[test]
fn exceptions_in_flight_are_labeled() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "crash")?;
    let mut found = 0;
    for dump in &dumps {
        let (_, threads) = ask(&dump.path, &["threads"]);
        let in_flight: BTreeSet<&str> = rows(&threads["data"]["threads"])
            .iter()
            .filter(|t| t["exception"]["current"] == true)
            .map(|t| text(&t["exception"], "address"))
            .collect();
        let (_, answer) = ask(&dump.path, &["roots", "--kind", "exception"]);
        let roots = rows(&answer["data"]["roots"]);
        for object in in_flight {
            let root = roots.iter().find(|r| text(r, "object") == object).unwrap_or_else(|| panic!("{}: {object}", dump.name));
            assert!(text(root, "label").starts_with("exception in flight on thread "), "{root}");
            found += 1;
        }
    }
    println!("{} dumps, {found} exceptions in flight", dumps.len());
    Ok(())
}

#[test]
fn grouped_handles_are_all_handles() {
    let dump = own_unpacked();
    let (_, all) = ask(&dump, &["handles"]);
    let total = all["data"]["total"].as_u64().unwrap();
    for by in ["type", "object-type", "generation"] {
        let (_, answer) = ask(&dump, &["handles", "--by", by]);
        let data = &answer["data"];
        assert_eq!((&data["by"], &data["handles"]), (&by.into(), &Value::Null));
        assert_eq!(rows(&data["groups"]).iter().map(|g| g["count"].as_u64().unwrap()).sum::<u64>(), total, "{by}");
        assert!(rows(&data["groups"]).iter().all(|g| g["key"].is_string()), "{by}: {data}");
    }
}

#[test]
fn kinds_and_types_filter_roots() {
    let dump = own_unpacked();
    let (_, all) = ask(&dump, &["roots"]);
    let all = &all["data"];
    assert!(rows(&all["roots"]).iter().all(|r| text(r, "kind") != "weak-handle"));
    let mut total = 0;
    for kind in rows(&all["coverage"]) {
        let (_, answer) = ask(&dump, &["roots", "--kind", text(kind, "kind")]);
        let data = &answer["data"];
        assert_eq!(rows(&data["coverage"]), std::slice::from_ref(kind));
        let same: Vec<&Value> = rows(&all["roots"]).iter().filter(|r| r["kind"] == kind["kind"]).collect();
        assert_eq!(rows(&data["roots"]).iter().collect::<Vec<_>>(), same, "{kind}");
        total += same.len();
    }
    assert_eq!(total as u64, all["total"].as_u64().unwrap());
    assert_eq!(rows(&all["counts"]).iter().map(|c| c["count"].as_u64().unwrap()).sum::<u64>(), total as u64);
    let (_, weak) = ask(&dump, &["roots", "--weak", "--kind", "weak"]);
    assert!(rows(&weak["data"]["roots"]).iter().all(|r| r["flags"] == serde_json::json!(["weak"])));
    assert!(weak["data"]["total"].as_u64().unwrap() > 0);
    let (_, strings) = ask(&dump, &["roots", "--type", "System.String"]);
    let same = rows(&all["roots"]).iter().filter(|r| text(r, "type") == "System.String").count();
    assert_eq!(rows(&strings["data"]["roots"]).len(), same);
    let (_, stat) = ask(&dump, &["roots", "--stat"]);
    assert_eq!(rows(&stat["data"]["types"]).iter().map(|t| t["count"].as_u64().unwrap()).sum::<u64>(), total as u64);
    let (exit, none) = ask(&dump, &["roots", "--type", "No.Such.Type"]);
    assert_eq!((exit, none["data"]["total"].as_u64()), (gcdump::cli::Exit::Negative, Some(0)));
}

/// Checks that the index agrees with a walk for every object, every interior word, and all other addresses.
fn index_is_exact(path: &std::path::Path) -> u32 {
    let process = Dump::open(path, &gcdump::OpenOptions::default()).unwrap();
    let runtime = process.runtime().unwrap();
    let heap = walker(&runtime);
    let build = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ObjectStarts::build(&heap, &Silent).0.data)
    };
    let index = build(2);
    let mut ids = 0u32;
    heap.visit(
        &Silent,
        |_, _| true,
        |o| {
            let word = process.memory().ptr_bytes();
            let first = o.address.plus(word);
            if o.ty.is_free {
                assert_eq!((index.id_of(o.address), index.containing(&heap, o.address)), (None, None), "{}", o.address);
                assert_eq!(index.containing(&heap, first), None, "{}", o.address);
            } else {
                let id = ObjectId::from_u32(ids);
                assert_eq!(index.id_of(o.address), Some(id), "{}", o.address);
                assert_eq!(index.address_of(id), Some(o.address));
                let last = Addr(o.address.0 + o.size.next_multiple_of(word) - 1);
                for inside in [o.address, Addr(o.address.0 + 1), first, Addr(o.address.0 + o.size / 2), last] {
                    assert_eq!(index.containing(&heap, inside), Some((id, o.address)), "{inside}");
                }
                assert_eq!(index.id_of(first), None);
                let (kind, size) = heap.object(o.address).unwrap();
                assert_eq!((kind.method_table, size), (o.ty.method_table, o.size.max(3 * word)));
                ids += 1;
            }
            ControlFlow::Continue(())
        },
    );
    assert_eq!((index.len(), index.address_of(ObjectId::from_u32(ids))), (ids, None));
    for s in heap.segments() {
        assert_eq!(index.containing(&heap, s.allocated).filter(|(_, o)| *o < s.allocated && *o >= s.start), None);
    }
    assert_eq!((index.containing(&heap, Addr(0)), index.containing(&heap, Addr(u64::MAX))), (None, None));
    for threads in [1, 5] {
        let other = build(threads);
        assert_eq!(format!("{other:?}"), format!("{index:?}"), "{threads} threads");
    }
    ids
}

#[test]
fn the_index_of_objects_is_exact() {
    println!("own dump: {} objects", index_is_exact(&own_unpacked()));
    let wanted = [
        "net10-svr-basics-heap",
        "net10-seg-fragmented-heap",
        "net10-wks-fragmented-heap",
        "net10-wks-basics-mini",
        "net9-segsvr-basics-heap",
        "net8-wks-oom-heap",
        "win-net10-wks-basics-heap",
        "net11shape-svr-handles-heap",
    ];
    for dump in known_dumps(|row| row["name"].as_str().is_some_and(|n| wanted.contains(&n))).unwrap_or_default().0 {
        println!("{}: {} objects", dump.name, index_is_exact(&dump.path));
    }
}

/// References in a static structure are separate roots, named by the field of the structure. `statics` reads the structure with its fields.
#[test]
fn references_in_static_structures_are_roots_with_the_fields_of_the_structure() {
    let mut inner = 0;
    for name in ["net10-wks-colls-heap", "net10-wks-http-heap", "net8-wks-colls-heap"] {
        let path = crate::corpus::dump(name);
        let (_, roots) = ask(&path, &["roots", "--kind", "static"]);
        let by_label: BTreeMap<&str, &Value> = rows(&roots["data"]["roots"]).iter().map(|r| (text(r, "label"), r)).collect();
        let (_, statics) = ask(&path, &["statics"]);
        let structures = rows(&statics["data"]["statics"]).iter().filter(|s| text(s, "kind") == "struct" && text(s, "storage") == "static");
        for structure in structures {
            let owner = format!("{}.{}", text(structure, "declaring_type"), text(structure, "name"));
            for field in rows(&structure["fields"]).iter().filter(|f| text(f, "kind") == "object") {
                let label = format!("{owner}.{}", text(field, "name"));
                let root = by_label.get(label.as_str()).unwrap_or_else(|| panic!("{name}: no root {label}"));
                assert_eq!((&root["address"], &root["object"]), (&field["address"], &field["object"]), "{name}: {label}");
                inner += 1;
            }
            // The structure itself is in a box, which is not a root.
            assert!(!by_label.contains_key(owner.as_str()), "{name}: {owner}");
        }
    }
    assert!(inner >= 5, "{inner}");
}
