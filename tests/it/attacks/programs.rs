//! Files of a NativeAOT program: its small core, and beside it a module file whose sections, names and units share bytes.

use std::io::Write;
use std::path::Path;

use super::make::fields;
use crate::corpus;

/// Build ID of the program.
const OWN: [u8; 20] = *b"\xf5\x00\x35\x3c\x2d\x9d\x25\x4c\x4d\x60\x44\x30\xe4\x52\xcf\x7d\xa4\x09\x07\x57";
/// The method table of the object in the command line, in the file.
const TABLE: u64 = 0x3cc_c48;
const PROGBITS: u64 = 1;
const SYMTAB: u64 = 2;
const STRTAB: u64 = 3;
const NOTE: u64 = 7;
const COMPRESSED: u64 = 0x800;
/// The sections of DWARF.
const DWARF: [&str; 7] =
    [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_line"];

/// Bytes of a file: offset and number.
type Place = (u64, u64);

/// A module file that has only sections.
struct File {
    bytes: Vec<u8>,
    headers: Vec<u8>,
    names: Vec<u8>,
}

impl File {
    /// Makes a file with this build ID.
    fn of(id: &[u8]) -> File {
        let mut file = File { bytes: vec![0; 64], headers: vec![0; 64], names: vec![0] };
        let note = [&fields(&[(4, 4), (id.len() as u64, 4), (3, 4)])[..], b"GNU\0", id].concat();
        file.section(".note.gnu.build-id", NOTE, 0, &note, 0);
        file
    }

    fn append(&mut self, bytes: &[u8]) -> Place {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        (at, bytes.len() as u64)
    }

    fn header(&mut self, name: u64, kind: u64, flags: u64, (at, len): Place, link: u64) {
        self.headers.extend(fields(&[(name, 4), (kind, 4), (flags, 8), (0, 8), (at, 8), (len, 8), (link, 4), (0, 4), (1, 8), (0, 8)]));
    }

    fn placed(&mut self, name: &str, kind: u64, flags: u64, place: Place, link: u64) {
        let at = self.names.len() as u64;
        self.names.extend(name.bytes().chain([0]));
        self.header(at, kind, flags, place, link);
    }

    fn section(&mut self, name: &str, kind: u64, flags: u64, bytes: &[u8], link: u64) {
        let place = self.append(bytes);
        self.placed(name, kind, flags, place, link);
    }

    /// Writes the file beside the dump, and returns the dump.
    fn beside(mut self, dir: &Path) -> Vec<u8> {
        let own = self.names.len() as u64;
        self.names.extend(b".shstrtab\0");
        let names = std::mem::take(&mut self.names);
        let place = self.append(&names);
        self.header(own, STRTAB, 0, place, 0);
        let count = self.headers.len() as u64 / 64;
        let headers = std::mem::take(&mut self.headers);
        let (at, _) = self.append(&headers);
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(16, 0);
        head.extend(fields(&[
            (3, 2),
            (62, 2),
            (1, 4),
            (0, 8),
            (0, 8),
            (at, 8),
            (0, 4),
            (64, 2),
            (0, 2),
            (0, 2),
            (64, 2),
            (count, 2),
            (count - 1, 2),
        ]));
        self.bytes[..64].copy_from_slice(&head);
        std::fs::write(dir.join("lab"), self.bytes).unwrap();
        let dump = corpus::dump("aot9-wks-crash-kernel");
        zstd::decode_all(std::fs::File::open(dump).unwrap()).unwrap()
    }
}

fn section_names(dir: &Path, part: u64, id: &[u8]) -> Vec<u8> {
    let mut file = File::of(id);
    let (at, name) = (file.names.len() as u64, "a".repeat(700_000));
    file.names.extend(name.bytes().chain([0]));
    (0..4000 / part).for_each(|_| file.header(at, PROGBITS, 0, (64, 0), 0));
    file.beside(dir)
}

/// Sections that share a long name, in a file that is not the program's.
pub fn names_of_another(dir: &Path, part: u64) -> Vec<u8> {
    section_names(dir, part, &[7; 20])
}

/// Sections that share a long name, in the program's file.
pub fn names_of_sections(dir: &Path, part: u64) -> Vec<u8> {
    section_names(dir, part, &OWN)
}

/// Sections decompressed from the same bytes, each to a thousand times their size.
pub fn packed(dir: &Path, part: u64) -> Vec<u8> {
    let size = (1 << 30) / part;
    let mut zeros = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    (0..size >> 16).for_each(|_| zeros.write_all(&[0; 1 << 16]).unwrap());
    let mut file = File::of(&OWN);
    let place = file.append(&[fields(&[(1, 8), (size, 8), (1, 8)]), zeros.finish().unwrap()].concat());
    DWARF.iter().for_each(|name| file.placed(name, PROGBITS, COMPRESSED, place, 0));
    file.beside(dir)
}

fn uleb(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// Encodes an abbreviation: its number, tag, whether entries have children, attributes with their forms.
fn abbreviation(number: u64, tag: u64, children: bool, attributes: &[(u64, u64)]) -> Vec<u8> {
    let pairs = attributes.iter().chain([&(0, 0)]).flat_map(|(name, form)| [uleb(*name), uleb(*form)].concat());
    [uleb(number), uleb(tag), vec![children.into()]].concat().into_iter().chain(pairs).collect()
}

/// Encodes a unit of version 5.
fn unit(entries: &[u8]) -> Vec<u8> {
    let body = [&fields(&[(5, 2), (1, 1), (8, 1), (0, 4)])[..], entries].concat();
    [&fields(&[(body.len() as u64, 4)])[..], &body].concat()
}

// Numbers of attributes and forms.
const NAME: u64 = 0x03;
const BYTE_SIZE: u64 = 0x0b;
const PRODUCER: u64 = 0x25;
const ARTIFICIAL: u64 = 0x34;
const TYPE: u64 = 0x49;
const STRING: u64 = 0x08;
const DATA1: u64 = 0x0b;
const STRP: u64 = 0x0e;
const REF4: u64 = 0x13;
const FLAG_PRESENT: u64 = 0x19;

fn with_dwarf(file: &mut File, abbreviations: &[u8], info: &[u8]) {
    file.section(".debug_abbrev", PROGBITS, 0, abbreviations, 0);
    file.section(".debug_info", PROGBITS, 0, info, 0);
}

/// Adds a class `X` with a number, and makes it the type of the object in the command line. `tail` follows its unit.
fn with_class(file: &mut File, tail: &[u8]) {
    let abbreviations = [
        abbreviation(1, 0x11, true, &[(PRODUCER, STRING)]),
        abbreviation(2, 0x02, true, &[(NAME, STRING), (BYTE_SIZE, DATA1)]),
        abbreviation(3, 0x0d, false, &[(NAME, STRING), (TYPE, REF4), (0x38, DATA1)]),
        abbreviation(4, 0x24, false, &[(NAME, STRING), (0x3e, DATA1), (BYTE_SIZE, DATA1)]),
        vec![0],
    ];
    let root = b"\x01NetRuntime\0";
    // The offset is after the unit's header.
    let at = 12 + root.len() as u64;
    let entries = [&root[..], b"\x04int\0\x05\x04", b"\x02X\0\x40", b"\x03f\0", &fields(&[(at, 4)]), b"\x08\0\0"].concat();
    with_dwarf(file, &abbreviations.concat(), &[&unit(&entries), tail].concat());
}

/// Makes data symbols: offset of the name, and value. The first is the method table of `X`.
fn with_symbols(dir: &Path, strings: &[u8], symbols: impl Iterator<Item = (u64, u64)>) -> Vec<u8> {
    with_units(dir, strings, symbols, &[])
}

fn with_units(dir: &Path, strings: &[u8], symbols: impl Iterator<Item = (u64, u64)>, tail: &[u8]) -> Vec<u8> {
    let own = b"\0_ZTV1X\0";
    let mut file = File::of(&OWN);
    let symbol = |(name, value)| fields(&[(name, 4), (1, 1), (0, 1), (1, 2), (value, 8), (0, 8)]);
    let others = symbols.map(|(name, value)| (own.len() as u64 + name, value));
    let table: Vec<u8> = [(1, TABLE)].into_iter().chain(others).flat_map(symbol).collect();
    file.section(".symtab", SYMTAB, 0, &table, 3);
    file.section(".strtab", STRTAB, 0, &[own, strings].concat(), 0);
    with_class(&mut file, tail);
    file.beside(dir)
}

/// Symbols that share a name of four megabytes.
pub fn symbols(dir: &Path, part: u64) -> Vec<u8> {
    let name = format!("_ZTV4000000{}\0", "x".repeat(4_000_000));
    with_symbols(dir, name.as_bytes(), (0..20_000 / part).map(|i| (0, 0x1000 + i)))
}

/// Makes `count` names of types, each of which continues in the one before it. Returns them with their offsets.
fn overlapping(count: u64, tail: &str) -> (Vec<u8>, Vec<u64>) {
    let (mut pieces, mut len) = (vec![tail.to_string()], tail.len());
    let mut behind = Vec::new();
    for _ in 0..count {
        let piece = format!("_ZTV{len}");
        len += piece.len();
        behind.push(len as u64);
        pieces.push(piece);
    }
    pieces.reverse();
    (format!("{}\0", pieces.concat()).into_bytes(), behind.into_iter().map(|from_end| len as u64 - from_end).collect())
}

/// Names of types that overlap, up to 200 KB each.
pub fn overlapping_symbols(dir: &Path, part: u64) -> Vec<u8> {
    let (text, places) = overlapping(20_000 / part, "tail");
    with_symbols(dir, &text, (0x1000..).zip(places).map(|(i, at)| (at, i)))
}

/// Names of types that overlap in groups, none longer than a name may be.
pub fn names_of_types(dir: &Path, part: u64) -> Vec<u8> {
    let (mut strings, mut all) = (Vec::new(), Vec::new());
    for i in 0..1000 / part {
        let (text, places) = overlapping(400, &format!("t{i}"));
        all.extend(places.into_iter().map(|at| strings.len() as u64 + at));
        strings.extend(text);
    }
    with_symbols(dir, &strings, (0x1000..).zip(all).map(|(i, at)| (at, i)))
}

fn entries_without_bytes(dir: &Path, attributes: u64, entries: u64) -> Vec<u8> {
    let flags: Vec<(u64, u64)> = (0..attributes).map(|_| (ARTIFICIAL, FLAG_PRESENT)).collect();
    let abbreviations = [abbreviation(1, 0x11, true, &[(PRODUCER, STRING)]), abbreviation(2, 0x30, false, &flags), vec![0]];
    let mut file = File::of(&OWN);
    let info = [&b"\x01NetRuntime\0"[..], &vec![2; entries as usize], &[0]].concat();
    with_dwarf(&mut file, &abbreviations.concat(), &unit(&info));
    file.beside(dir)
}

/// Entries of one byte with a hundred thousand attributes.
pub fn attributes(dir: &Path, part: u64) -> Vec<u8> {
    entries_without_bytes(dir, 100_000 / part, 100_000)
}

/// An entry with twenty million attributes.
pub fn abbreviations(dir: &Path, part: u64) -> Vec<u8> {
    entries_without_bytes(dir, 20_000_000 / part, 1)
}

/// Units that share name and producer, a text of four megabytes.
pub fn units(dir: &Path, part: u64) -> Vec<u8> {
    let mut file = File::of(&OWN);
    let root = abbreviation(1, 0x11, false, &[(PRODUCER, STRP), (NAME, STRP)]);
    with_dwarf(&mut file, &[root, vec![0]].concat(), &unit(&[1, 0, 0, 0, 0, 0, 0, 0, 0]).repeat((20_000 / part) as usize));
    file.section(".debug_str", PROGBITS, 0, format!("NetRuntime{}\0", "x".repeat(4_000_000)).as_bytes(), 0);
    file.beside(dir)
}

/// A unit of managed code.
pub fn one_unit(dir: &Path, _: u64) -> Vec<u8> {
    with_units(dir, &[], std::iter::empty(), &[])
}

/// A unit of managed code, and after it one that claims more bytes than the section has.
pub fn cut_units(dir: &Path, _: u64) -> Vec<u8> {
    with_units(dir, &[], std::iter::empty(), &fields(&[(1000, 4), (5, 2)]))
}
