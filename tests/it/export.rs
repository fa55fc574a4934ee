//! Files for other tools: their contents equal the answers of `retained`, according to readers that share no code with the writers.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use serde_json::Value;

use crate::common::{ask, needs_shared, own_unpacked, run, shared, unpacked};
use crate::harness::{Tested, ignored};

/// The number of fields of a node in the file.
const FIELDS: usize = 6;

/// A heap snapshot as DevTools reads it.
struct Snapshot {
    names: Vec<String>,
    types: Vec<u64>,
    ids: Vec<u64>,
    sizes: Vec<u64>,
    retained: Vec<u64>,
    /// Kind, name and target of the edges of each node.
    edges: Vec<Vec<(u64, u64, usize)>>,
    strings: Vec<String>,
}

const OBJECT: u64 = 3;
const WEAK: u64 = 6;

impl Snapshot {
    fn read(path: &Path) -> Snapshot {
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let list = |name: &str| -> Vec<u64> { file[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect() };
        let (nodes, edges) = (list("nodes"), list("edges"));
        let strings: Vec<String> = file["strings"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().into()).collect();
        assert_eq!(file["snapshot"]["node_count"], nodes.len() / FIELDS);
        assert_eq!(file["snapshot"]["edge_count"], edges.len() / 3);
        let mut edges = edges.chunks(3).map(|e| (e[0], e[1], e[2] as usize));
        let of_nodes: Vec<Vec<_>> = nodes.chunks(FIELDS).map(|n| edges.by_ref().take(n[4] as usize).collect()).collect();
        assert!(edges.next().is_none(), "more edges than the nodes have");
        let all = of_nodes.iter().flatten();
        all.for_each(|(_, _, to)| assert!(to % FIELDS == 0 && to / FIELDS < of_nodes.len(), "an edge leads nowhere"));
        let of_nodes: Vec<Vec<_>> =
            of_nodes.into_iter().map(|list| list.into_iter().map(|(k, n, to)| (k, n, to / FIELDS)).collect()).collect();
        let field = |i: usize| nodes.chunks(FIELDS).map(move |n| n[i]);
        let mut out = Snapshot {
            names: field(1).map(|i| strings[i as usize].clone()).collect(),
            types: field(0).collect(),
            ids: field(2).collect(),
            sizes: field(3).collect(),
            retained: Vec::new(),
            edges: of_nodes,
            strings,
        };
        out.retained = out.dominated();
        out
    }

    /// Computes retained sizes from the dominators that `petgraph` finds.
    fn dominated(&self) -> Vec<u64> {
        let edges = self
            .edges
            .iter()
            .enumerate()
            .flat_map(|(from, list)| list.iter().filter(|(kind, ..)| *kind != WEAK).map(move |(_, _, to)| (from as u32, *to as u32)));
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        for _ in &self.names {
            graph.add_node(());
        }
        graph.extend_with_edges(edges);
        let dominators = simple_fast(&graph, NodeIndex::new(0));
        let above = |i: usize| dominators.immediate_dominator(NodeIndex::new(i)).map(NodeIndex::index);
        let (mut retained, mut below) = (self.sizes.clone(), vec![0u32; self.names.len()]);
        (1..self.names.len()).for_each(|i| below[above(i).unwrap_or_else(|| panic!("{} hangs on nothing", self.names[i]))] += 1);
        // Leaves come first. Recursion is not possible: a list of a million has a million ancestors.
        let mut done: Vec<usize> = (0..below.len()).filter(|i| below[*i] == 0).collect();
        while let Some(i) = done.pop() {
            let Some(up) = above(i) else { continue };
            retained[up] += retained[i];
            below[up] -= 1;
            if below[up] == 0 {
                done.push(up);
            }
        }
        assert!(below.iter().all(|n| *n == 0), "dominators in a circle");
        retained
    }

    /// Name, size and retained size of the objects, in order.
    fn objects(&self) -> Vec<(String, u64, u64)> {
        let objects = (0..self.names.len()).filter(|i| self.types[*i] == OBJECT);
        objects.map(|i| (self.names[i].clone(), self.sizes[i], self.retained[i])).collect()
    }
}

/// Name, size and retained size of the reachable objects by address.
fn retained(dump: &Path, more: &[&str]) -> BTreeMap<u64, (String, u64, u64)> {
    let (_, answer) = ask(dump, &[&["retained", "--top", "0"], more].concat());
    let row = |o: &Value| {
        let address = u64::from_str_radix(o["address"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        (address, (o["type"].as_str().unwrap().to_string(), o["size"].as_u64().unwrap(), o["retained"].as_u64().unwrap()))
    };
    answer["data"]["objects"].as_array().unwrap().iter().map(row).collect()
}

fn export(format: &str, dump: &Path, out: &Path, more: &[&str]) -> (Exit, Value) {
    ask(dump, &[&["export", format, "-o", out.to_str().unwrap(), "--force"], more].concat())
}

/// Dumps with a whole heap: that of the repository, and those shared ones that `petgraph` and node process in seconds.
pub fn dumps() -> Vec<PathBuf> {
    let names = [
        "net10-svr-roots-heap",
        "net10-wks-suspects-heap",
        "net10-wks-probe-heap",
        "net8-wks-handles-heap",
        "net10-wks-threads-full",
        "net10-seg-fragmented-heap",
        "net11shape-wks-handles-heap",
        "win-net10-wks-basics-full",
        "win-net8-wks-handles-heap",
        "aot9-wks-handles-full",
        "net10-wks-dynamic-heap",
    ];
    let more = shared().map(|_| unpacked()).into_iter().flat_map(|folder| names.map(|name| folder.join(format!("{name}.dmp"))));
    let list: Vec<PathBuf> = std::iter::once(own_unpacked()).chain(more.filter(|path| path.is_file())).collect();
    if std::env::var_os("GCDUMP_TEST_EXPORTS").is_none() {
        return list;
    }
    // Every whole heap of the corpus, and a quarter of the shared ones.
    let whole = |path: &PathBuf| {
        ["-heap", "-full", "-gcore", "-kernel"].iter().any(|kind| path.file_name().unwrap().to_str().unwrap().contains(kind))
    };
    let (known, _) = crate::common::every_dump(|_| true).unwrap_or_default();
    let known = known.into_iter().map(|d| d.path).filter(whole).step_by(4);
    list.into_iter().chain(crate::corpus::dumps().into_iter().filter(whole)).chain(known).collect()
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}

#[test]
fn devtools_and_retained_agree_on_every_object() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.heapsnapshot");
    for dump in dumps() {
        let name = dump.display();
        for stacks in ["precise", "none", "conservative"] {
            let (_, report) = export("heapsnapshot", &dump, &out, &["--stacks", stacks]);
            let snapshot = Snapshot::read(&out);
            let expected = retained(&dump, &["--stacks", stacks]);
            let devtools = |name: &str| if name.starts_with('<') { name.replace(", ", ",") } else { name.to_string() };
            let expected = sorted(expected.into_values().map(|(name, size, retained)| (devtools(&name), size, retained)));
            assert!(sorted(snapshot.objects()) == expected, "{name}, stacks {stacks}");
            assert_eq!(report["data"]["objects"]["count"], expected.len(), "{name}");
            assert_eq!(report["data"]["nodes"], snapshot.names.len(), "{name}");
        }
    }
}

#[test]
fn garbage_is_below_a_separate_node() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.heapsnapshot");
    for dump in dumps() {
        export("heapsnapshot", &dump, &out, &["--unreachable"]);
        let (with, reachable) = (Snapshot::read(&out), retained(&dump, &[]));
        let (_, stat) = ask(&dump, &["stat"]);
        let totals = &stat["data"]["totals"];
        let all = totals["bytes"].as_u64().unwrap();
        assert_eq!(with.sizes.iter().sum::<u64>(), all, "{}", dump.display());
        // Reachable objects retain the same as before.
        let mut left: HashMap<(u64, u64), u64> = HashMap::new();
        with.objects().into_iter().for_each(|(_, size, retained)| *left.entry((size, retained)).or_default() += 1);
        for (_, size, retained) in reachable.values() {
            let n = left.get_mut(&(*size, *retained)).filter(|n| **n > 0).expect("an object retains something else");
            *n -= 1;
        }
        if let Some(at) = with.names.iter().position(|n| n == "(unreachable)") {
            let garbage = all - reachable.values().map(|(_, size, _)| size).sum::<u64>();
            assert_eq!(with.retained[at], garbage, "{}", dump.display());
        }
    }
}

#[test]
fn cut_graphs_keep_retained_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.heapsnapshot");
    for dump in dumps() {
        let all = retained(&dump, &[]);
        let total: u64 = all.values().map(|(_, size, _)| size).sum();
        for least in [1000, 100] {
            let (_, report) = export("heapsnapshot", &dump, &out, &["--min-retained", &least.to_string()]);
            let snapshot = Snapshot::read(&out);
            let expected = all.values().filter(|(_, _, retained)| *retained >= least);
            let expected = sorted(expected.map(|(_, size, retained)| (*size, *retained)));
            assert_eq!(sorted(snapshot.objects().into_iter().map(|(_, s, r)| (s, r))), expected, "{} from {least}", dump.display());
            assert_eq!(snapshot.retained[0], total, "{}: sums include objects that are left out", dump.display());
            let left = report["data"]["left_out"]["count"].as_u64().unwrap();
            assert_eq!(left as usize, all.len() - expected.len(), "{}", dump.display());
        }
        // The largest object that retains others.
        let (top, (_, _, retains)) = all.iter().max_by_key(|(_, (_, size, retained))| retained - size).unwrap();
        export("heapsnapshot", &dump, &out, &["--under", &format!("{top:#x}")]);
        let snapshot = Snapshot::read(&out);
        assert!(snapshot.objects().iter().any(|(_, _, r)| r == retains), "{}", dump.display());
        assert_eq!(snapshot.retained[0], total, "{}", dump.display());
    }
}

