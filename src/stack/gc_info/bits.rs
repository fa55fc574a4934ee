//! A bit stream. Its length is not stored, so bytes are read only when they are needed.

use std::borrow::Cow;

use super::error::GcInfoError;
use crate::base::Addr;
use crate::base::reads;
use crate::memory::ReadError;
use crate::stack::CodeBytes;

/// Maximum number of bytes read at a time. More is not faster, and recorded reads should be close to the bytes that are needed.
const CHUNK: u64 = 64;

/// Number of steps that take as long as a read of memory.
const STEPS_OF_A_READ: u64 = 8;

/// Reads bits, starting with the lowest bit of the first byte.
///
/// A read fails only if bytes with requested bits are missing. The error has the address of the first missing byte.
#[derive(Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a CodeBytes,
    start: Addr,
    /// Position in bits from `start`.
    position: u64,
    chunk: Cow<'a, [u8]>,
    /// Distance of `chunk` from `start` in bytes.
    chunk_at: u64,
    /// Steps that were not yet charged as reads.
    steps: u64,
}

impl<'a> Bits<'a> {
    /// A stream that starts at `start`.
    pub(super) fn new(bytes: &'a CodeBytes, start: Addr) -> Bits<'a> {
        Bits { bytes, start, position: 0, chunk: Cow::Borrowed(&[]), chunk_at: 0, steps: 0 }
    }

    /// The position in bits.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Moves to `position` without reading.
    pub(super) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// An error at the current position.
    pub(super) fn bad(&self, what: &'static str) -> GcInfoError {
        GcInfoError::Malformed { address: self.start, bit: self.position, what }
    }

    /// Reads the next `count` bits, at most 32.
    pub(super) fn read(&mut self, count: u32) -> Result<u32, GcInfoError> {
        if count == 0 {
            return Ok(0);
        }
        self.steps = self.steps.saturating_add(1);
        let (byte, shift) = (self.position / 8, self.position % 8);
        let count = u64::from(count.min(32));
        let word = match self.eight(byte) {
            Some(word) => word,
            None => self.gather(byte, shift.saturating_add(count).div_ceil(8))?,
        };
        self.position = self.position.saturating_add(count);
        let mask = (1u64 << count).saturating_sub(1);
        Ok(u32::try_from(word >> shift & mask).unwrap_or(u32::MAX))
    }

    /// Reads the next bit.
    pub(super) fn bit(&mut self) -> Result<bool, GcInfoError> {
        self.read(1).map(|bit| bit != 0)
    }

    /// Reads a number in groups of `base` bits, lowest first, each with another bit that is set if more groups follow.
    pub(super) fn unsigned(&mut self, base: u32) -> Result<u32, GcInfoError> {
        let (value, _) = self.groups(base)?;
        u32::try_from(value).map_err(|_| self.bad("a number of more than 32 bits"))
    }

    /// Reads a number as [`Bits::unsigned`], with the highest bit of the last group as its sign.
    pub(super) fn signed(&mut self, base: u32) -> Result<i32, GcInfoError> {
        let (value, bits) = self.groups(base)?;
        let unused = u64::BITS.saturating_sub(bits);
        i32::try_from((value << unused).cast_signed() >> unused).map_err(|_| self.bad("a number of more than 32 bits"))
    }

    /// Reads the groups of a number. Returns the number, and its length in bits.
    fn groups(&mut self, base: u32) -> Result<(u64, u32), GcInfoError> {
        let (mut value, mut bits) = (0u64, 0u32);
        while bits <= u32::BITS {
            let group = u64::from(self.read(base.saturating_add(1))?);
            let more = 1u64 << base;
            value |= (group & more.saturating_sub(1)) << bits;
            bits = bits.saturating_add(base);
            if group & more == 0 {
                return Ok((value, bits));
            }
        }
        Err(self.bad("a number of more than 32 bits"))
    }

    /// The eight bytes at `byte`, if the chunk has them.
    fn eight(&self, byte: u64) -> Option<u64> {
        let at = usize::try_from(byte.checked_sub(self.chunk_at)?).ok()?;
        self.chunk.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
    }

    /// Refills the chunk, and returns the `count` (at most 8) bytes at `byte`. The result may contain later bytes too, but they are not required,
    /// because they may be missing from the dump.
    #[cold]
    fn gather(&mut self, byte: u64, count: u64) -> Result<u64, GcInfoError> {
        let first = self.refill(byte)?;
        if let Some(word) = self.eight(byte) {
            return Ok(word);
        }
        let mut word = u64::from(first);
        for i in 1..count {
            let at = byte.saturating_add(i);
            let here = at.checked_sub(self.chunk_at).and_then(|skip| self.chunk.get(usize::try_from(skip).ok()?).copied());
            let value = match here {
                Some(value) => value,
                None => self.refill(at)?,
            };
            word |= u64::from(value) << i.saturating_mul(8).min(56);
        }
        Ok(word)
    }

    /// Reads the chunk that begins at `byte`, and returns its first byte.
    fn refill(&mut self, byte: u64) -> Result<u8, GcInfoError> {
        let address = self.start.plus(byte);
        CodeBytes::afford(address, std::mem::take(&mut self.steps) / STEPS_OF_A_READ)?;
        self.chunk = self.bytes.some(address, CHUNK)?;
        self.chunk_at = byte;
        Ok(self.chunk.first().copied().ok_or(ReadError { address, len: 1 })?)
    }
}

impl Drop for Bits<'_> {
    fn drop(&mut self) {
        reads::take(self.steps / STEPS_OF_A_READ);
    }
}
