//! Real dumps, where the machine has them: `GCDUMP_TEST_DUMPS`, else `/work/cache/dumps`. Absent dumps are skipped with a
//! printed line.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Container, Dump, OpenOptions, open};
use crate::base::{Arch, Os, Shape};

fn folder() -> PathBuf {
    std::env::var_os("GCDUMP_TEST_DUMPS").map_or_else(|| PathBuf::from("/work/cache/dumps"), PathBuf::from)
}

fn dump(name: &str) -> Option<Dump> {
    let path = folder().join(format!("{name}.dmp"));
    if !path.is_file() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    let start = Instant::now();
    let dump = open(&path, &OpenOptions::default()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{name}: {:?}", start.elapsed());
    Some(dump)
}

fn print(name: &str, dump: &Dump) {
    let f = &dump.facts;
    println!(
        "{name}: {:?} {:?} pid {:?} {:?} captured {} mapped {:?} truncated {} uncaptured {} flags {:x?} ranges {} regions {} modules {} files {} threads {} crash {:?} odd {:?}",
        f.os,
        f.arch,
        f.pid,
        f.process_name,
        f.captured_bytes,
        f.mapped_bytes,
        f.truncated_bytes,
        f.uncaptured_mappings,
        f.minidump_flags,
        dump.ranges.len(),
        dump.regions.len(),
        dump.modules.len(),
        dump.files.len(),
        dump.threads.len(),
        dump.crash,
        f.oddities
    );
    for m in dump.modules.iter().filter(|m| m.path.contains("coreclr.") || m.path.contains("CoreLib")) {
        println!("    {:?}", m);
    }
    println!("    {:x?}", dump.threads.first());
}

#[test]
fn all_dumps_open() {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        println!("skipped: {} is not there", folder().display());
        return;
    };
    let mut names: Vec<String> = entries
        .filter_map(|e| e.unwrap().file_name().to_str().and_then(|n| n.strip_suffix(".dmp")).map(str::to_owned))
        .collect();
    names.sort();
    for name in names {
        let start = Instant::now();
        let Some(dump) = dump(&name) else { continue };
        println!("{:?}", start.elapsed());
        print(&name, &dump);
        assert!(dump.facts.oddities.is_empty(), "{name}: {:?}", dump.facts.oddities);
        assert_eq!(dump.facts.truncated_bytes, 0, "{name}");
        assert_eq!((dump.facts.arch, dump.facts.shape), (Arch::X64, Some(Shape::LE64)), "{name}");
        let windows = name.starts_with("win-");
        assert_eq!(dump.facts.os, if windows { Os::Windows } else { Os::Linux }, "{name}");
        assert_eq!(dump.facts.container, if windows { Container::Minidump } else { Container::ElfCore }, "{name}");
        let ended = name.contains("-crash-") || name.ends_with("-kernel");
        assert_eq!(dump.crash.is_some(), ended, "{name}: {:?}", dump.crash);
        assert!(dump.facts.pid.is_some() && dump.facts.process_name.is_some(), "{name}");
        assert!(dump.threads.iter().all(|t| t.stack_pointer.is_some() && t.registers.len() == 16), "{name}");
        let runtime = if windows { "coreclr.dll" } else { "libcoreclr.so" };
        assert_eq!(dump.modules.iter().filter(|m| m.file_name() == runtime).count(), 1, "{name}");
    }
}
