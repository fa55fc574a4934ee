//! Decodes integers from raw bytes in the byte order of the dump. Reading past the end returns `None`, never zero.

use crate::base::{Endian, PtrSize, Shape};

/// A slice of the dump file with its byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    /// The bytes; offsets are relative to their start.
    pub(super) bytes: &'a [u8],
    /// Byte order.
    pub(super) endian: Endian,
}

impl<'a> Fields<'a> {
    /// Wraps `bytes`.
    pub(super) fn new(bytes: &'a [u8], endian: Endian) -> Fields<'a> {
        Fields { bytes, endian }
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// The `len` bytes at `offset`, or `None` if they run past the end.
    pub(super) fn slice(&self, offset: u64, len: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.bytes.get(start..end)
    }

    /// The `len` bytes at `offset`, cut at the end.
    pub(super) fn clamped(&self, offset: u64, len: u64) -> &'a [u8] {
        let end = offset.saturating_add(len).min(self.len());
        self.slice(offset, end.saturating_sub(offset)).unwrap_or(&[])
    }

    fn uint(&self, offset: u64, len: u64) -> Option<u64> {
        let shape = Shape { ptr: PtrSize::Eight, endian: self.endian };
        Some(shape.number(self.slice(offset, len)?))
    }

    /// The 16-bit integer at `offset`.
    pub(super) fn u16(&self, offset: u64) -> Option<u16> {
        self.uint(offset, 2).and_then(|n| u16::try_from(n).ok())
    }

    /// The 32-bit integer at `offset`.
    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        self.uint(offset, 4).and_then(|n| u32::try_from(n).ok())
    }

    /// The 64-bit integer at `offset`.
    pub(super) fn u64(&self, offset: u64) -> Option<u64> {
        self.uint(offset, 8)
    }

    /// The pointer-sized integer at `offset`.
    pub(super) fn word(&self, offset: u64, size: PtrSize) -> Option<u64> {
        self.uint(offset, size.bytes())
    }
}
