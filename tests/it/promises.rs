//! The result of a command is what `info` announces: "full" ends with exit code 0, "partial" with 5, "no" with 4 or 5.

use crate::harness::Tested;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crate::common::{self, cases};
use crate::mutation::{base, damage};
use crate::support::{GcPart, Hostile, Spec};
use crate::{corpus, support::Target};

/// Number of promises that were kept, and those that were broken.
#[derive(Default)]
struct Kept {
    counts: BTreeMap<String, u64>,
    broken: Vec<String>,
}

impl Kept {
    /// Compares what `info` says about the dump at `path` with the commands.
    fn check(&mut self, path: &Path, what: &str) {
        let path = path.to_str().unwrap();
        let ran = common::run(&["info", "--json", "--no-local-files", path]);
        // If the dump cannot be read, nothing is promised.
        if ran.out.is_empty() {
            return;
        }
        for answer in ran.json()["data"]["answers"].as_array().unwrap() {
            let (name, said) = (answer["command"].as_str().unwrap(), answer["answer"].as_str().unwrap());
            let commands: &[&str] = if name == "objects" { &["objects", "stat"] } else { &[name] };
            for command in commands {
                let exit = common::run(&[command, "--json", "--no-local-files", path]).exit.code();
                let kept = match said {
                    "full" => exit == 0,
                    "partial" => exit == 5,
                    _ => exit == 4 || exit == 5,
                };
                *self.counts.entry(said.into()).or_default() += 1;
                if !kept {
                    self.broken.push(format!("{what}: {command} is said to be {answer}, its exit code is {exit}"));
                }
            }
        }
    }

    fn check_bytes(&mut self, bytes: &[u8], what: &str) {
        let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        file.write_all(bytes).unwrap();
        self.check(file.path(), what);
    }

    /// Checks that all promises were kept, and that there were some of each of `said`.
    fn all(&self, said: &[&str]) {
        println!("{:?}", self.counts);
        let shown: Vec<&String> = self.broken.iter().take(20).collect();
        assert!(self.broken.is_empty(), "{} of {:?} broken:\n{shown:#?}", self.broken.len(), self.counts);
        assert!(said.iter().all(|s| self.counts.contains_key(*s)), "{:?}", self.counts);
    }

    fn merged(parts: Vec<Kept>) -> Kept {
        let mut all = Kept::default();
        for part in parts {
            part.counts.into_iter().for_each(|(said, n)| *all.counts.entry(said).or_default() += n);
            all.broken.extend(part.broken);
        }
        all
    }
}

#[test]
fn of_the_corpus() {
    let kept = common::each(&corpus::one_of_each(), |dump| {
        let mut kept = Kept::default();
        let unpacked = zstd::decode_all(std::fs::File::open(dump).unwrap()).unwrap();
        kept.check_bytes(&unpacked, dump.file_name().unwrap().to_str().unwrap());
        kept
    });
    Kept::merged(kept).all(&["full", "partial", "no"]);
}

#[test]
fn of_the_unpacked_dumps() -> Tested {
    let (dumps, _) = common::known_dumps(|row| row["bytes"].as_u64() < Some(300 << 20))?;
    let dumps: Vec<_> = dumps.into_iter().step_by(cases(8, 4)).collect();
    let kept = common::each(&dumps, |dump| {
        let mut kept = Kept::default();
        kept.check(&dump.path, &dump.name);
        kept
    });
    Kept::merged(kept).all(&[]);
    Ok(())
}

#[test]
fn whatever_the_gc_part_of_the_descriptor_says() {
    let parts = [GcPart::Normal, GcPart::NotYet, GcPart::NotAdvertised, GcPart::Version("c2".into()), GcPart::Version("c99".into())];
    let hostile = [Hostile::No, Hostile::Cycle, Hostile::CutJson];
    let kept = common::each(&common::shapes(), |shape| {
        let mut kept = Kept::default();
        for gc in &parts {
            for (server, regions) in common::sample([(None, true), (None, false), (Some(2), true)], 3) {
                for hostile in hostile {
                    let spec = Spec { gc: gc.clone(), server, regions, hostile, ..Spec::standard(*shape) };
                    kept.check_bytes(&spec.build().to_elf_core(), &format!("{spec:?}"));
                }
            }
        }
        kept
    });
    Kept::merged(kept).all(&["full", "no"]);
}

