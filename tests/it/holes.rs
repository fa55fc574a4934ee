//! Ranges that a command reads are removed from real dumps, one at a time: the answer stays the same, or it is partial and says so.
//!
//! `GCDUMP_HOLES=300 cargo test --release --test it holes:: -- --nocapture` removes 300 ranges from every dump of the corpus;
//! `GCDUMP_HOLE_SEED=7` selects others, `GCDUMP_TEST_ONLY=net8` selects dumps by part of the name, and `GCDUMP_HOLE=0x7f00:0x40` removes only
//! that range and prints the differences.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use gcdump::cli::{Cli, Exit};
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::internals::dump::{DumpFile, OpenOptions as FileOptions};
use gcdump::internals::session::{Dump, OpenOptions};
use gcdump::model::LayoutSource;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::common::{self, Ran, commands};
use crate::corpus;
use crate::mutation::base::{MORE, Rng};

/// Lengths of the ranges that are removed.
const LENGTHS: [u64; 6] = [8, 16, 64, 256, 2048, 4096];

/// Fields about the file, which differ although the answer does not.
const OF_THE_FILE: [&str; 6] = ["captured_bytes", "file_bytes", "truncated_bytes", "captured", "kind_evidence", "next"];

/// Ranges whose loss an answer once hid. They are always removed.
const HIDDEN: [(&str, u64, u64); 20] = [
    // Memory through which the runtime is found.
    ("net11shape-svr-handles-heap", 0x7f98_cfa0_0180, 0x40),
    ("net10-wks-stacks-gcore", 0x557f_dc71_d000, 0x1000),
    ("aot9-wks-crash-kernel", 0x5648_ff3a_6380, 0x40),
    ("net10-segsvr-basics-heap", 0x7f6d_d6ea_0950, 0x10),
    ("net10-wks-basics-full", 0x7fa6_faa9_5238, 8),
    ("net10-svr-roots-heap", 0x7f14_f5ab_f000, 0x800),
    // The GC's records in a heap of server GC.
    ("net10-segsvr-basics-heap", 0x7f6d_d6ff_d280, 8),
    // Names of generic instances on stacks, and objects that frames hold.
    ("net11shape-datas-basics-heap", 0x7fab_09b2_d000, 0x1000),
    ("net10-svr-threads-heap", 0x7f0f_1932_d000, 0x1000),
    ("net10-svr-oom-heap", 0x561d_04d4_3000, 0x1000),
    ("net10-wks-basics-full", 0x7f9a_875a_2000, 0x800),
    // Initial values in an image.
    ("win-net9-wks-basics-full", 0x16f9_2d00, 0x100),
    // Entries of the sync table.
    ("net10-svr-threads-heap", 0x562d_7d14_3000, 0x800),
    // Thread statics of NativeAOT.
    ("net8aot-wks-all-full", 0x7f6a_5ac1_5090, 8),
    // Method tables and classes of objects.
    ("net10-svr-roots-heap", 0x7f14_77aa_0000, 0x1000),
    ("net10-wks-probe-heap", 0x7f38_2ea7_bf90, 8),
    // Parts of objects.
    ("net10-seg-basics-heap", 0x7f55_e808_ec00, 0x100),
    ("net10-datas-basics-heap", 0x7f6a_f481_1bc0, 0x10),
    ("net10-seg-fragmented-heap", 0x7fee_d012_2460, 8),
    ("net10-segsvr-basics-heap", 0x7f6d_1008_6000, 0x800),
];

/// A command line, its answer for the complete dump, and the memory that it read.
struct Asked {
    line: String,
    cli: Cli,
    ran: Ran,
    answer: Value,
    reads: Vec<AddrRange>,
}

