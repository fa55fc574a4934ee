//! Single-file programs: the runtime in the program's file, and the assemblies in its bundle.

use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{Known, known_dumps, needs_lab, run};
use crate::harness::Tested;
use crate::support::image::HEADERS;
use crate::support::{Shape, Spec};
use writer::{File, program};

#[allow(dead_code)]
mod writer;

fn ask(command: &str, dump: &Path, modules: Option<&Path>) -> (Exit, Value) {
    let mut args: Vec<&str> = command.split(' ').collect();
    args.extend(["--json", "--no-local-files"]);
    args.extend(modules.into_iter().flat_map(|m| ["--modules", m.to_str().unwrap()]));
    args.push(dump.to_str().unwrap());
    let ran = run(&args);
    (ran.exit, ran.json())
}

/// The files of `folder` that `dump` has as modules.
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

/// A single-file program of `files` after a host that is not a program.
fn bundle(files: &[(String, PathBuf)], compressed: bool) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = files.iter().map(|(_, path)| std::fs::read(path).unwrap()).collect();
    let files: Vec<File<'_>> = files.iter().zip(&contents).map(|((path, _), contents)| File { path, contents, compressed }).collect();
    program(b"\x7fELF", 6, &files).bytes
}

/// Dumps whose names are in the files of their modules.
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
                let (exit, by_folder) = ask(command, &dump.path, Some(&folder));
                let (other, by_bundle) = ask(command, &dump.path, Some(&path));
                assert_eq!((exit, &by_folder["data"]), (other, &by_bundle["data"]), "{} {command}: {}", dump.name, by_bundle["warnings"]);
                assert_eq!(by_folder["complete"], by_bundle["complete"], "{} {command}", dump.name);
            }
        }
        let (_, without) = ask("stat", &dump.path, None);
        let (_, with) = ask("stat", &dump.path, Some(&place.path().join("program-true")));
        let tokens = |answer: &Value| answer["data"].to_string().matches("lab!0x").count();
        assert!(tokens(&without) > 0 && tokens(&with) == 0, "{}: {} {}", dump.name, tokens(&without), tokens(&with));
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
    let (_, without) = ask("stat", &dump.path, None);
    let (_, with) = ask("stat", &dump.path, Some(&path));
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
    let warned = |given: &Path| ask("info", &core, Some(given)).1["warnings"].to_string();
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
    assert!(ran.exit == Exit::Usage && ran.err.contains("neither a folder nor a file"), "{}", ran.err);
}

/// The program exports the runtime's descriptor. The dump has the headers of the program, and not the pages with its exports.
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
        let (exit, answer) = ask("info", &core, given);
        (exit, answer["data"]["runtimes"][0]["descriptor_found_by"].clone())
    };
    // In the dump.
    std::fs::write(&core, rename(target.to_elf_core())).unwrap();
    assert_eq!(found_by(None), (Exit::Ok, "its export".into()));
    // In the file: program headers, build id and dynamic section are in the dump, the tables that this leads to are not.
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
