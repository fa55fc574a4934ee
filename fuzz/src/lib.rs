//! What the fuzz targets do with their input. Nothing here may panic, hang or need much memory, whatever the input is.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use gcdump::internals::base::{Addr, AddrRange, Arch, Endian, PtrSize, Shape};
use gcdump::cli::{self, Streams};
use gcdump::internals::clr::aot::Debugging;
use gcdump::internals::clr::metadata::{Metadata, Source, signature};
use gcdump::internals::dump::{Bytes, OpenOptions, open_bytes};
use gcdump::internals::gc::GcDesc;
use gcdump::internals::memory::Memory;
use gcdump::internals::stack::{try_gc_info, try_native, try_unwind};

/// Rows of each metadata table that are looked at.
const ROWS: u32 = 200;

/// Opens `bytes` as a dump and reads what each range claims to hold.
pub fn container(bytes: &[u8]) {
    let opened = open_bytes(Bytes::Owned(bytes.to_vec()), Path::new("fuzz.dmp"), &OpenOptions::default());
    let Ok(dump) = opened else { return };
    for shape in [Shape::LE64, Shape { ptr: PtrSize::Four, endian: Endian::Big }] {
        let memory = Memory::new(&dump, shape);
        // Several ranges may have the same bytes of the file, but each has only bytes of the file.
        for (address, stretch) in memory.stretches(AddrRange::new(Addr(0), Addr(u64::MAX))) {
            assert!(stretch.len() <= bytes.len(), "{} bytes at {address} in a file of {}", stretch.len(), bytes.len());
        }
    }
}

/// Reads `bytes` as a metadata blob, and as each kind of signature.
pub fn metadata(bytes: &[u8]) {
    let _ = (signature::field(bytes), signature::method(bytes), signature::type_spec(bytes));
    let len = bytes.len() as u64;
    let source = Source::File { bytes: Arc::new(Bytes::Owned(bytes.to_vec())), offset: 0, len };
    let Ok(m) = Metadata::open(source) else { return };
    let _ = (m.assembly(), m.module_name(), m.mvid(), m.row_counts(), m.type_defs());
    for rid in 0..ROWS {
        let _ = (m.type_def(rid), m.enclosing(rid), m.generic_params(rid), m.generic_param_name(rid));
        let _ = (m.field_name(rid), m.method_name(rid), m.field(rid), m.method(rid), m.type_ref(rid), m.type_spec(rid));
        let _ = (m.assembly_ref(rid), m.base_type(rid), m.constant(rid), m.field_rva(rid));
        let _ = (m.fields_of(rid).len(), m.methods_of(rid).len());
    }
}

