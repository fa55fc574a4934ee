//! `track` compared with programs' records: pairs of dumps of one process, with the address of each object in both.
//!
//! The pairs of the corpus are always available. Those of the shared dumps, and of the folder `GCDUMP_TEST_EXTRA` (`NAME.before.dmp`,
//! `NAME.after.dmp`, `NAME.truth.json`), are used if available.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use gcdump::analysis::{Certainty, TrackReport, TrackRows};
use gcdump::analysis::{TrackQuery, TrackView, track};
use gcdump::cli::Exit;
use gcdump::{Addr, Answer, Heap};
use serde_json::Value;

use crate::common::{number, run, sample, shared, unpacked};
use crate::support::Spec;

/// Two dumps of one process and the truth about them.
struct Pair {
    name: String,
    before: PathBuf,
    after: PathBuf,
    truth: Value,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus")
}

fn json(path: &Path) -> Option<Value> {
    let bytes = std::fs::read(path).ok()?;
    let bytes = if path.extension().is_some_and(|e| e == "zst") { zstd::decode_all(bytes.as_slice()).unwrap() } else { bytes };
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn pairs() -> Vec<Pair> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(corpus().join("truth")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".json.zst").to_string();
        let dump = |which: &str| corpus().join(format!("{name}.{which}.dmp.zst"));
        out.push(Pair { before: dump("before"), after: dump("after"), truth: json(&path).unwrap(), name });
    }
    let extra = std::env::var_os("GCDUMP_TEST_EXTRA").map(PathBuf::from);
    for (truths, dumps) in shared().map(|s| (s, unpacked())).into_iter().chain(extra.map(|e| (e.clone(), e))) {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&truths).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".truth.json")) else { continue };
            let dump = |which: &str| dumps.join(format!("{name}.{which}.dmp"));
            if dump("before").is_file() && dump("after").is_file() {
                out.push(Pair { before: dump("before"), after: dump("after"), truth: json(&path).unwrap(), name: name.into() });
            }
        }
    }
    out.sort_by(|a, b| (&a.name, &a.before).cmp(&(&b.name, &b.before)));
    assert!(out.len() >= 2, "the pairs of the corpus");
    out
}

fn heap(path: &Path) -> Heap {
    gcdump::open(path).unwrap().runtime().unwrap().heap().unwrap()
}

fn ask(pair: &Pair, view: TrackView) -> Answer<TrackReport> {
    let query = TrackQuery { view, doubtful: true, top: 0 };
    track(&heap(&pair.before), &heap(&pair.after), &query).unwrap_or_else(|e| panic!("{}: {e}", pair.name))
}

/// The program's record of a group of objects.
struct Group {
    name: String,
    /// Whether only position or holder distinguishes the members.
    hard: bool,
    pairs: Vec<(Addr, Addr)>,
    dead: Vec<Addr>,
    born: Vec<Addr>,
}

