//! ELF cores whose notes other writers lay out differently: real cores with rewritten notes.

use std::path::Path;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{ask, bytes_of, run, sample};

const NT_FILE: u32 = 0x4649_4c45;

/// A note of a core: owner, type, description.
struct Note {
    owner: Vec<u8>,
    kind: u32,
    desc: Vec<u8>,
}

fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

/// Offset of the program header of the notes in a 64-bit little-endian core.
fn note_header(core: &[u8]) -> usize {
    let (table, count) = (number(core, 32, 8), number(core, 56, 2));
    (0..count).map(|i| table + i * 56).find(|at| number(core, *at, 4) == 4).unwrap()
}

fn notes(core: &[u8]) -> Vec<Note> {
    let header = note_header(core);
    let (offset, len) = (number(core, header + 8, 8), number(core, header + 32, 8));
    let (mut out, mut at) = (Vec::new(), offset);
    while at < offset + len {
        let (name, desc) = (number(core, at, 4), number(core, at + 4, 4));
        let desc_at = at + 12 + name.next_multiple_of(4);
        let kind = number(core, at + 8, 4) as u32;
        out.push(Note { owner: core[at + 12..at + 12 + name].to_vec(), kind, desc: core[desc_at..desc_at + desc].to_vec() });
        at = desc_at + desc.next_multiple_of(4);
    }
    out
}

/// Writes the core with `notes` after its end, padded to `padding` bytes in a segment with the alignment `align`.
fn with_notes(core: &[u8], notes: &[Note], padding: usize, align: u64) -> tempfile::NamedTempFile {
    let mut out = core.to_vec();
    out.resize(out.len().next_multiple_of(16), 0);
    let start = out.len();
    for note in notes {
        for n in [note.owner.len() as u32, note.desc.len() as u32, note.kind] {
            out.extend(n.to_le_bytes());
        }
        for part in [&note.owner, &note.desc] {
            out.extend_from_slice(part);
            out.resize(start + (out.len() - start).next_multiple_of(padding), 0);
        }
    }
    let (header, len) = (note_header(core), (out.len() - start) as u64);
    for (at, value) in [(8, start as u64), (32, len), (48, align)] {
        out[header + at..header + at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), out).unwrap();
    file
}

/// Returns the answers of a few commands, and their exit codes.
fn answers(path: &Path) -> Vec<(Exit, Value)> {
    let commands: [&[&str]; 6] = [&["stat"], &["handles", "--stat"], &["threads"], &["stacks", "--merge"], &["heap"], &["oom"]];
    commands.iter().map(|command| ask(path, command)).map(|(exit, answer)| (exit, answer["data"].clone())).collect()
}

const CORES: [&str; 3] = ["net10-wks-basics-heap", "net10-wks-stacks-gcore", "net10-wks-wait-kernel"];

#[test]
fn notes_are_padded_to_4_or_8_bytes() {
    for name in sample(CORES, 2) {
        let core = bytes_of(name).unwrap();
        let notes = notes(&core);
        assert!(notes.len() > 5, "{name}");
        let expected = answers(with_notes(&core, &notes, 4, 4).path());
        for (padding, align) in [(4, 0), (4, 1), (8, 8), (4, 8)] {
            let found = answers(with_notes(&core, &notes, padding, align).path());
            assert!(found == expected, "{name}: notes padded to {padding}, segment aligned to {align}");
        }
        let info = |padding, align| ask(with_notes(&core, &notes, padding, align).path(), &["info"]).1["data"].clone();
        assert_eq!(info(8, 8)["modules"], info(4, 4)["modules"], "{name}");
    }
}