/// The parts of an answer that say whether it is partial. Parsing each answer to a tree would take as long as the command.
#[derive(Deserialize)]
struct Completeness {
    data: Complete,
    warnings: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Complete {
    complete: Option<bool>,
}

struct Subject {
    name: String,
    path: PathBuf,
    file: DumpFile,
    asked: Vec<Asked>,
    /// All memory that any of them read, as disjoint ranges.
    reads: Vec<AddrRange>,
}

/// Runs a command on `dump`. The path of a truncated file, which answers contain, is replaced by that of the complete one.
fn run_on(cli: &Cli, dump: &Dump) -> Ran {
    let ran = common::captured(|streams| cli.run_on(std::slice::from_ref(dump), streams));
    let path = &dump.file().facts.path;
    let [cut, whole] = ["cut", "dmp"].map(|extension| path.with_extension(extension).display().to_string());
    Ran { out: ran.out.replace(&cut, &whole), err: ran.err.replace(&cut, &whole), ..ran }
}

fn parsed(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_default()
}

/// Returns the part of an answer after the facts about the file.
fn behind_the_file(out: &str) -> Option<&str> {
    out.find("\"runtime\":").map(|at| &out[at..])
}

fn touches(ranges: &[AddrRange], hole: AddrRange) -> bool {
    let i = ranges.partition_point(|r| r.end <= hole.start);
    ranges.get(i).is_some_and(|r| r.start < hole.end)
}

fn addresses(answer: &Value, list: &str) -> Vec<String> {
    let rows = answer["data"][list].as_array().into_iter().flatten();
    rows.filter_map(|r| r["address"].as_str().map(ToString::to_string)).collect()
}

impl Subject {
    fn of(dump: &Path, folder: &Path) -> Option<Subject> {
        let name = dump.file_name().unwrap().to_str().unwrap().trim_end_matches(".dmp.zst").to_string();
        let path = folder.join(format!("{name}.dmp"));
        zstd::stream::copy_decode(File::open(dump).unwrap(), File::create(&path).unwrap()).unwrap();
        let file = gcdump::internals::dump::open(&path, &FileOptions::default()).unwrap();
        Dump::of(file.clone(), &OpenOptions::default()).runtime().ok()?;
        let mut subject = Subject { name, path, file, asked: Vec::new(), reads: Vec::new() };
        let mut rng = Rng::new(7);
        let mut known = BTreeMap::<&str, Vec<String>>::new();
        // Forms that supply addresses come first.
        let mut forms = commands::forms(MORE);
        forms.retain(|f| !f.iter().any(|w| ["OUT", "--dot", "--format", "trim", "completions"].contains(&w.as_str())));
        forms.sort_by_key(|f| (f[0] != "objects" && f[0] != "handles", f.len()));
        for form in &common::sample(forms, 6) {
            let path = subject.path.to_str().unwrap().to_string();
            let mut pick = |list: &str| rng.pick(known.get(list)?).cloned();
            let mut unknown = false;
            let mut args = commands::filled(form, |word| match word {
                dump if commands::is_dump(dump) => Some(path.clone()),
                "ADDR" | "ANY" | "HANDLE" => {
                    let found = pick(if word == "HANDLE" { "handles" } else { "objects" });
                    unknown |= found.is_none();
                    found
                }
                _ => None,
            });
            if unknown {
                continue;
            }
            let line = form.join(" ");
            args.extend(["--json", "--no-local-files"].map(String::from));
            let cli = common::parsed(&args);
            let dump = Dump::of(subject.file.clone(), &OpenOptions { record: true, ..OpenOptions::default() });
            let ran = run_on(&cli, &dump);
            let answer = parsed(&ran);
            for list in ["objects", "handles"] {
                if form[0] == list && !known.contains_key(list) {
                    known.insert(list, addresses(&answer, list));
                }
            }
            let recorder = dump.memory().recorder().unwrap();
            let reads = common::joined(recorder.read().into_iter().chain(recorder.scanned()).collect());
            subject.asked.push(Asked { line, cli, ran, answer, reads });
        }
        let captured = common::joined(subject.file.ranges.iter().map(|r| r.range()).collect());
        let all = common::joined(subject.asked.iter().flat_map(|a| a.reads.iter().copied()).collect());
        for r in all {
            let from = captured.partition_point(|c| c.end <= r.start);
            let inside = captured.iter().skip(from).take_while(|c| c.start < r.end);
            subject.reads.extend(inside.map(|c| AddrRange::new(r.start.max(c.start), r.end.min(c.end))));
        }
        Some(subject)
    }