#[test]
fn a_gcdump_file_answers_as_the_dump_does() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.gcdump");
    for dump in dumps() {
        let name = dump.display();
        for more in [&["--unreachable"][..], &["--unreachable", "--generations"]] {
            export("gcdump", &dump, &out, more);
            let types = |path: &Path| -> BTreeMap<(String, Option<String>), (u64, u64)> {
                let (exit, answer) = ask(path, &["stat"]);
                assert!(matches!(exit, Exit::Ok | Exit::Partial), "{name}");
                let mut types: BTreeMap<_, (u64, u64)> = BTreeMap::new();
                for t in answer["data"]["types"].as_array().unwrap() {
                    let key = (t["type"].as_str().unwrap().to_string(), t["module"].as_str().map(str::to_string));
                    let sum = types.entry(key).or_default();
                    (sum.0, sum.1) = (sum.0 + t["count"].as_u64().unwrap(), sum.1 + t["bytes"].as_u64().unwrap());
                }
                types
            };
            assert_eq!(types(&out), types(&dump), "{name}");
            assert_eq!(retained(&out, &[]), retained(&dump, &[]), "{name}");
            let totals = |path: &Path| ask(path, &["retained"]).1["data"]["totals"].clone();
            assert_eq!(totals(&out), totals(&dump), "{name}");
        }
        let (_, diff) = ask(&dump, &["diff", out.to_str().unwrap()]);
        assert_eq!(diff["data"]["rows"], Value::Array(Vec::new()), "{name}: a dump and its .gcdump file differ");
    }
}

