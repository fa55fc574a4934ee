//! Forged GCDescs: those of many types are the same words, and each object of a type has all of their series.

use std::path::Path;

use super::make::fields;
use super::types::Real;
use crate::common;

/// The most series that are read.
const SERIES: u64 = 1 << 16;
const CONTAINS_POINTERS: u64 = 0x0100_0000;
const HAS_COMPONENT_SIZE: u64 = 0x8000_0000;

/// Bytes of an object with one word for each of these series.
const BASE_SIZE: u64 = 8 * (SERIES + 2);

/// Returns that many series of one word each.
fn one_word_each() -> impl Iterator<Item = (i64, u64)> {
    (0..SERIES).rev().map(|i| (8 - BASE_SIZE as i64, 8 + 8 * i))
}

impl Real {
    /// Makes a method table with these flags and this base size. As an instance of a generic type it has no EEClass.
    fn with_references(&self, flags: u64, base_size: u64) -> Vec<u8> {
        let instance = self.instance();
        let mut table = self.method_table(instance);
        table[..8].copy_from_slice(&(flags | CONTAINS_POINTERS | base_size << 32).to_le_bytes());
        let class = &mut table[self.at("MethodTable", "EEClassOrCanonMT") as usize..][..8];
        if class[0] & 1 == 0 {
            class.copy_from_slice(&(instance | 1).to_le_bytes());
        }
        table
    }

    /// Makes types with `series` value series, which are the method tables before each. Returns the address of the first one, and their
    /// distance.
    fn overlapping(&mut self, table: &[u8], count: u64, series: i64) -> (u64, u64) {
        let one = [&fields(&[(0, 16), (8, 8)])[..], &(-series).to_le_bytes(), table].concat();
        // Each run has one reference.
        let before = fields(&[(1, 8)]).repeat(series as usize);
        let at = self.add(&[&before[..], &one.repeat(count as usize)].concat());
        (at + before.len() as u64 + 32, one.len() as u64)
    }

    /// Makes a type with these flags and series, each with its size and start.
    fn with_series(&mut self, flags: u64, base_size: u64, series: impl Iterator<Item = (i64, u64)>) -> u64 {
        let series: Vec<_> = series.collect();
        let words = series.iter().rev().flat_map(|(size, start)| [size.to_le_bytes(), start.to_le_bytes()].concat());
        let desc: Vec<u8> = words.chain((series.len() as i64).to_le_bytes()).collect();
        let table = self.with_references(flags, base_size);
        self.add(&[&desc[..], &table].concat()) + desc.len() as u64
    }
}

/// Makes the dump with objects of `words` words, each with the type that `mt` returns.
fn with_objects(mut real: Real, count: u64, words: u64, mt: impl Fn(u64) -> u64) -> Vec<u8> {
    real.objects(count * words, |i| if i % words == 0 { mt(i / words) } else { 0 });
    real.finish()
}

/// More series than an object has words.
pub fn of_types(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, count) = (Real::new(), 4000 / part);
    let table = real.with_references(0, 64);
    let (first, apart) = real.overlapping(&table, count, SERIES as i64);
    with_objects(real, count, 8, |i| first + apart * i)
}

/// The number of series is that of the words of the largest element.
pub fn of_elements(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, count) = (Real::new(), 4000 / part);
    let table = real.with_references(HAS_COMPONENT_SIZE | 0xffff, 24);
    let (first, apart) = real.overlapping(&table, count, 0xffff / 8);
    with_objects(real, count, 3, |i| first + apart * i)
}

/// Small objects with many series.
pub fn of_objects(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let mt = real.with_series(0, 24, (0..SERIES).map(|_| (-24, 8)));
    with_objects(real, 250_000 / part, 3, |_| mt)
}

/// Empty arrays of structures with many series.
pub fn of_arrays(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let table = real.with_references(HAS_COMPONENT_SIZE | 0xffff, 24);
    let (mt, _) = real.overlapping(&table, 1, 0xffff / 8);
    with_objects(real, 250_000 / part, 3, |_| mt)
}

/// An array whose series are disjoint in an empty array, and overlap in this one.
pub fn of_a_long_array(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, more) = (Real::new(), (4 << 20) / part);
    // Elements of a byte.
    let mt = real.with_series(HAS_COMPONENT_SIZE | 1, BASE_SIZE, one_word_each());
    real.objects((BASE_SIZE + more) / 8, |i| [mt, more].get(i as usize).copied().unwrap_or(0));
    real.finish()
}

/// Words that look like large objects with many series, and are not objects.
pub fn of_no_objects(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let mt = real.with_series(0, BASE_SIZE, one_word_each());
    // The words that they refer to have no type.
    with_objects(real, 400_000 / part, 2, |i| if i == 0 { 0x1234_5678 } else { mt })
}

/// An index that names the same type many times.
pub fn of_index(dir: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let table = real.with_references(HAS_COMPONENT_SIZE | 0xffff, 24);
    let (mt, _) = real.overlapping(&table, 1, 0xffff / 8);
    let bytes = with_objects(real, 1, 3, |_| mt);
    let path = dir.join("attack.dmp");
    std::fs::write(&path, &bytes).unwrap();
    let ran = common::run(&["index", path.to_str().unwrap(), "--force"]);
    // The references of the overlapping series lead to no objects.
    assert_eq!(ran.exit, gcdump::cli::Exit::Partial, "{}", ran.err);
    let index = dir.join("attack.dmp.gcindex");
    let mut whole = std::fs::read(&index).unwrap();
    crate::index::describe(&mut whole, |reported| {
        let types = reported["kept"]["types"].as_array_mut().unwrap();
        let same = types.iter().find(|ty| ty["method_table"] == format!("{mt:#x}")).unwrap().clone();
        types.extend((0..8000 / part).map(|_| same.clone()));
    });
    std::fs::write(index, whole).unwrap();
    bytes
}
