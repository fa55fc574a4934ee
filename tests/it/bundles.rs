//! Single-file programs: the runtime in the program's file, and the assemblies in its bundle.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use serde_json::Value;

use crate::common::{Known, ask_with_files, further_dumps, known_dumps, needs_lab, run, run_with_files};
use crate::harness::Tested;
use crate::support::image::HEADERS;
use crate::support::{Shape, Spec};
use writer::{File, program};

#[allow(dead_code)]
mod writer;

/// The files of `folder` that are modules of `dump`.
fn modules_of(dump: &Path, folder: &Path) -> Vec<(String, PathBuf)> {
    let dump = gcdump::open(dump).unwrap();
    let mut out: Vec<(String, PathBuf)> = Vec::new();
    for module in &dump.file().modules {
        let name = module.file_name().to_string();
        let path = folder.join(&name);
        if path.is_file() && out.iter().all(|known| known.0 != name) {
            out.push((name, path));
        }
    }
    out
}

/// Makes a single-file program of `files`, after a host that is not a program.
fn bundle(files: &[(String, PathBuf)], compressed: bool) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = files.iter().map(|(_, path)| std::fs::read(path).unwrap()).collect();
    let files: Vec<File<'_>> = files.iter().zip(&contents).map(|((path, _), contents)| File { path, contents, compressed }).collect();
    program(b"\x7fELF", 6, &files).bytes
}

/// Dumps whose type names are in the module files.
fn bare(runtime: &str) -> Result<Known, crate::harness::Ignored> {
    let wanted = |row: &Value| (&row["runtime"], &row["kind"]) == (&Value::from(runtime), &Value::from("kernel"));
    Ok(known_dumps(wanted)?.0.remove(0))
}

#[test]
fn assemblies_in_a_bundle_answer_like_those_in_a_folder() -> Tested {
    let lab = needs_lab()?;
    for runtime in ["net10", "net11"] {
        let (dump, folder) = (bare(runtime)?, lab.join(runtime));
        let files = modules_of(&dump.path, &folder);
        assert!(files.len() > 3 && files.iter().any(|(name, _)| name == "lab.dll"), "{runtime}: {files:?}");
        let place = tempfile::tempdir().unwrap();
        for compressed in [false, true] {
            let path = place.path().join(format!("program-{compressed}"));
            std::fs::write(&path, bundle(&files, compressed)).unwrap();
            for command in ["stat", "stacks", "threads"] {
                let (exit, by_folder) = ask_with_files(&dump.path, &[command], Some(&folder));
                let (other, by_bundle) = ask_with_files(&dump.path, &[command], Some(&path));
                assert_eq!((exit, &by_folder["data"]), (other, &by_bundle["data"]), "{} {command}: {}", dump.name, by_bundle["warnings"]);
                assert_eq!(by_folder["complete"], by_bundle["complete"], "{} {command}", dump.name);
            }
        }
        // The program of the process is searched for by its name.
        let bin = place.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::rename(place.path().join("program-true"), bin.join("lab")).unwrap();
        // The lab has a later build of its assembly, so types of that assembly stay without names.
        let tokens = |given: Option<&Path>| {
            let text = ask_with_files(&dump.path, &["stat"], given).1["data"].to_string();
            text.matches("!0x").count() - text.matches("lab!0x").count()
        };
        let (without, with) = (tokens(None), [&place.path().join("program-false"), &bin].map(|given| tokens(Some(given))));
        assert!(without > 100 && with == [0, 0], "{}: {without} {with:?}", dump.name);
    }
    Ok(())
}

#[test]
fn a_file_of_another_build_in_a_bundle_is_refused() -> Tested {
    let lab = needs_lab()?;
    let dump = bare("net10")?;
    let files = modules_of(&dump.path, &lab.join("net8"));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("program");
    std::fs::write(&path, bundle(&files, false)).unwrap();
    let (_, without) = ask_with_files(&dump.path, &["stat"], None);
    let (_, with) = ask_with_files(&dump.path, &["stat"], Some(&path));
    assert_eq!(without["data"], with["data"]);
    let warnings = with["warnings"].to_string();
    assert!(warnings.contains("program/System.Private.CoreLib.dll") || warnings.contains("program/libcoreclr.so"), "{warnings}");
    Ok(())
}

