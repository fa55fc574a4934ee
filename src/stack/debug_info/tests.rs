//! Tests that debug info is found in each version.

#![allow(clippy::cast_possible_truncation)]

use std::sync::Arc;

use proptest::prelude::*;

use super::bounds::tests::nibbles;
use super::*;
use crate::base::{AddrRange, Shape};
use crate::memory::tests::memory_of;
use crate::stack::FunctionEntry;

const BASE: u64 = 0x1000;
const INFO: u64 = 0x1100;

fn reader(version: Version) -> DebugInfo {
    DebugInfo::of(&described(), version).unwrap()
}

fn code(origin: CodeOrigin) -> Code {
    let entry = FunctionEntry { begin: 0, end: Some(64), unwind: 0 };
    Code {
        method_desc: Addr::NULL,
        start: Addr(BASE),
        range: AddrRange::new(Addr(BASE), Addr(BASE + 64)),
        origin,
        base: Addr(BASE),
        entry,
        funclet: false,
        gc_info: Ok(Addr::NULL),
        gc_version: 0,
        code_length: 64,
    }
}

/// Memory with `bytes` at `INFO` and, before it, a code header that points there and a ReadyToRun header of `major`.
fn memory(bytes: &[u8], major: u16) -> CodeBytes {
    let mut out = vec![0u8; 0x100];
    out[..8].copy_from_slice(&INFO.to_le_bytes());
    let header = [u32::from_le_bytes(*b"RTR\0"), u32::from(major), 0, 1, DEBUG_INFO, 0x100, 0];
    out[0x40..0x5c].copy_from_slice(&header.map(u32::to_le_bytes).concat());
    out.extend(bytes);
    let len = out.len() as u64;
    CodeBytes::new(&Arc::new(memory_of(out, &[(BASE, len, 0)], Shape::LE64)))
}

const JITTED: CodeOrigin = CodeOrigin::Jitted { header: Addr(BASE), clauses: Addr::NULL };

fn il(version: Version, bytes: &[u8], offset: u32) -> Result<Option<u32>, StackError> {
    Ok(reader(version).bounds(&memory(bytes, 16), &code(JITTED))?.and_then(|b| b.il_offset(offset)))
}

/// The location of variable 1 at the method's start.
fn place(version: Version, bytes: &[u8]) -> Result<Option<VariableState>, StackError> {
    Ok(reader(version).variables(&memory(bytes, 16), &code(JITTED))?.map(|v| v.at(1, 0)))
}

/// Encoded variables: the second variable is in `register` in the first eight bytes of the code.
fn variables(register: u32) -> Vec<u8> {
    nibbles(&[2, 0, 8, 4, 3, 5, 17, 0, 8, 5, 0, register])
}

/// Encoded variables of .NET 11: the variable number is first.
fn variables_of_net11(register: u32) -> Vec<u8> {
    nibbles(&[2, 6, 0, 8, 3, 5, 17, 7, 0, 8, 0, register])
}

/// Encoded bounds: native 0 is IL 0, native 8 is IL `second`.
fn in_nibbles(second: u32) -> Vec<u8> {
    nibbles(&[2, 0, 3, 2, 8, second + 3, 2])
}

fn packed(second: u32, source: u32) -> Vec<u8> {
    // Two entries; deltas take 4 bits, IL offsets 6.
    let entry = |native: u32, il: u32| u64::from(2 | native << source | (il + 3) << (source + 4));
    let all = entry(0, 0) | entry(8, second) << (source + 10);
    [nibbles(&[2, 3, 5]), all.to_le_bytes()[..4].to_vec()].concat()
}

#[test]
fn bounds_are_found_in_every_version() {
    let size = |b: &[u8]| b.len() as u32;
    let (plain, other) = (in_nibbles(7), in_nibbles(9));
    let old = [vec![0], nibbles(&[size(&plain), 0]), plain.clone()].concat();
    assert_eq!((il(Version::Nibbles, &old, 7), il(Version::Nibbles, &old, 8)), (Ok(Some(0)), Ok(Some(7))));
    // A `PatchpointInfo` with three locals precedes the sizes.
    let mut patchpoint = vec![0u8; 32 + 12];
    patchpoint[8] = 3;
    let old = [vec![1], patchpoint, nibbles(&[size(&plain), 0]), plain].concat();
    assert_eq!(il(Version::Nibbles, &old, 8), Ok(Some(7)));
    let (plain, instrumented) = (packed(7, 2), packed(9, 2));
    let net10 = [vec![0], nibbles(&[size(&plain), 5]), plain.clone()].concat();
    assert_eq!(il(Version::Packed, &net10, 8), Ok(Some(7)));
    let both = [vec![0], nibbles(&[u32::MAX, size(&instrumented), size(&plain), 5]), instrumented.clone(), plain].concat();
    assert_eq!(il(Version::Packed, &both, 8), Ok(Some(7)));
    let (plain, instrumented, vars) = (packed(7, 3), packed(9, 3), [1, 2, 3]);
    let slim = [nibbles(&[size(&plain), 3]), plain.clone(), vars.to_vec()].concat();
    assert_eq!(il(Version::Sized, &slim, 8), Ok(Some(7)));
    let sizes = nibbles(&[0, size(&instrumented), 3, size(&plain), 0, 0, 0]);
    let fat = [sizes, instrumented, vars.to_vec(), plain].concat();
    assert_eq!(il(Version::Sized, &fat, 8), Ok(Some(7)));
    assert_eq!(il(Version::Nibbles, &[vec![0], nibbles(&[0, 4])].concat(), 0), Ok(None), "only variables");
    assert!(matches!(il(Version::Nibbles, &[2, 0, 0], 0), Err(StackError::Unsupported { .. })));
    assert!(matches!(il(Version::Nibbles, &[vec![0], nibbles(&[9, 0]), other[..3].to_vec()].concat(), 0), Err(StackError::Read(_))));
    assert!(matches!(il(Version::Packed, &[vec![0], nibbles(&[2, 0]), vec![0x77; 2]].concat(), 0), Err(StackError::Invalid { .. })));
}

