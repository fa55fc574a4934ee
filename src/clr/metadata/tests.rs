//! Tests of the metadata reader with a handmade blob, the blob of a real assembly, and mutations of both.

#![allow(clippy::cast_possible_truncation)]

use std::sync::Arc;

use super::*;
use crate::clr::pe;
use crate::dump::Bytes;

fn source(bytes: Vec<u8>) -> Source {
    let len = bytes.len() as u64;
    Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len }
}

/// A blob with the types `<Module>`, ``N.Outer`1`` and `Inner`, which is nested in `Outer`. `stream` is the name of the table stream.
fn small(stream: &str, extra_data: bool) -> Vec<u8> {
    let mut strings = vec![0u8];
    let mut string = |text: &str| {
        let at = strings.len() as u16;
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        at.to_le_bytes()
    };
    let mut rows: Vec<u8> = Vec::new();
    // Module: generation, name, MVID, EncId, EncBaseId.
    rows.extend([0, 0]);
    rows.extend(string("small.dll"));
    rows.extend([1, 0, 0, 0, 0, 0]);
    // TypeDef: flags, name, namespace, base, fields, methods.
    let outer = (string("Outer`1"), string("N"));
    let inner = (string("Inner"), [0, 0]);
    let module = (string("<Module>"), [0, 0]);
    for (flags, (name, space), field, method) in [(0u32, module, 1u16, 1u16), (1, outer, 1, 1), (2, inner, 2, 2)] {
        rows.extend(flags.to_le_bytes());
        rows.extend(name);
        rows.extend(space);
        rows.extend([0, 0]);
        rows.extend(field.to_le_bytes());
        rows.extend(method.to_le_bytes());
    }
    // Field: flags, name, signature. Two rows.
    for name in ["first", "second"] {
        rows.extend([0, 0]);
        rows.extend(string(name));
        rows.extend([0, 0]);
    }
    // MethodDef: RVA, implementation flags, flags, name, signature, parameters.
    rows.extend([0; 8]);
    rows.extend(string("Run"));
    rows.extend([0, 0, 1, 0]);
    // Param: flags, position, name.
    for (position, name) in [(0u8, "result"), (2, "count")] {
        rows.extend([0, 0, position, 0]);
        rows.extend(string(name));
    }
    // Assembly: hash, version, flags, key, name, culture.
    rows.extend([0; 4]);
    rows.extend([10, 0, 1, 0, 2, 0, 3, 0]);
    rows.extend([0; 4]);
    rows.extend([0, 0]);
    rows.extend(string("small"));
    rows.extend([0, 0]);
    // NestedClass: type 3 is nested in type 2.
    rows.extend([3, 0, 2, 0]);
    // GenericParam: number, flags, owner, name. The owners are types 2 and 3.
    for owner in [2u16 << 1, 3 << 1] {
        rows.extend([0; 4]);
        rows.extend(owner.to_le_bytes());
        rows.extend(string("T"));
    }
    let mut tables = vec![0, 0, 0, 0, 2, 0, if extra_data { 0x40 } else { 0 }, 1];
    let valid = [MODULE, TYPE_DEF, FIELD, METHOD_DEF, PARAM, ASSEMBLY, NESTED_CLASS, GENERIC_PARAM];
    tables.extend(valid.iter().fold(0u64, |n, t| n | 1 << t).to_le_bytes());
    tables.extend((1u64 << NESTED_CLASS | 1 << GENERIC_PARAM).to_le_bytes());
    for rows in [1u32, 3, 2, 1, 2, 1, 1, 2] {
        tables.extend(rows.to_le_bytes());
    }
    if extra_data {
        tables.extend([0xff; 4]);
    }
    tables.extend(&rows);
    let mut blob = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4\0\0\0\0\x03\0".to_vec();
    let heads = blob.len() + 12 + 20 + 16;
    let mut at = heads as u32;
    for (name, len) in [(stream, tables.len()), ("#Strings", strings.len()), ("#GUID", 16)] {
        blob.extend(at.to_le_bytes());
        blob.extend((len as u32).to_le_bytes());
        let mut name = name.as_bytes().to_vec();
        name.resize((name.len() + 4) & !3, 0);
        blob.extend(name);
        at += len as u32;
    }
    assert_eq!(blob.len(), heads);
    blob.extend(tables);
    blob.extend(strings);
    blob.extend(1u8..=16);
    blob
}

