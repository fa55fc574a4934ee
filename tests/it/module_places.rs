//! The places where module files are searched for without being named, their order, and the files that are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{needs_lab, needs_shared, own_unpacked, unpacked};
use crate::harness::{Ignored, Tested, ignored};
use crate::module_files::written;

/// Runs the program with only this environment.
pub fn run_with(environment: &[(&str, &Path)], args: &[&str]) -> (i32, Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    command.env_clear().envs(environment.iter().copied()).args(args);
    let ran = command.output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    (ran.status.code().unwrap(), serde_json::from_str(&out).unwrap_or(Value::Null), String::from_utf8(ran.stderr).unwrap())
}

/// The build id of the runtime in the dump of the repository.
fn build_id(dump: &Path) -> String {
    let (_, answer, _) = run_with(&[("GCDUMP_MODULES", Path::new("off"))], &["info", "--json", dump.to_str().unwrap()]);
    answer["runtime"]["build_id"].as_str().unwrap().into()
}

/// The file that supplied pages of the runtime.
fn used(environment: &[(&str, &Path)], more: &[&str]) -> Result<Option<PathBuf>, Ignored> {
    let dump = own_unpacked();
    let args: Vec<&str> = ["info", "--json", dump.to_str().unwrap()].iter().chain(more).copied().collect();
    let (_, answer, _) = run_with(environment, &args);
    let notes = answer["warnings"].as_array().unwrap();
    assert!(!notes.iter().any(|n| n["kind"] == "module-mismatch"), "{notes:?}");
    let file = answer["data"]["module_files"].as_array().and_then(|files| Some(PathBuf::from(files.first()?["file"].as_str()?)));
    match file {
        Some(file) if file.starts_with("/usr") => Err(Ignored(format!("this machine has the runtime of the dump: {}", file.display()))),
        file => Ok(file),
    }
}

/// The places, by the environment variable that selects them, with the path of the runtime below each.
fn places(id: &str) -> Vec<(&'static str, String)> {
    let package = "microsoft.netcore.app.runtime.linux-x64/10.0.12/runtimes/linux-x64/native/libcoreclr.so";
    vec![
        ("GCDUMP_MODULES", "libcoreclr.so".into()),
        ("DOTNET_ROOT", "shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so".into()),
        ("HOME", ".dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so".into()),
        ("NUGET_PACKAGES", package.into()),
        ("HOME", format!(".nuget/packages/{package}")),
        ("HOME", format!(".dotnet/symbolcache/libcoreclr.so/elf-buildid-{id}/libcoreclr.so")),
        ("TEMP", format!("SymbolCache/libcoreclr.so/elf-buildid-{id}/libcoreclr.so")),
        ("XDG_CACHE_HOME", format!("gcdump/modules/elf-{id}")),
    ]
}

