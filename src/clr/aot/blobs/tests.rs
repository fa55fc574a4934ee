//! Tests with the sections of a NativeAOT program, written by hand.

// The numbers in these tests are small enough for the casts.
#![allow(clippy::cast_possible_truncation)]

use super::header::{GC_STATIC_REGION, NATIVE_REFERENCES, NATIVE_STATICS, STACK_TRACE_METHODS, STATICS_INFO};
use super::metadata::Split;
use super::*;
use crate::base::Shape;
use crate::clr::aot::HAS_POINTERS;
use crate::memory::tests::memory_of;

const BASE: u64 = 0x10_0000;
/// Offsets of the start and end of the writable part of the image.
const DATA: u64 = 0x4000;
const END: u64 = 0x6000;

fn memory(bytes: Vec<u8>) -> Arc<Memory> {
    let len = bytes.len() as u64;
    Arc::new(memory_of(bytes, &[(BASE, len, 0)], Shape::LE64))
}

fn section(bytes: &[u8]) -> Section {
    Section::new(&memory(bytes.to_vec()), AddrRange::new(Addr(BASE), Addr(BASE + bytes.len() as u64)))
}

fn budget() -> Budget {
    Budget::of_types(1 << 20, None)
}

/// Encodes a number in `len` bytes.
fn number(n: u32, len: usize) -> Vec<u8> {
    match len {
        5 => [&[0x0f][..], &n.to_le_bytes()].concat(),
        _ => ((n << len) | ((1 << (len - 1)) - 1)).to_le_bytes()[..len].to_vec(),
    }
}

/// Encodes a number in the shortest form.
fn unsigned(n: u32) -> Vec<u8> {
    let len = (1..5).find(|len| u64::from(n) < 1 << (7 * len)).unwrap_or(5);
    number(n, len)
}

/// A metadata record of numbers.
fn record(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| unsigned(*n)).collect()
}

fn text(s: &str) -> Vec<u8> {
    [unsigned(s.len() as u32), s.as_bytes().to_vec()].concat()
}

/// A hash table with 2^`log` buckets. The last bucket has all payloads. Each bucket offset has `size` bytes: 1, 2 or 4.
fn table(payloads: &[Vec<u8>], log: u32, size: usize) -> Vec<u8> {
    let buckets = 1usize << log;
    let code = [0u8, 0, 1, 0, 2][size];
    let first = 1 + (buckets + 1) * size;
    // An entry has one byte of the hash code, then four bytes with the distance to its payload.
    let end = first + payloads.len() * 5;
    let mut out = vec![(log as u8) << 2 | code];
    for bucket in 0..=buckets {
        let offset = if bucket < buckets { first } else { end } - 1;
        out.extend_from_slice(&(offset as u32).to_le_bytes()[..size]);
    }
    let mut at = end;
    for (i, payload) in payloads.iter().enumerate() {
        let place = first + i * 5 + 1;
        out.push(0x5a);
        out.extend(number((at - place) as u32, 4));
        at += payload.len();
    }
    out.extend(payloads.concat());
    out
}

#[test]
fn numbers_of_all_lengths_signed_and_unsigned() {
    let cases: [(u32, usize); 10] = [
        (0, 1),
        (0x7f, 1),
        (0x80, 2),
        (0x3fff, 2),
        (0x4000, 3),
        (0x1f_ffff, 3),
        (0x20_0000, 4),
        (0xfff_ffff, 4),
        (0x1000_0000, 5),
        (u32::MAX, 5),
    ];
    for (n, len) in cases {
        let bytes = unsigned(n);
        assert_eq!(bytes.len(), len, "{n:#x}");
        let section = section(&[&bytes[..], &[0; 4]].concat());
        let mut cursor = section.at(0);
        assert_eq!((cursor.unsigned(), cursor.at), (Some(n), len as u64), "{n:#x}");
        let bits = if len == 5 { 32 } else { 7 * len as u32 };
        let signed = (n << (32 - bits)).cast_signed() >> (32 - bits);
        assert_eq!(section.at(0).signed(), Some(signed), "{n:#x}");
    }
    for (n, len) in [(-1i32, 1), (-64, 1), (-8192, 2), (-1 << 20, 3), (-1 << 27, 4), (i32::MIN, 5)] {
        let bits = if len == 5 { 32 } else { 7 * len as u32 };
        let raw = n.cast_unsigned() & u32::MAX >> (32 - bits);
        assert_eq!(section(&number(raw, len)).at(0).signed(), Some(n));
    }
    // A first byte whose low five bits are set is invalid. A number that extends beyond its section is not read.
    assert_eq!(section(&[0x1f; 8]).at(0).unsigned(), None);
    assert_eq!(section(&number(0x1000_0000, 5)[..4]).at(0).unsigned(), None);
    assert_eq!(section(&[1]).at(0).unsigned(), None);
    assert_eq!(section(&[0]).at(u64::MAX).unsigned(), None);
}