    /// The dump without `hole`.
    fn without(&self, hole: AddrRange) -> Dump {
        let mut file = self.file.clone();
        file.remove(hole);
        Dump::of(file, &OpenOptions::default())
    }

    fn hole(&self, rng: &mut Rng) -> AddrRange {
        // Most ranges are structures of the runtime, but most bytes are objects.
        let mut at = if rng.below(2) == 0 {
            let range = rng.pick(&self.reads).copied().unwrap();
            range.start.0 + rng.below((range.end.0 - range.start.0) as usize) as u64
        } else {
            let mut left = rng.below(self.reads.iter().map(|r| r.end.0 - r.start.0).sum::<u64>() as usize) as u64;
            let inside = |r: &&AddrRange| {
                let len = r.end.0 - r.start.0;
                left < len || {
                    left -= len;
                    false
                }
            };
            let range = self.reads.iter().find(inside).unwrap();
            range.start.0 + left
        };
        at = at / 8 * 8;
        let len = *rng.pick(&LENGTHS).unwrap();
        let start = at / len * len;
        AddrRange::new(Addr(start), Addr(start + len))
    }

    /// Returns complaints about the answers for `dump`, from which `what` was removed, each with the path of the first difference.
    fn check(&self, dump: &Dump, what: &str, asked: impl Fn(&Asked) -> bool) -> (usize, Vec<(String, String)>) {
        let (mut runs, mut wrong, mut first) = (0, Vec::new(), None);
        // The descriptor of these dumps was added by hand to a .NET 10 process. Without it, they are dumps of .NET 10.
        if self.name.starts_with("net11shape") && dump.runtime().is_ok_and(|r| r.description().gc != LayoutSource::Descriptor) {
            println!("{} {what}: without the descriptor", self.name);
            return (runs, wrong);
        }
        for asked in self.asked.iter().filter(|a| asked(a)) {
            let ran = run_on(&asked.cli, dump);
            runs += 1;
            if let Some(place) = complaint(asked, &ran) {
                wrong.push((format!("{}: {place}", asked.line), format!("{} {what}", self.name)));
            }
            first.get_or_insert((asked, ran));
        }
        // Caches that other commands left in the open dump make no difference.
        if let Some((asked, ran)) = first {
            let again = run_on(&asked.cli, dump);
            if (again.exit, &again.out, &again.err) != (ran.exit, &ran.out, &ran.err) {
                let (first, second) = (parsed(&ran), parsed(&again));
                let place = difference("", &first, &second).unwrap_or_else(|| format!("{:?} {:?}", ran.err, again.err));
                println!("{} {what}: {}, then {}", self.name, first["warnings"], second["warnings"]);
                wrong.push((format!("{}: not the same when asked again: {place}", asked.line), format!("{} {what}", self.name)));
            }
        }
        (runs, wrong)
    }

    fn check_hole(&self, hole: AddrRange) -> (usize, Vec<(String, String)>) {
        let what = format!("{:#x}:{:#x}", hole.start.0, hole.end.0 - hole.start.0);
        self.check(&self.without(hole), &what, |a| touches(&a.reads, hole))
    }

