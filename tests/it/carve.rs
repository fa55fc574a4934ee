//! Heaps carved out of memory, against exact walks, and against the list that a collector wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{ask, each, known_dumps, run, sample, shared, unpacked};
use crate::harness::{Ignored, Tested};
use crate::support::Spec;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::model::Carve;
use gcdump::{Dump, OpenOptions, Runtime};

/// The objects of a heap: sizes by address, and their bytes together.
fn objects(runtime: &Runtime) -> BTreeMap<Addr, u64> {
    let heap = runtime.heap().unwrap();
    heap.objects().map(|o| (o.address(), o.size())).collect()
}

fn open(path: &Path, carve: Carve) -> Dump {
    OpenOptions::new().carve(carve).open(path).unwrap()
}

fn bytes<'o>(list: impl IntoIterator<Item = (&'o Addr, &'o u64)>) -> u64 {
    list.into_iter().map(|(_, size)| *size).sum()
}

/// Memory of the GC where dead objects may lie.
fn beside_the_heap(runtime: &Runtime) -> Vec<AddrRange> {
    let gc = runtime.gc().unwrap();
    let segments = gc.segments().data;
    let tails = segments.iter().map(|s| AddrRange::new(s.allocated, s.reserved));
    let regions = gc.regions().data.into_iter().map(|r| r.range);
    // Contexts that are not full keep what was there before.
    let contexts = gc.contexts(&runtime.thread_list().unwrap().data).data.into_iter().map(|c| AddrRange::new(c.pointer, c.limit.plus(24)));
    let facts = gc.facts();
    let between = match (facts.lowest, facts.highest) {
        (Some(from), Some(to)) if facts.regions => vec![AddrRange::new(from, to)],
        _ => Vec::new(),
    };
    let inside = |at: &AddrRange| !segments.iter().any(|s| s.start <= at.start && at.end <= s.allocated);
    tails.chain(regions).chain(between.into_iter().filter(inside)).chain(contexts).collect()
}

/// Result of a comparison: a dump is carved as though the GC had no structures.
struct Found {
    name: String,
    objects: usize,
    recall: f64,
    precision: f64,
    invented: usize,
    dead: usize,
}

/// Dumps that are not compared: their heaps are incomplete or in motion, or not of CoreCLR.
fn found(path: &Path) -> Option<Found> {
    let exact = open(path, Carve::Never);
    let runtime = exact.runtime().ok()?;
    let heap = runtime.heap().ok()?;
    if runtime.gc().unwrap().facts().moves_objects() || runtime.descriptor().is_native_aot() {
        return None;
    }
    let segments = heap.segment_models().to_vec();
    let captured: u64 = segments.iter().map(|s| s.captured_bytes).sum();
    let allocated: u64 = segments.iter().map(|s| s.allocated_bytes).sum();
    let truth = objects(&runtime);
    if captured < allocated || truth.is_empty() {
        return None;
    }
    let carved = open(path, Carve::Always);
    let carved = objects(&carved.runtime().unwrap());
    let missed: Vec<_> = truth.iter().filter(|(at, size)| carved.get(at) != Some(size)).collect();
    let beside = beside_the_heap(&runtime);
    let in_heap = |at: &Addr| segments.iter().any(|s| s.start <= *at && *at < s.allocated);
    // What a sweeping collection found dead stays in the free block that it makes.
    let in_object = |at: &Addr| truth.range(..=*at).next_back().is_some_and(|(start, size)| *at < start.plus(*size));
    let is_dead = |at: &Addr| if in_heap(at) { !in_object(at) } else { beside.iter().any(|r| r.contains(*at)) };
    let (dead, invented): (Vec<_>, Vec<_>) = carved.iter().filter(|(at, _)| !truth.contains_key(at)).partition(|(at, _)| is_dead(at));
    let all = bytes(&truth) as f64;
    let wrong = bytes(invented.iter().copied()) as f64;
    let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".zst").trim_end_matches(".dmp").to_string();
    Some(Found {
        name,
        objects: truth.len(),
        recall: 1.0 - missed.len() as f64 / truth.len() as f64,
        precision: 1.0 - wrong / (all + wrong),
        invented: invented.len(),
        dead: dead.len(),
    })
}

/// Share of the objects that must be found, and of the bytes that must be true.
const LEAST_RECALL: f64 = 0.995;
const LEAST_PRECISION: f64 = 0.999;