#[test]
fn hash_tables_with_bucket_offsets_of_all_sizes() {
    let payloads: Vec<Vec<u8>> = (0..9u32).map(|n| unsigned(n * 1000)).collect();
    for (size, log) in [(1, 0), (1, 3), (2, 0), (2, 5), (4, 0), (4, 2)] {
        let mut found = Vec::new();
        let whole = section(&table(&payloads, log, size)).entries(&budget(), |mut at| found.push(at.unsigned().unwrap()));
        assert!(whole, "{size} {log}");
        assert_eq!(found, (0..9).map(|n| n * 1000).collect::<Vec<u32>>(), "{size} {log}");
    }
}

#[test]
fn reading_damaged_hash_tables_ends_and_reports_them() {
    let payloads: Vec<Vec<u8>> = (0..9u32).map(unsigned).collect();
    let good = table(&payloads, 2, 2);
    let count = |bytes: &[u8]| {
        let mut n = 0;
        let whole = section(bytes).entries(&budget(), |_| n += 1);
        (n, whole)
    };
    assert_eq!(count(&good), (9, true));
    // These tables are reported as damaged: the table cut off at each length below 30, a table with an unknown size of bucket offsets, and a
    // table with more buckets than bytes.
    (0..30).for_each(|len| assert!(!count(&good[..len]).1, "{len}"));
    assert_eq!(count(&[3, 0, 0]), (0, false));
    assert_eq!(count(&[0xfc, 0, 0, 0]), (0, false));
    // Every second bucket contains all entries. The number of entries that are read is limited to the size of the section in bytes.
    let mut forged = table(&payloads, 5, 1);
    let (first, len) = (forged[1], forged.len());
    let end = forged[33];
    (1..33).for_each(|i| forged[i] = if i % 2 == 0 { first } else { end });
    assert!(count(&forged).0 <= len);
    let spent = Budget::of_types(0, Some(0));
    while spent.steps(1 << 16) {}
    let mut visited = 0;
    assert!(!section(&good).entries(&spent, |_| visited += 1));
    assert_eq!(visited, 0);
}

/// Metadata with the signature, and these records at multiples of 32 bytes.
fn metadata(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = 0xdead_dffdu32.to_le_bytes().to_vec();
    for record in records {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(record);
    }
    out.resize(out.len() + 8, 0);
    out
}

/// Offset of record `i`.
const fn at(i: u32) -> u32 {
    (i + 1) * 32
}

const fn token(kind: u32, i: u32) -> u32 {
    kind << 24 | at(i)
}

/// A type definition with namespace, name and enclosing type.
fn definition(namespace: u32, name: u32, enclosing: u32) -> Vec<u8> {
    record(&[0x10_0001, 0x3a, namespace, name, 0, 0, enclosing])
}

/// The metadata records of a module `Lib`: the namespace `A.B`, its type ``T`1``, the nested type `Inner`, references to these, and cycles.
fn records() -> Vec<Vec<u8>> {
    records_of(8)
}

/// Like [`records`], with references that have the kind in `bits` bits.
fn records_of(bits: u32) -> Vec<Vec<u8>> {
    let reference = |kind: u32, i: u32| at(i) << bits | kind;
    vec![
        text("Lib"),
        record(&[0, at(0)]),
        record(&[reference(0x38, 1), 0]),
        text("A"),
        record(&[reference(0x2f, 2), at(3)]),
        text("B"),
        record(&[reference(0x2f, 4), at(5)]),
        text("T`1"),
        definition(at(6), at(7), 0),
        text("Inner"),
        definition(at(6), at(9), at(8)),
        // Records 11 to 14: references.
        record(&[0, at(0)]),
        record(&[reference(0x39, 11), at(3)]),
        record(&[reference(0x30, 12), at(7)]),
        record(&[reference(0x3d, 13), at(9)]),
        // Records 15 and 16: a type specification, and the generic instance in it.
        record(&[reference(0x3c, 16)]),
        record(&[reference(0x3a, 10)]),
        // Records 17 to 20: a namespace that contains itself, a type in it, a type that encloses itself, and a type
        // specification of itself.
        record(&[reference(0x2f, 17), at(3)]),
        definition(at(17), at(7), 0),
        definition(at(6), at(7), at(19)),
        record(&[reference(0x3e, 20)]),
        // Record 21: a type in the root namespace.
        definition(at(2), at(7), 0),
        // Records 22 and 23: a name longer than the metadata, and a type of that name.
        number(0xfff, 2),
        definition(at(6), at(22), 0),
    ]
}

