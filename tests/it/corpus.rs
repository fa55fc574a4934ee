//! The corpus: every dump of the repository gives the expected answers, and contains no text about the machine that made it.
//! See `dumps/corpus/README.md` for the origin of dumps and answers; `dumps/corpus/make --answers` updates the answers.
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{self, cases, full, own_dump, run};
use serde_json::{Value, json};

/// Fields of `info` that describe the file, not the process: they differ between the full dumps and the small ones.
const OF_THE_FILE: [&str; 5] = [
    // Trimmed copies are smaller.
    "file_bytes",
    "captured_bytes",
    // Mentions trimming; a full dump becomes a heap dump.
    "kind",
    "kind_evidence",
    // Names the file, and a command chosen by the kind of dump.
    "next",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().trim_end_matches(".dmp.zst").to_string()
}

/// Every dump of the repository.
pub fn dumps() -> Vec<PathBuf> {
    let mut found = vec![own_dump()];
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".dmp.zst") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Whether the stacks of a dump can be walked: those of NativeAOT programs are not.
pub fn has_stacks(path: &Path) -> bool {
    !name(path).contains("aot")
}

/// A dump of each runtime, collector and container: for tests that would take long over all of them.
pub fn one_of_each() -> Vec<PathBuf> {
    const SAMPLE: [&str; 20] = [
        "aot9-wks-crash-kernel",
        "net8aot-wks-all-full",
        "net10aot-wks-locks-full",
        "net11aot-wks-crash-full",
        "net10arm64-wks-stacks-heap",
        "net10arm64max-wks-all-heap",
        "net10-datas-basics-heap",
        "net10-segsvr-basics-heap",
        "net10-wks-basics-full",
        "net10-wks-basics-triage",
        "net10-wks-wait-gcore",
        "net10-wks-wait-kernel",
        "net11-wks-basics-heap",
        "net11shape-svr-handles-heap",
        "net8-seg-basics-heap",
        "net8-wks-crash-mini",
        "net9-svr-handles-heap",
        "win-net10-wks-crash-full",
        "win-net8-wks-handles-full",
        "win-net11-wks-basics-heap",
    ];
    SAMPLE.iter().map(|name| folder().join(format!("{name}.dmp.zst"))).collect()
}

#[test]
fn one_of_each_has_every_runtime_collector_and_container() {
    let parts = |dumps: &[PathBuf]| -> [BTreeSet<String>; 3] {
        let names: Vec<String> = dumps.iter().map(|d| name(d)).collect();
        // The parts of a name: `win-net10-wks-crash-full`, `net10-wks-leak-heap.after`.
        let part = |n: &str, i: usize| n.trim_start_matches("win-").split(['-', '.']).nth(i).unwrap().to_string();
        let windows = |n: &str| if n.starts_with("win-") { "win-" } else { "" };
        [0, 1, 3].map(|i| names.iter().map(|n| if i == 1 { part(n, 1) } else { format!("{}{}", windows(n), part(n, i)) }).collect())
    };
    let (all, some) = (parts(&dumps()), parts(&one_of_each()));
    for (all, some) in all.iter().zip(&some) {
        let missing: Vec<_> = all.difference(some).filter(|part| !["win-heap", "win-mini", "win-net9"].contains(&part.as_str())).collect();
        assert!(missing.is_empty(), "one_of_each has no dump of {missing:?}");
    }
}

/// The first dump of the repository whose name begins with `name`.
pub fn dump(name: &str) -> PathBuf {
    dumps().into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap()
}

/// Maps `work` over `items` on all processors; results in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((i, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?))) {
                    let result = work(item);
                    done.lock().unwrap().push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, r)| r).collect()
}

/// Up to eight differences between two answers.
fn differences(at: &str, expected: &Value, found: &Value, out: &mut Vec<String>) {
    if out.len() >= 8 || expected == found {
        return;
    }
    match (expected, found) {
        (Value::Object(e), Value::Object(f)) => {
            let keys: BTreeSet<&String> = e.keys().chain(f.keys()).collect();
            let null = Value::Null;
            keys.into_iter().for_each(|k| differences(&format!("{at}.{k}"), e.get(k).unwrap_or(&null), f.get(k).unwrap_or(&null), out));
        }
        (Value::Array(e), Value::Array(f)) if e.len() == f.len() => {
            (0..e.len()).for_each(|i| differences(&format!("{at}[{i}]"), &e[i], &f[i], out));
        }
        _ => {
            let short = |v: &Value| v.to_string().chars().take(120).collect::<String>();
            out.push(format!("{at}: {}, expected {}", short(found), short(expected)));
        }
    }
}