fn check(paths: &[PathBuf], least: usize) -> Vec<Found> {
    let all: Vec<Found> = each(paths, |path| found(path)).into_iter().flatten().collect();
    let mut bad = Vec::new();
    for f in &all {
        let line = format!("{:50} recall {:.5} precision {:.5} invented {} dead {}", f.name, f.recall, f.precision, f.invented, f.dead);
        println!("{line}");
        if f.recall < LEAST_RECALL || f.precision < LEAST_PRECISION {
            bad.push(line);
        }
    }
    assert!(all.len() >= least, "{} dumps", all.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    all
}

/// The release and the GC in the name of a dump: `net10-svr` of `net10-svr-oom-heap`.
fn kind(name: &str) -> String {
    let parts: Vec<&str> = name.split('-').collect();
    let of = if parts.first() == Some(&"win") { 3 } else { 2 };
    parts.into_iter().take(of).collect::<Vec<_>>().join(" ")
}

/// Fails if the table in `docs/coverage.md` is outdated; `GCDUMP_BLESS=1` rewrites it.
fn document(all: &[Found]) {
    let mut kinds: BTreeMap<String, Vec<&Found>> = BTreeMap::new();
    all.iter().for_each(|f| kinds.entry(kind(&f.name)).or_default().push(f));
    let mut part = String::from("| runtime and GC | dumps | objects | recall, least | precision, least | invented | dead |\n");
    part.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for (kind, of) in kinds {
        let least = |value: fn(&Found) -> f64| of.iter().map(|f| value(f) * 100.0).fold(100.0, f64::min);
        let sum = |value: fn(&Found) -> usize| of.iter().map(|f| value(f)).sum::<usize>();
        let (recall, precision) = (least(|f| f.recall), least(|f| f.precision));
        let (objects, invented, dead) = (sum(|f| f.objects), sum(|f| f.invented), sum(|f| f.dead));
        part.push_str(&format!("| {kind} | {} | {objects} | {recall:.3} % | {precision:.3} % | {invented} | {dead} |\n", of.len()));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = crate::common::COVERAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = old.split_once("<!-- carved -->\n").expect("the first marker");
    let (_, tail) = rest.split_once("<!-- end of carved -->").expect("the second marker");
    let new = format!("{head}<!-- carved -->\n{part}<!-- end of carved -->{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 GCDUMP_TEST_FULL=1 cargo test --test it carve:: rewrites it");
    }
}

#[test]
fn carved_heaps_have_the_objects_of_exact_walks() -> Tested {
    let (dumps, missing) = known_dumps(|row| matches!(row["kind"].as_str(), Some("heap" | "full" | "kernel" | "gcore")))?;
    let paths: Vec<PathBuf> = sample(dumps, 8).into_iter().map(|known| known.path).collect();
    let all = check(&paths, 1);
    if crate::common::full() && missing.is_empty() {
        document(&all);
    }
    Tested::Ok(())
}

/// They have of the runtime's structures only what readers looked at.
#[test]
fn carved_heaps_of_trimmed_dumps_have_the_objects_of_exact_walks() {
    check(&crate::corpus::dumps(), 20);
}

fn dump(name: &str) -> Result<PathBuf, Ignored> {
    let path = unpacked().join(format!("{name}.dmp"));
    if path.exists() { Ok(path) } else { Err(Ignored(format!("{name} is not unpacked"))) }
}

#[test]
fn the_heap_of_a_standalone_collector_is_whole() -> Tested {
    let path = dump("net10-mgc4-alien-kernel")?;
    let list = shared().ok_or_else(|| Ignored("no shared folder".into()))?.with_file_name("dumps3").join("net10-mgc4-alien.walk.txt");
    let text = std::fs::read_to_string(list).map_err(|e| Ignored(e.to_string()))?;
    let number = |word: &str| Addr(u64::from_str_radix(word, 16).unwrap());
    let (mut truth, mut free, mut frozen) = (BTreeMap::new(), Addr::NULL, AddrRange::new(Addr::NULL, Addr::NULL));
    let mut tables = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["free", at] => free = number(at),
            // Where the objects of the runtime's own segment end, and its memory.
            ["frozen", end, committed] => frozen = AddrRange::new(number(committed).minus(64 << 10).unwrap(), number(end)),
            ["segment" | "context" | "handle", ..] => {}
            [at, table, size] => {
                tables.insert(number(at), number(table));
                truth.insert(number(at), size.parse::<u64>().unwrap());
            }
            _ => {}
        }
    }
    truth.retain(|at, _| tables[at] != free);
    let opened = open(&path, Carve::Auto);
    let carved = objects(&opened.runtime().unwrap());
    let missed: Vec<_> = truth.keys().filter(|at| !carved.contains_key(at)).collect();
    assert!(missed.is_empty() && truth.len() > 8000, "{} of {} missed: {missed:?}", missed.len(), truth.len());
    let sizes: BTreeSet<_> = truth.iter().filter(|(at, size)| carved[at].next_multiple_of(8) != size.next_multiple_of(8)).collect();
    assert!(sizes.is_empty(), "{sizes:?}");
    let invented: Vec<_> = carved.keys().filter(|at| !truth.contains_key(at) && !frozen.contains(**at)).collect();
    assert!(invented.len() <= 10, "{invented:?}");

    let (exit, stat) = ask(&path, &["stat", "--top", "3"]);
    assert_eq!((exit as i32, &stat["data"]["complete"]), (5, &serde_json::json!(false)));
    let known = &stat["data"]["carved"];
    assert_eq!(known["collector"], "libgcshim.so");
    assert_eq!(known["references"], known["references_to_objects"]);
    assert!(known["bytes"].as_u64() > Some(8 << 20) && known["searched_bytes"].as_u64() > known["bytes"].as_u64());
    let (_, verify) = ask(&path, &["verify"]);
    assert_eq!(verify["data"]["findings"].as_array().map(Vec::len), Some(0));
    // Nothing of the collector is needed for these.
    for command in ["statics", "threads", "stacks", "types", "locks", "exceptions", "heap", "segments", "strings", "roots", "retained"] {
        let (exit, answer) = ask(&path, &[command, "--top", "3"][..if command == "heap" { 1 } else { 3 }]);
        assert!(matches!(exit as i32, 0 | 5), "{command}: {exit:?}: {answer}");
    }
    let largest = truth.iter().max_by_key(|(_, size)| **size).unwrap().0.to_string();
    for command in ["object", "where", "refs", "path"] {
        let (exit, answer) = ask(&path, &[command, &largest]);
        assert!(matches!(exit as i32, 0 | 5), "{command}: {exit:?}: {answer}");
        // What depends on the heap says that it was carved.
        let warned = answer["warnings"].as_array().unwrap().iter().any(|w| w["message"].as_str().unwrap_or_default().contains("carved"));
        assert!(warned && answer["data"]["complete"] == false, "{command}: {answer}");
    }
    let (exit, _) = ask(&path, &["info", "--carve", "never"]);
    assert_eq!(exit as i32, 5);
    Tested::Ok(())
}

