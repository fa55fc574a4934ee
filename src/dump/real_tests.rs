//! Tests with real dumps in `GCDUMP_TEST_DUMPS` or `~/.cache/gcdump-dumps`. A test prints a line for each dump that it skips.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Compression, Container, DumpFile, OpenOptions, open};
use crate::base::{Addr, Arch, Os, Shape};

pub(crate) fn folder() -> PathBuf {
    std::env::var_os("GCDUMP_TEST_DUMPS")
        .map_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/gcdump-dumps"), PathBuf::from)
}

fn dump(name: &str) -> Option<DumpFile> {
    let path = folder().join(format!("{name}.dmp"));
    if !path.is_file() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    let timed = || {
        let start = Instant::now();
        (open(&path, &OpenOptions::default()).unwrap(), start.elapsed())
    };
    let (mut dump, mut took) = timed();
    // The first attempt may have waited for a disk.
    if took > Duration::from_secs(1) {
        (dump, took) = timed();
    }
    println!("{name}: opened in {took:?}");
    assert!(took < Duration::from_secs(1), "{name}: {took:?}");
    Some(dump)
}

fn names() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        println!("skipped: {} is not there", folder().display());
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(|e| e.unwrap().file_name().to_str().and_then(|n| n.strip_suffix(".dmp")).map(str::to_owned)).collect();
    // Excludes dumps of other machines, and dumps whose names do not say how the program ended.
    names.retain(|name| {
        !["arm64", "web11", "dmg-", "alien", "net10trim", "-busy", "-enc-", "-nested", "-monitors-", "-taskdeadlock-", "-asyncliverasync-"]
            .iter()
            .any(|part| name.contains(part))
    });
    names.sort();
    names
}

#[test]
fn all_dumps_open() {
    for name in names() {
        let Some(dump) = dump(&name) else { continue };
        assert!(dump.facts.oddities.is_empty(), "{name}: {:?}", dump.facts.oddities);
        assert_eq!(dump.facts.truncated_bytes, 0, "{name}");
        assert_eq!((dump.facts.arch, dump.facts.shape), (Arch::X64, Some(Shape::LE64)), "{name}");
        let windows = name.starts_with("win-");
        assert_eq!(dump.facts.os, if windows { Os::Windows } else { Os::Linux }, "{name}");
        assert_eq!(dump.facts.container, if windows { Container::Minidump } else { Container::ElfCore }, "{name}");
        let ended = ["-crash-", "overflow", "-nativesegv-", "-nativecorruptgc-", "-nativeoom-"].iter().any(|part| name.contains(part))
            || name.ends_with("-kernel");
        assert_eq!(dump.crash.is_some(), ended, "{name}: {:?}", dump.crash);
        assert!(dump.facts.pid.is_some() && dump.facts.process_name.is_some(), "{name}");
        assert!(dump.threads.iter().all(|t| t.stack_pointer.is_some() && t.registers.len() == 16), "{name}");
        let rsp = |t: &crate::dump::OsThread| t.registers.iter().find(|r| r.name == "rsp").map(|r| r.value);
        assert!(dump.threads.iter().all(|t| rsp(t) == t.stack_pointer.map(|sp| sp.0)), "{name}");
        // On Linux, thread-local storage is in the mapping of the stack, above the used part. The first thread is an exception, because the
        // kernel allocates its stack.
        for thread in dump.threads.iter().filter(|_| !windows) {
            let (sp, base) = (thread.stack_pointer.unwrap(), thread.thread_base.unwrap());
            let mapping = dump.regions.iter().find(|r| r.range.contains(sp)).unwrap();
            // After a stack overflow, the handler runs on the signal stack, which is another mapping.
            let own = Some(thread.id) != dump.facts.pid && !name.contains("overflowthread");
            assert!(!own || (sp < base && mapping.range.contains(base)), "{name}: thread {}: {sp} {base} {:?}", thread.id, mapping.range);
        }
        let runtime = if windows { "coreclr.dll" } else { "libcoreclr.so" };
        // A NativeAOT program contains the runtime in its own image.
        let expected = usize::from(!name.contains("aot"));
        assert_eq!(dump.modules.iter().filter(|m| m.file_name() == runtime).count(), expected, "{name}");
    }
}