/// Checks the answers of `dump`. Returns the number of answers, and the differences.
fn check(number: usize, dump: &Path) -> (usize, Vec<String>) {
    let name = name(dump);
    let answers = folder().join("answers").join(format!("{name}.json.zst"));
    let Ok(file) = File::open(&answers) else { return (0, vec![format!("{name}: no answers; run dumps/corpus/make --answers {name}")]) };
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&zstd::decode_all(file).unwrap()).unwrap();
    // The dump is decompressed once instead of per command. Only `info` reads the compressed file.
    let unpacked = tempfile::NamedTempFile::new().unwrap();
    zstd::stream::copy_decode(File::open(dump).unwrap(), unpacked.as_file()).unwrap();
    let mut wrong = Vec::new();
    // A short run takes half of the commands, in turn.
    for (command, expected) in common::sample(expected.iter().skip(number % cases(2, 1)), 2) {
        let path = if command == "info" { dump } else { unpacked.path() };
        let mut args: Vec<&str> = command.split(' ').collect();
        args.extend(["--json", "--no-local-files", path.to_str().unwrap()]);
        let ran = run(&args);
        let mut found = json!({ "exit": ran.exit.code() });
        if ran.out.is_empty() {
            found["error"] = ran.err.replace(path.to_str().unwrap(), "DUMP").trim().into();
        } else {
            let out = ran.out.replace(path.to_str().unwrap(), "DUMP");
            found["data"] = serde_json::from_str::<Value>(&out).unwrap()["data"].take();
            if command == "info" {
                let info = found["data"].as_object_mut().unwrap();
                OF_THE_FILE.iter().for_each(|key| drop(info.remove(*key)));
            }
        }
        differences(&format!("{name}: {command}: "), expected, &found, &mut wrong);
    }
    (expected.len() / cases(2, 1), wrong)
}

#[test]
fn every_dump_gives_its_answers() {
    let dumps = if full() { dumps() } else { one_of_each() };
    let numbered: Vec<(usize, &PathBuf)> = dumps.iter().enumerate().collect();
    let results = in_parallel(&numbered, |(i, dump)| check(*i, dump));
    let answers: usize = results.iter().map(|(n, _)| n).sum();
    let wrong: Vec<String> = results.into_iter().flat_map(|(_, wrong)| wrong).collect();
    println!("{} dumps, {answers} answers", dumps.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(dumps.len() >= cases(12, 70) && answers >= dumps.len() * cases(5, 10), "{} dumps, {answers} answers", dumps.len());
}

#[test]
fn every_answer_has_its_dump_and_all_fit_into_27_megabytes() {
    let dumps = dumps();
    let names: Vec<String> = dumps.iter().map(|d| name(d)).collect();
    let mut bytes: u64 = dumps.iter().map(|d| d.metadata().unwrap().len()).sum();
    for entry in fs::read_dir(folder().join("answers")).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        let of = file.strip_suffix(".json.zst").unwrap_or(&file).to_string();
        assert!(names.contains(&of), "{file}: no such dump");
        bytes += entry.metadata().unwrap().len();
    }
    println!("{} dumps, {bytes} bytes with their answers", names.len());
    assert!(bytes <= 27_000_000, "{bytes}");
}

/// `GCDUMP_SCAN_DUMP` names an additional dump to scan.
#[test]
fn no_dump_holds_text_of_the_machine_that_made_it() {
    let mut dumps = common::sample(dumps(), 5);
    dumps.extend(std::env::var_os("GCDUMP_SCAN_DUMP").map(PathBuf::from));
    let found = in_parallel(&dumps, |dump| {
        let bytes = zstd::decode_all(File::open(dump).unwrap()).unwrap();
        text::of_the_machine(&bytes).into_iter().map(|what| format!("{}: {what}", name(dump))).collect::<Vec<_>>()
    });
    let found = found.concat();
    assert!(found.is_empty(), "{} texts:\n{}", found.len(), found.iter().take(60).cloned().collect::<Vec<_>>().join("\n"));
}
