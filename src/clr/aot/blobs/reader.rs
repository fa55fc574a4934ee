//! Readers for sequential data in a module: numbers of variable length, and hash tables of them.
//!
//! Source of the formats: `NativeFormatReader.cs`, `NativeFormatWriter.cs`, `NativePrimitiveDecoder.cs` of the runtime.

use std::sync::Arc;

use crate::base::{Addr, AddrRange, Budget};
use crate::memory::Memory;

/// Maximum number of buckets of a hash table, as a power of two: an upper limit of the number of types in a module.
const MAX_BUCKETS_LOG: u32 = 24;

/// A section of the module. Any of its bytes may be absent.
#[derive(Clone, Debug)]
pub(super) struct Section {
    memory: Arc<Memory>,
    pub(super) range: AddrRange,
}

impl Section {
    pub(super) fn new(memory: &Arc<Memory>, range: AddrRange) -> Section {
        Section { memory: Arc::clone(memory), range }
    }

    pub(super) fn len(&self) -> u64 {
        self.range.len()
    }

    /// A cursor at `offset`.
    pub(super) fn at(&self, offset: u64) -> Cursor<'_> {
        Cursor { section: self, at: offset }
    }

    /// The `N` bytes at `offset`; `None` beyond the end, or if any of them is absent.
    fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut out = [0; N];
        let end = offset.checked_add(u64::try_from(N).ok()?)?;
        (end <= self.len()).then_some(())?;
        self.memory.read(self.range.start.plus(offset), &mut out).ok()?;
        Some(out)
    }

    pub(super) fn u8(&self, offset: u64) -> Option<u8> {
        self.bytes::<1>(offset).map(|[b]| b)
    }

    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }

    /// The address to which the four bytes at `offset` point. They contain the distance from their own address.
    pub(super) fn relative(&self, offset: u64) -> Option<Addr> {
        let distance = i64::from(self.u32(offset)?.cast_signed());
        self.range.start.plus(offset).0.checked_add_signed(distance).map(Addr)
    }

    /// UTF-8 text of `len` bytes at `offset`.
    pub(super) fn text(&self, offset: u64, len: u64) -> Option<String> {
        (offset.checked_add(len)? <= self.len()).then_some(())?;
        let bytes = self.memory.bytes(self.range.start.plus(offset), len).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Calls `each` with a cursor at the payload of each entry of the hash table at the start of the section. Returns whether the table is
    /// complete; parts of it may be absent or corrupt.
    pub(super) fn entries(&self, budget: &Budget, mut each: impl FnMut(Cursor<'_>)) -> bool {
        let Some(table) = HashTable::read(self) else { return false };
        // An entry has at least two bytes, so disjoint buckets never reach this limit.
        let mut left = self.len();
        let mut whole = true;
        for bucket in 0..table.buckets {
            let Some((start, end)) = table.bucket(bucket) else {
                whole = false;
                continue;
            };
            let mut at = start;
            while at < end {
                left = left.saturating_sub(1);
                if left == 0 || !budget.steps(1) {
                    return false;
                }
                // An entry has the low byte of the hash code, then the distance to the payload.
                let place = at.saturating_add(1);
                let mut cursor = self.at(place);
                let Some(payload) = cursor.signed().and_then(|distance| place.checked_add_signed(distance.into())) else {
                    whole = false;
                    break;
                };
                each(self.at(payload));
                at = cursor.at;
            }
        }
        whole
    }
}

/// The header of a hash table.
struct HashTable<'a> {
    section: &'a Section,
    buckets: u64,
    /// Size of an entry of the bucket table, in bytes.
    entry: u64,
}

/// Offset of the bucket table, to which the offsets in it are relative.
const BUCKETS: u64 = 1;

impl HashTable<'_> {
    fn read(section: &Section) -> Option<HashTable<'_>> {
        let head = section.u8(0)?;
        let log = u32::from(head >> 2);
        let entry: u64 = match head & 3 {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => return None,
        };
        (log <= MAX_BUCKETS_LOG).then_some(())?;
        let buckets = 1u64.checked_shl(log)?;
        let table = entry.checked_mul(buckets.checked_add(1)?)?.checked_add(BUCKETS)?;
        (table <= section.len()).then_some(HashTable { section, buckets, entry })
    }

    /// Start and end offset of the entries of a bucket.
    fn bucket(&self, index: u64) -> Option<(u64, u64)> {
        let offset = |i: u64| {
            let at = BUCKETS.saturating_add(i.saturating_mul(self.entry));
            let offset = match self.entry {
                1 => u64::from(self.section.u8(at)?),
                2 => u64::from(u16::from_le_bytes(self.section.bytes(at)?)),
                _ => u64::from(self.section.u32(at)?),
            };
            BUCKETS.checked_add(offset)
        };
        let (start, end) = (offset(index)?, offset(index.checked_add(1)?)?);
        (start <= end && end <= self.section.len()).then_some((start, end))
    }
}

/// A position in a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    section: &'a Section,
    pub(super) at: u64,
}

impl Cursor<'_> {
    pub(super) fn u8(&mut self) -> Option<u8> {
        let value = self.section.u8(self.at)?;
        self.at = self.at.checked_add(1)?;
        Some(value)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let value = self.section.u32(self.at)?;
        self.at = self.at.checked_add(4)?;
        Some(value)
    }

    /// The address to which the next four bytes point.
    pub(super) fn relative(&mut self) -> Option<Addr> {
        let value = self.section.relative(self.at)?;
        self.at = self.at.checked_add(4)?;
        Some(value)
    }

    /// Reads a number in one to five bytes. Returns its bits, and how many there are.
    fn number(&mut self) -> Option<(u32, u32)> {
        let first = self.section.u8(self.at)?;
        let len = first.trailing_ones().checked_add(1)?;
        let (bits, count) = match len {
            1 => (u32::from(first), 7),
            2 => (u32::from(u16::from_le_bytes(self.section.bytes(self.at)?)), 14),
            3 => {
                let [a, b, c] = self.section.bytes(self.at)?;
                (u32::from_le_bytes([a, b, c, 0]), 21)
            }
            4 => (self.section.u32(self.at)?, 28),
            5 => (self.section.u32(self.at.checked_add(1)?)?, 32),
            _ => return None,
        };
        self.at = self.at.checked_add(len.into())?;
        Some((if len < 5 { bits >> len } else { bits }, count))
    }

    /// Reads an unsigned number.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        self.number().map(|(bits, _)| bits)
    }

    /// Reads a signed number, whose highest bit is the sign.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let (bits, count) = self.number()?;
        let unused = 32u32.checked_sub(count)?;
        bits.checked_shl(unused)?.cast_signed().checked_shr(unused)
    }
}

/// A table, with a flag that shows whether it was read completely.
#[derive(Debug)]
pub(super) struct Table<T> {
    pub(super) data: T,
    pub(super) whole: bool,
}