#[test]
fn a_standalone_collector_is_named_with_its_version() -> Tested {
    let standalone = |name: &str| -> Result<serde_json::Value, Ignored> {
        let (_, info) = ask(&dump(name)?, &["info"]);
        Ok(info["data"]["gc"]["standalone"].clone())
    };
    let alien = standalone("net10-mgc4-alien-kernel")?;
    assert_eq!((&alien["file"], &alien["interface_version"]), (&"libgcshim.so".into(), &"5.3".into()), "{alien}");
    assert_eq!(alien["build_id"].as_str().map(str::len), Some(40), "{alien}");
    for (name, version) in [("net8-seg-basics-heap", "5.2"), ("net10-seg-basics-heap", "5.5"), ("net11-seg-basics-heap", "5.9")] {
        let own = standalone(name)?;
        assert_eq!((&own["file"], &own["interface_version"]), (&"libclrgc.so".into(), &version.into()), "{name}: {own}");
    }
    assert_eq!(standalone("net10-wks-basics-heap")?, serde_json::Value::Null);
    Tested::Ok(())
}

/// Handles of an answer: objects by address.
fn handles(path: &Path, options: &[&str]) -> BTreeMap<String, String> {
    let (_, answer) = ask(path, &[&["handles", "--top", "0"], options].concat());
    let list = answer["data"]["handles"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|h| (h["address"].as_str().unwrap().into(), h["object"].as_str().unwrap().into())).collect()
}