/// Without the list of mapped files, the runtime is found by the headers of its image, or the message names the list.
#[test]
fn a_core_without_a_list_of_mapped_files_says_so() {
    for name in CORES {
        let core = bytes_of(name).unwrap();
        let (all, mut without) = (notes(&core), notes(&core));
        without.retain(|n| n.kind != NT_FILE);
        assert_eq!(without.len() + 1, all.len(), "{name}");
        let listed = with_notes(&core, &all, 4, 4);
        let unlisted = with_notes(&core, &without, 4, 4);
        for command in [&["stat"][..], &["handles", "--stat"], &["threads"], &["heap"]] {
            let (mut expected, mut found) = (ask(listed.path(), command), ask(unlisted.path(), command));
            // Native frames are in images without names, which also appears in the reason for the end of the stack.
            for fault in [&mut expected, &mut found].into_iter().filter_map(|answer| answer.1["data"].get_mut("fault")?.as_object_mut()) {
                assert!(fault["end"].as_str().unwrap().starts_with("the unwind information of "), "{name}: {fault:?}");
                fault["end"] = Value::Null;
                let frames = fault["frames"].as_array_mut().unwrap();
                assert!(frames.iter_mut().all(|frame| !std::mem::take(&mut frame["module"]).is_null()), "{name}: {frames:?}");
            }
            assert_eq!((found.0, &found.1["data"]), (expected.0, &expected.1["data"]), "{name}: {command:?}: {}", found.1["warnings"]);
            let warnings = found.1["warnings"].to_string();
            assert!(warnings.contains("no list of mapped files (NT_FILE)"), "{name}: {warnings}");
        }
        // Without headers, too, nothing can be found, and the reason is the missing list.
        let mut bare = std::fs::read(unlisted.path()).unwrap();
        let magic: Vec<usize> = memchr::memmem::find_iter(&bare, b"\x7fELF").skip(1).collect();
        magic.iter().for_each(|at| bare[*at] = 0);
        let scrubbed = with_notes(&bare, &without, 4, 4);
        let (_, info) = ask(scrubbed.path(), &["info"]);
        assert!(info["warnings"].to_string().contains("no list of mapped files (NT_FILE): 0 ELF images"), "{name}: {}", info["warnings"]);
        let ran = run(&["handles", "--no-local-files", scrubbed.path().to_str().unwrap()]);
        // A heap may be carved out of memory; handles are not known then.
        assert!(matches!(ran.exit, Exit::NoRuntime | Exit::Partial), "{name}");
        // Otherwise a descriptor was found in memory, without the image in which the GC is searched.
        let is_listed = info["runtime"].is_null();
        let reason = "the dump has no list of modules (NT_FILE of an ELF core";
        assert_eq!(ran.err.contains(reason), is_listed, "{name}: {}", ran.err);
    }
}

/// createdump of old releases adds no page, and records SIGABRT in the first thread of a process that did not crash.
#[test]
fn an_old_createdump_is_recognized_by_its_header() {
    let core = bytes_of("net8-wks-keys-heap").unwrap();
    let mut notes = notes(&core);
    let first = notes.iter_mut().find(|n| n.kind == 1).unwrap();
    first.desc[12] = 6;
    // The page at the end of the address space.
    let (table, count) = (number(&core, 32, 8), number(&core, 56, 2));
    let page = (0..count).map(|i| table + i * 56).find(|at| number(&core, at + 16, 8) == 0x7fff_fff1_0000).unwrap();
    let (mut old, elsewhere) = (core.clone(), 0x7fff_0000_0000u64.to_le_bytes());
    old[page + 16..page + 24].copy_from_slice(&elsewhere);
    // The note of a trimmed copy lists that page as well.
    let trimmed = notes.iter_mut().find(|n| n.owner == b"gcdump\0").unwrap();
    let region = memchr::memmem::find(&trimmed.desc, &0x7fff_fff1_0000u64.to_le_bytes()).unwrap();
    trimmed.desc[region..region + 8].copy_from_slice(&elsewhere);
    let info = |core: &[u8]| ask(with_notes(core, &notes, 4, 4).path(), &["info"]).1["data"].clone();
    let data = info(&old);
    assert_eq!((&data["writer"], &data["kind"], &data["crash"]), (&"createdump".into(), &"heap".into(), &Value::Null));
    // With another writer's header, the signal is real.
    old[7] = 0;
    assert_eq!(info(&old)["crash"], "SIGABRT");
}