fn answers() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/dumps");
    std::env::var_os("GCDUMP_TEST_SHARED").map_or_else(beside, PathBuf::from)
}

/// ClrMD's answer for the same dump.
fn answer(name: &str) -> Option<serde_json::Value> {
    let path = answers().join(format!("{name}.clrmd.json.zst"));
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    Some(serde_json::from_reader(std::io::BufReader::new(zstd::Decoder::new(file).unwrap())).unwrap())
}

#[test]
fn agrees_with_clrmd() {
    let hex = |v: &serde_json::Value| u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let list = |v: &'_ serde_json::Value| v.as_array().cloned().unwrap_or_default();
    for name in names() {
        let name = name.as_str();
        let Some(dump) = dump(name) else { continue };
        let Some(answer) = answer(name) else { continue };
        let info = &answer["info"];
        // ClrMD finds no process ID in gdb's cores.
        let pid = info["pid"].as_u64().unwrap_or(0);
        assert!(pid == 0 || u64::from(dump.facts.pid.unwrap()) == pid, "{name}: {pid}");
        let file_name = |v: &serde_json::Value| v.as_str().unwrap_or("").rsplit(['/', '\\']).next().unwrap().to_owned();
        let bases = |file: &str| dump.modules.iter().filter(|m| m.file_name() == file).map(|m| m.base.0).collect::<Vec<_>>();
        // ClrMD lists a mapping in the middle of an image as a separate module of size 0.
        let native = list(&info["native_modules"]).into_iter().filter(|m| m["size"] != 0);
        let native = native.map(|m| (hex(&m["base"]), file_name(&m["file"])));
        let managed = list(&info["modules"])
            .into_iter()
            .filter(|m| !m["image_base"].is_null() && m["pe"] == true)
            .map(|m| (hex(&m["image_base"]), file_name(&m["name"])));
        // An assembly that the runtime copies into loaded layout is in anonymous memory, so no module is expected.
        let mapped = |base: u64| dump.files.is_empty() || dump.files.iter().any(|f| f.range.contains(Addr(base)));
        let managed = managed.filter(|(base, _)| mapped(*base));
        let mut compared = 0;
        // Modules that only ClrMD lists, such as "/memfd:doublemapper", are not compared.
        for (base, file) in native.chain(managed).filter(|m| m.0 != 0 && !bases(&m.1).is_empty()) {
            assert!(bases(&file).contains(&base), "{name}: {file} at {base:#x}, found at {:x?}", bases(&file));
            compared += 1;
        }
        println!("{name}: {compared} modules agree");
        // ClrMD lists no modules for the kernel core and for Wine's mini dump.
        assert!(compared > 5 || list(&info["native_modules"]).is_empty(), "{name}: {compared}");
        for thread in list(&answer["threads"]["threads"]) {
            let id = thread["os_id"].as_u64().unwrap();
            assert!(id == 0 || dump.threads.iter().any(|t| u64::from(t.id) == id), "{name}: no thread {id}");
        }
    }
}

#[test]
fn compressed_and_plain_are_the_same() {
    let path = answers().join("net10-wks-basics-heap.dmp.zst");
    if !path.is_file() {
        println!("skipped: {} is not there", path.display());
        return;
    }
    let Some(plain) = dump("net10-wks-basics-heap") else { return };
    let packed = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(packed.facts.compression, Some(Compression::Zstd));
    assert_eq!((&packed.ranges, &packed.modules, &packed.threads), (&plain.ranges, &plain.modules, &plain.threads));
}