    /// Does the same for a file truncated to `twelfths` twelfths.
    fn check_cut(&self, twelfths: u64) -> (usize, Vec<(String, String)>) {
        let cut = self.path.with_extension("cut");
        std::fs::copy(&self.path, &cut).unwrap();
        let file = File::options().write(true).open(&cut).unwrap();
        file.set_len(file.metadata().unwrap().len() * twelfths / 12).unwrap();
        let opened = gcdump::internals::dump::open(&cut, &FileOptions::default());
        let checked = opened.map(|file| self.check(&Dump::of(file, &OpenOptions::default()), &format!("{twelfths}/12"), |_| true));
        let _ = std::fs::remove_file(&cut);
        // An error is a correct answer as well.
        checked.unwrap_or_default()
    }
}

/// Returns what is wrong with an answer from a dump with removed memory.
fn complaint(asked: &Asked, ran: &Ran) -> Option<String> {
    let exit = ran.exit;
    match exit {
        Exit::Partial if ran.out.is_empty() && !ran.err.is_empty() => return None,
        Exit::Partial if says_partial(&ran.out) => return None,
        // What is found for certain, by `verify` or a rule, remains so with memory missing, so its exit code comes first by design.
        Exit::Negative if (asked.line.starts_with("verify") || asked.line.contains("--fail-on")) && says_partial(&ran.out) => return None,
        _ => {}
    }
    if exit == asked.ran.exit && behind_the_file(&ran.out).is_some_and(|out| Some(out) == behind_the_file(&asked.ran.out)) {
        return None;
    }
    let answer = &parsed(ran);
    // Error messages say what is missing; `info` answers without a runtime as well.
    if matches!(exit, Exit::NoRuntime | Exit::BadDump) && (!ran.err.is_empty() || !answer["data"]["runtime_error"].is_null()) {
        return None;
    }
    let mut place = difference("", &asked.answer["data"], &answer["data"]);
    if place.is_none() && exit != asked.ran.exit {
        place = Some(format!("exit {} instead of {}", exit.code(), asked.ran.exit.code()));
    }
    if std::env::var_os("GCDUMP_HOLE").is_some() {
        println!("{} ({}): {}", asked.line, exit.code(), answer["warnings"]);
    }
    // createdump may leave out any page of an image, so `contracts` reports variables without contents only in the row itself.
    place = place.filter(|p| !(asked.line.starts_with("contracts") && p == ".globals[].content is null"));
    let head = difference("runtime", &asked.answer["runtime"], &answer["runtime"]);
    // Missing layouts of the GC are reported in their own field.
    let head = head.filter(|p| !(p.starts_with("runtime.gc differs") && answer["runtime"]["gc"] == "none"));
    place.or(head).map(|p| format!("{p} (exit {})", exit.code()))
}

/// Whether the answer says that it is partial, and why.
fn says_partial(out: &str) -> bool {
    serde_json::from_str::<Completeness>(out).is_ok_and(|answer| answer.data.complete == Some(false) && !answer.warnings.is_empty())
}

fn difference(at: &str, whole: &Value, found: &Value) -> Option<String> {
    if whole == found {
        return None;
    }
    match (whole, found) {
        (Value::Object(w), Value::Object(f)) => {
            let keys = w.keys().chain(f.keys().filter(|k| !w.contains_key(*k)));
            let null = Value::Null;
            keys.filter(|k| !OF_THE_FILE.contains(&k.as_str()))
                .find_map(|k| difference(&format!("{at}.{k}"), w.get(k).unwrap_or(&null), f.get(k).unwrap_or(&null)))
        }
        (Value::Array(w), Value::Array(f)) if w.len() == f.len() => w.iter().zip(f).find_map(|(w, f)| difference(&format!("{at}[]"), w, f)),
        (Value::Array(w), Value::Array(f)) => {
            let missing = w.iter().find(|row| !f.contains(row)).unwrap_or(&Value::Null);
            let added = f.iter().find(|row| !w.contains(row)).unwrap_or(&Value::Null);
            Some(format!("{at} has {} rows{}", if f.len() < w.len() { "fewer" } else { "more" }, values(missing, added)))
        }
        (_, Value::Null) => Some(format!("{at} is null{}", values(whole, found))),
        _ => Some(format!("{at} differs{}", values(whole, found))),
    }
}

/// Returns the values that differ, for a single range.
fn values(whole: &Value, found: &Value) -> String {
    let short = |v: &Value| v.to_string().chars().take(600).collect::<String>();
    if std::env::var_os("GCDUMP_HOLE").is_some() { format!(": {} -> {}", short(whole), short(found)) } else { String::new() }
}

type Wrong = BTreeMap<String, Vec<String>>;

/// Whether a fault was found in the dump before.
fn is_known(dump: &Path) -> bool {
    HIDDEN.iter().any(|(name, ..)| dump.file_name().unwrap().to_str().unwrap().starts_with(name))
}

/// Runs `check` on every dump of the corpus, or on those that `some` selects by number, and fails with the faults by kind.
fn campaign(what: &str, some: impl Fn(usize, &Path) -> bool, check: impl Fn(&Subject) -> Vec<(usize, Vec<(String, String)>)> + Sync) {
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let mut dumps: Vec<PathBuf> = corpus::dumps().into_iter().filter(|d| d.to_str().unwrap().contains(&only)).collect();
    if only.is_empty() && std::env::var_os("GCDUMP_HOLES").is_none() {
        // The answers for the complete dump come first and take most of the time.
        dumps = dumps.into_iter().enumerate().filter(|(i, d)| some(*i, d)).map(|(_, d)| d).collect();
    }
    let checked = common::each(&dumps, |dump| {
        let Some(subject) = Subject::of(dump, folder.path()) else { return Vec::new() };
        let checked = check(&subject);
        checked.iter().flat_map(|(_, wrong)| wrong).for_each(|(class, case)| println!("{case}: {class}"));
        let _ = std::fs::remove_file(&subject.path);
        checked
    });
    let (cases, runs) = checked.iter().flatten().fold((0, 0), |(cases, runs), (n, _)| (cases + 1, runs + n));
    println!("{cases} {what} of {} dumps, {runs} commands", dumps.len());
    let mut wrong = Wrong::new();
    for (class, case) in checked.into_iter().flatten().flat_map(|(_, wrong)| wrong) {
        wrong.entry(class).or_default().push(case);
    }
    for (class, cases) in &wrong {
        println!("{:5} {class}   e.g. {}", cases.len(), cases[0]);
    }
    assert!(wrong.is_empty(), "{} kinds of answers differ without saying so", wrong.len());
}

#[test]
fn an_answer_without_memory_that_it_needs_says_so() {
    let holes = std::env::var("GCDUMP_HOLES").map_or(1, |n| n.parse().unwrap());
    let one = std::env::var("GCDUMP_HOLE").ok().map(|hole| {
        let (at, len) = hole.split_once(':').unwrap();
        let number = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).unwrap();
        AddrRange::new(Addr(number(at)), Addr(number(at) + number(len)))
    });
    let seed: u64 = std::env::var("GCDUMP_HOLE_SEED").map_or(0, |seed| seed.parse().unwrap());
    campaign(
        "ranges taken out",
        |i, dump| if common::full() { i % 27 == 0 || i % 6 == 1 && is_known(dump) } else { i == 7 },
        |subject| {
            let mut rng = Rng::new(subject.name.bytes().map(u64::from).sum::<u64>() ^ seed << 32);
            let hidden =
                HIDDEN.iter().filter(|(name, ..)| *name == subject.name).map(|(_, at, len)| AddrRange::new(Addr(*at), Addr(at + len)));
            let picked = || hidden.chain((0..holes).map(|_| subject.hole(&mut rng))).collect();
            let picked: Vec<AddrRange> = one.map_or_else(picked, |hole| vec![hole]);
            picked.into_iter().map(|hole| subject.check_hole(hole)).collect()
        },
    );
}

#[test]
fn an_answer_for_a_truncated_dump_says_so() {
    let all = std::env::var_os("GCDUMP_HOLES").is_some();
    campaign(
        "cuts",
        |i, _| i % 36 == 5 && common::full() || i == 66,
        |subject| {
            // Each dump is truncated differently.
            let one = 1 + subject.name.bytes().map(usize::from).sum::<usize>() % 11;
            (1..12).filter(|n| all || *n == one).map(|twelfths| subject.check_cut(twelfths as u64)).collect()
        },
    );
}
