//! Attacks with knowledge of the source: small files that ask for much memory or time.
//!
//! The figures in `docs/security.md` are from the same files at full size, which `GCDUMP_ATTACKS=FOLDER cargo test --test it attacks::written`
//! writes.

mod cases;
mod make;
mod objects;
mod programs;
mod series;
mod snapshots;
mod stacks;
mod tables;
mod threads;
mod types;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cases::{ALL, Attack, End};
pub use objects::Heap;
use serde_json::Value;

use crate::common::{self, Ran};
use crate::mutation::allocations;

/// Bytes that a command may allocate at one time, in addition to some for each byte of the dump.
const MEMORY: u64 = 100 << 20;
const MEMORY_PER_BYTE: u64 = 10;
/// Time that a command may take, unoptimized and while other tests run.
const TIME: Duration = Duration::from_secs(10);

impl Attack {
    /// The command line for the file in `dir`.
    fn line(&self, dir: &Path) -> Vec<String> {
        let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
        let word = |word: &&str| match *word {
            "DUMP" => path("attack.dmp"),
            "OUT" => path("trimmed.dmp"),
            "DIR" => path(""),
            word => word.into(),
        };
        self.args.iter().map(word).collect()
    }

    /// Makes the file in `dir` and returns its size in bytes.
    fn write(&self, dir: &Path, part: u64) -> u64 {
        let bytes = (self.make)(dir, part);
        std::fs::write(dir.join("attack.dmp"), &bytes).unwrap();
        bytes.len() as u64
    }
}

/// Whether a limit was reported: on opening, or on what is read about types.
fn bounded(ran: &Ran) -> bool {
    let answer: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let mut notes = answer["warnings"].as_array().into_iter().flatten();
    let ends = [
        "opening the dump ended",
        "the assembly list has a cycle or exceeds its limit",
        "reading types ended",
        "reading modules ended",
        "the table of all",
        "reading the lists of objects ended",
        "reading delegates ended",
        "not all debug information of the program was read",
        "not all symbols of the program were read",
        "reading handle tables ended",
        "reading finalization queues ended",
        "reading the sync table ended",
        "looking up code ended",
        "walking ",
        "collecting roots ended",
        "reading static fields ended",
        "listing stacks ended",
        "naming threads ended",
        "listing exceptions ended",
        "reading exceptions in flight ended",
        "there are too many cross references",
    ];
    let ended = |message: &str| ends.iter().any(|end| message.starts_with(end));
    let claimed = |message: &str| message.ends_with("of another thread: it is walked once") || message.ends_with("those are read once");
    let noted = notes.any(|n| {
        let message = n["message"].as_str().unwrap();
        n["kind"] == "limit-hit" && ended(message) || n["kind"] == "invalid" && claimed(message)
    });
    noted || ran.err.contains("before opening the dump reached its limits")
}

#[test]
fn none_takes_much_memory_or_time() {
    let part = 4;
    let work = || {
        for attack in common::sample(ALL, 9) {
            let dir = tempfile::tempdir().unwrap();
            let len = attack.write(dir.path(), part);
            let line = attack.line(dir.path());
            let started = common::Stopwatch::start();
            allocations::start();
            let ran = common::run(&line);
            let (memory, took) = (allocations::peak(), started.elapsed());
            let say = || format!("{}: {:?} {} {}", attack.name, ran.exit, ran.err, ran.out.get(..2000).unwrap_or(&ran.out));
            println!("{}: {} KiB for {} KiB, {} ms, exit {}", attack.name, memory >> 10, len >> 10, took.as_millis(), ran.exit.code());
            // The answer is kept as text, whose buffer grows by doubling.
            let most = MEMORY + MEMORY_PER_BYTE * len + 2 * ran.out.len() as u64;
            assert!(memory < most, "{memory} bytes for {len}: {}", say());
            assert!(took < TIME, "{took:?}: {}", say());
            let code = ran.exit.code();
            match attack.end {
                End::Whole => assert!(code == 0 && !bounded(&ran), "{}", say()),
                End::Bounded => assert!(matches!(code, 4 | 5) && bounded(&ran), "{}", say()),
                End::Refused(why) => assert!(code == 3 && ran.err.contains(why), "{}", say()),
                End::Damaged => assert!(matches!(code, 4 | 5), "{}", say()),
            }
        }
    };
    // In a pool of one thread, all allocations of a command are on this thread.
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work);
}

