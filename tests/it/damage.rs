//! Corrupt synthetic dumps of four architectures: no panic, no hang, and a correct exit code.

use crate::common::{self, commands};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::support::{Shape, Spec, Target};
use gcdump::Dump;
use gcdump::analysis::{ContractsQuery, HeapQuery, InfoQuery, ThreadsQuery, contracts, heap, info, threads};
use gcdump::internals::dump::{Bytes, OpenOptions, open_bytes};
use gcdump::internals::gc::HandleFilter;

/// Command lines besides the examples of the registry.
const MORE: &[&[&str]] = &[
    &["heap", "--detail"],
    &["segments", "--free"],
    &["handles"],
    &["handles", "--by", "generation"],
    &["roots", "--weak"],
    &["finalizers", "--objects"],
];
const FORMATS: [&str; 4] = ["table", "json", "ndjson", "csv"];

/// xorshift64*: the same numbers on every machine.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Opens the copy and runs every reader. Returns whether a runtime was found.
fn read_all(bytes: Vec<u8>) -> bool {
    let Ok(dump) = open_bytes(Bytes::Owned(bytes), Path::new("damaged.dmp"), &OpenOptions::default()) else { return false };
    let process = Dump::of(dump, &gcdump::OpenOptions::default());
    serde_json::to_string(&info(&process, &InfoQuery::default()).data).unwrap();
    let Ok(runtime) = process.runtime() else { return false };
    serde_json::to_string(&contracts(&runtime, &ContractsQuery::default()).data).unwrap();
    drop(threads(&runtime, &ThreadsQuery { waits: true, ..ThreadsQuery::default() }));
    if let Ok(gc) = runtime.gc() {
        serde_json::to_string(&heap(&runtime, &HeapQuery { detail: true, ..HeapQuery::default() }).unwrap().data).unwrap();
        serde_json::to_string(&(&*gc.segments(), &*gc.regions(), &*gc.oom())).unwrap();
        drop(gc.walk_handles(&HandleFilter::default(), |_| {}));
    }
    true
}

/// Runs one command on the copy, in one of the formats.
fn run_one(bytes: &[u8], n: usize) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    static FORMS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| commands::forms(MORE));
    let (form, format) = (&FORMS[n % FORMS.len()], FORMATS[n / FORMS.len() % FORMATS.len()]);
    let path = file.path().to_str().unwrap();
    let out = format!("{path}.out");
    let mut args = commands::filled(form, |word| match word {
        dump if commands::is_dump(dump) => Some(path.into()),
        "OUT" => Some(out.clone()),
        // Addresses are unknown before the dump is read.
        "ADDR" | "HANDLE" => Some(format!("{:#x}", 0x1000 * n)),
        _ => None,
    });
    args.push("--no-local-files".into());
    if !args.iter().any(|a| a == "--dot" || a == "--format") {
        args.extend(["--format".into(), format.into()]);
    }
    let ran = common::run(&args);
    commands::remove_out(out.as_ref());
    assert!(matches!(ran.exit.code(), 0 | 1 | 3 | 4 | 5), "{args:?}: {:?} {}", ran.exit, ran.err);
    assert!(!ran.err.is_empty() || !ran.out.is_empty(), "{args:?} said nothing");
}

/// Runs `work`; reports a panic or hang with its cause.
fn survives(what: &str, work: impl FnOnce()) {
    let started = Instant::now();
    assert!(catch_unwind(AssertUnwindSafe(work)).is_ok(), "gcdump panicked on: {what}");
    let took = started.elapsed();
    assert!(took < Duration::from_secs(10), "gcdump took {took:?} on: {what}");
}

