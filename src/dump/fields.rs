//! Numbers out of raw bytes, in the byte order of the dump. Past the end there is `None`, never a zero.

use crate::base::{Endian, PtrSize, Shape};

/// A slice of the dump file together with its byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    /// The bytes; offsets count from their start.
    pub(super) bytes: &'a [u8],
    /// Byte order of the numbers in them.
    pub(super) endian: Endian,
}

impl<'a> Fields<'a> {
    /// Reads `bytes` in the order `endian`.
    pub(super) fn new(bytes: &'a [u8], endian: Endian) -> Fields<'a> {
        Fields { bytes, endian }
    }

    /// Bytes held.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// The `len` bytes at `offset`, or `None` where not all of them are there.
    pub(super) fn slice(&self, offset: u64, len: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.bytes.get(start..end)
    }

    /// As many of the `len` bytes at `offset` as there are.
    pub(super) fn clamped(&self, offset: u64, len: u64) -> &'a [u8] {
        let end = offset.saturating_add(len).min(self.len());
        self.slice(offset, end.saturating_sub(offset)).unwrap_or(&[])
    }

    fn number(&self, offset: u64, len: u64) -> Option<u64> {
        let shape = Shape { ptr: PtrSize::Eight, endian: self.endian };
        Some(shape.number(self.slice(offset, len)?))
    }

    /// The 16-bit number at `offset`.
    pub(super) fn u16(&self, offset: u64) -> Option<u16> {
        self.number(offset, 2).and_then(|n| u16::try_from(n).ok())
    }

    /// The 32-bit number at `offset`.
    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        self.number(offset, 4).and_then(|n| u32::try_from(n).ok())
    }

    /// The 64-bit number at `offset`.
    pub(super) fn u64(&self, offset: u64) -> Option<u64> {
        self.number(offset, 8)
    }

    /// The number of pointer size at `offset`.
    pub(super) fn word(&self, offset: u64, size: PtrSize) -> Option<u64> {
        self.number(offset, size.bytes())
    }
}
