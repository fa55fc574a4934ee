//! Runs every command on mutated small dumps: no panic, no hang, bounded memory.
//!
//! Mutations derive from a case number, so that any case can be repeated. The tests run some hundred cases; the full
//! campaign is one command:
//!
//! ```sh
//! export GCDUMP_MUTATIONS=185000 GCDUMP_REAL_MUTATIONS=15000 GCDUMP_TRUNCATIONS=4450
//! CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true cargo test --release --test it mutation:: -- --nocapture
//! ```
//!
//! The campaign has 200 000 mutations, and 5 006 truncations, of which every eighth also applies to a real dump. `TMPDIR=/dev/shm` spares the
//! disk.
//!
//! `GCDUMP_MUTATION_FROM=1000` skips the first cases, `GCDUMP_MUTATION_CASE=s123` repeats one: `s` for synthetic dumps, `r` for
//! real ones, `t` and `u` for their truncations. A case that aborts the process is recorded in the file printed at the start.

pub mod allocations;
pub mod base;
pub mod damage;

use crate::common;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use allocations::Counting;
use base::{Base, Rng};

use gcdump::cli::{self, Cli};
use gcdump::internals::session::{Dump, OpenOptions};
use serde::de::IgnoredAny;

/// Maximum bytes that a command may have allocated at one time, without the mapped dump.
const MOST_MEMORY: u64 = 160 << 20;
/// Maximum time per command.
const MOST_TIME: Duration = Duration::from_secs(10);
const WORKERS: usize = 2;

const FORMATS: [&str; 4] = ["table", "json", "csv", "ndjson"];

/// Totals of all cases.
#[derive(Default)]
struct Totals {
    dumps: AtomicU64,
    commands: AtomicU64,
    /// Commands that were repeated on a newly opened dump.
    anew: AtomicU64,
    answered: AtomicU64,
    partial: AtomicU64,
    refused: AtomicU64,
    /// Peak allocation of a command, in bytes.
    memory: AtomicU64,
    /// Duration of the slowest command in microseconds, and the command.
    slowest: Mutex<(u64, String)>,
    /// Time of each command.
    costs: Mutex<BTreeMap<String, Duration>>,
}

impl Totals {
    fn print(&self, what: &str, started: Instant) {
        let n = |a: &AtomicU64| a.load(Ordering::Relaxed);
        let (slowest, which) = self.slowest.lock().unwrap().clone();
        println!(
            "{what}: {} dumps, {} commands ({} answered in full or with none, {} partial, {} refused), {} of them also on the dump \
             opened anew, slowest {} ms ({which}), at most {} KiB allocated at a time, {} s",
            n(&self.dumps),
            n(&self.commands),
            n(&self.answered),
            n(&self.partial),
            n(&self.refused),
            n(&self.anew),
            slowest / 1000,
            n(&self.memory) >> 10,
            started.elapsed().as_secs()
        );
        let costs = self.costs.lock().unwrap();
        let mut costs: Vec<(&String, &Duration)> = costs.iter().collect();
        costs.sort_by_key(|(_, cost)| std::cmp::Reverse(**cost));
        let each = |cost: &Duration| cost.as_micros() as u64 / n(&self.dumps).max(1);
        let costs: Vec<String> = costs.iter().take(12).map(|(command, cost)| format!("{command} {}", each(cost))).collect();
        println!("{what}: microseconds a dump of the most expensive commands: {}", costs.join(", "));
    }
}

/// Current case of a worker, for the watchdog.
#[derive(Default)]
struct Watched {
    case: Mutex<(String, Option<Instant>)>,
    /// Parsed command lines: parsing takes longer than most commands on a small dump.
    parsed: Mutex<HashMap<Vec<String>, Arc<Cli>>>,
}

impl Watched {
    fn parsed(&self, args: Vec<String>) -> Arc<Cli> {
        let mut parsed = self.parsed.lock().unwrap();
        Arc::clone(parsed.entry(args).or_insert_with_key(|args| Arc::new(common::parsed(args))))
    }
}

/// A mutated dump, and the work done with it.
struct Case<'a> {
    base: &'a Base,
    number: u64,
    totals: &'a Totals,
    watched: &'a Watched,
}

