//! Missing code, unwind info and GC info: reported, and replaced by a scan of the words there; with the module files, the answer is complete
//! again.

use crate::harness::Tested;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{ask_with, folders, list, text};
use crate::absent_pages::without;
use crate::common::{self, Known, known_dumps, own_unpacked, run};
use crate::exact_roots::listed;
use crate::support::Spec;
use gcdump::analysis::StackCoverage;
use gcdump::analysis::{RootsQuery, StacksQuery, stacks};
use gcdump::cli::Exit;
use gcdump::internals::dump;
use gcdump::internals::memory::Memory;
use gcdump::internals::session::roots::RootOptions;
use gcdump::model::{StackFrameKind, Stacks};
use gcdump::{Addr, AddrRange, Dump};
use serde_json::Value;

fn frames(answer: &Value) -> impl Iterator<Item = &Value> {
    list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]))
}

fn gaps(answer: &Value) -> impl Iterator<Item = &Value> {
    list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["gaps"]))
}

/// Returns the gaps of an answer from the dump without files, which must say so.
fn alone(dump: &Known) -> (Exit, Value) {
    let (exit, answer) = ask_with(&dump.path, &[], &["stacks", "--roots"]);
    let gaps = gaps(&answer).count();
    assert_eq!(exit, if gaps > 0 { Exit::Partial } else { Exit::Ok }, "{}: {gaps} gaps", dump.name);
    assert_eq!(answer["data"]["complete"], gaps == 0, "{}", dump.name);
    for t in list(&answer["data"]["threads"]) {
        assert_eq!(t["coverage"] == "precise", list(&t["gaps"]).is_empty(), "{}: {t}", dump.name);
    }
    let reasons: BTreeSet<&str> = list(&answer["warnings"]).iter().map(|w| text(w, "message")).collect();
    for gap in self::gaps(&answer) {
        assert!(reasons.iter().any(|r| r.contains(text(gap, "reason"))), "{}: {gap} is not among {reasons:?}", dump.name);
    }
    (exit, answer)
}

#[test]
fn cores_without_images_name_the_files_that_complete_them() -> Tested {
    let (dumps, _) = known_dumps(|row| (row["kind"] == "gcore" || row["kind"] == "kernel") && row["runtime"] != "net11")?;
    let mut completed = 0;
    for dump in &dumps {
        let (exit, bare) = alone(dump);
        assert_eq!(exit, Exit::Partial, "{}", dump.name);
        let modules: BTreeSet<&str> = gaps(&bare).map(|g| text(g, "module")).collect();
        assert!(!modules.contains(""), "{}: {:?}", dump.name, gaps(&bare).collect::<Vec<_>>());
        let folders = folders(&dump.runtime);
        if folders.is_empty() {
            continue;
        }
        let (exit, whole) = ask_with(&dump.path, &folders, &["stacks", "--roots"]);
        assert_eq!(exit, Exit::Ok, "{}: {}", dump.name, whole["warnings"]);
        assert!(list(&whole["data"]["threads"]).iter().all(|t| t["coverage"] == "precise"), "{}", dump.name);
        let managed: Vec<&Value> = frames(&whole).filter(|f| f["kind"] == "managed").collect();
        let nameless = managed.iter().filter(|f| f["method"].is_null() || text(f, "method").contains('!')).count();
        assert_eq!(nameless, 0, "{}", dump.name);
        // The named files suffice for the frames.
        let only = tempfile::tempdir().unwrap();
        for module in &modules {
            let file = folders.iter().map(|f| f.join(module)).find(|f| f.is_file()).unwrap_or_else(|| panic!("{module}"));
            std::os::unix::fs::symlink(file, only.path().join(module)).unwrap();
        }
        let (_, helped) = ask_with(&dump.path, &[only.path().to_path_buf()], &["stacks", "--roots"]);
        let known = |answer: &Value| frames(answer).filter(|f| f["kind"] == "managed").count();
        assert!(known(&helped) > known(&bare) && gaps(&helped).count() < gaps(&bare).count(), "{}: {modules:?}", dump.name);
        println!("{:<24} {} frames without files, {} with files; {modules:?}", dump.name, known(&bare), managed.len());
        completed += 1;
    }
    assert!(dumps.is_empty() || folders("net10").is_empty() || completed > 2);
    Ok(())
}