#[test]
fn types_are_named_with_namespaces_and_enclosing_types() {
    let split = Split::of_version(10);
    let metadata = Metadata::open(section(&metadata(&records())), split).unwrap();
    let name = |token| metadata.type_name(split.of_token(token), &budget()).map(|d| (d.name, d.module.to_string()));
    let named = |name: &str| Some((name.to_string(), "Lib".to_string()));
    assert_eq!(name(token(0x3a, 8)), named("A.B.T`1"));
    assert_eq!(name(token(0x3a, 10)), named("A.B.T`1+Inner"));
    assert_eq!(name(token(0x3d, 13)), named("A.T`1"));
    assert_eq!(name(token(0x3d, 14)), named("A.T`1+Inner"));
    assert_eq!(name(token(0x3e, 15)), named("A.B.T`1+Inner"));
    assert_eq!(name(token(0x3a, 21)), named("T`1"));
    // These tokens have no names: namespaces and types that contain themselves, kinds other than types, names and records past the end.
    for wrong in [token(0x3a, 18), token(0x3a, 19), token(0x3e, 20), token(0x2f, 6), token(0x3a, 23), token(0x3a, 4000), token(0, 8)] {
        assert_eq!(name(wrong), None, "{wrong:#x}");
    }
    assert!(Metadata::open(section(&[0; 64]), split).is_none());
    // Names are not read once the budget is exhausted.
    let spent = Budget::of_types(0, Some(0));
    while spent.steps(1 << 16) {}
    assert_eq!(metadata.type_name(split.of_token(token(0x3a, 8)), &spent), None);
}

/// A .NET 9 module with these sections: an ELF image of two segments, with the module header in the second segment.
fn module(sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    module_of(10, sections)
}

/// Like [`module`], with a header of this version. From .NET 11 on, a row of the header has 16 bytes instead of 24.
fn module_of(version: u16, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut image = vec![0; END as usize];
    let mut put = |at: u64, bytes: &[u8]| image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(32, &64u64.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &2u16.to_le_bytes());
    for (i, (flags, start, end)) in [(5u32, 0, DATA), (6, DATA, END)].into_iter().enumerate() {
        let header = 64 + 56 * i as u64;
        put(header, &1u32.to_le_bytes());
        put(header + 4, &flags.to_le_bytes());
        put(header + 16, &start.to_le_bytes());
        put(header + 32, &(end - start).to_le_bytes());
        put(header + 40, &(end - start).to_le_bytes());
    }
    // Magic bytes without a valid header come first.
    put(DATA + 8, b"RTR\0");
    let header = DATA + 64;
    let entry = if version < 26 { 24 } else { 16 };
    put(header, b"RTR\0\0\0\x01\0");
    put(header + 4, &version.to_le_bytes());
    put(header + 12, &(sections.len() as u16).to_le_bytes());
    put(header + 14, &[entry, 1]);
    let mut at = 0x1000;
    for (i, (id, bytes)) in sections.iter().enumerate() {
        let row = header + 16 + u64::from(entry) * i as u64;
        put(row, &id.to_le_bytes());
        put(row + 8, &(BASE + at).to_le_bytes());
        match entry {
            16 => put(row + 4, &(bytes.len() as u32).to_le_bytes()),
            _ => put(row + 16, &(BASE + at + bytes.len() as u64).to_le_bytes()),
        }
        put(at, bytes);
        at = (at + bytes.len() as u64).next_multiple_of(16);
    }
    image
}

fn blobs(image: Vec<u8>) -> Option<Blobs> {
    let memory = memory(image);
    let image = Image::at(&memory, Addr(BASE)).unwrap();
    Blobs::find(&memory, None, &image, HAS_POINTERS, &Limits::default())
}

/// Sections of a module with two types. The second type is nested in the first type. The method tables of the types are 0x100 and 0x200 bytes after
/// the start of the fixups.
fn sections() -> Vec<(u32, Vec<u8>)> {
    let map = table(&[record(&[0, token(0x3a, 8)]), record(&[1, token(0x3a, 10)])], 1, 1);
    let fixups = [0x100u32.to_le_bytes(), 0x1fcu32.to_le_bytes()].concat();
    vec![(TYPE_MAP, map), (COMMON_FIXUPS, fixups), (METADATA, metadata(&records()))]
}