fn groups(truth: &Value) -> Vec<Group> {
    let list = |v: &Value| -> Vec<Addr> { v.as_array().into_iter().flatten().map(|a| Addr(number(a))).collect() };
    let both = |v: &Value| -> Vec<(Addr, Addr)> {
        v.as_array().into_iter().flatten().map(|p| (Addr(number(&p[0])), Addr(number(&p[1])))).collect()
    };
    match truth["objects"].as_array() {
        Some(groups) => groups
            .iter()
            .map(|g| Group {
                name: g["group"].as_str().unwrap().into(),
                hard: g["hard"].as_bool().unwrap(),
                pairs: both(&g["pairs"]),
                dead: list(&g["dead"]),
                born: list(&g["born"]),
            })
            .collect(),
        // The survivors of the lab's leak.
        None => vec![Group { name: "leak".into(), hard: false, pairs: both(&truth["moved"]), dead: Vec::new(), born: Vec::new() }],
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Score {
    certain: usize,
    likely: usize,
    doubtful: usize,
    missed: usize,
    /// Number of survivors.
    all: usize,
}

#[test]
fn certain_and_likely_matches_are_right() {
    let mut by_group: BTreeMap<(bool, String), Score> = BTreeMap::new();
    let mut wrong = Vec::new();
    let pairs = pairs();
    for pair in pairs.iter().filter(|p| p.truth["refuse"] != true) {
        let answer = ask(pair, TrackView::Objects);
        assert!(answer.complete(), "{}: {:?}", pair.name, answer.notes);
        let TrackRows::Objects { matches } = &answer.rows else { panic!("{}", pair.name) };
        let forth: HashMap<Addr, (Addr, Certainty)> = matches.iter().map(|m| (m.from, (m.to, m.certainty))).collect();
        let back: HashMap<Addr, (Addr, Certainty)> = matches.iter().map(|m| (m.to, (m.from, m.certainty))).collect();
        assert!(forth.len() == matches.len() && back.len() == matches.len(), "{}: an object is matched twice", pair.name);
        let stands = |m: Option<&(Addr, Certainty)>| m.is_some_and(|m| m.1 != Certainty::Doubtful);
        for group in groups(&pair.truth) {
            let mut s = Score { all: group.pairs.len(), ..Score::default() };
            let mut say = |what: String| wrong.push(format!("{} {}: {what}", pair.name, group.name));
            for (from, to) in &group.pairs {
                match forth.get(from) {
                    Some((there, Certainty::Certain)) if there == to => s.certain += 1,
                    Some((there, Certainty::Likely)) if there == to => s.likely += 1,
                    Some((_, Certainty::Doubtful)) => s.doubtful += 1,
                    None => s.missed += 1,
                    Some(found) => say(format!("{from} became {to}, not {found:?}")),
                }
            }
            group.dead.iter().filter(|d| stands(forth.get(d))).for_each(|d| say(format!("{d} is dead")));
            group.born.iter().filter(|b| stands(back.get(b))).for_each(|b| say(format!("{b} is new")));
            let n = s.certain + s.likely;
            if !group.hard && n * 100 < s.all * 99 && s.all - n > 1 {
                say(format!("{n} of {} are matched", s.all));
            }
            let sum = by_group.entry((group.hard, group.name.clone())).or_default();
            sum.certain += s.certain;
            sum.likely += s.likely;
            sum.doubtful += s.doubtful;
            sum.missed += s.missed;
            sum.all += s.all;
        }
    }
    println!("{:30} {:>8} {:>8} {:>8} {:>8} {:>8}", "group", "all", "certain", "likely", "doubtful", "missed");
    for ((hard, name), s) in &by_group {
        let name = format!("{name}{}", if *hard { " (hard)" } else { "" });
        println!("{name:30} {:>8} {:>8} {:>8} {:>8} {:>8}", s.all, s.certain, s.likely, s.doubtful, s.missed);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let easy: Vec<&Score> = by_group.iter().filter(|((hard, _), _)| !hard).map(|(_, s)| s).collect();
    let (all, matched) = (easy.iter().map(|s| s.all).sum::<usize>(), easy.iter().map(|s| s.certain + s.likely).sum::<usize>());
    assert!(matched * 100 >= all * 99 && all > 2000, "{matched} of {all}");
}

#[test]
fn moved_and_surviving_ranges_cover_the_survivors() {
    for pair in pairs().iter().filter(|p| p.truth["refuse"] != true) {
        let objects = ask(pair, TrackView::Objects);
        let ranges = ask(pair, TrackView::Ranges);
        let TrackRows::Objects { matches } = &objects.rows else { panic!("{}", pair.name) };
        let TrackRows::Ranges { moved, surviving } = &ranges.rows else { panic!("{}", pair.name) };
        let mut all: Vec<(Addr, Addr, u64)> = moved.iter().map(|r| (r.from, r.to, r.length)).collect();
        all.extend(surviving.iter().map(|r| (r.start, r.start, r.length)));
        all.sort();
        assert!(all.windows(2).all(|w| w[0].0.plus(w[0].2) <= w[1].0), "{}: ranges overlap", pair.name);
        assert!(moved.iter().all(|r| r.from != r.to));
        let mut objects_in = 0;
        for m in matches.iter().filter(|m| m.certainty != Certainty::Doubtful) {
            let at = all.partition_point(|r| r.0 <= m.from) - 1;
            let (from, to, length) = all[at];
            let offset = m.from.since(from).unwrap();
            assert!(offset + m.size <= length && m.to == to.plus(offset), "{}: {} lies in no range", pair.name, m.from);
            objects_in += 1;
        }
        let counted: u64 = moved.iter().map(|r| r.objects).chain(surviving.iter().map(|r| r.objects)).sum();
        assert_eq!((counted, ranges.totals.survived.count), (objects_in, objects_in), "{}", pair.name);
    }
}

#[test]
fn sums_add_up() {
    for pair in pairs().iter().filter(|p| p.truth["refuse"] != true) {
        let answer = ask(pair, TrackView::Types);
        let t = &answer.totals;
        assert_eq!(t.survived.with(t.died).with(t.unknown_before), t.before, "{}", pair.name);
        assert_eq!(t.survived.with(t.born).with(t.unknown_after), t.after, "{}", pair.name);
        let TrackRows::Types { types, generations } = &answer.rows else { panic!("{}", pair.name) };
        let flows: u64 = generations.iter().map(|g| g.sum.count).sum();
        let survived: u64 = types.iter().map(|t| t.sums.survived.count).sum();
        assert_eq!((flows, survived), (t.survived.count, t.survived.count), "{}", pair.name);
        // The same objects as in `stat`.
        let stat = heap(&pair.after).stat().unwrap();
        assert_eq!((t.after.count, t.after.bytes), (stat.totals.count, stat.totals.bytes), "{}", pair.name);
    }
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let pair = pairs().into_iter().find(|p| p.name.contains("track") && p.truth["refuse"] != true).unwrap();
    let answers: Vec<String> = [1, 2, 7]
        .iter()
        .map(|n| {
            let pool = rayon_pool(*n);
            pool.install(|| serde_json::to_string(&ask(&pair, TrackView::Objects).data).unwrap())
        })
        .collect();
    assert!(answers[0].len() > 10_000 && answers.windows(2).all(|w| w[0] == w[1]));
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Runs the command on two dumps of the corpus.
fn command(before: &str, after: &str, more: &[&str]) -> crate::common::Ran {
    let path = |name: &str| corpus().join(format!("{name}.dmp.zst")).to_str().unwrap().to_string();
    let (before, after) = (path(before), path(after));
    run(&[&["track", "--no-local-files", before.as_str(), after.as_str()], more].concat())
}

#[test]
fn two_processes_and_the_wrong_order_are_refused() {
    let leak = |which: &str| format!("net10-wks-leak-heap.{which}");
    let other = command(&leak("before"), "net10-wks-track-heap.after", &[]);
    assert!(other.exit == Exit::BadDump && other.out.is_empty() && other.err.contains("two processes"), "{}", other.err);
    let swapped = command(&leak("after"), &leak("before"), &[]);
    assert!(swapped.exit == Exit::BadDump && swapped.out.is_empty() && swapped.err.contains("name it second"), "{}", swapped.err);
    // Two processes with the same id, seed and contents.
    for pair in pairs().iter().filter(|p| p.truth["refuse"] == true) {
        let refused = track(&heap(&pair.before), &heap(&pair.after), &TrackQuery::default());
        let why = refused.map(|_| ()).unwrap_err().to_string();
        assert!(why.contains("two processes"), "{}: {why}", pair.name);
    }
}

/// The runtime counts a range when it hands it out, and a collection subtracts the unused rest.
#[test]
fn a_context_emptied_by_a_collection_is_not_a_wrong_order() {
    for shape in crate::common::shapes() {
        let target = Spec::standard(shape).build();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, (pointer, limit, handed_out): (u64, u64, u64)| {
            let path = folder.path().join(name);
            std::fs::write(&path, target.to_elf_core()).unwrap();
            let dump = gcdump::open(&path).unwrap();
            let runtime = dump.runtime().unwrap();
            let (d, memory) = (runtime.descriptor(), dump.memory());
            let offset = |of: &str, field: &str| d.offset(of, field).unwrap();
            // The second thread has an empty context.
            let thread = runtime.thread_list().unwrap()[1].address;
            let locals = memory.ptr(thread.plus(offset("Thread", "RuntimeThreadLocals"))).unwrap();
            let context = offset("RuntimeThreadLocals", "AllocContext") + offset("EEAllocContext", "GCAllocationContext");
            let field = |name: &str| locals.plus(context + offset("GCAllocContext", name)).0;
            let mut changed = target.clone();
            changed.memory.p(field("Pointer"), pointer);
            changed.memory.p(field("Limit"), limit);
            changed.memory.put(field("AllocBytes"), 8, handed_out);
            std::fs::write(&path, changed.to_elf_core()).unwrap();
            path
        };
        let at = 0x1_9000;
        let handed_out = write("handed-out.dmp", (at, at + 8176, 8200));
        let taken_back = write("taken-back.dmp", (0, 0, 24));
        let next = write("next.dmp", (at, at + 8000, 24 + 8200));
        let allocated = |path: &Path| {
            let contexts = crate::common::ask(path, &["heap"]).1["data"]["allocation_contexts"].clone();
            contexts.as_array().unwrap().iter().find(|c| c["owner_id"] == 2).unwrap()["allocated_bytes"].clone()
        };
        assert_eq!([&handed_out, &taken_back, &next].map(|p| allocated(p)), [24, 24, 224].map(Value::from), "{shape:?}");
        let tracked =
            |before: &Path, after: &Path| track(&heap(before), &heap(after), &TrackQuery::default()).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(tracked(&handed_out, &taken_back), Ok(()), "{shape:?}");
        assert_eq!(tracked(&handed_out, &next), Ok(()), "{shape:?}");
        let why = tracked(&next, &taken_back).unwrap_err();
        assert!(why.contains("falls from 224 to 24 bytes: the first dump was taken last"), "{shape:?}: {why}");
        let diff = |before: &Path, after: &Path| run(&["diff", before.to_str().unwrap(), after.to_str().unwrap()]);
        let warned = |ran: &crate::common::Ran| format!("{}{}", ran.out, ran.err).contains("falls from");
        assert!(!warned(&diff(&handed_out, &taken_back)) && warned(&diff(&next, &handed_out)), "{shape:?}");
    }
}

#[test]
fn a_dump_and_itself_have_the_same_objects() {
    let ran = command("net10-wks-track-heap.before", "net10-wks-track-heap.before", &["--json"]);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let totals = &ran.json()["data"]["totals"];
    assert_eq!((&totals["moved"]["count"], &totals["died"]["count"], &totals["born"]["count"]), (&0.into(), &0.into(), &0.into()));
    assert_eq!(totals["before"], totals["after"]);
    // A segment whose last object is missing ends the heap: nothing is found or searched for there.
    let names = [
        "net8-segsvr-basics-heap",
        "net8-seg-basics-heap",
        "net9-segsvr-basics-heap",
        "net10-svr-basics-heap",
        "win-net10-wks-basics-full",
    ];
    for name in sample(names, 5) {
        let ran = command(name, name, &["--json"]);
        let totals = &ran.json()["data"]["totals"];
        assert_eq!(
            (ran.exit, &totals["before"], &totals["moved"]["count"]),
            (Exit::Ok, &totals["after"], &0.into()),
            "{name}: {}",
            ran.err
        );
    }
}

#[test]
fn doubtful_matches_are_listed_on_request_only() {
    let (before, after) = ("net10-wks-track-heap.before", "net10-wks-track-heap.after");
    let count = |more: &[&str], certainty: &str| {
        let answer = command(before, after, more).json();
        let rows = answer["data"]["matches"].as_array().unwrap().iter().filter(|m| m["certainty"] == certainty).count() as u64;
        let said = answer["data"]["certainty"].as_array().unwrap().iter().find(|c| c["certainty"] == certainty).unwrap();
        (rows, said["count"].as_u64().unwrap())
    };
    let (shown, said) = count(&["--objects", "--json", "--doubtful"], "doubtful");
    assert!(shown == said && said > 0);
    assert_eq!(count(&["--objects", "--json"], "doubtful"), (0, said));
    let (certain, said) = count(&["--objects", "--json"], "certain");
    assert!(certain == said && certain > 1000);
}