#[test]
fn variables_are_found_in_every_version() {
    let size = |b: &[u8]| b.len() as u32;
    let told = |register| Ok(Some(VariableState::At(VariableLocation::Register(register))));
    let (old, vars) = (in_nibbles(7), variables(3));
    let net8 = [vec![0], nibbles(&[size(&old), size(&vars)]), old, vars.clone()].concat();
    assert_eq!((place(Version::Nibbles, &net8), il(Version::Nibbles, &net8, 8)), (told(3), Ok(Some(7))));
    let alone = [vec![0], nibbles(&[0, size(&vars)]), vars.clone()].concat();
    assert_eq!((place(Version::Nibbles, &alone), place(Version::Packed, &alone)), (told(3), told(3)));
    let (plain, instrumented) = (packed(7, 2), packed(9, 2));
    let sizes = nibbles(&[u32::MAX, size(&instrumented), size(&plain), size(&vars)]);
    let net10 = [vec![0], sizes, instrumented, plain, vars.clone()].concat();
    assert_eq!((place(Version::Packed, &net10), il(Version::Packed, &net10, 8)), (told(3), Ok(Some(7))));
    let (plain, instrumented, vars) = (packed(7, 3), packed(9, 3), variables_of_net11(3));
    let slim = [nibbles(&[size(&plain), size(&vars)]), plain.clone(), vars.clone()].concat();
    assert_eq!(place(Version::Sized, &slim), told(3));
    let sizes = nibbles(&[0, size(&instrumented), size(&vars), size(&plain), 0, 0, 0]);
    let fat = [sizes, instrumented, vars, plain].concat();
    assert_eq!((place(Version::Sized, &fat), il(Version::Sized, &fat, 8)), (told(3), Ok(Some(7))));
    assert_eq!(place(Version::Nibbles, &[vec![0], nibbles(&[2, 0])].concat()), Ok(None), "only bounds");
    let wrong = [vec![0], nibbles(&[0, 2]), vec![0x77; 2]].concat();
    assert!(matches!(place(Version::Nibbles, &wrong), Err(StackError::Invalid { .. })));
    let huge = [vec![0], nibbles(&[0, MAX_BYTES + 1])].concat();
    assert!(matches!(place(Version::Nibbles, &huge), Err(StackError::Invalid { .. })));
}

#[test]
fn images_share_equal_debug_info_and_determine_its_version() {
    // An array of two elements in one block. The second element points back to the debug info of the first element.
    let info = [nibbles(&[in_nibbles(7).len() as u32, 0]), in_nibbles(7)].concat();
    // Head: two elements, index entries of one byte. The nodes for bits 8, 4 and 2 have only a left subtree; the node for bit 1 has both subtrees.
    let right = 1 + 1 + info.len() as u32;
    let mut array = vec![2 << 3, 1, 1 << 1, 1 << 1, 1 << 1, u8::try_from((right << 2 | 3) << 1).unwrap()];
    array.push(0);
    array.extend(&info);
    array.push(u8::try_from((info.len() as u32) << 1).unwrap());
    let at = |major, index, version| {
        let origin = CodeOrigin::ReadyToRun { header: Addr(BASE + 0x40), index };
        let bytes = memory(&array, major);
        reader(version).bounds(&bytes, &code(origin)).map(|b| b.and_then(|b| b.il_offset(8)))
    };
    assert_eq!((at(10, 0, Version::Nibbles), at(10, 1, Version::Nibbles)), (Ok(Some(7)), Ok(Some(7))));
    assert_eq!((at(10, 1, Version::Packed), at(10, 2, Version::Nibbles)), (Ok(Some(7)), Ok(None)));
    assert!(matches!(at(16, 0, Version::Nibbles), Err(StackError::Unsupported { .. })));
}

proptest! {
    #[test]
    fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..300), index in 0u64..40, major in 0u16..20, offset: u32) {
        for version in [Version::Nibbles, Version::Packed, Version::Sized] {
            let memory = memory(&bytes, major);
            for origin in [JITTED, CodeOrigin::ReadyToRun { header: Addr(BASE + 0x40), index }] {
                if let Ok(Some(bounds)) = reader(version).bounds(&memory, &code(origin)) {
                    bounds.il_offset(offset);
                    bounds.is_prologue_or_epilogue(offset);
                }
                if let Ok(Some(variables)) = reader(version).variables(&memory, &code(origin)) {
                    variables.at(0, offset);
                }
            }
        }
    }
}
