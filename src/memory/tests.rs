//! Tests of the address space with ranges built by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::{Endian, PtrSize};

pub(crate) fn memory_of(bytes: Vec<u8>, ranges: &[(u64, u64, u64)], shape: Shape) -> Memory {
    let wanted: Vec<(usize, Piece)> =
        ranges.iter().enumerate().map(|(i, r)| (i, Piece { start: r.0, end: r.0 + r.1, source: 0, offset: r.2, before: 0 })).collect();
    let mut wanted = wanted;
    wanted.sort_by_key(|(i, p)| (p.start, *i));
    Memory::of(shape, vec![Arc::new(Bytes::Owned(bytes))], join(without_overlaps(wanted)))
}

#[test]
fn integers_follow_the_byte_order_of_the_target() {
    let ranges = [(0x1000, 16, 0)];
    let bytes: Vec<u8> = (1..=16).collect();
    let little = memory_of(bytes.clone(), &ranges, Shape::LE64);
    assert_eq!(little.u32(Addr(0x1000)), Ok(0x0403_0201));
    assert_eq!(little.word(Addr(0x1000)), Ok(0x0807_0605_0403_0201));
    let big = memory_of(bytes, &ranges, Shape { ptr: PtrSize::Four, endian: Endian::Big });
    assert_eq!(big.u16(Addr(0x1001)), Ok(0x0203));
    assert_eq!(big.word(Addr(0x1000)), Ok(0x0102_0304));
}

#[test]
fn absent_is_an_error_and_never_zero() {
    let m = memory_of(vec![1; 8], &[(0x1000, 8, 0)], Shape::LE64);
    assert_eq!(m.u64(Addr(0x1001)), Err(ReadError { address: Addr(0x1001), len: 8 }));
    assert_eq!(m.bytes(Addr(0x1000), u64::MAX).unwrap_err().address, Addr(0x1000));
    assert!(m.u8(Addr(u64::MAX)).is_err());
}

#[test]
fn reads_cross_adjacent_pieces() {
    let m = memory_of((0..16).collect(), &[(0x1000, 8, 8), (0x1008, 8, 0)], Shape::LE64);
    assert_eq!(m.pieces.len(), 2);
    assert_eq!(m.slice(Addr(0x1004), 8), None);
    assert_eq!(m.u64(Addr(0x1004)), Ok(0x0302_0100_0f0e_0d0c));
}

#[test]
fn files_fill_gaps_only() {
    let mut m = memory_of(vec![1; 8], &[(0x1004, 4, 0)], Shape::LE64);
    let file = Arc::new(Bytes::Owned(vec![2; 16]));
    let added = m.fill_gaps(AddrRange::new(Addr(0x1000), Addr(0x1010)), &file, 0);
    assert_eq!(added, 12);
    assert_eq!(m.u64(Addr(0x1002)), Ok(0x0202_0101_0101_0202));
    assert!(m.is_from_dump(Addr(0x1004)) && !m.is_from_dump(Addr(0x1008)));
}

#[test]
fn a_page_is_torn_only_by_the_dump() {
    let file = Arc::new(Bytes::Owned(vec![2; 8192]));
    let page = |at: u64, len: u64| AddrRange::new(Addr(at), Addr(at + len));
    let mut m = memory_of(vec![1; 8192], &[(0x1000, 0x1000, 0), (0x3000, 0x10, 0x1000), (0x5000, 0x10, 0x1010)], Shape::LE64);
    assert_eq!([0x1000, 0x2000, 0x3ff8, 0x5000].map(|at| m.is_torn(Addr(at))), [false, false, true, true]);
    // Fills a part of a page that the dump does not have at all, and the rest of a page of which the dump has a part.
    m.fill_gaps(page(0x2000, 0x800), &file, 0);
    m.fill_gaps(page(0x5000, 0x1000), &file, 0);
    assert_eq!([0x2000, 0x27ff, 0x2800, 0x3ff8, 0x5000].map(|at| m.is_torn(Addr(at))), [false, false, false, true, false]);
}

proptest! {
    /// The index agrees with a model that stores each byte. Where ranges overlap, the range with the lowest start is used; of ranges with equal
    /// starts, the first in the file.
    #[test]
    fn agrees_with_a_model(ranges in prop::collection::vec((0u64..200, 1u64..40, 0u64..60), 0..12), at in 0u64..240, len in 0u64..50) {
        let bytes: Vec<u8> = (0..100u8).collect();
        let m = memory_of(bytes.clone(), &ranges, Shape::LE64);
        let mut ordered: Vec<(usize, &(u64, u64, u64))> = ranges.iter().enumerate().collect();
        ordered.sort_by_key(|(i, r)| (r.0, *i));
        let mut model = BTreeMap::new();
        for (_, (start, n, offset)) in ordered {
            for i in 0..*n {
                model.entry(start + i).or_insert(bytes[usize::try_from(offset + i).unwrap()]);
            }
        }
        let wanted: Option<Vec<u8>> = (at..at + len).map(|a| model.get(&a).copied()).collect();
        prop_assert_eq!(m.bytes(Addr(at), len).ok().map(|b| b.into_owned()), wanted);
        let captured = (at..at + len).filter(|a| model.contains_key(a)).count();
        prop_assert_eq!(m.captured(AddrRange::new(Addr(at), Addr(at + len))), captured as u64);
    }
}