#[test]
fn a_small_blob_is_read_in_both_forms() {
    for (stream, extra) in [("#~", false), ("#-", false), ("#~", true)] {
        let m = Metadata::open(source(small(stream, extra))).unwrap();
        let outer = m.type_def(2).unwrap();
        assert_eq!((outer.namespace.as_str(), outer.name.as_str()), ("N", "Outer`1"));
        assert_eq!(m.type_def(3).unwrap().name, "Inner");
        assert_eq!((m.enclosing(3), m.enclosing(2)), (Some(2), None));
        assert_eq!((m.generic_params(1), m.generic_params(2), m.generic_params(3)), (0, 1, 1));
        assert_eq!((m.fields_of(2), m.fields_of(3), m.methods_of(2), m.methods_of(3)), (vec![1], vec![2], vec![1], vec![]));
        assert_eq!((m.field_name(2).as_deref(), m.method_name(1).as_deref()), (Some("second"), Some("Run")));
        assert_eq!(m.parameter_names(1), [(0, "result".to_string()), (2, "count".to_string())]);
        assert_eq!(m.parameter_names(2), []);
        assert_eq!(m.assembly(), Some(AssemblyRow { name: "small".into(), version: [10, 1, 2, 3] }));
        assert_eq!(m.module_name().as_deref(), Some("small.dll"));
        assert_eq!(m.mvid().map(|g| (g[0], g[15])), Some((1, 16)));
        assert_eq!((m.type_def(0), m.type_def(4), m.type_defs()), (None, None, 3));
    }
}

/// The fields of a type end where those of the next type begin. If the row of the next type is not in the dump, the end is unknown.
#[test]
fn a_list_whose_end_is_unknown_is_empty() {
    let blob = small("#~", false);
    let m = Metadata::open(source(blob)).unwrap();
    let last = m.table(TYPE_DEF).rows;
    assert_eq!((m.fields_of(last), m.fields_of(last - 1)), (vec![2], vec![1]));
    // As if the dump ended within the table of types.
    let mut cut = Metadata::open(source(small("#~", false))).unwrap();
    let of_types = cut.tables[TYPE_DEF];
    let end = of_types.at + u64::from(last - 1) * of_types.width;
    cut.source = source(small("#~", false)[..end as usize].to_vec());
    assert_eq!((cut.fields_of(last - 1), cut.methods_of(last - 1)), (vec![], vec![]));
}

#[test]
fn unsorted_tables_have_the_same_rows() {
    let mut blob = small("#~", false);
    let sorted = (1u64 << NESTED_CLASS | 1 << GENERIC_PARAM).to_le_bytes();
    let at = memchr::memmem::find(&blob, &sorted).unwrap();
    blob[at..at + 8].fill(0);
    let (m, whole) = (Metadata::open(source(blob)).unwrap(), Metadata::open(source(small("#~", false))).unwrap());
    for rid in 0..5 {
        assert_eq!((m.enclosing(rid), m.generic_params(rid)), (whole.enclosing(rid), whole.generic_params(rid)));
    }
    // Each table is scanned once, however many lookups there are.
    assert_eq!(m.unsorted.iter().filter(|i| i.get().is_some()).count(), 2);
    assert!(whole.unsorted.iter().all(|i| i.get().is_none()));
}

