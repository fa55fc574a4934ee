//! Tests with handmade method tables: rare forms of .NET 8 that do not occur in the available dumps.

use std::sync::Arc;

use super::coreclr::category;
use super::net8::GENERIC_STATICS;
use super::*;
use crate::base::Shape;
use crate::contract::ContractInfo;
use crate::memory;

const BASE: Addr = Addr(0x1_0000);

fn memory_of(bytes: Vec<u8>) -> Arc<Memory> {
    let len = bytes.len() as u64;
    Arc::new(memory::tests::memory_of(bytes, &[(BASE.0, len, 0)], Shape::LE64))
}

/// The layout of .NET 8.
fn net8() -> Descriptor {
    let mut d = Descriptor::default();
    let fields = [
        ("MTFlags", 0),
        ("BaseSize", 4),
        ("Flags2Short", 8),
        ("TypeDefRidShort", 10),
        ("NumVirtuals", 12),
        ("ParentMethodTable", 16),
        ("LoaderModule", 24),
        ("EEClassOrCanonMT", 40),
        ("PerInstInfo", 48),
        ("InterfaceMap", 56),
    ];
    for (name, offset) in fields {
        d.set_field("MethodTable", name, offset, 0);
    }
    Arc::make_mut(&mut d.types).get_mut("MethodTable").unwrap().size = Some(64);
    d.set_field("EEClass", "MethodTable", 16, 0);
    for contract in ["RuntimeTypeSystem", "Object"] {
        Arc::make_mut(&mut d.contracts).insert(contract.into(), ContractInfo { version: "c1".into(), origin: 0 });
    }
    d
}

/// A method table of .NET 8 with `words` after its fixed part.
fn table(flags: u32, flags2: u16, rid: u16, virtuals: u16, words: &[u64]) -> Vec<u8> {
    let mut out = flags.to_le_bytes().to_vec();
    out.extend(24u32.to_le_bytes());
    for n in [flags2, rid, virtuals, 0] {
        out.extend(n.to_le_bytes());
    }
    // Base type, loader module, writable data, EEClass, first and second optional pointer.
    for n in [0u64, 0xaaaa, 0, 0x2_0000, 0x5101, 0x5102] {
        out.extend(n.to_le_bytes());
    }
    assert_eq!(out.len(), 64);
    out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    out
}

fn rid_and_module(bytes: Vec<u8>) -> (u32, Addr) {
    let memory = memory_of(bytes);
    let tables = MethodTables::bind(&memory, &net8()).unwrap();
    let info = tables.read(BASE).unwrap();
    (tables.rid(&info).unwrap(), tables.module(&info).unwrap())
}

const GENERIC: u32 = 0x10;

#[test]
fn rows_of_net8_that_do_not_fit_16_bits() {
    // Four virtual methods are one chunk, and all pointers fit in the fixed part.
    assert_eq!(rid_and_module(table(0, 0, 7, 4, &[])).0, 7);
    assert_eq!(rid_and_module(table(0, 3, 0xffff, 4, &[1, 0x101d1])).0, 0x101d1);
    // Nine virtual methods are in two chunks. One of the three pointers is after the chunks.
    assert_eq!(rid_and_module(table(0, 7, 0xffff, 9, &[1, 2, 3, 0xffff])).0, 0xffff);
    // A generic type with static fields has two words of statics before the row.
    assert_eq!(rid_and_module(table(GENERIC | GENERIC_STATICS, 7, 0xffff, 9, &[1, 2, 3, 4, 5, 0x101d4])).0, 0x101d4);
    // For arrays, the low bits of the flags are the component size.
    assert_eq!(rid_and_module(table(0x800a_0004, 3, 0xffff, 4, &[1, 0])).0, 0);
}

#[test]
fn instances_over_collectible_types_of_net8_have_their_module() {
    let module = |flags, flags2, words: &[u64]| rid_and_module(table(flags, flags2, 7, 4, words)).1;
    assert_eq!(module(GENERIC, 3, &[]), Addr(0xaaaa));
    // The pointer to the module is the first word after the vtable, because instance info and interface map are in the fixed part.
    assert_eq!(module(GENERIC, 0x13, &[1, 0xbbbb]), Addr(0xbbbb));
    assert_eq!(module(GENERIC, 0x1f, &[1, 2, 3, 0xbbbb]), Addr(0xbbbb));
    // With only instance info, the second slot is free. With only the interface map, the first slot is free.
    assert_eq!(module(GENERIC, 0x11, &[]), Addr(0x5102));
    assert_eq!(module(GENERIC, 0x12, &[]), Addr(0x5101));
    // Only generic types have a different canonical method table.
    assert_eq!(module(0, 0x13, &[1, 0xbbbb]), Addr(0xaaaa));
}

#[test]
fn a_round_trip_to_itself_is_not_a_method_table() {
    let mut bytes = table(0, 0, 7, 4, &[]);
    // The EEClass is the table itself, whose word at 16 points back: a structure full of pointers to itself.
    bytes[40..48].copy_from_slice(&BASE.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&BASE.0.to_le_bytes());
    let memory = memory_of(bytes);
    let tables = MethodTables::bind(&memory, &net8()).unwrap();
    assert_eq!(tables.is_valid(BASE), Ok(false));
    assert_eq!(tables.is_valid(BASE.plus(4)), Ok(false));
    assert_eq!(tables.is_valid(Addr::NULL), Ok(false));
    assert!(tables.is_valid(Addr(0x5000)).is_err());
}

#[test]
fn categories_of_real_types() {
    // `MTFlags` of a class, System.Int32, an enum, an interface, Int32[], Int32[,].
    assert_eq!(category(0x0020_0200), Category::Class);
    assert_eq!(category(0x0007_0000), Category::ValueType);
    assert_eq!(category(0x0006_0000), Category::ValueType);
    assert_eq!(category(0x000c_0000), Category::Interface);
    assert_eq!(category(0x800a_0004), Category::SzArray);
    assert_eq!(category(0x8008_0004), Category::Array);
}

#[test]
fn an_unknown_version_of_the_contract_is_refused_although_the_layout_fits() {
    let memory = memory_of(table(0, 0, 7, 4, &[]));
    let mut d = net8();
    Arc::make_mut(&mut d.contracts).insert("RuntimeTypeSystem".into(), ContractInfo { version: "c99".into(), origin: 0 });
    assert!(matches!(MethodTables::bind(&memory, &d), Err(ContractError::UnrecognizedVersion { .. })));
    Arc::make_mut(&mut d.contracts).clear();
    assert!(matches!(MethodTables::bind(&memory, &d), Err(ContractError::NotAdvertised { .. })));
}