/// A file of four times the size costs at most six times as much, beyond the fixed cost of each command. Comparisons begin with the smallest
/// part, since the budgets have fixed parts.
#[test]
fn the_cost_of_walks_is_proportional_to_the_file() {
    let work = || {
        let walks: Vec<&Attack> = ALL.iter().filter(|attack| attack.name.starts_with("49-")).collect();
        for attack in common::sample(walks, 5) {
            let costs = [64, 16, 4].map(|part| {
                let dir = tempfile::tempdir().unwrap();
                let len = attack.write(dir.path(), part);
                let line = attack.line(dir.path());
                let started = common::Stopwatch::start();
                allocations::start();
                common::run(&line);
                (allocations::peak(), started.elapsed(), len)
            });
            println!("{}: {costs:?}", attack.name);
            for [(memory, time, _), (more_memory, more_time, _)] in [[costs[0], costs[1]], [costs[1], costs[2]]] {
                assert!(more_memory < 6 * memory + (32 << 20), "{}: {costs:?}", attack.name);
                assert!(more_time < 6 * time + Duration::from_secs(3), "{}: {costs:?}", attack.name);
            }
        }
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work);
}

/// Runs the program on an attack, by name.
fn program(name: &str, part: u64, more: &[&str]) -> (Option<i32>, String, Duration) {
    let attack = ALL.iter().find(|a| a.name == name).unwrap();
    let dir = tempfile::tempdir().unwrap();
    attack.write(dir.path(), part);
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    let ran = command.args(attack.line(dir.path())).args(more).output().unwrap();
    (ran.status.code(), String::from_utf8(ran.stderr).unwrap(), started.elapsed())
}

#[test]
fn the_time_limit_ends_the_opening() {
    // Searches, the container itself, and decompression.
    for name in common::sample(["15-chains", "16-holders", "11-headers", "4-shared-contexts", "8-window"], 2) {
        let (code, err, took) = program(name, 1, &["--timeout", "2ms"]);
        assert_eq!(code, Some(6), "{name}: {err}");
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}

/// A shell outlives its commands, so each has to stop by itself, whatever loop it is in. Before reads were counted, they took 4 s and more.
#[test]
fn the_time_limit_of_a_shell_ends_every_reader() {
    for name in common::sample(["16-holders", "19-again", "15-chains", "21-names-of-types", "21-handles"], 3) {
        let attack = ALL.iter().find(|a| a.name == name).unwrap();
        let dir = tempfile::tempdir().unwrap();
        attack.write(dir.path(), 1);
        let line: Vec<_> = attack.line(dir.path()).into_iter().filter(|word| !word.ends_with("attack.dmp")).collect();
        let started = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
        command.args(["shell", "--timeout", "10ms", "--no-local-files", "-c", &line.join(" ")]).arg(dir.path().join("attack.dmp"));
        let ran = command.output().unwrap();
        let (err, took) = (String::from_utf8(ran.stderr).unwrap(), started.elapsed());
        assert!(ran.status.code() == Some(6) && err.contains("timed out"), "{name}: {err}");
        // Other work on the machine delays the answer, too.
        assert!(took < Duration::from_secs(20), "{name}: {took:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_memory_limit_applies_to_work_without_an_estimate() {
    let (code, err, _) = program("15-chains", 1, &["--max-memory", "1M"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("more than 1.0 MiB of memory is needed; --max-memory BYTES allows more"), "{err}");
    // The window of a decompressor is memory, too.
    let (code, err, _) = program("8-window", 64, &["--max-memory", "16M"]);
    assert!(code == Some(3) && err.contains("more than 16.0 MiB"), "{code:?} {err}");
    let (code, err, _) = program("8-window", 64, &["--max-memory", "64M"]);
    assert_eq!(code, Some(0), "{err}");
}

/// Writes the attacks at full size into the folder `GCDUMP_ATTACKS`, so that the program can be measured with them. `GCDUMP_ATTACK` selects
/// those whose names begin with it.
#[test]
fn written() {
    let Some(to) = std::env::var_os("GCDUMP_ATTACKS").map(std::path::PathBuf::from) else { return };
    let prefix = std::env::var("GCDUMP_ATTACK").unwrap_or_default();
    for attack in ALL.iter().filter(|attack| attack.name.starts_with(&prefix)) {
        let dir = to.join(attack.name);
        std::fs::create_dir_all(&dir).unwrap();
        attack.write(&dir, 1);
        std::fs::write(dir.join("args"), attack.args.join(" ")).unwrap();
    }
}
