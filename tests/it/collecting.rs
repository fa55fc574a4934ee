//! Dumps taken during a collection: the answers say so, and marked objects are read like others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, Endian, Silent};
use gcdump::internals::dump::DumpFile;
use gcdump::model::GcPhase;
use serde_json::Value;

use crate::common::{ask, bytes_of, cases, commands, each, known_dumps, number, run, sample, walker, with_words};
use crate::corpus;

/// The bit of an object's first word that the GC sets while it marks.
const MARK: u64 = 1;

/// Dumps that have data for most commands: stacks of generic methods, timers, statics, locks, tasks, collections, exceptions.
const MARKED: [&str; 8] = [
    "net8-wks-stacks-heap",
    "net10-wks-pool-heap",
    "net10-wks-stacks-heap",
    "net10-wks-asyncmix-heap",
    "net8-wks-colls-heap",
    "net9-wks-roots-heap",
    "net10-wks-probe-heap",
    "win-net10-svr-basics-full",
];

/// Returns the file of a dump with the mark bits of all objects set, and an object.
fn marked(bytes: &[u8], path: &Path) -> (Vec<u8>, Addr) {
    std::fs::write(path, bytes).unwrap();
    let dump = gcdump::open(path).unwrap();
    let runtime = dump.runtime().unwrap();
    let mut words = Vec::new();
    walker(&runtime).visit(
        &Silent,
        |_, _| true,
        |object| {
            let first = dump.memory().word(object.address).unwrap();
            words.push((object.address, first | MARK, 8));
            std::ops::ControlFlow::Continue(())
        },
    );
    assert!(words.len() > 500, "{}", words.len());
    let object = words[words.len() / 2].0;
    (with_words(dump.file(), bytes, Endian::Little, &words), object)
}

