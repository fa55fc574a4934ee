//! Dumps whose method tables are lost: sizes, references and texts of objects are inferred from the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{ask, own_unpacked, run, unpacked};
use crate::harness::{Ignored, Tested};
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use gcdump::model::Carve;
use gcdump::{Dump, OpenOptions};
use serde_json::Value;

fn open(path: &Path) -> Dump {
    OpenOptions::new().carve(Carve::Auto).open(path).unwrap()
}

/// The objects of a heap: sizes by address.
fn objects(path: &Path) -> BTreeMap<Addr, u64> {
    let heap = open(path).runtime().unwrap().heap().unwrap();
    heap.objects().map(|o| (o.address(), o.size())).collect()
}

/// Numbers of true objects, of those found with the right size, and of false ones.
fn compare(truth: &BTreeMap<Addr, u64>, found: &BTreeMap<Addr, u64>) -> (usize, usize, usize) {
    let right = truth.iter().filter(|(at, size)| found.get(at) == Some(size)).count();
    (truth.len(), right, found.keys().filter(|at| !truth.contains_key(at)).count())
}

/// How often each text occurs.
fn strings(path: &Path) -> BTreeMap<String, u64> {
    let (_, answer) = ask(path, &["strings", "--like", "*", "--top", "0"]);
    let list = answer["data"]["strings"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    list.into_iter().map(|s| (s["value"].as_str().unwrap().to_string(), s["count"].as_u64().unwrap())).collect()
}

fn dump(name: &str) -> Result<PathBuf, Ignored> {
    let path = unpacked().join(format!("{name}.dmp"));
    if path.exists() { Ok(path) } else { Err(Ignored(format!("{name} is not unpacked"))) }
}

/// The first `part` of 100 of a file.
fn cut(path: &Path, part: usize) -> tempfile::NamedTempFile {
    let bytes = std::fs::read(path).unwrap();
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), &bytes[..bytes.len() / 100 * part]).unwrap();
    file
}