#[cfg(target_os = "linux")]
#[test]
fn files_are_found_in_each_place_and_in_order() -> Tested {
    let (folder, id) = (tempfile::tempdir().unwrap(), build_id(&own_unpacked()));
    written(&own_unpacked(), folder.path());
    let file = folder.path().join("libcoreclr.so");
    let root = |n: usize| folder.path().join(n.to_string());
    let all = places(&id);
    for (n, (_, path)) in all.iter().enumerate() {
        let place = root(n).join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&file, place).unwrap();
    }
    for (n, (variable, path)) in all.iter().enumerate() {
        let environment = [(*variable, root(n))];
        let environment: Vec<(&str, &Path)> = environment.iter().map(|(key, value)| (*key, value.as_path())).collect();
        assert_eq!(used(&environment, &[])?, Some(root(n).join(path)), "{variable}");
        assert_eq!(used(&environment, &["--no-local-files"])?, None, "{variable}");
    }
    // The first of several places is used, and options before all places.
    let (first, second) = (root(0), root(1));
    assert_eq!(used(&[("DOTNET_ROOT", &second), ("GCDUMP_MODULES", &first)], &[])?, Some(first.join("libcoreclr.so")));
    assert_eq!(used(&[("GCDUMP_MODULES", &first)], &["--modules", folder.path().to_str().unwrap()])?, Some(file));
    assert_eq!(used(&[("DOTNET_ROOT", &second), ("GCDUMP_MODULES", Path::new("off"))], &[])?, None);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn files_of_other_programs_are_passed_over_and_pipes_not_opened() -> Tested {
    let (folder, id) = (tempfile::tempdir().unwrap(), build_id(&own_unpacked()));
    written(&own_unpacked(), folder.path());
    let bytes = fs::read(folder.path().join("libcoreclr.so")).unwrap();
    let raw: Vec<u8> = (0..id.len() / 2).map(|i| u8::from_str_radix(&id[2 * i..2 * i + 2], 16).unwrap()).collect();
    let mut other = bytes.clone();
    let at = bytes.windows(raw.len()).position(|w| w == raw).unwrap();
    other[at] ^= 1;
    for contents in [Some(&other[..]), Some(b"not an image"), Some(b"\x7fELF"), None] {
        for (n, (variable, path)) in places(&id).into_iter().enumerate() {
            let root = folder.path().join(n.to_string());
            let place = root.join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&place);
            match contents {
                Some(contents) => fs::write(&place, contents).unwrap(),
                None => {
                    let made = Command::new("mkfifo").arg(&place).status();
                    if !made.is_ok_and(|made| made.success()) {
                        return ignored("mkfifo is not installed");
                    }
                }
            }
            assert_eq!(used(&[(variable, &root)], &[])?, None, "{variable}");
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_heap_dump_is_precise_with_an_installed_framework() -> Tested {
    let (lab, _) = (needs_lab()?, needs_shared()?);
    let dump = unpacked().join("net10-wks-stacks-heap.dmp");
    if !dump.is_file() {
        return ignored("net10-wks-stacks-heap.dmp is not unpacked");
    }
    let root = tempfile::tempdir().unwrap();
    let version = root.path().join("shared/Microsoft.NETCore.App/10.0.12");
    fs::create_dir_all(version.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(lab.join("net10"), version).unwrap();
    let asked: [&[&str]; 2] = [&["stacks", "--roots"], &["roots"]];
    for command in asked {
        let args = [command, &["--json", dump.to_str().unwrap()]].concat();
        assert_eq!(run_with(&[("GCDUMP_MODULES", Path::new("off"))], &args).0, 5, "{command:?}");
        let (exit, answer, _) = run_with(&[("DOTNET_ROOT", root.path())], &args);
        assert_eq!(exit, 0, "{command:?}: {}", answer["warnings"]);
        assert_eq!(run_with(&[("DOTNET_ROOT", root.path())], &[&args[..], &["--no-local-files"]].concat()).0, 5, "{command:?}");
    }
    Ok(())
}

/// The list of modules does not depend on earlier commands, although a session reads code that the list does not read.
#[test]
fn modules_do_not_depend_on_earlier_answers() {
    let dumps = crate::corpus::dumps();
    for path in dumps.iter().step_by(if crate::common::full() { 1 } else { 9 }) {
        let modules = |dump: &gcdump::Dump| {
            serde_json::to_value(&gcdump::analysis::modules(dump, &Default::default()).unwrap().data.modules).unwrap()
        };
        let [alone, later] = [(); 2].map(|()| gcdump::open(path).unwrap());
        if let Ok(runtime) = later.runtime() {
            let _ = runtime.heap().map(|heap| heap.objects().take(1000).map(|object| object.ty().name().len()).sum::<usize>());
            let _ = gcdump::analysis::types(&runtime, &gcdump::analysis::TypePattern::Name("Lab.*".into()), true);
            let _ =
                gcdump::analysis::stacks(&runtime, &gcdump::analysis::StacksQuery { arguments: true, locals: true, ..Default::default() });
        }
        assert_eq!(modules(&alone), modules(&later), "{}", path.display());
    }
}