#[test]
fn a_module_has_names_of_its_types() {
    let blobs = blobs(module(&sections())).unwrap();
    assert_eq!(blobs.header(), Addr(BASE + DATA + 64));
    let fixups = blobs.sections.get(COMMON_FIXUPS).unwrap().start;
    let first = fixups.plus(0x100);
    assert_eq!(blobs.definition_name(first), Some("A.B.T`1"));
    assert_eq!(blobs.definition_name(fixups.plus(0x200)), Some("A.B.T`1+Inner"));
    assert_eq!(blobs.definition_name(fixups), None);
    assert_eq!(blobs.method_table_of("Lib", "A.B.T`1"), Some(first));
    assert_eq!(blobs.method_table_of("Other", "A.B.T`1"), None);
    assert_eq!(blobs.incomplete(), [""; 0]);
    assert!(blobs.gc_statics().is_empty() && blobs.method_at(first).is_none());
}

#[test]
fn modules_of_each_release_are_read() {
    // .NET 8, 9, 10 and 11. Kinds have 7 bits since .NET 10; header rows have 16 bytes since .NET 11.
    for (version, bits) in [(9, 8), (10, 8), (16, 7), (26, 7)] {
        let token = |i: u32| 0x3a << (32 - bits) | at(i);
        let mut sections = sections();
        sections[0].1 = table(&[record(&[0, token(8)]), record(&[1, token(10)])], 1, 1);
        sections[2].1 = metadata(&records_of(bits));
        let blobs = blobs(module_of(version, &sections)).unwrap_or_else(|| panic!("{version}"));
        let fixups = blobs.sections.get(COMMON_FIXUPS).unwrap();
        assert_eq!((fixups.len(), blobs.definition_name(fixups.start.plus(0x100))), (8, Some("A.B.T`1")), "{version}");
        assert_eq!((blobs.definition_name(fixups.start.plus(0x200)), blobs.incomplete()), (Some("A.B.T`1+Inner"), vec![]), "{version}");
    }
    // With a header of .NET 10, references are decoded with 7 bits of kind, and so these records (8 bits) have no valid types.
    assert_eq!(blobs(module_of(16, &sections())).unwrap().definitions().count(), 0);
}

#[test]
fn on_windows_the_header_is_in_read_only_memory() {
    let mut image = module(&sections());
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0; 0x200]);
    put(0, b"MZ");
    put(0x3c, &[0x80]);
    // A single read-only section, after an optional header of 0xf0 bytes.
    put(0x80, b"PE\0\0\x64\x86\x01");
    put(0x80 + 20, &[0xf0]);
    put(0x80 + 24, &0x20bu16.to_le_bytes());
    put(0x80 + 24 + 56, &(END as u32).to_le_bytes());
    let section = 0x80 + 24 + 0xf0;
    put(section + 8, &((END - DATA) as u32).to_le_bytes());
    put(section + 12, &(DATA as u32).to_le_bytes());
    put(section + 36, &0x4000_0040u32.to_le_bytes());
    let blobs = blobs(image).unwrap();
    assert_eq!(blobs.header(), Addr(BASE + DATA + 64));
    assert_eq!(blobs.method_table_of("Lib", "A.B.T`1"), Some(blobs.sections.get(COMMON_FIXUPS).unwrap().start.plus(0x100)));
}

#[test]
fn missing_parts_of_tables_are_reported() {
    // The first payload refers to a fixup past the end of the fixups. The second payload refers to a record past the end of the metadata.
    for payload in [record(&[2, token(0x3a, 8)]), record(&[0, token(0x3a, 4000)])] {
        let mut sections = sections();
        sections[0].1 = table(&[record(&[1, token(0x3a, 10)]), payload], 0, 1);
        let blobs = blobs(module(&sections)).unwrap();
        assert_eq!((blobs.definitions().count(), blobs.incomplete()), (1, vec!["table of types"]));
    }
}

#[test]
fn impossible_headers_are_refused() {
    let good = module(&sections());
    assert!(blobs(good.clone()).is_some());
    let header = (DATA + 64) as usize;
    // The changed headers have a wrong version, no rows, a wrong row size, unsorted rows, a section that ends after the image, and a section that
    // ends before its start.
    let beyond = (BASE + END + 16).to_le_bytes();
    let changes: [(usize, &[u8]); 6] =
        [(4, &[1, 0]), (12, &[0, 0]), (14, &[12]), (16, &[0xff, 0xff]), (16 + 8, &beyond), (16 + 16, &BASE.to_le_bytes())];
    for (offset, bytes) in changes {
        let mut wrong = good.clone();
        wrong[header + offset..header + offset + bytes.len()].copy_from_slice(bytes);
        assert!(blobs(wrong).is_none(), "{offset}");
    }
    // If the header's page is absent, the file supplies it.
    let partial = Arc::new(memory_of(good.clone(), &[(BASE, DATA, 0)], Shape::LE64));
    let image = Image::at(&partial, Addr(BASE)).unwrap();
    let file = memory(good);
    assert!(Blobs::find(&partial, None, &image, HAS_POINTERS, &Limits::default()).is_none());
    assert!(Blobs::find(&partial, Some(&file), &image, HAS_POINTERS, &Limits::default()).is_some());
}