/// Checks the warnings and names of such answers.
fn check_marks(path: &Path) {
    for command in ["stat", "objects", "strings", "heap", "segments", "retained", "roots", "verify", "info", "analyze"] {
        let (exit, answer) = ask(path, &[command]);
        assert!(matches!(exit, Exit::Partial | Exit::Negative), "{command}: {exit:?}: {answer}");
        assert_eq!(answer["data"]["complete"], false, "{command}");
        let warned = answer["warnings"].as_array().unwrap().iter().any(|w| w["message"].as_str().unwrap().contains("method tables of"));
        assert!(warned, "{command}: {}", answer["warnings"]);
    }
    let (_, stat) = ask(path, &["stat", "--top", "0"]);
    assert!(stat["data"]["carved"]["because"].is_string());
    let names: BTreeSet<&str> = stat["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap()).collect();
    assert!(names.contains("System.String"));
    let others = || names.iter().filter(|name| !["System.String", "Free"].contains(*name));
    assert!(others().count() > 50 && others().all(|name| name.starts_with("<type at 0x")), "{names:?}");
}

#[test]
fn objects_without_method_tables_have_sizes_references_and_texts() -> Tested {
    let (half, whole) = (dump("dmg-net10-basics-half-heap")?, dump("net10-wks-basics-heap")?);
    let (all, right, invented) = compare(&objects(&whole), &objects(&half));
    println!("{right} of {all}, {invented} invented");
    assert!(right * 100 >= all * 95 && invented * 200 <= all, "{right} of {all}, {invented} invented");
    let (truth, found) = (strings(&whole), strings(&half));
    let lost: Vec<_> = truth.iter().filter(|(text, count)| found.get(*text) < Some(count)).collect();
    assert!(lost.is_empty() && truth.values().sum::<u64>() >= 600, "{lost:?}");
    check_marks(&half);
    // Objects lead to each other.
    let (_, verify) = ask(&half, &["verify"]);
    assert!(verify["data"]["totals"]["references"].as_u64() > Some(3000), "{}", verify["data"]["totals"]);
    let (_, stat) = ask(&half, &["stat", "--top", "3"]);
    let known = &stat["data"]["carved"];
    let of = |key: &str| known[key].as_u64().unwrap();
    assert!(of("references_to_objects") * 100 >= of("references") * 98, "{known}");
    // The head of a list of a thousand nodes.
    let (_, path) = ask(&half, &["refs", "0x7f316dc1e168"]);
    assert!(path["data"].to_string().contains("<type at 0x"), "{path}");
    let refused = run(&["stat", "--carve", "never", half.to_str().unwrap()]);
    assert!(!matches!(refused.exit, Exit::Ok | Exit::Partial), "{:?}", refused.exit);
    Tested::Ok(())
}

/// The heap itself may be cut, too.
#[test]
fn dumps_that_are_cut_anywhere_before_their_method_tables_have_their_objects() {
    let whole = own_unpacked();
    let truth = objects(&whole);
    for part in [40, 50, 60] {
        let file = cut(&whole, part);
        let found = objects(file.path());
        let memory = open(file.path());
        let captured = |at: &Addr, size: &u64| memory.memory().slice(*at, *size - 8).is_some();
        let there: BTreeMap<Addr, u64> = truth.iter().filter(|(at, size)| captured(at, size)).map(|(at, size)| (*at, *size)).collect();
        let (all, right, invented) = compare(&there, &found);
        println!("{part} %: {right} of {all}, {invented} invented");
        assert!(all > 2000 && right * 100 >= all * 90 && invented * 100 <= all, "{part} %: {right} of {all}, {invented} invented");
        check_marks(file.path());
    }
}

/// The segments of an ELF core that the process could write: address, offset in the file, length.
fn writable(core: &[u8]) -> Vec<(u64, usize, usize)> {
    let number = |at: usize, len: usize| core[at..at + len].iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    let (first, count) = (usize::try_from(number(32, 8)).unwrap(), usize::try_from(number(56, 2)).unwrap());
    let headers = (0..count).map(|i| first + i * 56).filter(|at| number(*at, 4) == 1 && number(at + 4, 4) & 3 == 2);
    let size = |at: usize| usize::try_from(number(at, 8)).unwrap();
    headers.map(|at| (number(at + 16, 8), size(at + 8), size(at + 32))).collect()
}

/// Dumps without method tables whose memory is full of words that may be objects.
#[test]
fn words_that_look_like_objects_of_lost_types_are_read_in_bounded_time() {
    let cut = std::fs::read(cut(&own_unpacked(), 50).path()).unwrap();
    let segments = writable(&cut);
    // The memory with the method table of strings.
    let whole = open(&own_unpacked());
    let string = whole.runtime().unwrap().heap().unwrap().objects().find(|o| o.is_string()).unwrap().method_table();
    let lost = whole.file().regions.iter().find(|r| r.range.contains(string)).unwrap().range;
    let (tables, slots) = (lost.start.0, lost.len() / 8);
    let here: Vec<_> = segments.iter().filter(|(_, offset, len)| offset + len <= cut.len() && *len >= 1 << 8).collect();
    assert!(slots > 64 && here.iter().map(|(.., len)| len).sum::<usize>() > 150 << 10, "{slots} {}", here.len());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    // All of the memory, or the second half of each segment, so that objects are left.
    for (pattern, first) in (0..9).flat_map(|pattern| [(pattern, 0), (pattern, 2)]) {
        let mut bytes = cut.clone();
        for (start, offset, len) in &here {
            let words = u64::try_from(len / 8).unwrap();
            for i in words * first / 4..words {
                let (at, step) = (start + i * 8, usize::try_from(i % 4).unwrap());
                let value = match pattern {
                    // As many types as possible, one type, and one that is everywhere.
                    0 => [0, tables + i * 8 % (slots * 8)][usize::from(i % 2 == 1)],
                    1 => [0, tables, 0, 0][step],
                    2 => tables,
                    // Arrays of huge and of negative lengths, and those that end with their memory.
                    3 => [0, tables + next(8) * 8, 0x7fff_ffff, 0][step],
                    4 => [0, tables + next(8) * 8, u64::from(u32::MAX), 0][step],
                    5 => [0, tables + next(8) * 8, u64::try_from(*len).unwrap() - i * 8, at][step],
                    // Strings of one character, and objects that lead to each other.
                    6 => [0, tables, 1 | 0x61 << 32, 0][step],
                    7 => [0, tables + next(64) * 8, start + next(512) * 8, at][usize::try_from(next(4)).unwrap()],
                    // Rings, each of which is its own base type and class.
                    _ => start + (i + 1) % 64 * 8,
                };
                let place = offset + usize::try_from(i * 8).unwrap();
                bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let began = std::time::Instant::now();
        for command in ["stat", "strings", "verify", "retained"] {
            let ran = run(&[command, file.path().to_str().unwrap()]);
            assert!(
                matches!(ran.exit, Exit::Partial | Exit::Negative | Exit::NoRuntime),
                "{pattern} {command}: {:?}: {}",
                ran.exit,
                ran.err
            );
        }
        println!("pattern {pattern}: {:?}", began.elapsed());
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{pattern}: {:?}", began.elapsed());
    }
}

/// Offsets of the program headers of a 64-bit core that describe captured memory.
fn loads(core: &[u8]) -> Vec<usize> {
    let number = |at: usize, len: usize| core[at..at + len].iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    let (first, count) = (usize::try_from(number(32, 8)).unwrap(), usize::try_from(number(56, 2)).unwrap());
    (0..count).map(|i| first + i * 56).filter(|at| number(*at, 4) == 1 && number(at + 32, 8) > 0).collect()
}

/// The type of one program header is overwritten, as a flipped bit does.
#[test]
fn memory_without_a_program_header_is_not_called_corrupt() {
    let synthetic = crate::support::Spec::standard(crate::support::Shape::ALL[0]).build().to_elf_core();
    let mut cases = vec![("synthetic".to_string(), synthetic, 1)];
    if let Ok(path) = dump("net10-wks-basics-heap") {
        cases.push(("net10-wks-basics-heap".to_string(), std::fs::read(path).unwrap(), 7));
    }
    for (name, core, step) in cases {
        for (header, unread) in loads(&core).into_iter().step_by(step).flat_map(|header| [(header, true), (header, false)]) {
            let mut bytes = core.clone();
            match unread {
                true => bytes[header..header + 4].fill(0),
                // The whole header is overwritten: only the bytes in the file are left.
                false if u64::from_le_bytes(core[header + 32..header + 40].try_into().unwrap()) < 64 << 10 => continue,
                false => bytes[header..header + 56].fill(0),
            }
            let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            for command in ["verify", "analyze"] {
                let ran = run(&[command, "--json", "--no-local-files", file.path().to_str().unwrap()]);
                // A dump without the runtime's variables is refused.
                let (exit, answer) = if ran.out.is_empty() { (ran.exit, Value::Null) } else { (ran.exit, ran.json()) };
                let findings = answer["data"]["findings"].as_array().cloned().unwrap_or_default();
                let wrong =
                    findings.iter().find(|f| ["object-bad-method-table", "segment-bad-link", "damage"].map(Value::from).contains(&f["id"]));
                assert!(wrong.is_none(), "{name} {header:#x} {unread} {command}: {exit:?} {}", wrong.unwrap());
                let warned = answer["warnings"].to_string().contains("program headers are damaged");
                assert!(answer.is_null() || warned || !unread, "{name} {header:#x} {command}: {answer}");
            }
        }
    }
}