#[test]
fn a_gcdump_file_refuses_questions_about_missing_data() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.gcdump");
    export("gcdump", &own_unpacked(), &out, &[]);
    let file = out.to_str().unwrap();
    for command in ["threads", "heap", "handles", "segments", "verify", "objects", "strings", "analyze"] {
        let ran = run(&[command, file]);
        assert_eq!(ran.exit, Exit::NoRuntime, "{command}: {}", ran.err);
        assert!(ran.err.contains("a .gcdump file holds"), "{command}: {}", ran.err);
    }
    let ran = run(&["stat", "--by", "generation", file]);
    assert_eq!(ran.exit, Exit::Usage);
    assert!(ran.err.contains("has no generations"), "{}", ran.err);
    let path = run(&["path", "--type", "Lab.Node", file]);
    assert_eq!(path.exit, Exit::Ok);
    assert!(path.out.contains("Lab.Program.Keep"), "{}", path.out);
    let info = ask(&out, &["info"]).1;
    assert_eq!(info["data"]["kind"], "snapshot");
}

/// Any byte may be wrong: the result is an answer or an error, within bounds, never a panic.
#[test]
fn damaged_gcdump_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.gcdump");
    export("gcdump", &own_unpacked(), &out, &["--unreachable"]);
    let whole = std::fs::read(&out).unwrap();
    let places = (0..whole.len()).step_by(whole.len() / crate::common::cases(15, 150));
    for (i, at) in places.enumerate() {
        let mut bytes = whole.clone();
        match i % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at..(at + 4).min(whole.len())].fill(0xff),
            _ => bytes[at] ^= 1 << (i % 8),
        }
        std::fs::write(&out, &bytes).unwrap();
        for command in [&["stat"][..], &["retained"], &["path", "--type", "System.String"], &["retained", "--suspects"]] {
            let ran = run(&[command, &[out.to_str().unwrap(), "--json"]].concat());
            assert!(matches!(ran.exit.code(), 0 | 1 | 3 | 4 | 5), "{i} {command:?}: {:?} {}", ran.exit, ran.err);
        }
    }
}