#[test]
fn handles_of_an_unknown_collector_are_those_of_its_own_list() -> Tested {
    let path = dump("net10-mgc4-alien-kernel")?;
    let list = shared().ok_or_else(|| Ignored("no shared folder".into()))?.with_file_name("dumps3").join("net10-mgc4-alien.walk.txt");
    let text = std::fs::read_to_string(list).map_err(|e| Ignored(e.to_string()))?;
    let slots =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|words| words[0] == "handle" && words[3] != "0");
    let truth: BTreeMap<String, String> = slots.map(|words| (format!("0x{}", words[1]), format!("0x{}", words[3]))).collect();
    assert!(truth.len() > 100);
    let found = handles(&path, &[]);
    assert!(truth.iter().all(|(at, object)| found.get(at) == Some(object)));
    // Writing the list took some more.
    assert!(found.len() <= truth.len() + 4, "{} of {}", found.len(), truth.len());
    let (exit, answer) = ask(&path, &["handles", "--stat"]);
    let kinds: Vec<&str> = answer["data"]["counts"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!((exit as i32, &answer["data"]["complete"]), (5, &serde_json::json!(false)));
    assert!(kinds.contains(&"unknown") && kinds.contains(&"weak-short"), "{kinds:?}");
    // An object that only a handle holds.
    let (_, path) = ask(&path, &["path", "0x7f9e9f7b0098"]);
    assert!(path["data"].to_string().contains("unknown handle"), "{}", path["data"]);
    Tested::Ok(())
}

/// The tables of the runtime's own collector, found as though nothing were known of them.
#[test]
fn handles_of_a_carved_heap_are_handles() -> Tested {
    for name in ["net10-wks-handles-heap", "net8-wks-handles-heap", "net11-wks-handles-heap"] {
        let path = dump(name)?;
        let (exact, carved) = (handles(&path, &[]), handles(&path, &["--carve", "always"]));
        let missed: Vec<_> = exact.iter().filter(|(at, object)| carved.get(*at) != Some(object)).collect();
        assert!(missed.is_empty() && exact.len() > 300, "{name}: {missed:?}");
        // The secondary objects of dependent handles are in slots of the same table.
        let (_, answer) = ask(&path, &["handles", "--type", "dependent", "--top", "0"]);
        let secondary: BTreeSet<&str> =
            answer["data"]["handles"].as_array().unwrap().iter().filter_map(|h| h["secondary"].as_str()).collect();
        let wrong: Vec<_> = carved.iter().filter(|(at, object)| !exact.contains_key(*at) && !secondary.contains(object.as_str())).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
    Tested::Ok(())
}

#[test]
fn a_heap_whose_segment_lists_are_lost_is_carved() -> Tested {
    let (damaged, whole) = (dump("dmg-net10-basics-zerogen-heap")?, dump("net10-wks-basics-heap")?);
    let truth = objects(&open(&whole, Carve::Never).runtime().unwrap());
    let carved = objects(&open(&damaged, Carve::Auto).runtime().unwrap());
    assert!(truth.iter().all(|(at, size)| carved.get(at) == Some(size)));
    assert!(carved.len() <= truth.len() + 10);
    Tested::Ok(())
}

#[test]
fn a_heap_with_its_structures_is_not_carved() {
    let (_, stat) = ask(&crate::common::own_dump(), &["stat"]);
    assert_eq!((&stat["data"]["complete"], stat["data"].get("carved")), (&serde_json::json!(true), None));
    let (exit, stat) = ask(&crate::common::own_dump(), &["stat", "--carve", "always"]);
    assert_eq!((exit as i32, &stat["data"]["complete"]), (5, &serde_json::json!(false)));
    assert_eq!(stat["data"]["carved"]["because"], "that was requested");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let path = crate::common::own_dump();
    let answer = |threads| ask(&path, &["stat", "--carve", "always", "--threads", threads]).1["data"].clone();
    assert_eq!(answer("1"), answer("3"));
}

#[test]
fn nothing_is_carved_out_of_a_synthetic_process_that_is_no_object() {
    for shape in crate::common::shapes() {
        let target = Spec { server: None, ..Spec::standard(shape) }.build();
        let expected = target.expected();
        let known: BTreeSet<&str> = expected["objects"].as_array().unwrap().iter().filter_map(|o| o[0].as_str()).collect();
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), target.to_elf_core()).unwrap();
        let (exit, answer) = ask(file.path(), &["objects", "--carve", "always"]);
        assert_eq!((exit as i32, &answer["data"]["complete"]), (5, &serde_json::json!(false)), "{shape:?}");
        let found: Vec<&serde_json::Value> = answer["data"]["objects"].as_array().unwrap().iter().filter(|o| o["type"] != "Free").collect();
        let invented: Vec<_> = found.iter().filter(|o| !known.contains(o["address"].as_str().unwrap())).collect();
        println!("{shape:?}: {} of {} objects", found.len(), known.len());
        assert!(invented.is_empty(), "{shape:?}: {invented:?}");
    }
}

