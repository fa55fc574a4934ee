//! The functions of the fuzz targets. None may panic, hang or need much memory, whatever the input is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Once};

use gcdump::internals::base::{Addr, AddrRange, Arch, Endian, PtrSize, Shape};
use gcdump::cli::{self, Streams};
use gcdump::internals::clr::aot::Debugging;
use gcdump::internals::clr::metadata::{Metadata, Source, signature};
use gcdump::internals::dump::{Bytes, OpenOptions, open_bytes};
use gcdump::internals::gc::GcDesc;
use gcdump::internals::memory::Memory;
use gcdump::internals::stack::{try_debug_info, try_eh_frame, try_gc_info, try_native, try_unwind};
use serde_json::Value;

pub use stacks::{BASES, stacks};

/// Counts the bytes that a target allocates: its memory is bounded by the length of its input, not only by libFuzzer's limit.
#[path = "../../tests/it/mutation/allocations.rs"]
mod allocations;
mod stacks;
/// Synthetic processes.
#[allow(dead_code)]
#[path = "../../tests/it/support/mod.rs"]
pub mod support;

#[global_allocator]
static COUNTING: allocations::Counting = allocations::Counting;

/// Makes this thread rayon's pool, so that allocations of parallel loops are counted.
fn on_this_thread() {
    static POOL: Once = Once::new();
    POOL.call_once(|| rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().expect("the first pool"));
}

/// Runs `work` on this thread, and panics if it has allocated more than `fixed` bytes, and `times` bytes for each of the `len` bytes of
/// input, at one time.
fn within<T>(len: usize, fixed: usize, times: usize, work: impl FnOnce() -> T) -> T {
    on_this_thread();
    allocations::start();
    let done = work();
    let (peak, most) = (allocations::peak(), (fixed + times * len) as u64);
    assert!(peak <= most, "{peak} bytes were allocated for an input of {len}, more than {most}");
    done
}

/// A folder for files; in memory if possible.
fn folder() -> PathBuf {
    if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() }
}

/// Rows of each metadata table that are read.
const ROWS: u32 = 200;

/// Opens `bytes` as a dump and reads all ranges.
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

/// Reads `bytes` as a GCDesc, which ends where the method table begins.
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
        // Offsets are within the object, whatever the GCDesc says.
        assert!(last.is_none_or(|offset| offset < (size & 0xf_ffff).max(1)), "{references:?} {last:?} {size}");
    }
}