/// Zeros in the heaps and tables are lost data, not names without a text.
#[test]
fn zeroed_metadata_has_no_names() {
    let blob = small("#~", false);
    let whole = Metadata::open(source(blob.clone())).unwrap();
    let zeroed = |at: u64, len: u64| {
        let mut blob = blob.clone();
        blob[at as usize..(at + len) as usize].fill(0);
        Metadata::open(source(blob)).unwrap()
    };
    let names = zeroed(whole.strings.at, whole.strings.len);
    assert_eq!((names.type_def(2), names.field_name(1), names.method_name(1), names.module_name()), (None, None, None, None));
    assert_eq!((names.assembly(), names.generic_param_name(1), names.parameter_names(1)), (None, None, vec![]));
    let rows_of = |table: usize| {
        let Table { at, rows, width, .. } = whole.table(table);
        zeroed(at, u64::from(rows) * width)
    };
    let types = rows_of(TYPE_DEF);
    assert_eq!((types.type_def(2), types.fields_of(2), types.methods_of(2)), (None, vec![], vec![]));
    assert_eq!((rows_of(FIELD).field_name(1), rows_of(METHOD_DEF).method_name(1), rows_of(ASSEMBLY).assembly()), (None, None, None));
    let nested = rows_of(NESTED_CLASS);
    assert_eq!((nested.enclosing(3), nested.search(NESTED_CLASS, 0, 3), nested.enclosing_of_nested(3)), (None, None, None));
    assert_eq!((whole.search(NESTED_CLASS, 0, 3), whole.search(NESTED_CLASS, 0, 2)), (Some(Some(1)), Some(None)));
    assert_eq!((whole.search(NESTED_CLASS, 0, 9), whole.enclosing_of_nested(3)), (Some(None), Some(2)));
    let (guid, len) = (whole.guids.at, whole.guids.len);
    assert_eq!((whole.mvid().is_some(), zeroed(guid, len).mvid()), (true, None));
}

#[test]
fn truncated_blobs_never_panic() {
    let blob = small("#~", false);
    for len in 0..blob.len() {
        visit(&blob[..len]);
    }
    assert_eq!(Metadata::open(source(b"MZ..".to_vec())).unwrap_err(), MetadataError::Signature);
    assert_eq!(Metadata::open(source(b"BSJB".to_vec())).unwrap_err(), MetadataError::Headers);
}

/// Reads everything from the blob.
fn visit(blob: &[u8]) {
    let Ok(m) = Metadata::open(source(blob.to_vec())) else { return };
    let most = 40;
    for rid in (0..m.type_defs().min(most)).chain([0xff_ffff, u32::MAX]) {
        let _ = (m.type_def(rid), m.enclosing(rid), m.generic_params(rid), m.generic_param_name(rid));
        let _ = (m.fields_of(rid).len(), m.methods_of(rid).len(), m.field_name(rid), m.method_name(rid));
    }
    let _ = (m.assembly(), m.module_name(), m.mvid(), m.row_counts());
}

/// A pseudo-random number generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// The metadata of a real assembly, if available.
fn real() -> Option<Vec<u8>> {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/dumps/modules/net10/lab.dll")).ok()?;
    let file = source(bytes.clone());
    let place = pe::Headers::read(&file).unwrap().metadata(&file).unwrap();
    Some(bytes[place.offset as usize..][..place.len as usize].to_vec())
}

#[test]
fn names_in_a_real_assembly() {
    let Some(blob) = real() else { return };
    let m = Metadata::open(source(blob)).unwrap();
    let program = (1..=m.type_defs()).find(|r| m.type_def(*r).is_some_and(|t| t.namespace == "Lab" && t.name == "Program")).unwrap();
    let names: Vec<String> = m.methods_of(program).into_iter().filter_map(|r| m.method_name(r)).collect();
    assert!(names.iter().any(|n| n == "Main") && names.iter().any(|n| n == ".cctor"), "{names:?}");
    assert!(m.fields_of(program).into_iter().filter_map(|r| m.field_name(r)).any(|n| n == "Keep"));
    assert_eq!((m.assembly().unwrap().name.as_str(), m.module_name().as_deref()), ("lab", Some("lab.dll")));
}

#[test]
fn mutations_never_panic() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let small = small("#~", false);
    let blobs = [Some(small), real()];
    for blob in blobs.into_iter().flatten() {
        // Headers and tables come first in the blob. Corruption there has more effects than in the heaps.
        let front = blob.len().min(600);
        let mut copy = blob.clone();
        for round in 0..20_000 {
            let reach = if round % 2 == 0 { front } else { blob.len() };
            let places: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(reach)).collect();
            for place in &places {
                copy[*place] = [0, 0xff, 0x7f, 0x80, random.below(256) as u8][random.below(5)];
            }
            visit(&copy);
            for place in places {
                copy[place] = blob[place];
            }
        }
    }
}