#[test]
fn of_dumps_without_a_part_of_memory() {
    let kept = common::each(&common::shapes(), |shape| {
        let mut kept = Kept::default();
        let server = shape.big.then_some(2);
        let target = Spec { server, regions: shape.ptr == 8, ..Spec::standard(*shape) }.build();
        for (start, len) in target.ranges() {
            let parts = (0..len.div_ceil(0x400)).map(|i| (start + i * 0x400, 0x400));
            for (n, (from, bytes)) in std::iter::once((start, len)).chain(parts).enumerate() {
                if n % cases(16, 3) == 0 {
                    let make = if n % 2 == 0 { Target::to_elf_core } else { Target::to_minidump };
                    kept.check_bytes(&make(&target.without(from, bytes)), &format!("{shape:?} without {bytes:#x} bytes at {from:#x}"));
                }
            }
        }
        kept
    });
    Kept::merged(kept).all(&["full", "partial", "no"]);
}

/// Returns offset and length of each name and number of the descriptors' JSON in `bytes`.
fn items(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for start in memchr::memmem::find_iter(bytes, b"{\"") {
        let end = bytes[start..].iter().position(|b| *b == 0).map_or(bytes.len(), |n| start + n);
        let text = &bytes[start..end];
        if !text.windows(10).any(|w| w == b"\"baseline\"") {
            continue;
        }
        let mut at = 0;
        while at < text.len() {
            let class = |b: u8| if b.is_ascii_digit() { 1 } else { u8::from(b.is_ascii_alphabetic()) * 2 };
            let len = text[at..].iter().take_while(|b| class(**b) == class(text[at])).count().max(1);
            if class(text[at]) != 0 {
                out.push((start + at, len));
            }
            at += len;
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

#[test]
fn of_damaged_descriptors() {
    let kept = common::each(&common::shapes(), |shape| {
        let mut kept = Kept::default();
        let server = shape.big.then_some(2);
        let whole = Spec { server, ..Spec::standard(*shape) }.build().to_elf_core();
        let items = items(&whole);
        assert!(items.len() > 300, "{}", items.len());
        for (n, (at, len)) in items.into_iter().enumerate() {
            if n % cases(53, 11) != (usize::from(shape.big) + shape.ptr as usize) % cases(53, 11) {
                continue;
            }
            let mut copy = whole.clone();
            // The new name is unknown; the new offset or number is out of range.
            let with = if copy[at].is_ascii_digit() { b'9' } else { b'Q' };
            copy[at..at + len].fill(with);
            kept.check_bytes(&copy, &format!("{shape:?} {} replaced at {at:#x}", String::from_utf8_lossy(&whole[at..at + len])));
        }
        kept
    });
    Kept::merged(kept).all(&["full", "no"]);
}

fn of_mutations(bases: &[base::Base], count: usize) {
    let cases: Vec<u64> = (0..count as u64).collect();
    let kept = common::each(&cases, |case| {
        let mut kept = Kept::default();
        let base = &bases[*case as usize % bases.len()];
        let file = base.file(&std::env::temp_dir());
        let harm = if case % 5 == 4 { damage::truncate } else { damage::mutate };
        harm(base, *case, file.as_file());
        kept.check(file.path(), &format!("{} case {case}", base.name));
        kept
    });
    Kept::merged(kept).all(&["full"]);
}

#[test]
fn of_mutated_synthetic_dumps() {
    of_mutations(&base::SYNTHETIC, cases(6, 96));
}

#[test]
fn of_mutated_real_dumps() {
    of_mutations(&base::REAL, cases(1, 12));
}