#[test]
fn files_are_written_whole_and_never_over_dumps() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, out) = (own_unpacked(), folder.path().join("x.heapsnapshot"));
    let (from, to) = (dump.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(run(&["export", "heapsnapshot", from, to]).exit, Exit::Ok);
    let again = run(&["export", "heapsnapshot", from, to]);
    assert!(again.exit == Exit::Usage && again.err.contains("--force"), "{}", again.err);
    assert_eq!(run(&["export", "heapsnapshot", from, from, "--force"]).exit, Exit::Usage);
    assert_eq!(run(&["export", "gcdump", from, "-o", folder.path().join("no/where").to_str().unwrap()]).exit, Exit::NotWritten);
    assert_eq!(run(&["export", "gcdump", from, to, "-o", to]).exit, Exit::Usage);
    assert_eq!(run(&["export", "gcdump", "--contents", from, to, "--force"]).exit, Exit::Usage);
    assert_eq!(run(&["export", "heapsnapshot", "--generations", from, to, "--force"]).exit, Exit::Usage);
    let other = folder.path().join("y.gcdump");
    assert_eq!(run(&[from, "export", "gcdump", "-o", other.to_str().unwrap()]).exit, Exit::Ok);
    assert!(other.is_file());
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing unfinished is left: {left:?}");
}

#[test]
fn contents_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.heapsnapshot");
    let dump = own_unpacked();
    let text = ask(&dump, &["strings", "--top", "0"]).1;
    let longest = text["data"]["strings"].as_array().unwrap().iter().filter_map(|s| s["value"].as_str()).filter(|t| t.len() < 900);
    let longest = longest.max_by_key(|t| t.len()).unwrap().to_string();
    export("heapsnapshot", &dump, &out, &["--unreachable"]);
    assert!(!Snapshot::read(&out).strings.contains(&longest));
    export("heapsnapshot", &dump, &out, &["--unreachable", "--contents"]);
    assert!(Snapshot::read(&out).strings.contains(&longest), "{longest}");
}

