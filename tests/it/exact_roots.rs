//! Exact roots come before words of stacks, `--stacks` selects roots, and `whatif` removes them: on the dumps of the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{ask, cases, run, sample};
use gcdump::analysis::PathModel;
use gcdump::analysis::{
    BridgeQuery, CollectQuery, PathsQuery, RetainedQuery, RetainedRows, RootsQuery, RootsRows, UnreachableQuery, WhatifQuery, bridge,
    collect, objsize, paths, retained, roots, unreachable, whatif,
};
use gcdump::cli::Exit;
use gcdump::model::{CoverageKind, RootKind, RootModel, Stacks};
use gcdump::{Addr, Heap};

const DUMPS: [&str; 7] = [
    "net8-wks-basics-heap",
    "net9-wks-roots-heap",
    "net10-wks-leak-heap.after",
    "net10-svr-roots-heap",
    "net10-seg-basics-heap",
    "net11shape-wks-threads-heap",
    "win-net10-wks-roots-full",
];

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"))
}

fn heap(name: &str) -> Heap {
    gcdump::open(path_of(name)).unwrap().runtime().unwrap().heap().unwrap()
}

/// The roots that `roots` lists by default.
pub fn all_roots(heap: &Heap) -> Vec<RootModel> {
    listed(heap, &RootsQuery::default())
}

/// The roots of an answer to a query without `stat`.
pub fn listed(heap: &Heap, query: &RootsQuery) -> Vec<RootModel> {
    let RootsRows::Roots { roots } = roots(heap, query).unwrap().data.rows else { panic!("{query:?}") };
    roots
}

fn paths_to(heap: &Heap, object: Addr, stacks: Stacks, most: usize) -> Vec<PathModel> {
    paths(heap, &PathsQuery { stacks, paths: most, ..PathsQuery::to(object) }).unwrap().data.paths
}

/// Whether a path starts at an exact root.
fn exact(path: &PathModel) -> bool {
    !path.roots[0].kind.is_of_stacks()
}

/// The runtime holds the static fields of collectible types by `m_slots` of the loader allocator. Only the allocator holds them.
#[test]
fn static_fields_of_collectible_types_are_held_by_the_loader_allocator() {
    let probe = path_of("net10-wks-probe-heap");
    let of_type = |kind: &str, ty: &str| {
        let (_, answer) = ask(&probe, &["roots", "--kind", kind]);
        let roots = answer["data"]["roots"].as_array().unwrap();
        roots.iter().filter(|root| root["label"].as_str().unwrap().starts_with(ty)).count()
    };
    for kind in ["static", "thread-static"] {
        assert!(of_type(kind, "Probe.Statics.") > 0, "{kind}");
        assert_eq!(["Probe.ForCollect", "Probe.GenC<"].map(|ty| of_type(kind, ty)), [0, 0], "{kind}");
    }
    for option in [&[][..], &["--thread-statics"]] {
        let (_, answer) = ask(&probe, &[&["statics", "--type", "Probe.ForCollect*", "--type", "Probe.GenC*"], option].concat());
        let statics = answer["data"]["statics"].as_array().unwrap();
        let objects: BTreeSet<&str> = statics.iter().filter_map(|field| field["object"].as_str()).collect();
        assert!(!objects.is_empty(), "{statics:?}");
        for object in objects {
            let (_, path) = ask(&probe, &["path", "--paths", "50", object]);
            let paths = path["data"]["paths"].as_array().unwrap();
            assert!(!paths.is_empty(), "{object}");
            let of_allocator = |path: &serde_json::Value| {
                path["steps"].as_array().unwrap().iter().any(|step| step["type"] == "System.Reflection.LoaderAllocator")
            };
            assert!(paths.iter().any(of_allocator), "{object}: {path}");
        }
    }
}

/// These copies do not have the native resolvers, so the `DynamicMethod` objects on the heap are searched.
#[test]
fn the_code_of_a_running_dynamic_method_keeps_its_resolver() {
    for name in ["net8-wks-stacks-heap", "net10-wks-stacks-heap", "net10arm64-wks-stacks-heap"] {
        let (_, answer) = ask(&path_of(name), &["roots", "--kind", "stack"]);
        assert!(!answer["warnings"].to_string().contains("DynamicMethod"), "{name}: {}", answer["warnings"]);
        let of = |method: &str| {
            let roots = answer["data"]["roots"].as_array().unwrap().iter();
            let label = format!("code of DynamicClass.{method}(");
            roots.filter(|root| root["label"].as_str().unwrap().starts_with(&label)).map(|root| root["type"].clone()).collect::<Vec<_>>()
        };
        let resolver = serde_json::json!("System.Reflection.Emit.DynamicResolver");
        assert_eq!(["dyn", "hole"].map(of), [vec![resolver.clone()], vec![resolver]], "{name}");
    }
}