/// Reads `bytes` as a version, an architecture and an offset, followed by the GC info of a method.
pub fn gc_info(bytes: &[u8]) {
    let Some(([pick, low, high], info)) = bytes.split_first_chunk::<3>() else { return };
    let base = 0x10_0000;
    let Ok(dump) = open_bytes(Bytes::Owned(one_range(base, info)), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    let memory = Arc::new(Memory::new(&dump, Shape::LE64));
    let arch = if pick & 4 == 0 { Arch::X64 } else { Arch::Arm64 };
    let offset = u32::from(u16::from_le_bytes([*low, *high]));
    if let Some([entries, reported]) = try_gc_info(&memory, Addr(base), 2 + u32::from(pick % 4 % 3), arch, offset) {
        // Entries do not share bits, except for a safe point of a method of one instruction.
        assert!(reported <= entries && entries <= 8 * info.len() + 1, "{entries} entries, {reported} reported in {} bytes", info.len());
    }
}

/// Unwinds a frame with `bytes` as its code, its unwind information, its tables and its stack. A header has flags, the offsets of the
/// instruction pointer and the stack pointer, and the offset of the unwind information or its packed form.
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

/// Unwinds native frames by `.eh_frame`. A header has flags, the offsets of the instruction pointer and the stack pointer, and the lengths of
/// two entries. The table, the entries and the stack follow, or the content of one CIE and one FDE, and the stack.
pub fn eh_frame(bytes: &[u8]) {
    /// Frames and reads of a walk.
    const FRAMES: u64 = 64;
    const READS: u64 = 1 << 14;
    let Some(([flags, i0, i1, s0, s1, common, own], rest)) = bytes.split_first_chunk() else { return };
    let (ip, sp, leaf) = (u16::from_le_bytes([*i0, *i1]), u16::from_le_bytes([*s0, *s1]), flags & 1 == 1);
    let built = |rest: &[u8]| {
        let (cie, rest) = rest.split_at(rest.len().min(usize::from(*common)));
        let (fde, stack) = rest.split_at(rest.len().min(usize::from(*own)));
        let len = |part: &[u8]| (part.len() as u32 + 4).to_le_bytes();
        let (cie_at, fde_at) = (20, 28 + cie.len() as u32);
        let table = [[1, 0x1b, 3, 0x3b], [0; 4], [1, 0, 0, 0], [0; 4], fde_at.to_le_bytes()].concat();
        [&table, &len(cie)[..], &[0; 4], cie, &len(fde), &(fde_at + 4 - cie_at).to_le_bytes(), fde, stack].concat()
    };
    let image = if flags & 2 == 0 { built(rest) } else { rest.to_vec() };
    let base = Addr(0x10_0000);
    let Ok(dump) = open_bytes(Bytes::Owned(one_range(base.0, &image)), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    let memory = Arc::new(Memory::new(&dump, Shape::LE64));
    let walks = within(image.len(), 1 << 18, 64, || try_eh_frame(&memory, (base, image.len() as u64), (ip, sp, leaf), (FRAMES, READS)));
    assert!(walks[0] == walks[1], "the same walk costs something else: {walks:?}");
}

/// Makes an ELF core with one range.
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

/// Further command lines besides the examples of the registry.
const MORE: &[&str] = &[
    "segments --free --walk DUMP", "objects --refs DUMP", "roots --weak DUMP", "finalizers --objects DUMP", "path --type * DUMP",
    "unreachable --objects DUMP", "bridge --all --bridged * DUMP", "type * DUMP", "async --all --tasks DUMP", "async --faulted DUMP",
    "locks --all DUMP", "inspect --top 0 DUMP",
];

/// The command lines that the first byte selects from: those that do not write a file or need an address.
pub fn commands() -> Vec<&'static str> {
    let examples = cli::COMMANDS.iter().flat_map(|c| c.examples).map(|e| e.line);
    let blank = |line: &&str| line.split(' ').any(|w| matches!(w, "OUT" | "ADDR" | "HANDLE" | "--dot" | "--format"));
    examples.filter(move |l| !blank(l)).chain(MORE.iter().copied()).collect()
}

/// Runs a command on a file: the first byte selects the command, the second the format.
pub fn program(bytes: &[u8]) {
    let Some(([pick, format], dump)) = bytes.split_first_chunk() else { return };
    let Ok(file) = tempfile::Builder::new().suffix(".dmp").tempfile_in(folder()) else { return };
    if std::fs::write(file.path(), dump).is_err() {
        return;
    }
    let commands = commands();
    let command = commands[usize::from(*pick) % commands.len()];
    let format = ["table", "json", "ndjson", "csv"][usize::from(format % 4)];
    let word = |w: &str| match w {
        "DUMP" | "BEFORE" | "AFTER" => file.path().into(),
        w => OsString::from(w),
    };
    let words = cli::words_of_shell(command).unwrap_or_else(|| panic!("{command}: several commands"));
    let words = words.iter().map(|w| word(w));
    let args = std::iter::once("gcdump".into()).chain(words).chain(["--no-local-files", "--format", format].map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = cli::run(args, Streams::piped(&mut out, &mut err));
    assert!(matches!(exit.code(), 0 | 1 | 3 | 4 | 5), "{command}: {exit:?} {}", String::from_utf8_lossy(&err));
    if format == "json" && !out.is_empty() {
        assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{command}: no JSON");
    }
}

/// Reads `bytes` as the PDB of a native program, with all types and symbols.
pub fn pdb(bytes: &[u8]) {
    let debugging = Debugging::of_pdb(bytes.to_vec(), &[0x1000, 0x2000, 0x3000], 0x1_8000_0000);
    if let Some(types) = debugging.types {
        for name in types.names() {
            let _ = (types.fields_of(name), types.statics_of(name), types.literals_of(name));
        }
    }
    let _ = debugging.symbols.map(|s| s.types().count());
}

/// Reads `bytes` as the debug info of a method, after an index and an offset of its code.
pub fn debug_info(bytes: &[u8]) {
    let Some(([index, low, high], info)) = bytes.split_first_chunk::<3>() else { return };
    let base = 0x10_0000;
    let Ok(dump) = open_bytes(Bytes::Owned(one_range(base, info)), Path::new("fuzz.dmp"), &OpenOptions::default()) else { return };
    let memory = Arc::new(Memory::new(&dump, Shape::LE64));
    let offset = u32::from(u16::from_le_bytes([*low, *high]));
    let [parts, variables] = within(info.len(), 1 << 16, 256, || try_debug_info(&memory, Addr(base), u32::from(*index), offset));
    // Parts and variables do not share bits.
    assert!(parts.max(variables) <= 8 * info.len() as u64, "{parts} parts, {variables} variables in {} bytes", info.len());
}

/// Reads `bytes` as a portable PDB, and as an assembly with an embedded one.
pub fn symbols(bytes: &[u8]) {
    // An embedded PDB is compressed, up to 16 times; a document's name has parts of 4096 bytes.
    within(bytes.len(), 16 << 20, 64, || gcdump::internals::clr::modules::try_symbols(bytes.to_vec(), ROWS));
}

/// Runs a command on a `.gcdump` file: the first byte selects the command.
pub fn snapshot(bytes: &[u8]) {
    const LINES: [&str; 8] = [
        "stat", "retained --tree", "objects --refs", "path --type *", "unreachable --objects", "info", "diff DUMP", "retained --suspects",
    ];
    let Some(([pick], trace)) = bytes.split_first_chunk() else { return };
    let Ok(file) = tempfile::Builder::new().suffix(".gcdump").tempfile_in(folder()) else { return };
    if std::fs::write(file.path(), trace).is_err() {
        return;
    }
    let line = LINES[usize::from(*pick) % LINES.len()];
    let (exit, err) = within(trace.len(), 64 << 20, 512, || asked(line, file.path(), &[]));
    assert!(matches!(exit, 0 | 1 | 3 | 4 | 5), "{line}: {exit} {err}");
}

/// Runs a command line on a dump. Returns the exit code and standard error.
fn asked(line: &str, dump: &Path, more: &[&str]) -> (u8, String) {
    let words = line.split(' ').map(|word| if word == "DUMP" { dump.into() } else { OsString::from(word) });
    let args = std::iter::once("gcdump".into()).chain(words).chain([dump.into()]).chain(more.iter().map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = cli::run(args, Streams::piped(&mut out, &mut err));
    (exit.code(), String::from_utf8_lossy(&err).into_owned())
}

/// A synthetic dump with its index.
struct Indexed {
    folder: tempfile::TempDir,
    index: Vec<u8>,
    /// Offset of the end of the arrays.
    end: usize,
    description: Value,
    /// JSON pointers to the numbers in `description`.
    numbers: Vec<String>,
}

static INDEXED: LazyLock<Indexed> = LazyLock::new(|| {
    let folder = tempfile::tempdir_in(folder()).expect("a folder");
    let (dump, index) = (folder.path().join("dump"), folder.path().join("index"));
    std::fs::write(&dump, support::Spec::standard(support::Shape::ALL[0]).build().to_elf_core()).expect("it can be written");
    let (exit, err) = asked("index", &dump, &["-o", index.to_str().expect("a plain name")]);
    assert!(matches!(exit, 0 | 5), "{err}");
    let index = std::fs::read(index).expect("it was written");
    let number = |at: usize| u64::from_le_bytes(*index[at..].first_chunk().expect("a head")) as usize;
    let (end, len) = (number(16), number(24));
    let description: Value = serde_json::from_slice(&index[end..end + len]).expect("a description");
    let mut all = Vec::new();
    numbers(&description["kept"], "/kept", &mut all);
    Indexed { folder, index, end, description, numbers: all }
});

fn numbers(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Number(_) => out.push(at.into()),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| numbers(item, &format!("{at}/{n}"), out)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| numbers(field, &format!("{at}/{key}"), out)),
        _ => {}
    }
}

/// Changes an index, makes its checksums fit, and runs a command with it: the first byte selects the command, each eight bytes that follow
/// are a change.
pub fn index(bytes: &[u8]) {
    const LINES: [&str; 6] =
        ["stat", "retained --tree", "path --type *", "unreachable --objects", "objects --type * --count 20", "retained --top 5"];
    const CHANGES: usize = 64;
    let Some(([pick], changes)) = bytes.split_first_chunk() else { return };
    on_this_thread();
    let base = &*INDEXED;
    let (mut forged, mut changed) = (base.index[..base.end].to_vec(), base.description.clone());
    let sections = base.description["sections"].as_array().map_or(0, Vec::len);
    for [section, change, low, high, word @ ..] in changes.as_chunks::<8>().0.iter().take(CHANGES) {
        let (section, word, place) = (usize::from(*section) % sections, u32::from_le_bytes(*word), usize::from(u16::from_le_bytes([*low, *high])));
        let of = |key: &str| base.description["sections"][section][key].as_u64().unwrap_or(0) as usize;
        let array = &mut forged[of("offset")..of("offset") + of("bytes")];
        match change % 6 {
            0 => {
                let at = place * 4 % array.len().max(4);
                array.iter_mut().skip(at).zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
            1 => array.fill(*low),
            2 => array.chunks_exact_mut(4).for_each(|to| to.copy_from_slice(&word.to_le_bytes())),
            3 => changed["sections"][section]["bytes"] = word.into(),
            4 => changed["sections"][section] = base.description["sections"][place % sections].clone(),
            _ => {
                let number = if high & 1 == 0 { u64::from(word) } else { u64::MAX - u64::from(word) };
                let pointer = &base.numbers[place % base.numbers.len()];
                changed.pointer_mut(pointer).into_iter().for_each(|to| *to = number.into());
            }
        }
    }
    for (n, section) in (0..).zip(base.description["sections"].as_array().into_iter().flatten()) {
        changed["sections"][n]["name"] = section["name"].clone();
    }
    let checksum = gcdump::internals::heapgraph::index_checksum;
    changed["checksums"] = forged[40..].chunks(1 << 20).map(checksum).collect();
    let text = serde_json::to_vec(&changed).expect("JSON");
    forged[24..32].copy_from_slice(&(text.len() as u64).to_le_bytes());
    forged[32..40].copy_from_slice(&checksum(&text).to_le_bytes());
    forged.extend(text);
    let path = base.folder.path().join("forged");
    std::fs::write(&path, forged).expect("it can be written");
    let line = LINES[usize::from(*pick) % LINES.len()];
    let dump = base.folder.path().join("dump");
    let (exit, err) = within(0, 24 << 20, 0, || asked(line, &dump, &["--no-local-files", "--index", path.to_str().expect("a plain name")]));
    assert!(matches!(exit, 0 | 1 | 5) || exit == 2 && err.contains("is not used as an index"), "{line}: {exit} {err}");
}

/// Sends `bytes` to the server of the Model Context Protocol, which has opened a synthetic dump.
pub fn mcp(bytes: &[u8]) {
    let dump = INDEXED.folder.path().join("dump");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = cli::try_mcp(&dump, bytes.to_vec(), &mut Streams::piped(&mut out, &mut err));
    assert!(done.is_ok(), "{done:?}");
    for line in out.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        assert!(serde_json::from_slice::<Value>(line).is_ok(), "no JSON: {}", String::from_utf8_lossy(line));
    }
}

/// Parses text that users type or write to a file, as the first byte selects: a command line of words that NULs end, with its conditions,
/// patterns, rules and addresses; a budget; an overlay.
pub fn words(bytes: &[u8]) {
    let Some(([pick], text)) = bytes.split_first_chunk() else { return };
    within(text.len(), 16 << 20, 1 << 12, || match (pick % 3, std::str::from_utf8(text)) {
        (0, Ok(text)) => {
            let args = std::iter::once("gcdump").chain(text.split('\0')).take(16).map(OsString::from);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let _ = cli::parse(args, &mut Streams::piped(&mut out, &mut err));
        }
        (1, Ok(text)) => drop(gcdump::analysis::Rule::parse_all(text)),
        _ => drop(gcdump::internals::contract::Overlay::parse(text, true)),
    });
}

/// Completes the last word of a line to a name. The input is the number of characters that bash replaces, the line and the name.
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
    // Bash replaces only a part of one word.
    let at = if line[at..].contains(char::is_whitespace) { line.len() } else { at };
    if let Some(becomes) = cli::completed_in_bash(line, &line[at..], name) {
        let closed = ["", "'", "\""].map(|quote| format!("{becomes}{quote}"));
        let closed = closed.iter().find(|line| cli::words_of_bash(&format!("{line} x")).is_some()).expect("a line that ends");
        let (words, before) = (cli::words_of_bash(closed).expect("words"), cli::words_of_bash(line).expect("words"));
        assert_eq!(words.last().map(String::as_str), Some(name), "{line:?} {name:?}");
        assert_eq!(words[..words.len() - 1], before[..before.len() - 1], "{line:?} {name:?}");
    }
    if let Some(word) = cli::completed_in_powershell(name, false) {
        let inside = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
        let is_name = |inside: &str| !inside.replace("''", "").contains('\'') && inside.replace("''", "'") == name;
        assert!(word == name || inside.is_some_and(is_name), "{word:?} {name:?}");
    }
}