/// Objects in both dumps have one id; new objects have ids above all old ones.
#[test]
fn ids_identify_objects_across_dumps() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.heapsnapshot"), folder.path().join("b.heapsnapshot"));
    let mut pairs = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let before = entry.unwrap().path();
        let Some(stem) = before.to_str().unwrap().strip_suffix(".before.dmp.zst") else { continue };
        let after = PathBuf::from(format!("{stem}.after.dmp.zst"));
        if run(&["track", before.to_str().unwrap(), after.to_str().unwrap()]).exit != Exit::Ok {
            continue;
        }
        pairs += 1;
        export("heapsnapshot", &before, &first, &["--unreachable"]);
        let (_, report) = export("heapsnapshot", &after, &second, &["--unreachable", "--since", before.to_str().unwrap()]);
        let (a, b) = (Snapshot::read(&first), Snapshot::read(&second));
        let by_id = |s: &Snapshot| -> HashMap<u64, (String, u64)> {
            let objects = (0..s.ids.len()).filter(|i| s.types[*i] == OBJECT);
            objects.map(|i| (s.ids[i], (s.names[i].clone(), s.sizes[i]))).collect()
        };
        let (a, b) = (by_id(&a), by_id(&b));
        let both = b.iter().filter(|(id, _)| a.contains_key(id)).count();
        assert_eq!(report["data"]["survivors"], both, "{stem}");
        assert!(b.iter().all(|(id, object)| a.get(id).is_none_or(|was| was == object)), "{stem}: type and size stay");
        let highest = a.keys().max().unwrap();
        assert!(b.keys().all(|id| a.contains_key(id) || id > highest), "{stem}");
        let ran = run(&["track", before.to_str().unwrap(), after.to_str().unwrap(), "--json"]);
        assert_eq!(ran.json()["data"]["totals"]["survived"]["count"], both, "{stem}");
    }
    assert!(pairs > 0, "no pair of dumps in the corpus");
}

/// Runs DevTools' own code, if node and its packages are available: `GCDUMP_TEST_DEVTOOLS` names the folder (`.ci/exports`). With
/// `GCDUMP_TEST_EXPORTS` it reads every whole heap of the corpus, and a quarter of the shared ones.
#[test]
fn devtools_reads_the_files() -> Tested {
    let shared = needs_shared()?;
    let Some(modules) = std::env::var_os("GCDUMP_TEST_DEVTOOLS") else {
        return ignored("DevTools is not on this machine: .ci/exports fetches it with npm");
    };
    let check = shared.join("../tools/heapsnapshot/check.mjs");
    let folder = tempfile::tempdir().unwrap();
    let (out, expect) = (folder.path().join("x.heapsnapshot"), folder.path().join("x.json"));
    for dump in dumps() {
        println!("{}", dump.display());
        export("heapsnapshot", &dump, &out, &[]);
        let snapshot = Snapshot::read(&out);
        let objects = (0..snapshot.ids.len()).filter(|i| snapshot.types[*i] == OBJECT);
        let retained: serde_json::Map<String, Value> =
            objects.map(|i| (snapshot.ids[i].to_string(), snapshot.retained[i].into())).collect();
        let wanted = serde_json::json!({ "retained": retained, "nodes": snapshot.ids.len() });
        std::fs::write(&expect, wanted.to_string()).unwrap();
        let mut node = std::process::Command::new("node");
        node.args([&check, &out]).arg("--modules").arg(&modules).arg("--expect").arg(&expect);
        let ran = node.output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && text.contains(", 0 failed"), "{}: {text}{}", dump.display(), String::from_utf8_lossy(&ran.stderr));
    }
    Ok(())
}

/// Parses a number of bytes as DevTools prints it, with a decimal below 100 kB. Returns the number and its rounding error.
fn shown_bytes(text: &str) -> (f64, f64) {
    let (number, unit) = text.split_once('\u{a0}').or_else(|| text.split_once(' ')).unwrap_or_else(|| panic!("{text:?}"));
    let unit = match unit.split(|c: char| c.is_ascii_digit()).next().unwrap() {
        "kB" => 1e3,
        "MB" => 1e6,
        other => panic!("{other:?} in {text:?}"),
    };
    let last = if number.contains('.') { 0.1 } else { 1.0 };
    (number.replace(',', "").parse::<f64>().unwrap() * unit, last * unit * 0.501)
}