#[test]
fn a_stack_word_never_comes_before_an_exact_root() {
    let (mut held, mut only_by_stacks) = (0, 0);
    for name in sample(DUMPS, 3) {
        let heap = heap(name);
        let on_stacks: BTreeSet<Addr> = all_roots(&heap).iter().filter(|r| r.kind.is_of_stacks()).map(|r| r.object).collect();
        for object in on_stacks.into_iter().take(20) {
            let without = paths_to(&heap, object, Stacks::None, 3);
            let with = paths_to(&heap, object, Stacks::Conservative, 3);
            assert!(without.iter().all(exact), "{name} {object}");
            assert_eq!(
                with[..without.len()].iter().map(|p| &p.steps).collect::<Vec<_>>(),
                without.iter().map(|p| &p.steps).collect::<Vec<_>>()
            );
            assert!(with.is_sorted_by_key(|p| (!exact(p), p.steps.len())), "{name} {object}: {with:#?}");
            // A single path is found by another search: its root is of the same quality and at the same distance.
            let one = &paths_to(&heap, object, Stacks::Conservative, 1)[0];
            assert_eq!((exact(one), one.steps.len(), one.roots[0].kind), (exact(&with[0]), with[0].steps.len(), with[0].roots[0].kind));
            if without.is_empty() { only_by_stacks += 1 } else { held += 1 }
        }
    }
    assert!(held > cases(10, 40) && only_by_stacks > cases(2, 10), "{held} held exactly, {only_by_stacks} by stacks only");
}

#[test]
fn stacks_has_the_same_meaning_in_every_command() {
    for name in sample(DUMPS, 3) {
        let heap = heap(name);
        let mut reached = Vec::new();
        for stacks in Stacks::ALL {
            let garbage = unreachable(&heap, &UnreachableQuery { stacks, ..UnreachableQuery::default() }).unwrap();
            let tree = retained(&heap, &RetainedQuery { stacks, ..RetainedQuery::default() }).unwrap();
            let full = collect(&heap, &CollectQuery { generation: 2, stacks, ..CollectQuery::default() }).unwrap();
            assert_eq!(tree.totals.reachable_objects, garbage.reached.count, "{name}");
            assert_eq!(full.survivors.count + full.untouched.count, garbage.reached.count, "{name}");
            let RetainedRows::Top { objects, .. } = &tree.rows else { panic!("{:?}", tree.rows) };
            let object = objects[0].address;
            let size = objsize(&heap, object, stacks).unwrap();
            let found = paths(&heap, &PathsQuery { stacks, ..PathsQuery::to(object) }).unwrap();
            let query = RootsQuery {
                options: gcdump::internals::session::roots::RootOptions { stacks, ..Default::default() },
                ..RootsQuery::default()
            };
            let list = roots(&heap, &query).unwrap();
            let peers = bridge(&heap, &BridgeQuery { stacks, ..BridgeQuery::default() }).unwrap();
            let other = whatif(&heap, &WhatifQuery { alive: vec![object], stacks, ..WhatifQuery::default() }).unwrap();
            let said = [tree.stacks, garbage.stacks, full.stacks, size.stacks, found.stacks, list.stacks, peers.stacks, other.stacks];
            assert_eq!(said, [stacks; 8], "{name}");
            let counted = |c: &gcdump::model::RootCoverageModel| c.kind.is_of_stacks() && c.coverage != CoverageKind::Unavailable;
            for coverage in [&tree.coverage, &garbage.coverage, &full.coverage, &size.coverage, &found.coverage, &list.coverage] {
                assert_eq!(coverage.iter().any(counted), stacks != Stacks::None, "{name}");
            }
            let RootsRows::Roots { roots } = &list.rows else { panic!("{name}") };
            assert_eq!(roots.iter().any(|r| r.kind.is_of_stacks()), stacks != Stacks::None, "{name}");
            reached.push(garbage.reached.count);
        }
        let [precise, scanned, without] = reached[..] else { panic!() };
        assert!(scanned >= precise && precise > without, "{name}: {reached:?}");
    }
}

#[test]
fn sos_switches_of_gcroot_have_their_counterparts() {
    let dump = path_of("net9-wks-roots-heap");
    let heap = heap("net9-wks-roots-heap");
    let list = all_roots(&heap);
    let object = list.iter().find(|r| r.kind == RootKind::Stack && paths_to(&heap, r.object, Stacks::None, 1).is_empty()).unwrap().object;
    let (text, file) = (object.to_string(), dump.to_str().unwrap());
    assert_eq!(run(&["gcroot", &text, file]).exit, Exit::Ok);
    let sos = run(&["gcroot", "-nostacks", &text, file]);
    assert_eq!((sos.exit, &sos.out), (Exit::Negative, &run(&["path", "--stacks", "none", &text, file]).out));
    assert_eq!(run(&["gcroot", "-all", &text, file]).out, run(&["path", "--all-roots", &text, file]).out);
    assert_eq!(run(&["roots", "--kind", "stack", "--stacks", "none", file]).exit, Exit::Usage);
}