#[test]
fn marked_objects_are_read_as_others_are() {
    let more: Vec<Vec<&str>> = ["stacks --arguments", "stacks --roots", "statics --all --thread-statics", "verify", "timers"]
        .iter()
        .map(|line| line.split(' ').collect())
        .collect();
    let more: Vec<&[&str]> = more.iter().map(Vec::as_slice).collect();
    let mut wrong = Vec::new();
    let mut ran = 0;
    for name in &MARKED[..cases(1, MARKED.len())] {
        let bytes = bytes_of(name).unwrap();
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        let (with_marks, object) = marked(&bytes, file.path());
        let path = file.path().to_str().unwrap();
        let answers = |bytes: &[u8]| -> BTreeMap<String, (Exit, String, String)> {
            std::fs::write(file.path(), bytes).unwrap();
            let mut out = BTreeMap::new();
            for form in sample(commands::forms(&more), 5) {
                // Written files differ. The first word of an object, shown as a number, has the mark.
                let writes = ["index", "trim", "export", "fleet", "mcp", "shell"].contains(&form[0].as_str());
                if writes || form.iter().any(|w| w == "OUT" || w == "--as") {
                    continue;
                }
                let fill = |word: &str| match word {
                    "ADDR" | "HANDLE" => Some(object.to_string()),
                    word => commands::is_dump(word).then(|| path.to_string()),
                };
                let mut args = commands::filled(&form, fill);
                args.push("--no-local-files".into());
                let ran = run(&args);
                out.insert(form.join(" "), (ran.exit, ran.out, ran.err));
            }
            out
        };
        let (plain, with_marks) = (answers(&bytes), answers(&with_marks));
        ran += plain.len();
        for (form, answer) in &plain {
            let other = &with_marks[form];
            if answer != other {
                let first = |a: &str, b: &str| a.lines().zip(b.lines()).find(|(a, b)| a != b).map(|(a, b)| format!("{a}\n   {b}"));
                let lines = first(&answer.1, &other.1).or_else(|| first(&answer.2, &other.2)).unwrap_or_default();
                wrong.push(format!("{name}: {form}: {:?} {:?}\n   {lines}", answer.0, other.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran > cases(15, 150), "{ran}");
}

/// A dump of a process at rest, with workstation or server GC, and the record of its last collection.
struct AtRest {
    bytes: Vec<u8>,
    /// Address and value of the record's index.
    record: (Addr, u64),
    /// The runtime's variable with the thread that suspended the others.
    suspended_by: Addr,
    /// The allocation contexts of threads.
    contexts: Vec<Addr>,
    dump: DumpFile,
}

impl AtRest {
    fn of(name: &str) -> AtRest {
        let bytes = bytes_of(name).unwrap();
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let dump = gcdump::open(file.path()).unwrap();
        let runtime = dump.runtime().unwrap();
        let gc = runtime.gc().unwrap();
        assert_eq!(gc.facts().phase, Some(GcPhase::None), "{name}");
        let recorded = gc.collections().as_ref().unwrap().process.recorded[0].clone();
        assert_eq!(recorded.index, gc.collections().as_ref().unwrap().process.counts[0], "{name}");
        // The index and the committed bytes of the record.
        let image = runtime.description().gc_image.as_ref().unwrap();
        let places =
            image.writable.iter().flat_map(|range| dump.memory().words(*range)).filter(|(at, word)| {
                **word == recorded.index.to_le_bytes() && dump.memory().word(at.plus(8)) == Ok(recorded.committed_bytes)
            });
        let places: Vec<Addr> = places.map(|(at, _)| at).collect();
        assert_eq!(places.len(), 1, "{name}");
        let d = runtime.descriptor();
        let thread = |t: &gcdump::internals::clr::threads::Thread| {
            let (locals, outer) = (d.offset("Thread", "RuntimeThreadLocals"), d.offset("EEAllocContext", "GCAllocationContext"));
            let at = dump.memory().ptr(t.address.plus(locals.unwrap())).unwrap();
            (!at.is_null()).then(|| at.plus(d.offset("RuntimeThreadLocals", "AllocContext").unwrap() + outer.unwrap_or(0)))
        };
        let contexts = runtime.thread_list().unwrap().iter().filter_map(thread).collect();
        let suspended_by = d.pointer("GCThread").unwrap();
        let file = gcdump::internals::dump::open(file.path(), &Default::default()).unwrap();
        AtRest { bytes, record: (places[0], recorded.index), suspended_by, contexts, dump: file }
    }

    /// Returns what `info` says about the GC after changing these words, with the exit code.
    fn info(&self, words: &[(Addr, u64, usize)]) -> (Exit, Value) {
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), with_words(&self.dump, &self.bytes, Endian::Little, words)).unwrap();
        let (exit, answer) = ask(file.path(), &["info"]);
        (exit, answer["data"]["gc"].clone())
    }
}

/// Changes the indications of a collection one by one: the record of the newest one, the thread that suspended the others, the contexts of
/// threads.
#[test]
fn a_blocking_collection_is_recognized_by_its_indications() {
    for (name, server) in [("net10-wks-track-heap.after", false), ("net10-svr-basics-heap", true), ("net9-wks-basics-heap", false)] {
        let whole = AtRest::of(name);
        let (record, index) = whole.record;
        let unrecorded = (record, index - 1, 8);
        let suspended = (whole.suspended_by, whole.contexts[0].0, 8);
        let taken: Vec<(Addr, u64, usize)> = whole.contexts.iter().map(|at| (*at, 0, 8)).collect();
        let with = |words: &[&[(Addr, u64, usize)]]| {
            let (_, gc) = whole.info(&words.concat());
            let last = &gc["collections"]["last"];
            assert_eq!(last["index"], index, "{name}");
            let phase = gc["phase"].as_str().unwrap_or("null").to_string();
            assert_eq!(gc["gc_in_progress"] == true, phase == "marking", "{name}: {gc}");
            // Settings that a collection decides while it runs are known when it has ended.
            let results = ["compacting", "loh_compacting", "promotion", "demotion", "elevation_reduced", "exit_memory_load"];
            assert!(results.iter().all(|key| last[*key].is_null() == (phase == "marking")), "{name}: {phase} {last}");
            phase
        };
        assert_eq!(with(&[]), "none", "{name}");
        // Threads that have contexts were not stopped by a running collection.
        assert_eq!(with(&[&[unrecorded]]), "none", "{name}");
        assert_eq!(with(&[&[unrecorded, suspended]]), "suspending", "{name}");
        assert_eq!(with(&[&[suspended], &taken]), "suspending", "{name}");
        // For server GC, no thread of the runtime suspends the others.
        assert_eq!(with(&[&[unrecorded], &taken]), if server { "marking" } else { "none" }, "{name}");
        assert_eq!(with(&[&[unrecorded, suspended], &taken]), "marking", "{name}");
        let (_, gc) = whole.info(&[suspended]);
        assert_eq!(number(&gc["suspended_by"]), whole.contexts[0].0, "{name}");
    }
}

/// Without records nothing is known about a collection of server GC, and the answer does not deny one.
#[test]
fn an_unknown_collection_is_not_denied() {
    let whole = AtRest::of("net10-svr-basics-heap");
    let (record, _) = whole.record;
    let taken: Vec<(Addr, u64, usize)> = whole.contexts.iter().map(|at| (*at, 0, 8)).collect();
    // An invalid index, so that no record is found.
    let (_, gc) = whole.info(&[&[(record, u64::MAX, 8)][..], &taken].concat());
    assert!(gc["collections"]["recorded"].as_array().unwrap().is_empty(), "{gc}");
    assert!(gc["phase"].is_null() && gc["gc_in_progress"].is_null(), "{gc}");
    assert!(gc["collections"]["last"]["compacting"].is_null(), "{gc}");
}

/// A dump of the corpus was taken while a collection marked: its answers are exact, and mention the collection.
#[test]
fn every_answer_about_a_heap_that_is_marked_says_so() {
    let path = corpus::dump("net10-wks-spinopt-heap");
    let note = |answer: &Value| {
        let all = answer["warnings"].as_array().unwrap().iter();
        all.filter(|w| w["kind"] == "gc-in-progress").map(|w| w["message"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    for command in [&["info"][..], &["heap"], &["stat"], &["verify"], &["analyze"], &["segments"], &["handles"], &["finalizers"]] {
        let (_, answer) = ask(&path, command);
        let said = note(&answer);
        assert!(said.len() == 1 && said[0].contains("GC #372") && said[0].contains("not moving objects"), "{command:?}: {said:?}");
    }
    for (command, exit) in [("heap", Exit::Ok), ("stat", Exit::Ok), ("verify", Exit::Ok)] {
        assert_eq!(ask(&path, &[command]).0, exit, "{command}");
    }
    let (_, info) = ask(&path, &["info"]);
    let gc = &info["data"]["gc"];
    assert_eq!((&gc["phase"], &gc["gc_in_progress"], &gc["structures_valid"]), (&"marking".into(), &true.into(), &true.into()));
    assert_eq!((&gc["collections"]["last"]["index"], &gc["collections"]["last"]["compacting"]), (&372.into(), &Value::Null));
    let (_, found) = ask(&path, &["analyze"]);
    let finding = found["data"]["findings"].as_array().unwrap().iter().find(|f| f["id"] == "gc-in-progress").unwrap();
    assert_eq!(finding["severity"], "info");
    assert!(finding["title"].as_str().unwrap().contains("GC #372 of gen2, induced"), "{finding}");
}

/// Checks for every available dump what the GC was doing, by the marks of its objects and by how the dump was made.
#[test]
fn collections_are_seen_in_those_dumps_that_were_taken_during_one() {
    let expected = |name: &str| match name {
        "net10-wks-spin-heap" => GcPhase::Moving,
        "net11-wks-busymore3-heap" | "net10-wks-busy3-heap" | "net10-wks-busyopt4-heap" => GcPhase::Suspending,
        "net10-wks-spingc-heap" | "net10-wks-spinopt-heap" | "net10-wks-busy-gcore" | "net10-wks-nativecorruptgc-heap" => GcPhase::Marking,
        _ => GcPhase::None,
    };
    let (dumps, missing) = known_dumps(|_| true).unwrap_or_default();
    let mut paths: Vec<(String, PathBuf)> = dumps.into_iter().map(|d| (d.name, d.path)).collect();
    paths.extend(corpus::dumps().into_iter().map(|p| (p.file_name().unwrap().to_str().unwrap().replace(".dmp.zst", ""), p)));
    let found = each(&paths, |(name, path)| {
        let runtime = gcdump::open(path).ok()?.runtime().ok()?;
        let phase = runtime.gc().ok()?.facts().phase;
        Some((name.clone(), phase))
    });
    let found: Vec<_> = found.into_iter().flatten().collect();
    println!("{} dumps, {} skipped", found.len(), missing.len());
    let wrong: Vec<_> = found.iter().filter(|(name, phase)| *phase != Some(expected(name))).collect();
    assert!(wrong.is_empty() && found.len() >= 75, "{wrong:?}");
}