#[test]
fn blocks_are_found_directly_and_through_their_array() {
    // The four slots at 0x5000 contain: a block; an array element that points to a block; the method table of a block that is not allocated
    // yet; null.
    let slots = 0x5000u64;
    let mut sections = sections();
    let region: Vec<u8> = (0..4u64).flat_map(|i| ((slots + 8 * i - (0x1000 + 4 * i)) as u32).to_le_bytes()).collect();
    sections.insert(0, (GC_STATIC_REGION, region));
    let mut image = module(&sections);
    let mut put = |at: u64, n: u64| image[at as usize..at as usize + 8].copy_from_slice(&n.to_le_bytes());
    let (block, element, table) = (BASE + 0x5100, BASE + 0x5200, BASE + 0x5300);
    for (at, n) in
        [(slots, block), (slots + 8, element), (slots + 16, table | 1), (0x5200, block), (0x5100, table), (0x5300, 0x28_0100_0000)]
    {
        put(at, n);
    }
    let blobs = blobs(image).unwrap();
    let found: Vec<_> = blobs.gc_statics().into_iter().map(|s| (s.slot.0 - BASE, s.block)).collect();
    let block = Some(Addr(block));
    assert_eq!(found, [(slots, block), (slots + 8, block), (slots + 16, None), (slots + 24, None)]);
}

#[test]
fn methods_are_read_command_by_command() {
    let mut list = 3u32.to_le_bytes().to_vec();
    let method = |list: &mut Vec<u8>, command: u8, rest: &[u8], code: u32| {
        list.push(command);
        list.extend(rest);
        let place = list.len() as u32;
        list.extend((code.wrapping_sub(place)).to_le_bytes());
    };
    let owner = token(0x3a, 8).to_le_bytes();
    method(&mut list, 1 | 2 | 8, &[&owner[..], &unsigned(at(3)), &unsigned(7), &unsigned(9)].concat(), 0x900);
    method(&mut list, 2 | 4, &[unsigned(at(5)), unsigned(300)].concat(), 0x800);
    method(&mut list, 16, &[], 0xa00);
    for (len, whole) in [(list.len(), true), (list.len() - 1, false)] {
        let mut sections = sections();
        sections.push((STACK_TRACE_METHODS, list[..len].to_vec()));
        let blobs = blobs(module(&sections)).unwrap();
        let start = blobs.sections.get(STACK_TRACE_METHODS).unwrap().start;
        let offsets: Vec<u64> = blobs.method_starts().map(|at| at.0 - start.0).collect();
        assert_eq!(offsets, if whole { vec![0x800, 0x900, 0xa00] } else { vec![0x800, 0x900] });
        assert_eq!(blobs.incomplete().is_empty(), whole);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]
    #[test]
    fn damaged_tables_are_read_without_a_panic(
        damage in proptest::collection::vec((proptest::prelude::any::<u16>(), proptest::prelude::any::<u8>()), 1..16),
    ) {
        let mut all = sections();
        all.extend([(GC_STATIC_REGION, vec![4, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]), (STACK_TRACE_METHODS, vec![3, 0, 0, 0, 7, 8, 0, 0, 0x3a, 2, 2, 0, 0, 0, 0])]);
        all.extend([NATIVE_REFERENCES, NATIVE_STATICS].map(|id| (id, vec![0, 1, 0, 0, 4, 1, 0, 0])));
        all.push((STATICS_INFO, table(&[record(&[0, 0x43, 1, 0x42, 0, 0])], 0, 1)));
        all.sort_by_key(|(id, _)| *id);
        let mut image = module(&all);
        let len = image.len() - DATA as usize;
        for (at, value) in damage {
            image[DATA as usize + usize::from(at) % len] = value;
        }
        if let Some(blobs) = blobs(image) {
            let tables: Vec<Addr> = blobs.definitions().map(|(table, _)| table).collect();
            tables.iter().for_each(|t| { let _ = blobs.definition_name(*t); });
            let _ = (blobs.gc_statics(), blobs.method_at(Addr(BASE)), blobs.method_count(), blobs.owned_statics().len(), blobs.incomplete());
        }
    }
}
