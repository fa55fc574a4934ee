//! Tests of the portable PDB reader, with handmade files and mutations of them.

#![allow(clippy::cast_possible_truncation)]

use std::sync::Arc;

use proptest::prelude::*;

use super::points::tests::{Point, encode};
use super::*;
use crate::dump::Bytes;

/// A portable PDB with a document `/src/NAME` for each name in `documents`, and the sequence points of `methods`, in the order of MethodDef
/// rows.
pub(crate) fn build(id: PdbId, documents: &[&str], methods: &[Vec<Point>]) -> Vec<u8> {
    let mut blobs = vec![0u8];
    let mut blob = |bytes: &[u8]| {
        let at = blobs.len() as u32;
        let len = bytes.len() as u32;
        if len < 0x80 {
            blobs.push(len as u8)
        } else {
            blobs.extend((len | 0xc000_0000).to_be_bytes())
        }
        blobs.extend(bytes);
        at
    };
    let compressed = |n: u32| if n < 0x80 { vec![n as u8] } else { (n | 0xc000_0000).to_be_bytes().to_vec() };
    let folder = blob(b"src");
    let names: Vec<u32> = documents
        .iter()
        .map(|name| {
            let name = blob(name.as_bytes());
            blob(&[vec![b'/'], compressed(0), compressed(folder), compressed(name)].concat())
        })
        .collect();
    let points: Vec<u32> = methods.iter().map(|m| if m.is_empty() { 0 } else { blob(&encode(m, false)) }).collect();
    // Only `#Blob` has large indices. The tables are Document and MethodDebugInformation.
    let mut tables = vec![0, 0, 0, 0, 2, 0, LARGE_BLOBS, 1];
    tables.extend((1u64 << DOCUMENT | 1 << METHOD_DEBUG_INFORMATION).to_le_bytes());
    tables.extend([0; 8]);
    tables.extend((documents.len() as u32).to_le_bytes());
    tables.extend((methods.len() as u32).to_le_bytes());
    for name in names {
        tables.extend(name.to_le_bytes());
        tables.extend([0, 0, 0, 0, 0, 0, 0, 0]);
    }
    for points in points {
        tables.extend([0, 0]);
        tables.extend(points.to_le_bytes());
    }
    // The stream contains the identity and the entry point, but no row counts of the assembly's tables.
    let pdb = [&id[..], &[0; 12]].concat();
    let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0PDB v1.0\0\0\0\0\0\0\x03\0".to_vec();
    let mut at = (out.len() + 16 + 12 + 16) as u32;
    for (name, len) in [(&b"#Pdb\0\0\0\0"[..], pdb.len()), (b"#~\0\0", tables.len()), (b"#Blob\0\0\0", blobs.len())] {
        out.extend([at.to_le_bytes(), (len as u32).to_le_bytes()].concat());
        out.extend(name);
        at += len as u32;
    }
    [out, pdb, tables, blobs].concat()
}

fn open(bytes: Vec<u8>) -> Result<Pdb, MetadataError> {
    let len = bytes.len() as u64;
    Pdb::open(Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len })
}

fn small() -> Vec<u8> {
    let long: Vec<Point> = (0..100).map(|i| (i * 3, 1 + i % 2, (i % 7 != 0).then_some(1000 - i))).collect();
    build([7; 20], &["A.cs", "B.cs"], &[vec![(0, 1, Some(10)), (5, 2, Some(20))], vec![], long])
}

#[test]
fn lines_and_documents_are_read() {
    let pdb = open(small()).unwrap();
    assert_eq!(pdb.id(), [7; 20]);
    assert_eq!((pdb.line(1, 0), pdb.line(1, 4), pdb.line(1, 5)), (Some((1, 10)), Some((1, 10)), Some((2, 20))));
    assert_eq!([1, 2, 3, 4].map(|row| pdb.lines_bytes(row) > 0), [true, false, true, false]);
    assert_eq!((pdb.line(2, 0), pdb.line(0, 0), pdb.line(4, 0)), (None, None, None));
    assert_eq!((pdb.line(3, 299), pdb.line(3, 21)), (Some((2, 901)), Some((1, 994))));
    assert_eq!((pdb.document(1).as_deref(), pdb.document(2).as_deref()), (Some("/src/A.cs"), Some("/src/B.cs")));
    assert_eq!((pdb.document(0), pdb.document(3)), (None, None));
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(open(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec()), Err(MetadataError::Signature)));
    assert!(matches!(open(vec![]), Err(MetadataError::Headers)));
    // The metadata of an assembly has no `#Pdb` stream.
    let mut assembly = small();
    let at = memchr::memmem::find(&assembly, b"#Pdb").unwrap();
    assembly[at + 1] = b'p';
    assert!(matches!(open(assembly), Err(MetadataError::NoTables)));
}

proptest! {
    #[test]
    fn damage_never_panics(flips in prop::collection::vec((0usize..2000, any::<u8>()), 1..20), cut in 0usize..2000, row in 0u32..5, il: u32) {
        let mut bytes = small();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut.max(40));
        if let Ok(pdb) = open(bytes) {
            let _ = (pdb.line(row, il), pdb.document(row), pdb.lines_bytes(row));
        }
    }
}