/// Reads `bytes` as what lies in front of a method table, at the end of which it stands.
pub fn gcdesc(bytes: &[u8]) {
    let Some((size, desc)) = bytes.split_first_chunk::<4>() else { return };
    let size = u64::from(u32::from_le_bytes(*size));
    let base = 0x10_0000;
    let file = one_range(base, desc);
    let Ok(dump) = open_bytes(Bytes::Owned(file), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    for shape in [Shape::LE64, Shape { ptr: PtrSize::Four, endian: Endian::Little }, Shape { ptr: PtrSize::Eight, endian: Endian::Big }] {
        let memory = Memory::new(&dump, shape);
        let references = GcDesc::read(&memory, Addr(base + (desc.len() as u64 & !7)), size & 0xffff);
        let mut last = None;
        references.places(size & 0xf_ffff, memory.ptr_bytes(), |offset| last = Some(offset));
        // Nothing behind the object, whatever the description says.
        assert!(last.is_none_or(|offset| offset < (size & 0xf_ffff).max(1)), "{references:?} {last:?} {size}");
    }
}

/// Reads `bytes` as the GC info of a method, behind a version, an architecture and an offset.
pub fn gc_info(bytes: &[u8]) {
    let Some(([pick, low, high], info)) = bytes.split_first_chunk::<3>() else { return };
    let base = 0x10_0000;
    let Ok(dump) = open_bytes(Bytes::Owned(one_range(base, info)), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    let memory = Arc::new(Memory::new(&dump, Shape::LE64));
    let arch = if pick & 4 == 0 { Arch::X64 } else { Arch::Arm64 };
    let offset = u32::from(u16::from_le_bytes([*low, *high]));
    if let Some([entries, reported]) = try_gc_info(&memory, Addr(base), 2 + u32::from(pick % 4 % 3), arch, offset) {
        // Each has bits of its own, but for a safe point of a method of one instruction.
        assert!(reported <= entries && entries <= 8 * info.len() + 1, "{entries} entries, {reported} reported in {} bytes", info.len());
    }
}

/// Unwinds a frame with `bytes` as its code, its unwind information, its tables and its stack. In front of them: flags, where the
/// instruction pointer and the stack pointer are, and where the unwind information is or, packed, what it says.
pub fn unwind(bytes: &[u8]) {
    let Some(([flags, i0, i1, s0, s1, w0, w1, w2, w3], bytes)) = bytes.split_first_chunk() else { return };
    let (ip, sp, leaf) = (u16::from_le_bytes([*i0, *i1]), u16::from_le_bytes([*s0, *s1]), flags & 1 == 1);
    let (base, word) = (Addr(0x10_0000), u32::from_le_bytes([*w0, *w1, *w2, *w3]));
    let Ok(dump) = open_bytes(Bytes::Owned(one_range(base.0, bytes)), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    let memory = Arc::new(Memory::new(&dump, Shape::LE64));
    let arch = if flags & 2 == 0 { Arch::X64 } else { Arch::Arm64 };
    let moved = try_unwind(&memory, (arch, base, word), (ip, sp, leaf));
    // Leaves of arm64 may have no frame.
    assert!(arch == Arch::Arm64 || moved != Some(0), "{word:#x}: the stack pointer stays");
    let [elf, pe] = try_native(&memory, (base, bytes.len() as u64), (ip, sp, leaf));
    assert!((leaf || elf != Some(0)) && pe != Some(0), "the stack pointer stays");
}

/// An ELF core of one range.
fn one_range(base: u64, bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    file.resize(16, 0);
    let half = |file: &mut Vec<u8>, n: u16| file.extend(n.to_le_bytes());
    let word = |file: &mut Vec<u8>, n: u32| file.extend(n.to_le_bytes());
    let long = |file: &mut Vec<u8>, n: u64| file.extend(n.to_le_bytes());
    half(&mut file, 4);
    half(&mut file, 62);
    word(&mut file, 1);
    [0, 64, 0].into_iter().for_each(|n| long(&mut file, n));
    word(&mut file, 0);
    [64, 56, 1, 0, 0, 0].into_iter().for_each(|n| half(&mut file, n));
    word(&mut file, 1);
    word(&mut file, 6);
    [120, base, 0, bytes.len() as u64, bytes.len() as u64, 8].into_iter().for_each(|n| long(&mut file, n));
    file.extend(bytes);
    file
}

/// Forms of commands beside the examples of the registry.
const MORE: &[&str] = &[
    "segments --free --walk DUMP", "objects --refs DUMP", "roots --weak DUMP", "finalizers --objects DUMP", "path --type * DUMP",
    "unreachable --objects DUMP", "bridge --all --bridged * DUMP", "type * DUMP", "async --all --tasks DUMP", "async --faulted DUMP",
    "locks --all DUMP", "inspect --top 0 DUMP",
];

/// Command lines that the first byte picks from: what writes no file and needs no address.
pub fn commands() -> Vec<&'static str> {
    let examples = cli::COMMANDS.iter().flat_map(|c| c.examples).map(|e| e.line);
    let blank = |line: &&str| line.split(' ').any(|w| matches!(w, "OUT" | "ADDR" | "HANDLE" | "--dot" | "--format"));
    examples.filter(move |l| !blank(l)).chain(MORE.iter().copied()).collect()
}

/// Runs a whole command on a file: the first byte picks the command, the second the format.
pub fn program(bytes: &[u8]) {
    let Some(([pick, format], dump)) = bytes.split_first_chunk() else { return };
    let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let Ok(file) = tempfile::Builder::new().suffix(".dmp").tempfile_in(folder) else { return };
    if std::fs::write(file.path(), dump).is_err() {
        return;
    }
    let commands = commands();
    let command = commands[usize::from(*pick) % commands.len()];
    let format = ["table", "json", "ndjson", "csv"][usize::from(format % 4)];
    let word = |w: &str| match w {
        "DUMP" | "BEFORE" | "AFTER" => file.path().into(),
        w => OsString::from(w.trim_matches('\'')),
    };
    let words = command.split(' ').map(word);
    let args = std::iter::once("gcdump".into()).chain(words).chain(["--no-local-files", "--format", format].map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = cli::run(args, Streams::piped(&mut out, &mut err));
    assert!(matches!(exit.code(), 0 | 1 | 3 | 4 | 5), "{command}: {exit:?} {}", String::from_utf8_lossy(&err));
    if format == "json" && !out.is_empty() {
        assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{command}: no JSON");
    }
}

/// Reads `bytes` as the PDB of a native program, and all that it tells.
pub fn pdb(bytes: &[u8]) {
    let debugging = Debugging::of_pdb(bytes.to_vec(), &[0x1000, 0x2000, 0x3000], 0x1_8000_0000);
    if let Some(types) = debugging.types {
        for name in types.names() {
            let _ = (types.fields_of(name), types.statics_of(name), types.literals_of(name));
        }
    }
    let _ = debugging.symbols.map(|s| s.types().count());
}

/// Completes the last word of a line to a name: the line, the name, and how many characters of the line bash replaces.
pub fn completion(bytes: &[u8]) {
    let Some((cut, text)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let Some((line, name)) = text.split_once('\0') else { return };
    if let Some(becomes) = cli::completed_in_shell(line, name)
        && let Some(words) = cli::words_of_shell(&becomes)
    {
        assert_eq!(words.last().map(String::as_str), Some(name), "{line:?} {name:?}");
    }
    let at = line.char_indices().rev().map(|(at, _)| at).nth(usize::from(*cut)).unwrap_or(line.len());
    // A part of a word.
    let at = if line[at..].contains(char::is_whitespace) { line.len() } else { at };
    if let Some(becomes) = cli::completed_in_bash(line, &line[at..], name) {
        let closed = ["", "'", "\""].map(|quote| format!("{becomes}{quote}"));
        let closed = closed.iter().find(|line| cli::words_of_bash(&format!("{line} x")).is_some()).expect("a line that ends");
        let (words, before) = (cli::words_of_bash(closed).expect("words"), cli::words_of_bash(line).expect("words"));
        assert_eq!(words.last().map(String::as_str), Some(name), "{line:?} {name:?}");
        assert_eq!(words[..words.len() - 1], before[..before.len() - 1], "{line:?} {name:?}");
    }
    if let Some(word) = cli::completed_in_powershell(name, false) {
        assert!(word == name || (word.starts_with('\'') && word.ends_with('\'') && word.replace("''", "").matches('\'').count() == 2));
    }
}
