//! Tests of PDB identities in assemblies, with handmade images.

#![allow(clippy::cast_possible_truncation)]

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use proptest::prelude::*;

use super::*;
use crate::clr::pdb::tests::build;

const ID: PdbId = [7; 20];
/// Offsets of the debug directory and its data, which are the same in the file and in memory.
const DIRECTORY: u32 = 0x300;
const CODE_VIEW_AT: u32 = 0x400;
const PACKED_AT: u32 = 0x500;

fn pdb(id: PdbId) -> Vec<u8> {
    build(id, &["A.cs"], &[vec![(0, 1, Some(10))]])
}

fn packed(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    [b"MPDB".to_vec(), u32::try_from(size).unwrap().to_le_bytes().to_vec(), encoder.finish().unwrap()].concat()
}

/// A PE image with a CodeView entry for `id` with this minor version, and the embedded PDB `within`.
fn image(id: PdbId, minor: u16, within: &[u8]) -> Vec<u8> {
    let mut out = vec![0u8; 0x500];
    let mut put = |at: u32, bytes: &[u8]| out[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    // The image has one section, and an optional header of 0xe0 bytes.
    put(0x86, &1u16.to_le_bytes());
    put(0x94, &0xe0u16.to_le_bytes());
    put(0x98, &0x10bu16.to_le_bytes());
    put(0x98 + 56, &0x10000u32.to_le_bytes());
    put(0x98 + 96 + 6 * 8, &[DIRECTORY, 2 * 28].map(u32::to_le_bytes).concat());
    put(0x98 + 0xe0 + 8, &[0xff00, 0x200, 0xff00, 0x200].map(u32::to_le_bytes).concat());
    let code_view = [b"RSDS", &id[..16], &1u32.to_le_bytes(), &b"/build/Name.pdb\0"[..]].concat();
    let stamp = u32::from_le_bytes(*id.last_chunk().unwrap());
    let entry = |stamp: u32, minor: u16, kind: u32, size: usize, at: u32| {
        let head = [0, stamp, 0x100 | u32::from(minor) << 16, kind];
        [head.map(u32::to_le_bytes).concat(), [u32::try_from(size).unwrap(), at, at].map(u32::to_le_bytes).concat()].concat()
    };
    put(DIRECTORY, &entry(stamp, minor, CODE_VIEW, code_view.len(), CODE_VIEW_AT));
    put(DIRECTORY + 28, &entry(0, 0x100, EMBEDDED, within.len(), PACKED_AT));
    put(CODE_VIEW_AT, &code_view);
    out.extend(within);
    out
}

fn assembly(bytes: Vec<u8>) -> Option<Assembly> {
    let len = len64(bytes.len());
    Assembly::read(Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len }, |_, _| true)
}

#[test]
fn an_assembly_identifies_its_pdb() {
    let named = assembly(image(ID, PORTABLE, &[])).unwrap().named().unwrap();
    assert_eq!((named.id, named.name.as_str()), (ID, "Name.pdb"));
    assert!(assembly(image(ID, 0, &[])).unwrap().named().is_none(), "the version of a Windows PDB");
    assert!(assembly(vec![0; 0x500]).is_none());
}

#[test]
fn an_embedded_pdb_is_decompressed_within_limits() {
    let bytes = pdb(ID);
    let unpack = |within: &[u8]| assembly(image(ID, PORTABLE, within)).unwrap().unpack(|_| true);
    assert_eq!(unpack(&packed(&bytes, bytes.len())).and_then(|p| p.line(1, 0)), Some((1, 10)));
    assert!(unpack(&packed(&bytes, bytes.len() - 1)).is_none(), "not of the announced size");
    assert!(unpack(&packed(&bytes, bytes.len() + 1)).is_none());
    let whole = packed(&bytes, bytes.len());
    assert!(unpack(&whole[..whole.len() / 2]).is_none() && unpack(b"MPDB").is_none() && unpack(b"").is_none());
    assert!(assembly(image(ID, PORTABLE, &whole)).unwrap().unpack(|size| size < len64(bytes.len())).is_none());
    let zeros = vec![0; 1 << 20];
    let asked = std::cell::Cell::new(false);
    let bomb = assembly(image(ID, PORTABLE, &packed(&zeros, zeros.len()))).unwrap();
    assert!(bomb.unpack(|_| asked.replace(true)).is_none() && !asked.get(), "no PDB is so small");
    let other = pdb([8; 20]);
    assert!(unpack(&packed(&other, other.len())).is_none(), "the assembly has the identity of another one");
}

#[test]
fn room_for_pdbs_is_bounded_in_sum() {
    let room = Room::new(0, Some(100));
    assert_eq!((room.take(60), room.take(50), room.take(40), room.take(1)), (true, false, true, false));
    assert!(Room::new(0, None).take(MAX_UNPACKED) && !Room::new(0, None).take(MAX_UNPACKED + 1));
}

#[test]
fn a_file_with_another_identity_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Name.pdb");
    let file = ModuleFile::from(path.clone());
    let named = Named { id: ID, name: "Name.pdb".into() };
    std::fs::write(&path, pdb(ID)).unwrap();
    assert!(try_file(&file, Some(&named)).is_ok());
    assert!(try_file(&file, None).unwrap_err().why.contains("neither"));
    let mut stamp = ID;
    stamp[19] = 8;
    std::fs::write(&path, pdb(stamp)).unwrap();
    let why = try_file(&file, Some(&named)).unwrap_err().why;
    assert!(why.contains("0708; the module's is 0707"), "{why}");
    std::fs::write(&path, b"Microsoft C/C++ MSF 7.00\r\n").unwrap();
    assert_eq!(try_file(&file, Some(&named)).unwrap_err().why, "it is not a portable PDB");
}

proptest! {
    #[test]
    fn damage_never_panics(flips in prop::collection::vec((0usize..0x600, any::<u8>()), 1..30), cut in 0x100usize..0x700) {
        let bytes = pdb(ID);
        let mut image = image(ID, PORTABLE, &packed(&bytes, bytes.len()));
        for (at, value) in flips {
            let at = at % image.len();
            image[at] = value;
        }
        image.truncate(cut);
        if let Some(assembly) = assembly(image) {
            let _ = (assembly.named(), assembly.unpack(|size| size < 1 << 20));
        }
    }
}