/// A browser, if available, shows for each type the numbers of `retained`: `.ci/snapshot`.
#[test]
fn a_browser_shows_the_types() -> Tested {
    if std::env::var_os("GCDUMP_TEST_CHROMIUM").is_none() {
        return ignored("no Chromium (GCDUMP_TEST_CHROMIUM is not set)");
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, picture) = (folder.path().join("x.heapsnapshot"), folder.path().join("x.png"));
    let more = ["net10-wks-suspects-heap", "net8-wks-handles-heap"].map(|name| unpacked().join(format!("{name}.dmp")));
    let mut checked = 0;
    for dump in std::iter::once(own_unpacked()).chain(more.into_iter().filter(|path| path.is_file())) {
        export("heapsnapshot", &dump, &out, &[]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/snapshot");
        let ran = std::process::Command::new(script).args([&out, &picture]).output().unwrap();
        let (text, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if ran.status.code() == Some(3) {
            return ignored(format!("{err}"));
        }
        assert!(ran.status.success(), "{text}{err}");
        // Count, bytes and retained bytes of each class; types of one name are one.
        let (_, answer) = ask(&dump, &["retained", "--top", "0"]);
        let mut classes: HashMap<String, Vec<[u64; 3]>> = HashMap::new();
        for t in answer["data"]["types"].as_array().unwrap() {
            let name = t["type"].as_str().unwrap();
            let name = if name.starts_with('<') { name.replace(", ", ",") } else { name.to_string() };
            classes.entry(name).or_default().push(["count", "bytes", "retained"].map(|key| t[key].as_u64().unwrap()));
        }
        let rows: Vec<&str> = text.lines().skip(1).filter(|line| line.contains('%')).collect();
        assert!(rows.len() >= 20, "{}: {text}", dump.display());
        for row in rows {
            let cells: Vec<&str> = row.rsplitn(4, "  ").collect();
            let [retained, size, _, name] = cells[..] else { panic!("{row}") };
            let (name, count) = name.split_once('×').map_or((name, 1), |(n, c)| (n, c.replace(',', "").parse().unwrap()));
            let Some(types) = classes.get(name.trim()) else { panic!("{}: no type {name:?}", dump.display()) };
            let sum = |i: usize| types.iter().map(|t| t[i]).sum::<u64>();
            assert_eq!(sum(0), count, "{row}");
            let near = |text: &str, expected: u64| {
                let (shown, off) = shown_bytes(text);
                assert!((shown - expected as f64).abs() <= off, "{}: {row}: {expected}", dump.display());
            };
            near(size, sum(1));
            if types.len() == 1 {
                near(retained, sum(2));
            }
            checked += 1;
        }
        // A picture of 1500 by 850 pixels with text in it.
        let png = std::fs::read(&picture).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png[16..24] == [0, 0, 5, 220, 0, 0, 3, 82] && png.len() > 30_000, "{}", png.len());
    }
    println!("{checked} rows");
    Ok(())
}

/// Other tools were seen to read these bytes (`docs/internals/exports.md`), so a change must be intended. A reader that shares no code with
/// gcdump checks them if it is available.
#[test]
fn the_gcdump_file_is_the_golden_one() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, out) = (folder.path().join("own.dmp"), folder.path().join("own.gcdump"));
    std::fs::copy(own_unpacked(), &dump).unwrap();
    // Cores do not record when they were written, and neither does the file: the time of the dump's copy is not that of the process.
    export("gcdump", &dump, &out, &["--generations"]);
    let written = std::fs::read(&out).unwrap();
    assert_eq!(run(&["info", "--json", out.to_str().unwrap()]).json()["data"]["time"], Value::Null);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/basics.gcdump.zst");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&golden, zstd::encode_all(written.as_slice(), 19).unwrap()).unwrap();
    }
    let golden = zstd::decode_all(std::fs::read(&golden).unwrap().as_slice()).unwrap();
    assert!(written == golden, "GCDUMP_BLESS=1 if that is meant");
    let Some(reader) = shared().map(|s| s.join("../tools/gcdump_read.py")).filter(|r| r.is_file()) else { return };
    let Ok(ran) = std::process::Command::new("python3").arg(reader).arg(&out).output() else { return };
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    let (_, answer) = ask(&out, &["retained"]);
    let totals = &answer["data"]["totals"];
    assert!(text.contains("tool gcdump proc lab pid 3005 segments 7"), "{text}");
    let nodes: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    let groups = nodes - totals["objects"].as_u64().unwrap();
    assert!(text.contains(&format!("reachable {}", totals["reachable_objects"].as_u64().unwrap() + groups)), "{text}");
}
