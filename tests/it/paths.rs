//! `path`: how many roots reach an object, each root once, long chains folded. On the dumps of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{ask, cases, run};
use crate::exact_roots::all_roots;
use gcdump::Heap;
use gcdump::analysis::{PathStep, PathsReport};
use gcdump::analysis::{PathsQuery, paths};
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use gcdump::model::{RootKind, RootModel};
use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"))
}

/// The dump of the README has a list of 1,000 nodes.
fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/net10-wks-basics-heap.dmp.zst")
}

fn address(v: &Value) -> Addr {
    Addr(u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap())
}

/// References between objects, reversed: the source, and the address of the reference.
struct Referrers(BTreeMap<Addr, Vec<(Addr, Option<Addr>)>>);

impl Referrers {
    /// References that `objects --refs` lists, and dependent handles.
    fn of(dump: &Path) -> Referrers {
        let mut back: BTreeMap<Addr, Vec<(Addr, Option<Addr>)>> = BTreeMap::new();
        let (_, answer) = ask(dump, &["objects", "--refs", "--count", "0"]);
        for object in answer["data"]["objects"].as_array().unwrap() {
            let from = address(&object["address"]);
            for reference in object["refs"].as_array().unwrap() {
                let at = Addr(from.0 + reference["offset"].as_u64().unwrap());
                back.entry(address(&reference["to"])).or_default().push((from, Some(at)));
            }
        }
        let (_, answer) = ask(dump, &["roots"]);
        for pair in answer["data"]["dependents"].as_array().unwrap() {
            back.entry(address(&pair["secondary"])).or_default().push((address(&pair["primary"]), None));
        }
        Referrers(back)
    }

    /// Returns all objects that reach `target` without a reference stored in one of `statics`.
    fn reach(&self, target: Addr, statics: &BTreeSet<Addr>) -> BTreeSet<Addr> {
        let mut seen = BTreeSet::from([target]);
        let mut waiting = vec![target];
        while let Some(to) = waiting.pop() {
            for (from, at) in self.0.get(&to).into_iter().flatten() {
                if !at.is_some_and(|at| statics.contains(&at)) && seen.insert(*from) {
                    waiting.push(*from);
                }
            }
        }
        seen
    }
}

/// Identity of a root.
fn key(root: &RootModel) -> (RootKind, Option<Addr>, Addr, String) {
    (root.kind, root.address, root.object, root.label.clone())
}

#[test]
fn the_number_of_roots_is_the_number_that_reach_the_object() {
    let (mut asked, mut several) = (0, 0);
    for name in [
        "net8-wks-basics-heap",
        "net8-svr-handles-heap",
        "net8-segsvr-basics-heap",
        "net9-wks-roots-heap",
        "net9-svr-handles-heap",
        "net10-wks-leak-heap.after",
        "net10-svr-roots-heap",
        "net10-svr-handles-heap",
        "net10-wks-suspects-heap",
        "net10-wks-finalizers-heap",
        "net10-wks-threads-heap",
        "net11shape-wks-threads-heap",
        "win-net10-wks-roots-full",
        "win-net8-wks-handles-full",
    ]
    .iter()
    .filter(|name| corpus(name).is_file())
    .step_by(cases(5, 1))
    {
        let path = corpus(name);
        let heap: Heap = gcdump::open(&path).unwrap().runtime().unwrap().heap().unwrap();
        let all = all_roots(&heap);
        let is_static = |r: &&RootModel| matches!(r.kind, RootKind::Static | RootKind::ThreadStatic);
        let statics: BTreeSet<Addr> = all.iter().filter(is_static).filter_map(|r| r.address).collect();
        let referrers = Referrers::of(&path);
        // Objects from all over the heap, the most referenced ones, and rooted ones.
        let mut referenced: Vec<(&Addr, usize)> = referrers.0.iter().map(|(to, from)| (to, from.len())).collect();
        let spread = referenced.iter().step_by(referenced.len() / cases(10, 30) + 1).map(|(to, _)| **to).collect::<Vec<_>>();
        referenced.sort_by_key(|(to, n)| (std::cmp::Reverse(*n), **to));
        let most = referenced.iter().take(cases(4, 10)).map(|(to, _)| **to);
        let rooted = all.iter().map(|r| r.object).step_by(all.len() / cases(4, 10) + 1);
        for target in spread.iter().copied().chain(most).chain(rooted) {
            // An address that is not an object of the heap has no path.
            let Ok(found) = paths(&heap, &PathsQuery { paths: 10_000, ..PathsQuery::to(target) }) else { continue };
            let found = found.data;
            let reach = referrers.reach(target, &statics);
            let expected: Vec<_> = all.iter().filter(|r| reach.contains(&r.object)).collect();
            let case = format!("{name} {target}");
            assert_eq!(found.roots, expected.len() as u64, "{case}: {:#?}", found.paths.iter().map(|p| &p.roots).collect::<Vec<_>>());
            assert_eq!(found.reachable, u64::from(!expected.is_empty()), "{case}");
            // With all paths, each root is shown once.
            assert_eq!(found.paths.iter().map(|p| p.root_count).sum::<u64>(), found.roots, "{case}");
            if found.paths.iter().all(|p| p.root_count == p.roots.len() as u64) {
                let mut shown: Vec<_> = found.paths.iter().flat_map(|p| p.roots.iter().map(key)).collect();
                let mut wanted: Vec<_> = expected.iter().map(|r| key(r)).collect();
                shown.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
                wanted.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
                assert_eq!(shown, wanted, "{case}");
            }
            // With fewer paths requested, the number of roots and the first path are the same.
            let one = paths(&heap, &PathsQuery { paths: 1, ..PathsQuery::to(target) }).unwrap().data;
            assert_eq!((one.roots, one.reachable), (found.roots, found.reachable), "{case}");
            assert_eq!(one.paths.first().map(|p| &p.steps), found.paths.first().map(|p| &p.steps), "{case}");
            asked += 1;
            several += usize::from(found.roots > 1);
        }
    }
    assert!(asked > cases(20, 400) && several > cases(3, 60), "{asked} objects, {several} with several roots");
}