/// Every object of the conservative scan within a gap is a root of the answer: none is lost.
#[test]
fn gaps_are_scanned_and_reported() -> Tested {
    let (dumps, _) = known_dumps(|row| row["kind"] == "heap")?;
    let (mut scanned, mut with_gaps, mut exact) = (0, 0, 0);
    for dump in &dumps {
        let (_, answer) = alone(dump);
        if gaps(&answer).count() == 0 {
            continue;
        }
        with_gaps += 1;
        let of_files = gaps(&answer).all(|g| !text(g, "module").is_empty());
        assert!(of_files || dump.scenario.starts_with("busy"), "{}", dump.name);
        let roots = |stacks: &str| ask_with(&dump.path, &[], &["roots", "--kind", "stack", "--stacks", stacks]);
        let (exit, precise) = roots("precise");
        let key = |r: &Value| (super::address(r, "address"), super::address(r, "object"));
        // Without a word that may be one of them, the roots equal those of the complete dump.
        let in_gap =
            |at: u64| gaps(&answer).any(|gap| super::address(gap, "from") <= at && (gap["to"].is_null() || at < super::address(gap, "to")));
        let words = list(&precise["data"]["roots"]).iter().filter(|r| list(&r["flags"]).contains(&"conservative".into()));
        let doubtful = words.filter(|r| in_gap(super::address(r, "address"))).count();
        assert!(exit == Exit::Partial || exit == Exit::Ok && doubtful == 0, "{}: {doubtful} words, {exit:?}", dump.name);
        if exit == Exit::Ok {
            exact += 1;
        }
        let have: BTreeSet<(u64, u64)> = list(&precise["data"]["roots"]).iter().map(key).collect();
        for gap in gaps(&answer) {
            let end = if gap["to"].is_null() { 0 } else { super::address(gap, "to") };
            let range = super::address(gap, "from")..end;
            for root in list(&roots("conservative").1["data"]["roots"]).iter().filter(|r| range.contains(&key(r).0)) {
                assert!(have.contains(&key(root)), "{}: {root} of {gap} is lost", dump.name);
                scanned += 1;
            }
        }
    }
    println!("{with_gaps} heap dumps with gaps, {exact} of which hold nothing; {scanned} words are roots in the others");
    assert!(dumps.is_empty() || with_gaps > 5 && scanned > 50);
    Ok(())
}

/// `info` names the files that stacks need, once each, and the command that downloads them; it is partial only if frames may be missing.
#[test]
fn info_names_the_files_that_stacks_need() -> Tested {
    let (dumps, _) = known_dumps(|row| row["kind"] == "heap")?;
    let (mut named, mut exact) = (0, 0);
    for dump in &dumps {
        let (_, stacks) = alone(dump);
        let files: BTreeSet<&str> = gaps(&stacks).map(|g| text(g, "module")).filter(|module| !module.is_empty()).collect();
        let (exit, info) = ask_with(&dump.path, &[], &["info"]);
        let more = &info["data"]["more_precise"];
        assert_eq!(list(&more["files"]).iter().filter_map(Value::as_str).collect::<BTreeSet<_>>(), files, "{}", dump.name);
        if files.is_empty() {
            continue;
        }
        let command = text(more, "command");
        assert!(command.starts_with("gcdump modules --fetch ") && !command.contains("--no-local-files"), "{command}");
        let of_stacks = list(&info["data"]["answers"]).iter().find(|a| a["command"] == "stacks").unwrap();
        let lost = gaps(&stacks).any(|gap| gap["loses_frames"] == true);
        assert_eq!(of_stacks["answer"] == "partial", lost, "{}", dump.name);
        let whole = list(&info["data"]["answers"]).iter().all(|a| a["answer"] == "full");
        assert_eq!(exit, if whole { Exit::Ok } else { Exit::Partial }, "{}", dump.name);
        let shown = run(&["info", "--no-local-files", dump.path.to_str().unwrap()]);
        let line = shown.out.lines().find(|line| line.starts_with("With the files of ")).unwrap();
        let all = format!("{}{}", shown.out, shown.err);
        for file in files.iter().filter(|file| line.contains(*file)) {
            // A path of the runtime may have the same name.
            assert_eq!(all.lines().filter(|l| l.contains(file) && l.contains("would")).count(), 0, "{}: {all}", dump.name);
        }
        named += 1;
        exact += usize::from(!lost);
    }
    println!("{named} heap dumps name files, {exact} of which have all frames");
    assert!(dumps.is_empty() || named > 5 && exact > 0);
    Ok(())
}

