//! Speed. `info` and `heap` must not depend on the size of the dump; the walk is compared with ClrMD if the lab is available:
//! `cargo test --release --test it perf:: -- --ignored --nocapture` (makes a dump of 0.9 GB in the lab's folder, 20 s).

use crate::common;
use crate::harness::{Tested, ignored};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gcdump::Dump;
use gcdump::internals::base::Silent;
use gcdump::internals::gc::{Object, Visitor};

/// Limit of the time for a dump of 1 GB.
const BAR: Duration = Duration::from_millis(50);

#[test]
fn info_and_heap_take_no_longer_on_a_large_dump() -> Tested {
    let (dumps, _) = common::known_dumps(|row| row["bytes"].as_u64() > Some(500 << 20))?;
    if dumps.is_empty() {
        return ignored("no dump over 500 MB is unpacked");
    }
    for dump in dumps {
        for command in ["info", "heap"] {
            // The best of several runs; of many if other processes interfere.
            let mut best = Duration::MAX;
            for i in 0..200 {
                best = best.min(timed(&[command], &dump.path));
                if i >= 6 && best < BAR {
                    break;
                }
            }
            println!("{command} on {} ({} MB): {best:?}", dump.name, dump.path.metadata().unwrap().len() >> 20);
            assert!(best < BAR, "{command} on {} took {best:?}, the bar is {BAR:?}", dump.name);
        }
    }
    Ok(())
}

fn timed(command: &[&str], dump: &Path) -> Duration {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_gcdump"))
        .args(command)
        .arg("--no-local-files")
        .arg(dump)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    // If module files are missing, stack roots are conservative.
    assert!(matches!(status.code(), Some(0 | 5)));
    start.elapsed()
}

/// Returns a dump of 16.8 million objects, which is made once.
fn big(lab: &Path) -> PathBuf {
    let dump = lab.join("out/perf.dmp");
    if !dump.is_file() {
        let done = Command::new(lab.join("net10/lab"))
            .args(["big", "--n", "1000000", "--label", "perf", "--type", "heap", "--out"])
            .arg(lab.join("out"))
            .env_clear()
            .envs([("PATH", "/usr/bin"), ("DOTNET_gcServer", "0")])
            .status();
        assert!(done.unwrap().success());
    }
    dump
}

#[derive(Default)]
struct Count(u64);

impl Visitor for Count {
    fn object(&mut self, object: &Object<'_>) {
        self.0 += u64::from(object.size > 0);
    }
}

/// Private memory of this process (not mapped from files), in MB.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap_or("0");
    line.split_whitespace().find_map(|w| w.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[test]
#[ignore = "makes a large dump; run it on a quiet machine, without other tests"]
fn the_walk_is_compared_with_clrmd() -> Tested {
    let lab = common::needs_lab()?;
    let dump = big(&lab);
    // The whole process and ClrMD's walk alternate on the same machine.
    let oracle = || {
        let run = Command::new(lab.join("net10/clrmd-oracle"))
            .arg(&dump)
            .arg("--dac")
            .arg(lab.join("net10/libmscordaccore.so"))
            .args(["stat", "--repeat", "1", "--quiet"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        let ms = text.split(" ms=").nth(1).and_then(|t| t.split_whitespace().next()?.parse::<f64>().ok());
        ms.map(|ms| Duration::from_secs_f64(ms / 1000.0))
    };
    let mut rounds = Vec::new();
    for _ in 0..5 {
        let ours = (0..3).map(|_| timed(&["stat"], &dump)).min().unwrap();
        let Some(theirs) = oracle() else { return ignored("the oracle does not answer") };
        println!(
            "stat, whole process: {ours:?}; only ClrMD's walk: {theirs:?}; ratio 1 : {:.1}",
            theirs.as_secs_f64() / ours.as_secs_f64()
        );
        rounds.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }
    rounds.sort_by(f64::total_cmp);
    let process = Dump::open(&dump, &gcdump::OpenOptions::default()).unwrap();
    let runtime = process.runtime().unwrap();
    let heap = common::walker(&runtime);
    let mut times = Vec::new();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let walk = || {
            let start = Instant::now();
            let objects: u64 = pool.install(|| heap.walk(&Silent, Count::default)).visitors.iter().map(|c| c.0).sum();
            (start.elapsed(), objects)
        };
        let (time, objects) = (0..7).map(|_| walk()).min().unwrap();
        println!("{threads} threads: {objects} objects in {time:?}, {:.1} ns per object", time.as_secs_f64() * 1e9 / objects as f64);
        times.push((time.as_secs_f64(), objects));
    }
    println!("two threads are {:.2} times as fast; {} MB beside the mapped file", times[0].0 / times[1].0, own_memory());
    println!("median ratio to ClrMD 1 : {:.1}", rounds[rounds.len() / 2]);
    assert!(times[0].0 * 1e9 / times[0].1 as f64 <= 20.0, "more than 20 ns per object on one thread");
    assert!(own_memory() < 100);
    Ok(())
}

/// 100,000 frames, as 1,000 threads with 100 frames each: the stacks of real dumps, repeated.
#[test]
#[ignore = "a measurement"]
fn a_hundred_thousand_frames() {
    const FRAMES: usize = 100_000;
    const RUNS: u32 = 5;
    for name in ["net10-wks-stacks-heap", "net8-wks-stacks-heap", "net10-wks-deadlock-heap"] {
        let path = common::unpacked().join(format!("{name}.dmp"));
        let Ok(dump) = Dump::open(&path, &gcdump::OpenOptions::new()) else { continue };
        let cli = common::parsed(&["stacks", "--json", path.to_str().unwrap()]);
        let frames = |out: &str| out.matches("\"kind\":").count();
        let walk = || common::captured(|streams| cli.run_on(std::slice::from_ref(&dump), streams));
        let per_run = frames(&walk().out);
        let rounds = FRAMES.div_ceil(per_run);
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            (0..rounds).for_each(|_| drop(walk()));
            best = best.min(start.elapsed());
        }
        println!("{name}: {} frames in {best:?}, with what each holds, as JSON", rounds * per_run);
    }
}