#[test]
fn paths_do_not_depend_on_threads() {
    let dump = path_of("net10-wks-leak-heap.after");
    let heap = heap("net10-wks-leak-heap.after");
    for root in all_roots(&heap).iter().filter(|r| r.kind == RootKind::Static).take(3) {
        let asked =
            |threads: &str| ask(&dump, &["path", &root.object.to_string(), "--paths", "40", "--threads", threads]).1["data"].clone();
        assert_eq!(asked("1"), asked("4"));
    }
}

#[test]
fn objects_held_only_by_a_static_field_die_without_it() {
    let mut frees = 0;
    for name in sample(DUMPS, 3) {
        let heap = heap(name);
        let statics = all_roots(&heap).into_iter().filter(|r| matches!(r.kind, RootKind::Static | RootKind::ThreadStatic));
        let mut freed_here = 0;
        for root in statics.filter(|r| r.address.is_some()).step_by(7).take(30) {
            let query = WhatifQuery { dead: root.address.into_iter().collect(), stacks: Stacks::None, ..WhatifQuery::default() };
            let freed = whatif(&heap, &query).unwrap_or_else(|e| panic!("{name} {root:?}: {e}")).data.freed.bytes;
            let own = retained(
                &heap,
                &RetainedQuery {
                    view: gcdump::analysis::RetainedView::Object(root.object),
                    stacks: Stacks::None,
                    ..RetainedQuery::default()
                },
            );
            let RetainedRows::Object { object } = own.unwrap().data.rows else { panic!("{name} {root:?}") };
            let own = object.object.retained;
            // If another root also holds the object, it stays, with everything that it retains.
            assert!(freed == 0 || freed == own, "{name} {root:?}: {freed} freed of {own}");
            freed_here += u64::from(freed > 0);
        }
        assert!(freed_here > 5, "{name}: {freed_here} static fields free something");
        frees += freed_here;
    }
    println!("{frees} static fields are the only holder of an object");
}

#[test]
fn whatif_accepts_every_printed_address_of_a_root() {
    for name in sample(DUMPS, 3) {
        let heap = heap(name);
        let mut kinds = BTreeSet::new();
        for root in all_roots(&heap).iter().filter(|r| r.address.is_some()) {
            // A few of each kind.
            if kinds.iter().filter(|(kind, _)| *kind == root.kind).count() < 4 && kinds.insert((root.kind, root.address)) {
                let query = WhatifQuery { dead: root.address.into_iter().collect(), ..WhatifQuery::default() };
                let _ = whatif(&heap, &query).unwrap_or_else(|e| panic!("{name} {root:?}: {e}"));
            }
        }
    }
    // The leak is held by one static field.
    let heap = heap("net10-wks-leak-heap.after");
    let keep = all_roots(&heap).into_iter().find(|r| r.label == "Lab.Program.Keep").unwrap();
    let query = WhatifQuery { dead: keep.address.into_iter().collect(), stacks: Stacks::None, ..WhatifQuery::default() };
    let freed = whatif(&heap, &query).unwrap().data.freed;
    let leaked = freed.types.iter().find(|t| t.type_name == "Lab.Leaky").map(|t| t.count);
    assert!(leaked > Some(500), "{freed:?}");
    // The object of the root is not a root itself.
    let object = WhatifQuery { dead: vec![keep.object], ..WhatifQuery::default() };
    assert!(whatif(&heap, &object).unwrap_err().to_string().contains("is in an object, not a root"));
}

/// `statics` prints the address of a static structure; the structure is boxed, and its references are the roots.
#[test]
fn a_static_structure_can_be_removed() {
    let mut structures = 0;
    for name in DUMPS {
        let dump = path_of(name);
        let heap = heap(name);
        let (_, answer) = ask(&dump, &["statics"]);
        let at: BTreeSet<Addr> = all_roots(&heap).iter().filter(|r| r.kind == RootKind::Static).filter_map(|r| r.address).collect();
        for field in answer["data"]["statics"].as_array().unwrap() {
            let inside = field["fields"].as_array().into_iter().flatten().filter(|f| f["object"].is_string() && f["address"].is_string());
            let address = |v: &serde_json::Value| v["address"].as_str().map(|a| Addr(u64::from_str_radix(&a[2..], 16).unwrap()));
            if inside.filter_map(address).any(|a| at.contains(&a)) {
                let query = WhatifQuery { dead: vec![address(field).unwrap()], ..WhatifQuery::default() };
                let _ = whatif(&heap, &query).unwrap_or_else(|e| panic!("{name} {field}: {e}"));
                structures += 1;
            }
        }
    }
    assert!(structures > 0);
}