type Container = (&'static str, fn(&Target) -> Vec<u8>);
const CONTAINERS: [Container; 2] = [("core", Target::to_elf_core), ("minidump", Target::to_minidump)];

/// Calls `test` for each architecture and container, two at a time.
fn everywhere(test: impl Fn(&Target, &Container, &str) + Sync) {
    let test = &test;
    for shapes in Shape::ALL.chunks(2) {
        std::thread::scope(|scope| {
            for shape in shapes {
                scope.spawn(move || {
                    // A short run alternates between the containers.
                    let turn = usize::from(shape.big) ^ usize::from(shape.ptr == 4);
                    let containers = CONTAINERS.iter().enumerate().skip(if common::full() { 0 } else { turn });
                    for (i, container) in common::sample(containers, CONTAINERS.len()) {
                        let server = (i == usize::from(shape.big)).then_some(2);
                        let target = Spec { server, cpus: 3, regions: shape.ptr == 8, ..Spec::standard(*shape) }.build();
                        test(&target, container, &format!("{shape:?} {} server {server:?}", container.0));
                    }
                });
            }
        });
    }
}

#[test]
fn cut_off_anywhere() {
    everywhere(|target, (_, make), name| {
        let whole = make(target);
        for n in 0..common::cases(25, 80) {
            // Half of the cuts are in the first 4 KiB, in the container's own structures.
            let at = if n < 100 { n * 4096 / 100 } else { (n - 100) * whole.len() / 100 };
            survives(&format!("{name}, cut at {at}"), || {
                read_all(whole[..at].to_vec());
                run_one(&whole[..at], n);
            });
        }
    });
}

#[test]
fn bytes_flipped_anywhere() {
    // Copies per container and flipped bytes per copy: 8 × 625 × 4 = 20 000 in the full run.
    let copies = common::cases(30, 130);
    const FLIPS: usize = 4;
    everywhere(|target, (_, make), name| {
        let whole = make(target);
        let mut found = 0;
        for seed in 1..=copies as u64 {
            let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut copy = whole.clone();
            for _ in 0..FLIPS {
                // A third in the container's structures, the rest anywhere.
                let span = if rng.below(3) == 0 { 2048 } else { whole.len() };
                let at = rng.below(span);
                copy[at] = match rng.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => copy[at] ^ 1 << rng.below(8),
                    _ => rng.next() as u8,
                };
            }
            survives(&format!("{name}, flips of seed {seed}"), || {
                if seed % 5 == 0 {
                    run_one(&copy, seed as usize / 5);
                }
                found += usize::from(read_all(copy));
            });
        }
        // Most corruption must leave the runtime readable, or the test would check nothing.
        assert!(found * 4 > copies, "{name}: {found} of {copies}");
    });
}

#[test]
fn words_of_live_structures_replaced() {
    everywhere(|target, (_, make), name| {
        let mut rng = Rng(0x1234_5678_9abc_def1);
        let ranges = target.ranges();
        let addresses: Vec<u64> = ranges.iter().map(|r| r.0).collect();
        for n in 0..common::cases(25, 80) {
            let mut copy = target.clone();
            for _ in 0..3 {
                // Pointers to other structures, cycles, ends of the address space.
                let (start, range) = copy.memory.ranges.iter().nth(rng.below(ranges.len() - 1)).map(|(a, r)| (*a, r.bytes.len())).unwrap();
                let p = copy.memory.shape.ptr;
                let at = start + rng.below(range / p as usize) as u64 * p;
                let value = match rng.below(5) {
                    0 => u64::MAX,
                    1 => at,
                    2 => u64::MAX - 7,
                    3 => addresses[rng.below(addresses.len())],
                    _ => rng.next(),
                };
                let value = if p == 4 { value & 0xffff_ffff } else { value };
                copy.memory.p(at, value);
            }
            survives(&format!("{name}, words of round {n}"), || {
                let bytes = make(&copy);
                if n % 5 == 0 {
                    run_one(&bytes, n / 5);
                }
                read_all(bytes);
            });
        }
    });
}

#[test]
fn every_range_left_out() {
    everywhere(|target, (_, make), name| {
        for (n, (start, len)) in target.ranges().into_iter().enumerate() {
            // The whole range, and each part of 0x400 bytes.
            let parts = (0..len.div_ceil(0x400)).map(|i| (start + i * 0x400, 0x400));
            for (from, bytes) in common::sample(std::iter::once((start, len)).chain(parts), 4) {
                let cut = target.without(from, bytes);
                survives(&format!("{name}, without {bytes:#x} bytes at {from:#x}"), || {
                    let file = make(&cut);
                    run_one(&file, n);
                    read_all(file);
                });
            }
        }
    });
}