/// The variables of the runtime are lost, and with them its headers.
#[test]
fn a_dump_without_the_variables_of_its_runtime_has_a_heap() -> Tested {
    let (cut, whole) = (dump("dmg-net10-basics-tail-heap")?, dump("net10-wks-basics-heap")?);
    let truth = objects(&open(&whole, Carve::Never).runtime().unwrap());
    let opened = open(&cut, Carve::Auto);
    let runtime = opened.runtime().unwrap();
    let carved = objects(&runtime);
    assert!(truth.iter().all(|(at, size)| carved.get(at) == Some(size)));
    assert!(carved.len() <= truth.len() + 10, "{} of {}", carved.len(), truth.len());
    let (exit, stat) = ask(&cut, &["stat", "--type", "System.String"]);
    assert_eq!((exit as i32, &stat["data"]["totals"]["count"]), (5, &serde_json::json!(635)));
    assert_eq!(run(&["stat", "--carve", "never", cut.to_str().unwrap()]).exit, Exit::NoRuntime);
    Tested::Ok(())
}

/// Pages of words that look like objects, one in the other.
#[test]
fn tilings_of_words_that_look_like_objects_are_read_in_bounded_time() {
    for shape in crate::common::shapes() {
        let p = shape.ptr;
        let (start, words) = (if p == 8 { 0x6000_0000_0000_u64 } else { 0x6000_0000 }, 3 << 15);
        let standard = Spec { server: None, ..Spec::standard(shape) }.build();
        let expected = standard.expected();
        let at: Vec<u64> = expected["objects"].as_array().unwrap().iter().map(|o| crate::common::number(&o[0])).collect();
        let tables: BTreeSet<u64> = at.iter().filter_map(|at| standard.memory.word(*at)).collect();
        let tables: Vec<u64> = tables.into_iter().collect();
        // A method table that is its own class, one whose class leads back to it, and base sizes from none to huge.
        let forged: Vec<u64> = (0..8).map(|i| start + i * 16 * p).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % u64::try_from(below).unwrap()).unwrap()
        };
        for tiling in 0..8 {
            let mut target = Spec { server: None, ..Spec::standard(shape) }.build();
            target.memory.map(start, (words + 2) * p, true);
            for i in 128..words {
                let value = match tiling {
                    // One method table everywhere, or in every second or third word.
                    0 => tables[0],
                    1 => {
                        if i % 2 == 0 {
                            0
                        } else {
                            tables[0]
                        }
                    }
                    2 => {
                        if i % 3 == 1 {
                            tables[tables.len() / 2]
                        } else {
                            0
                        }
                    }
                    // Arrays that cover the rest, each in the other.
                    3 => [0, tables[next(tables.len())], (words - i) * p / 2, 0][usize::try_from(i % 4).unwrap()],
                    4 => [0, tables[next(tables.len())], 0x7fff_ffff, start][usize::try_from(i % 4).unwrap()],
                    // Objects, method tables and places in the page.
                    5 => [0, tables[next(tables.len())], at[next(at.len())], start + u64::try_from(next(4096)).unwrap() * p][next(4)],
                    6 => [0, forged[next(8)], forged[next(8)], 0, 0][next(5)],
                    _ => start + i * p,
                };
                target.memory.p(start + i * p, value);
            }
            for (i, table) in forged.iter().enumerate() {
                for word in 0..16 {
                    target
                        .memory
                        .p(table + word * p, [0, *table, table + 8 * p, forged[(i + 1) % 8], 24 << 32, 3 << 32 | 0x8000_0001][next(6)]);
                }
            }
            let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            std::fs::write(file.path(), target.to_elf_core()).unwrap();
            let began = std::time::Instant::now();
            for command in [&["stat"][..], &["verify"], &["retained", "--top", "3"]] {
                let (exit, answer) = ask(file.path(), &[command, &["--carve", "always"]].concat());
                // `verify` finds what is forged.
                let marked = matches!(exit, Exit::Partial | Exit::Negative) && answer["data"]["complete"] == false;
                assert!(marked, "{shape:?} {tiling} {command:?}: {exit:?}");
                let carved = &answer["data"]["carved"];
                assert!(carved["bytes"].as_u64() <= carved["searched_bytes"].as_u64(), "{shape:?} {tiling}: {carved}");
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "{shape:?} {tiling}: {:?}", began.elapsed());
        }
    }
}