#[test]
fn a_given_file_is_a_module_or_a_bundle() {
    let place = tempfile::tempdir().unwrap();
    let core = place.path().join("lab.dmp");
    std::fs::write(&core, Spec::standard(Shape { ptr: 8, big: false }).build().to_elf_core()).unwrap();
    let other = place.path().join("other.so");
    std::fs::write(&other, b"\x7fELF").unwrap();
    let warned = |given: &Path| ask_with_files(&core, &["info"], Some(given)).1["warnings"].to_string();
    let said = warned(&other);
    assert!(said.contains("other.so is not named like one of the") && said.contains("it is not a single-file program"), "{said}");
    let mut made = program(b"\x7fELF", 6, &[]);
    std::fs::write(&other, &made.bytes).unwrap();
    assert!(!warned(&other).contains("other.so"), "{}", warned(&other));
    made.bytes[made.header] = 9;
    std::fs::write(&other, &made.bytes).unwrap();
    assert!(warned(&other).contains("version 9, which this gcdump does not know"), "{}", warned(&other));
    let missing = place.path().join("missing");
    let ran = run(&["info", "--modules", missing.to_str().unwrap(), core.to_str().unwrap()]);
    assert!(ran.exit == Exit::Usage && ran.err.contains("missing does not exist"), "{}", ran.err);
}

/// The program exports the runtime's descriptor. The dump has the headers of the program, but not the pages with its exports.
#[test]
fn the_runtime_is_found_by_the_exports_of_the_programs_file() {
    let target = Spec::standard(Shape { ptr: 8, big: false }).build();
    let image = target.image();
    let rename = |core: Vec<u8>| {
        let path = crate::support::containers::ELF_PATH;
        let renamed = format!("/srv/{}/web", "x".repeat(path.len() - "/srv//web".len()));
        let mut core = core;
        for at in memchr::memmem::find_iter(&core.clone(), path.as_bytes()) {
            core[at..at + path.len()].copy_from_slice(renamed.as_bytes());
        }
        core
    };
    let place = tempfile::tempdir().unwrap();
    let core = place.path().join("web.dmp");
    let found_by = |given: Option<&Path>| {
        let (exit, answer) = ask_with_files(&core, &["info"], given);
        (exit, answer["data"]["runtimes"][0]["descriptor_found_by"].clone())
    };
    // The exports are in the dump.
    std::fs::write(&core, rename(target.to_elf_core())).unwrap();
    assert_eq!(found_by(None), (Exit::Ok, "its export".into()));
    // The exports are in the file: program headers, build ID and dynamic section are in the dump, but not the tables to which these point.
    std::fs::write(&core, rename(target.without(image.base + 0x380, HEADERS - 0x380).to_elf_core())).unwrap();
    assert_ne!(found_by(None).1, Value::from("its export"));
    let mut host = image.elf();
    host.resize(usize::try_from(image.size()).unwrap(), 0);
    let contents = b"MZ".as_slice();
    let made = program(&host, 6, &[File { path: "web.dll", contents, compressed: false }]);
    let folder = place.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("web");
    std::fs::write(&path, &made.bytes).unwrap();
    for given in [&folder, &path] {
        assert_eq!(found_by(Some(given)), (Exit::Ok, "its export".into()), "{}", given.display());
    }
}

/// The entry of .NET 10's `g_dacTable` for `GcDacVars`, and the constants in that: the oldest generation, and the offsets of fields of
/// generations.
const GC_VARS: u64 = 19;
const CONSTANTS: [(u64, u64); 2] = [(56, 4), (248, 8 * 4)];