/// A Windows heap dump does not have all images: the first precompiled frame ends the walk.
#[test]
fn windows_heap_dumps_need_the_images() -> Tested {
    let (dumps, _) = known_dumps(|row| text(row, "runtime").starts_with("win") && row["kind"] == "heap")?;
    for dump in &dumps {
        let (exit, answer) = alone(dump);
        let gaps: Vec<&Value> = gaps(&answer).collect();
        assert_eq!(exit, Exit::Partial, "{}", dump.name);
        assert!(!gaps.is_empty() && gaps.iter().all(|g| text(g, "module").ends_with(".dll")), "{}: {gaps:?}", dump.name);
    }
    Ok(())
}

/// Builds the file of the PE image at `base` from the memory of a full dump: sections are moved back to their file offsets.
fn file_of_image(memory: &Memory, base: Addr, size: u64) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let page = |i: u64| memory.bytes(base.plus(i * PAGE), PAGE).map_or_else(|_| vec![0; PAGE as usize], |b| b.to_vec());
    let image: Vec<u8> = (0..size.div_ceil(PAGE)).flat_map(page).collect();
    let u32_at = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let u16_at = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?) as usize);
    let header = u32_at(60).filter(|_| image.starts_with(b"MZ"))?;
    let (sections, optional) = (u16_at(header + 6)?, u16_at(header + 20)?);
    let mut file = image.get(..u32_at(header + 24 + 60)?)?.to_vec();
    for section in (0..sections).map(|i| header + 24 + optional + 40 * i) {
        let (virtual_bytes, rva, bytes, offset) =
            (u32_at(section + 8)?, u32_at(section + 12)?, u32_at(section + 16)?, u32_at(section + 20)?);
        let part = image.get(rva..rva + bytes.min(virtual_bytes))?;
        file.resize(file.len().max(offset + bytes), 0);
        file[offset..offset + part.len()].copy_from_slice(part);
    }
    Some(file)
}

fn open_file(path: &Path) -> dump::DumpFile {
    dump::open(path, &dump::OpenOptions::default()).unwrap()
}

/// The files of the images are made from a full dump of the same runtime, whose addresses may differ.
#[test]
fn windows_heap_dumps_are_complete_with_the_images() -> Tested {
    let (dumps, _) = known_dumps(|row| text(row, "runtime").starts_with("win"))?;
    let (mut completed, mut heaps) = (0, 0);
    for dump in dumps.iter().filter(|d| d.name.ends_with("-heap")) {
        heaps += 1;
        let wanted = open_file(&dump.path).modules;
        let Some(full) = dumps.iter().find(|d| d.runtime == dump.runtime && d.name.ends_with("-full")) else { continue };
        let file = open_file(&full.path);
        let memory = Memory::new(&file, gcdump::internals::base::Shape::LE64);
        let folder = tempfile::tempdir().unwrap();
        for module in &file.modules {
            let same = wanted.iter().any(|m| (m.file_name(), m.timestamp, m.size) == (module.file_name(), module.timestamp, module.size));
            if let Some(bytes) = file_of_image(&memory, module.base, module.size).filter(|_| same) {
                std::fs::write(folder.path().join(module.file_name()), bytes).unwrap();
            }
        }
        let (_, bare) = alone(dump);
        let (exit, whole) = ask_with(&dump.path, &[folder.path().to_path_buf()], &["stacks", "--roots"]);
        assert_eq!(exit, Exit::Ok, "{}: {}", dump.name, whole["warnings"]);
        assert!(list(&whole["data"]["threads"]).iter().all(|t| t["coverage"] == "precise"), "{}", dump.name);
        let managed = |answer: &Value| frames(answer).filter(|f| f["kind"] == "managed").count();
        println!("{:<28} {} managed frames without files, {} with files", dump.name, managed(&bare), managed(&whole));
        assert!(managed(&whole) > managed(&bare), "{}", dump.name);
        completed += 1;
    }
    assert!(heaps == 0 || completed > 0);
    Ok(())
}