#[test]
fn the_array_with_the_static_fields_is_not_another_root() {
    for name in
        ["net8-wks-basics-heap", "net9-wks-basics-heap", "net10-wks-suspects-heap", "net10-svr-handles-heap", "win-net10-wks-roots-full"]
    {
        let heap: Heap = gcdump::open(corpus(name)).unwrap().runtime().unwrap().heap().unwrap();
        let all = all_roots(&heap);
        let statics: Vec<&RootModel> = all.iter().filter(|r| r.kind == RootKind::Static).collect();
        assert!(!statics.is_empty(), "{name}");
        for field in &statics {
            let Ok(found) = paths(&heap, &PathsQuery { paths: 10_000, ..PathsQuery::to(field.object) }) else { continue };
            for path in &found.data.paths {
                // A step from an array to the value of a static field: a slot without a name, or another reference to the value.
                let through = path.steps.windows(2).any(|two| {
                    let end = two[0].address.0 + two[0].size;
                    let fields = statics
                        .iter()
                        .filter(|s| s.object == two[1].address && s.address.is_some_and(|at| at >= two[0].address && at.0 < end));
                    fields.count() == 1 && two[1].field.as_deref() == Some(&format!("[{}]", slot(field, &two[0])))
                });
                assert!(!through, "{name}: {}: {path:#?}", field.label);
            }
        }
    }
}

/// Index of the element of `array` that is a static field.
fn slot(field: &RootModel, array: &PathStep) -> u64 {
    field.address.map_or(u64::MAX, |at| at.0.wrapping_sub(array.address.0 + 16) / 8)
}

#[test]
fn the_answer_says_how_many_more_roots_there_are() {
    let dump = corpus("net10-wks-suspects-heap");
    let file = dump.to_str().unwrap();
    let heap: Heap = gcdump::open(&dump).unwrap().runtime().unwrap().heap().unwrap();
    let all = all_roots(&heap);
    let (mut cut, mut single) = (0, 0);
    for object in all.iter().map(|r| r.object).collect::<BTreeSet<_>>().into_iter().take(60).step_by(cases(6, 1)) {
        let at = object.to_string();
        let count = |n: &str| ask(&dump, &["path", &at, "--paths", n]).1["data"]["roots"].as_u64();
        let Ok(found) = paths(&heap, &PathsQuery::to(object)) else { continue };
        let PathsReport { roots: total, paths: shown, .. } = found.data;
        let shown: u64 = shown.iter().take(1).map(|p| p.root_count).sum();
        let ran = run(&["path", &at, "--paths", "1", file]);
        if total == 1 {
            assert!(ran.out.contains(&format!("1 root reaches {at}")), "{}", ran.out);
            single += 1;
        } else if total > shown {
            assert!(ran.out.contains(&format!("{shown} of {total} roots that reach {at}")), "{}", ran.out);
            assert_eq!((count("1"), count("3")), (Some(total), Some(total)));
            cut += 1;
        } else {
            assert!(ran.out.contains(&format!("{total} roots reach {at}")) && ran.out.contains("all shown"), "{}", ran.out);
        }
    }
    assert!(cut > 0 && single > 0, "{cut} cut, {single} single");
}