impl Case<'_> {
    /// Runs `work` within the bounds of a command, and counts it.
    fn bounded<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let name = format!("{} case {}: {what}", self.base.name, self.number);
        let (started, cpu) = (Instant::now(), common::Stopwatch::start());
        *self.watched.case.lock().unwrap() = (name.clone(), Some(started));
        allocations::forget_peak();
        let done = catch_unwind(AssertUnwindSafe(work));
        // A busy machine stretches wall time, so CPU time is measured; commands run only on this thread.
        let took = cpu.elapsed();
        let memory = allocations::peak();
        self.watched.case.lock().unwrap().1 = None;
        let done = done.unwrap_or_else(|_| panic!("{name} panicked"));
        assert!(took < MOST_TIME, "{name}: {took:?}");
        assert!(memory < MOST_MEMORY, "{name}: {memory} bytes");
        self.totals.memory.fetch_max(memory, Ordering::Relaxed);
        let command = what.split(' ').next().unwrap_or_default();
        *self.totals.costs.lock().unwrap().entry(command.into()).or_default() += took;
        let mut slowest = self.totals.slowest.lock().unwrap();
        if took.as_micros() as u64 > slowest.0 {
            *slowest = (took.as_micros() as u64, name);
        }
        done
    }

    /// Runs every command on the dump in `path`, opened once for all, but only one of the composed commands; and one command on a newly opened
    /// dump, which must make no difference.
    fn all_commands(&self, path: &str) {
        let number = self.number as usize;
        let mut rng = Rng::new(self.number ^ 0xabcd);
        allocations::start();
        let dump = self.bounded("opening", || Dump::open(path, &OpenOptions::default()));
        // No command takes more than three dumps.
        let dumps = dump.map(|dump| [dump.clone(), dump.clone(), dump]);
        let turn = base::COMPOSED[Rng::new(self.number ^ 0x7171).below(base::COMPOSED.len())];
        let in_turn = |name: &str| name == turn || !base::COMPOSED.contains(&name);
        let commands: Vec<&Vec<Vec<String>>> = base::COMMANDS.iter().filter(|forms| in_turn(&forms[0][0])).collect();
        let alone = rng.below(commands.len());
        for (i, forms) in commands.into_iter().enumerate() {
            let form = &forms[(number / base::ROUND) % forms.len()];
            let mut args = self.base.command(form, path, &mut rng);
            args.push("--no-local-files".into());
            if !args.iter().any(|a| a == "--dot" || a == "--format") {
                args.extend(["--format", FORMATS[(number + i) % FORMATS.len()]].map(String::from));
            }
            if form.iter().any(|w| w == "OUT") {
                args.push("--force".into());
            }
            let json = args.ends_with(&["--format".into(), "json".into()]);
            let line = args.join(" ");
            let cli = allocations::uncounted(|| self.watched.parsed(args));
            let anew = || self.bounded(&line, || common::captured(|streams| cli::run_parsed(&cli, streams)));
            let ran = match &dumps {
                Ok(dumps) => self.bounded(&line, || common::captured(|streams| cli.run_on(dumps, streams))),
                Err(_) => anew(),
            };
            self.check(&line, &ran, json);
            if dumps.is_ok() && i == alone {
                let anew = anew();
                let (expected, found) = ((ran.exit, &ran.out, &ran.err), (anew.exit, &anew.out, &anew.err));
                assert!(
                    expected == found,
                    "{} case {number}: {line}: {expected:?} of an open dump, {found:?} of one opened anew",
                    self.base.name
                );
                self.totals.anew.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.totals.dumps.fetch_add(1, Ordering::Relaxed);
    }

    fn check(&self, line: &str, ran: &common::Ran, json: bool) {
        let say = || format!("{} case {}: {line}: {:?} {}", self.base.name, self.number, ran.exit, ran.err);
        assert!(matches!(ran.exit.code(), 0 | 1 | 3 | 4 | 5), "{}", say());
        assert!(!ran.out.is_empty() || !ran.err.is_empty(), "nothing said: {}", say());
        // A partial dump in which nothing was found has no answer, only a message.
        if json && (ran.exit.code() == 0 || ran.exit.code() == 5 && !ran.out.is_empty()) {
            assert!(serde_json::from_str::<IgnoredAny>(&ran.out).is_ok(), "no JSON: {}", say());
        }
        let counter = match ran.exit.code() {
            0 | 1 => &self.totals.answered,
            5 => &self.totals.partial,
            _ => &self.totals.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.totals.commands.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs the cases `0..count` of `bases` on all workers, each with its own file per base.
fn campaign(what: &str, bases: &[Base], count: u64, harm: impl Fn(&Base, u64, &File) -> Vec<damage::Undo> + Sync) {
    let only = std::env::var("GCDUMP_MUTATION_CASE").ok().and_then(|n| n.trim_start_matches(char::is_alphabetic).parse().ok());
    let first = wanted("GCDUMP_MUTATION_FROM", 0).min(count);
    let (from, to) = only.map_or((first, count), |n: u64| (n, n + 1));
    let (next, totals, started) = (AtomicU64::new(from), Totals::default(), Instant::now());
    let watched: Vec<Watched> = (0..WORKERS).map(|_| Watched::default()).collect();
    let last = tempfile::Builder::new().prefix("gcdump-case-").tempfile().unwrap();
    println!("{what}: the last case is in {}", last.path().display());
    // Output files of commands are beside the dumps.
    let folder = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    let (failure, next, totals, harm) = (Mutex::new(None), &next, &totals, &harm);
    std::thread::scope(|scope| {
        let failure = &failure;
        let workers: Vec<_> = watched
            .iter()
            .enumerate()
            .map(|(slot, watched)| {
                let (last, folder) = (last.as_file(), folder.path());
                let work = move || {
                    let files: Vec<_> = bases.iter().map(|base| base.file(folder)).collect();
                    loop {
                        let case = next.fetch_add(1, Ordering::Relaxed);
                        if case >= to {
                            break;
                        }
                        let i = case as usize % bases.len();
                        let (base, file) = (&bases[i], &files[i]);
                        last.write_all_at(format!("{case:<20}").as_bytes(), slot as u64 * 20).unwrap();
                        let undo = harm(base, case, file.as_file());
                        Case { base, number: case, totals, watched }.all_commands(file.path().to_str().unwrap());
                        damage::undo(file.as_file(), base, &undo);
                    }
                };
                scope.spawn(move || {
                    // A separate pool keeps walks on this thread, so that workers do not wait for each other.
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    if let Err(e) = catch_unwind(AssertUnwindSafe(|| pool.install(work))) {
                        next.store(to, Ordering::Relaxed);
                        failure.lock().unwrap().get_or_insert(e);
                    }
                })
            })
            .collect();
        let (done, watched) = (&done, &watched);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                for w in watched {
                    let (case, since) = w.case.lock().unwrap().clone();
                    if since.is_some_and(|s| s.elapsed() > MOST_TIME * 12) {
                        let _ = writeln!(std::io::stderr(), "hangs: {case}");
                        std::process::abort();
                    }
                }
            }
        });
        workers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    totals.print(what, started);
    if let Some(e) = failure.into_inner().unwrap() {
        std::panic::resume_unwind(e);
    }
    let n = |a: &AtomicU64| a.load(Ordering::Relaxed);
    assert_eq!(n(&totals.commands), (to - from) * (base::COMMANDS.len() - base::COMPOSED.len() + 1) as u64);
    // Mutations that always hide the runtime would test nothing.
    assert!(only.is_some() || what.starts_with("truncations") || n(&totals.answered) + n(&totals.partial) > n(&totals.refused));
}

fn wanted(variable: &str, default: usize) -> u64 {
    std::env::var(variable).map_or(default as u64, |n| n.parse().unwrap())
}

/// Whether `GCDUMP_MUTATION_CASE` is unset, or names a case of this kind.
fn wants(kind: &str) -> bool {
    std::env::var("GCDUMP_MUTATION_CASE").map_or(true, |case| case.is_empty() || case.starts_with(kind))
}

/// Campaigns run in sequence: each uses as many workers as there are parallel tests.
#[test]
fn every_command_survives_every_mutation() {
    let (small, real) = (&*base::SYNTHETIC, &*base::REAL);
    let mutations = wanted("GCDUMP_MUTATIONS", common::cases(2, 100));
    // Real dumps take five times as long, but have type names, fields and statics.
    let of_real = wanted("GCDUMP_REAL_MUTATIONS", common::cases(1, 16));
    let truncations = wanted("GCDUMP_TRUNCATIONS", common::cases(2, 64));
    if wants("s") && mutations > 0 {
        campaign("mutations of synthetic dumps", small, mutations, damage::mutate);
    }
    if wants("r") && of_real > 0 {
        campaign("mutations of real dumps", real, of_real, damage::mutate);
    }
    if wants("t") {
        campaign("truncations of synthetic dumps", small, truncations, damage::truncate);
    }
    if wants("u") {
        campaign("truncations of real dumps", real, truncations / 8, damage::truncate);
    }
}