/// Runs a command on a synthetic process.
fn ask_synthetic(bytes: &[u8], command: &[&str]) -> common::Ran {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    run(&[command, &["--json", "--no-local-files", file.path().to_str().unwrap()]].concat())
}

/// For a runtime of any shape that does not describe its code, roots are those of the scan, and `stacks` says why it has no answer.
#[test]
fn without_a_code_map_stacks_are_scanned() {
    let mut roots = 0;
    for shape in crate::common::shapes() {
        let target = Spec::standard(shape).build();
        for bytes in [target.to_elf_core(), target.to_minidump()] {
            let ran = ask_synthetic(&bytes, &["stacks"]);
            assert!(ran.out.is_empty() && ran.exit != Exit::Ok, "{shape:?}: {:?} {}", ran.exit, ran.out);
            assert!(ran.err.to_lowercase().contains("stack"), "{shape:?}: {}", ran.err);
            println!("{shape:?}: {:?} {}", ran.exit, ran.err.trim());
            let [precise, scanned] = ["precise", "conservative"].map(|s| ask_synthetic(&bytes, &["roots", "--stacks", s]));
            assert_eq!(precise.exit, scanned.exit, "{shape:?}: {}", precise.err);
            let list = |ran: &common::Ran| super::list(&ran.json()["data"]["roots"]).to_vec();
            let (precise, scanned) = (list(&precise), list(&scanned));
            let key = |r: &Value| (r["kind"].clone(), r["address"].clone(), r["object"].clone(), r["thread"].clone());
            assert_eq!(precise.iter().map(key).collect::<Vec<_>>(), scanned.iter().map(key).collect::<Vec<_>>(), "{shape:?}");
            roots += precise.len();
        }
    }
    assert!(roots > 0, "no synthetic process has roots");
}

/// A real dump without the map of its code: whole stacks are scanned, as with `--stacks conservative`, and the answer says so.
#[test]
fn stacks_of_a_dump_without_its_code_map_are_scanned() {
    let whole = gcdump::open(own_unpacked()).unwrap().runtime().unwrap();
    let map = whole.descriptor().pointer("ExecutionManagerCodeRangeMapAddress").unwrap();
    let mut file = dump::open(&own_unpacked(), &dump::OpenOptions::default()).unwrap();
    without(&mut file, &[AddrRange::of(map, 2048)]);
    let runtime = Dump::of(file, &gcdump::OpenOptions::default()).runtime().unwrap();
    let answer = stacks(&runtime, &StacksQuery::default()).unwrap();
    assert!(!answer.notes.complete(), "nothing is said");
    for thread in answer.data.rows.threads() {
        assert!(thread.coverage != StackCoverage::Precise && thread.gaps.iter().any(|gap| gap.loses_frames), "{thread:?}");
        assert!(thread.frames.iter().all(|f| f.kind == StackFrameKind::Runtime), "{thread:?}");
    }
    let heap = runtime.heap().unwrap();
    let found = |stacks: Stacks| {
        let options = RootOptions { stacks, ..RootOptions::default() };
        let of_stacks = listed(&heap, &RootsQuery { options, ..RootsQuery::default() }).into_iter().filter(|r| r.kind.is_of_stacks());
        of_stacks.map(|r| (r.kind, r.address, r.object)).collect::<BTreeSet<_>>()
    };
    let scanned = found(Stacks::Conservative);
    assert!(scanned.len() > 10);
    assert_eq!(found(Stacks::Precise), scanned);
}

/// Folders are tried for all dumps, and files of another build are not used.
#[test]
fn files_of_another_build_are_not_used() -> Tested {
    let (dumps, _) = known_dumps(|row| row["name"] == "net10-wks-stacks-gcore")?;
    let [other, own]: [Vec<PathBuf>; 2] = [folders("net8"), folders("net10")];
    for dump in dumps.iter().filter(|_| !other.is_empty() && !own.is_empty()) {
        let answer = |folders: &[PathBuf]| ask_with(&dump.path, folders, &["stacks", "--roots"]).1["data"]["threads"].clone();
        let bare = answer(&[]);
        assert_eq!(bare, answer(&other));
        assert_ne!(bare, answer(&own));
        assert_eq!(answer(&own), answer(&[other.clone(), own.clone()].concat()));
    }
    Ok(())
}
