//! Reads integers from borrowed bytes, specialized by target shape.

use crate::base::{Endian, PtrSize, Shape};

/// The pointer-sized integer at the start of `bytes`.
#[inline(always)]
pub(in crate::gc) fn word(shape: Shape, bytes: &[u8]) -> Option<u64> {
    match (shape.ptr, shape.endian) {
        (PtrSize::Eight, Endian::Little) => bytes.first_chunk().map(|b| u64::from_le_bytes(*b)),
        (PtrSize::Eight, Endian::Big) => bytes.first_chunk().map(|b| u64::from_be_bytes(*b)),
        (PtrSize::Four, Endian::Little) => bytes.first_chunk().map(|b| u64::from(u32::from_le_bytes(*b))),
        (PtrSize::Four, Endian::Big) => bytes.first_chunk().map(|b| u64::from(u32::from_be_bytes(*b))),
    }
}

/// The 32-bit integer at the start of `bytes`.
#[inline(always)]
pub(in crate::gc) fn u32(shape: Shape, bytes: &[u8]) -> Option<u32> {
    match shape.endian {
        Endian::Little => bytes.first_chunk().map(|b| u32::from_le_bytes(*b)),
        Endian::Big => bytes.first_chunk().map(|b| u32::from_be_bytes(*b)),
    }
}