/// Writes the file of the single-file program in `dump` into `folder`, with the parts that the dump determines: headers, and the tables of an
/// export, `g_dacTable`, which is the longest run of pointers into the image in memory that the process wrote to. Constants of the GC are
/// taken from `other`, a process with the same release of the runtime in a library.
fn program_of(dump: &Path, other: &Path, folder: &Path) -> PathBuf {
    let dump = gcdump::open(dump).unwrap();
    let memory = dump.memory();
    let module = dump.file().modules.iter().find(|m| m.file_name() == "lab").unwrap();
    let (base, word) = (module.base, |at: Addr| memory.u64(at).unwrap());
    let headers: Vec<Addr> =
        (0..memory.u16(base.plus(56)).unwrap()).map(|i| base.plus(word(base.plus(32))).element(i.into(), 56)).collect();
    let of_kind = |kind: u32| headers.iter().filter(move |h| memory.u32(**h).unwrap() == kind);
    let end = of_kind(1).map(|h| base.plus(word(h.plus(16))).plus(word(h.plus(40)))).max().unwrap();
    let mut rows: Vec<(Addr, u64)> = Vec::new();
    for region in dump.file().regions.iter().filter(|r| r.write && r.range.start >= base && r.range.start < end) {
        for at in (0..region.range.len() / 8).map(|i| region.range.start.element(i, 8)) {
            match memory.ptr(at) {
                Ok(to) if to >= base && to < end => match rows.last_mut().filter(|row| row.0.element(row.1, 8) == at) {
                    Some(row) => row.1 += 1,
                    None => rows.push((at, 1)),
                },
                _ => {}
            }
        }
    }
    let table = rows.iter().max_by_key(|row| row.1).unwrap();
    assert!(table.1 > 100, "{table:?}");
    let dynamic = base.plus(word(of_kind(2).next().unwrap().plus(16)));
    let entry = |tag: u64| (0..64).map(|i| dynamic.element(i, 16)).find(|e| word(*e) == tag).map(|e| Addr(word(e.plus(8)))).unwrap();
    let path = folder.join("lab");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(end.since(base).unwrap()).unwrap();
    let put = |at: Addr, bytes: &[u8]| file.write_all_at(bytes, at.since(base).unwrap()).unwrap();
    put(base, &memory.bytes(base, 4096).unwrap());
    let name = b"\0g_dacTable\0";
    let hash = name[1..name.len() - 1].iter().fold(5381u32, |h, b| h.wrapping_mul(33).wrapping_add((*b).into()));
    put(entry(5), name);
    // The export is an object with its name at 1, in the first section. The dump has the first symbols, which are on the page of the headers.
    let index = 400;
    let place = table.0.since(base).unwrap();
    put(entry(6).element(index.into(), 24), &[1u64 | 0x11 << 32 | 1 << 48, place, 160 * 8].map(u64::to_le_bytes).concat());
    // There is one bucket, which begins with that symbol, and a filter that accepts everything.
    let numbers = [1, index, 1, 6, u32::MAX, u32::MAX, index, hash | 1];
    put(entry(0x6fff_fef5), &numbers.map(u32::to_le_bytes).concat());
    let other = gcdump::open(other).unwrap();
    let theirs = other.runtime().unwrap().description().gc_dac_vars.unwrap().address;
    let ours = Addr(word(Addr(word(table.0.element(GC_VARS, 8)))));
    let offset_of = |at: Addr| {
        let vaddr = at.since(base).unwrap();
        let load = of_kind(1).find(|h| (word(h.plus(16))..word(h.plus(16)) + word(h.plus(32))).contains(&vaddr));
        load.map(|h| vaddr - word(h.plus(16)) + word(h.plus(8)))
    };
    for (field, len) in CONSTANTS {
        let bytes = other.memory().bytes(other.memory().ptr(theirs.plus(field)).unwrap(), len).unwrap();
        file.write_all_at(&bytes, offset_of(memory.ptr(ours.plus(field)).unwrap()).unwrap()).unwrap();
    }
    path
}

#[test]
fn a_single_file_program_without_its_exports_is_read_with_its_file() -> Tested {
    let of_library = |row: &Value| row["name"] == "net10-wks-basics-heap";
    let other = known_dumps(of_library)?.0.remove(0).path;
    let wanted = |row: &Value| row["runtime"] == "net10trim" && row["kind"] == "heap";
    for dump in further_dumps(wanted)?.0 {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(run_with_files(&dump.path, &["heap"], None).exit, Exit::NoRuntime, "{}", dump.name);
        program_of(&dump.path, &other, place.path());
        let truth = dump.truth.as_ref().unwrap();
        let (_, info) = ask_with_files(&dump.path, &["info"], Some(place.path()));
        assert_eq!(info["data"]["gc"]["collections"]["counts"], truth["gc"]["collections"], "{}", dump.name);
        let (exit, verified) = ask_with_files(&dump.path, &["verify"], Some(place.path()));
        assert_eq!((exit, &verified["data"]["findings"]), (Exit::Ok, &Value::Array(Vec::new())), "{}: {}", dump.name, verified["warnings"]);
        // The names are in the program's bundle, which this file does not contain.
        let (_, stat) = ask_with_files(&dump.path, &["stat"], Some(place.path()));
        let types = stat["data"]["types"].as_array().unwrap();
        for (name, count) in truth["counts"].as_object().unwrap() {
            let has = |row: &Value| row["count"] == *count && row["type"].as_str().unwrap().starts_with("lab!0x");
            assert!(types.iter().any(has), "{} {name} {count}", dump.name);
        }
    }
    Ok(())
}
