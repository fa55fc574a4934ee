//! Module files: a complete answer without them equals the answer with them, and bytes of a file are never taken for bytes of the dump.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange};

use crate::common::{ask_with_files, known_dumps, needs_lab, own_unpacked};
use crate::harness::Tested;

/// `p_type` of segments, and the file offset of the program headers.
const PT_LOAD: u32 = 1;

/// Writes a file of the runtime's module: the segments in the program headers of the dump, with the bytes that the dump has of them.
pub fn written(dump: &Path, folder: &Path) {
    let dump = gcdump::open(dump).unwrap();
    let runtime = dump.runtime().unwrap();
    let module = runtime.description().site.module.as_ref().unwrap();
    let (memory, base) = (dump.memory(), module.base);
    let file = File::create(folder.join(module.file_name())).unwrap();
    let word = |at: Addr| memory.u64(at).unwrap();
    let (headers, count) = (word(base.plus(32)), memory.u16(base.plus(56)).unwrap());
    let mut partial = 0;
    for header in (0..u64::from(count)).map(|i| base.plus(headers).element(i, 56)) {
        let (kind, offset, address, bytes) =
            (memory.u32(header).unwrap(), word(header.plus(8)), word(header.plus(16)), word(header.plus(32)));
        if kind != PT_LOAD {
            continue;
        }
        let start = base.plus(address);
        partial += usize::from(start.plus(bytes).0 % 4096 != 0);
        file.set_len(file.metadata().unwrap().len().max(offset + bytes)).unwrap();
        for (at, bytes) in memory.stretches(AddrRange::of(start, bytes)) {
            file.write_all_at(bytes, offset + at.since(start).unwrap()).unwrap();
        }
    }
    assert!(partial > 1, "segments that end within a page");
}

#[test]
fn a_page_that_the_file_supplies_in_part_is_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let dump = own_unpacked();
    written(&dump, folder.path());
    for command in [&["info"][..], &["heap", "--detail"]] {
        let (without, bare) = ask_with_files(&dump, command, None);
        let (with, filled) = ask_with_files(&dump, command, Some(folder.path()));
        assert_eq!((without, with), (Exit::Ok, Exit::Ok), "{command:?}: {}", filled["warnings"]);
        for part in ["/data/collections", "/data/gc/collections"] {
            assert_eq!(bare.pointer(part), filled.pointer(part), "{command:?}");
        }
        let files = filled["data"]["module_files"].as_array();
        assert!(files.is_none_or(|f| f.iter().any(|f| f["bytes"].as_u64() > Some(4096))), "{command:?}: {files:?}");
    }
}

#[test]
fn the_files_of_the_runtime_make_no_answer_partial() -> Tested {
    let lab = needs_lab()?;
    let (dumps, _) = known_dumps(|d| {
        let text = |key: &str| d[key].as_str().unwrap_or_default();
        text("scenario") == "basics" && ["heap", "mini"].contains(&text("kind")) && ["net8", "net10"].contains(&text("runtime"))
    })?;
    for dump in dumps {
        for command in [&["info"][..], &["heap", "--detail"]] {
            let (without, bare) = ask_with_files(&dump.path, command, None);
            let (with, filled) = ask_with_files(&dump.path, command, Some(&lab.join(&dump.runtime)));
            assert_eq!(without, with, "{} {command:?}: {} {}", dump.name, bare["warnings"], filled["warnings"]);
        }
    }
    Ok(())
}
