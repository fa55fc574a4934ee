//! Reads of text with a maximum length.

use super::{Memory, ReadError};
use crate::base::missed::missed;
use crate::base::{Addr, Endian, drop_split_pair, len64, utf16};

/// Decodes UTF-8 text. Invalid sequences become U+FFFD.
pub(crate) fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

impl Memory {
    /// The NUL-terminated UTF-8 text at `address`, cut at `cap` bytes or at absent memory. Invalid sequences become U+FFFD.
    ///
    /// # Errors
    /// Fails if the first byte is absent.
    pub(crate) fn text(&self, address: Addr, cap: u64) -> Result<String, ReadError> {
        if cap > 0 && !self.has(address) {
            missed(address, 1);
            return Err(ReadError { address, len: 1 });
        }
        Ok(utf8(self.until_nul(address, cap).0))
    }

    /// The bytes at `address` up to a NUL, at most `cap` of them, and whether there is a NUL. Absent memory also ends the bytes and is reported
    /// as a failed read.
    pub(crate) fn until_nul(&self, address: Addr, cap: u64) -> (Vec<u8>, bool) {
        let (mut out, mut at, mut left) = (Vec::new(), address, cap);
        while left > 0 {
            let Some(bytes) = self.contiguous(at) else {
                missed(at, 1);
                break;
            };
            let bytes = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
            let end = memchr::memchr(0, bytes);
            let text = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
            out.extend_from_slice(text);
            let looked = len64(text.len().saturating_add(usize::from(end.is_some())));
            self.record(at, looked);
            if end.is_some() {
                return (out, true);
            }
            at = at.plus(looked);
            left = left.saturating_sub(looked);
        }
        (out, false)
    }

    /// The UTF-16 text of `bytes` bytes at `address`, cut at `cap` bytes and at a NUL. Lone surrogates are escaped: see [`utf16`].
    ///
    /// # Errors
    /// Fails if any of the first `cap` bytes is absent, even after the NUL.
    pub(crate) fn utf16(&self, address: Addr, bytes: u64, cap: u64) -> Result<String, ReadError> {
        let raw = self.bytes(address, bytes.min(cap) & !1)?;
        let units = raw.as_chunks::<2>().0.iter().map(|c| match self.shape().endian {
            Endian::Little => u16::from_le_bytes(*c),
            Endian::Big => u16::from_be_bytes(*c),
        });
        let mut units: Vec<u16> = units.take_while(|u| *u != 0).collect();
        drop_split_pair(&mut units, bytes > cap);
        Ok(utf16(units))
    }

    /// The NUL-terminated UTF-16 text at `address`, cut at `cap` bytes or at absent memory.
    ///
    /// # Errors
    /// Fails if the first code unit is absent.
    pub(crate) fn utf16_nul(&self, address: Addr, cap: u64) -> Result<String, ReadError> {
        let mut len = 0;
        while len < cap {
            match self.u16(address.plus(len)) {
                Ok(0) => break,
                Ok(_) => len = len.saturating_add(2),
                Err(e) if len == 0 => return Err(e),
                Err(_) => break,
            }
        }
        self.utf16(address, len, cap)
    }
}