/// Returns the nodes of the list, in its order from the root.
fn list() -> Vec<Value> {
    let (_, answer) = ask(&own(), &["objects", "--type", "Lab.Node", "--count", "0"]);
    let nodes = answer["data"]["objects"].as_array().unwrap();
    let last = |node: &&Value| {
        let (_, found) = ask(&own(), &["path", node["address"].as_str().unwrap(), "--full"]);
        found["data"]["paths"][0]["steps"].as_array().unwrap().len() > 1000
    };
    let last = nodes.iter().find(last).unwrap();
    let (_, found) = ask(&own(), &["path", last["address"].as_str().unwrap(), "--full"]);
    found["data"]["paths"][0]["steps"].as_array().unwrap().clone()
}

#[test]
fn a_linked_list_is_folded_in_every_format_and_full_shows_all() {
    let dump = own();
    let file = dump.to_str().unwrap();
    let full = list();
    let nodes: Vec<&Value> = full.iter().filter(|step| step["type"] == "Lab.Node").collect();
    assert_eq!(nodes.len(), 1000);
    assert!(full.iter().all(|step| step["fold"].is_null()));
    let at = nodes[999]["address"].as_str().unwrap();

    let (exit, answer) = ask(&dump, &["path", at]);
    let steps = answer["data"]["paths"][0]["steps"].as_array().unwrap();
    let fold = &steps.last().unwrap()["fold"];
    assert_eq!((exit, steps.len()), (Exit::Ok, full.len() - 998));
    // The same objects: the first and the last one, their number and bytes.
    assert_eq!((&steps.last().unwrap()["address"], &fold["last"]), (&nodes[1]["address"], &nodes[999]["address"]));
    assert_eq!((fold["count"].as_u64(), fold["period"].as_u64()), (Some(999), Some(1)));
    assert_eq!(fold["bytes"].as_u64(), Some(nodes[1..].iter().map(|n| n["size"].as_u64().unwrap()).sum()));
    assert_eq!(steps[..steps.len() - 1], full[..steps.len() - 1]);

    let out = |args: &[&str]| {
        let ran = run(&[args, &[file]].concat());
        assert_eq!(ran.exit, Exit::Ok, "{args:?}: {}", ran.err);
        ran.out
    };
    for command in [&["path", at][..], &["gcroot", at], &["path", "--type", "Lab.Node"]] {
        let text = out(command);
        assert!(text.lines().count() < 25, "{command:?}: {text}");
        assert!(text.contains("-> .Next × 999 0x") && text.contains(&format!(" to {at} Lab.Node (")), "{command:?}: {text}");
        for format in ["json", "ndjson", "csv"] {
            let text = out(&[command, &["--format", format]].concat());
            assert!(text.len() < 9_000, "{command:?} {format}: {}", text.len());
        }
    }
    // Rows of CSV say how many objects they represent.
    let csv = out(&["path", at, "--format", "csv"]);
    assert!(
        csv.lines().next().unwrap().ends_with(",repeated,last") && csv.lines().last().unwrap().ends_with(&format!(",999,{at}")),
        "{csv}"
    );
    assert!(out(&["path", "--full", at]).lines().count() > 1000);
    // Merged by type, the list is one row.
    let (_, merged) = ask(&dump, &["path", "--type", "Lab.Node"]);
    let rows: Vec<&Value> = merged["data"]["tree"].as_array().unwrap().iter().filter(|row| row["name"] == "Lab.Node").collect();
    assert_eq!(
        (rows.len(), &rows[0]["fold"], rows[0]["objects"].as_u64(), rows[0]["targets"].as_u64()),
        (1, &Value::Bool(true), Some(1000), Some(1000))
    );
    let (_, levels) = ask(&dump, &["path", "--type", "Lab.Node", "--full"]);
    let levels = levels["data"]["tree"].as_array().unwrap().iter().filter(|row| row["name"] == "Lab.Node");
    assert!(levels.clone().count() > 5 && levels.clone().all(|row| row["fold"] == false));
}
