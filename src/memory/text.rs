//! Bounded reads of text.

use super::{Memory, ReadError};
use crate::base::{Addr, Endian};

impl Memory {
    /// The NUL-terminated UTF-8 text at `address`, at most `cap` bytes. Invalid sequences become U+FFFD; text that runs into
    /// absent memory is cut there.
    ///
    /// # Errors
    /// Fails if the first byte is absent.
    pub(crate) fn text(&self, address: Addr, cap: u64) -> Result<String, ReadError> {
        let mut out = Vec::new();
        for i in 0..cap {
            match self.u8(address.plus(i)) {
                Ok(0) => break,
                Ok(b) => out.push(b),
                Err(e) if i == 0 => return Err(e),
                Err(_) => break,
            }
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// The UTF-16 text of `bytes` bytes at `address`, at most `cap` bytes, up to a NUL. Unpaired surrogates become U+FFFD.
    ///
    /// # Errors
    /// Fails if any of it is absent.
    pub(crate) fn utf16(&self, address: Addr, bytes: u64, cap: u64) -> Result<String, ReadError> {
        let raw = self.bytes(address, bytes.min(cap) & !1)?;
        let units = raw.as_chunks::<2>().0.iter().map(|c| match self.shape().endian {
            Endian::Little => u16::from_le_bytes(*c),
            Endian::Big => u16::from_be_bytes(*c),
        });
        let text = char::decode_utf16(units.take_while(|u| *u != 0));
        Ok(text.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }

    /// The NUL-terminated UTF-16 text at `address`, at most `cap` bytes. Text that runs into absent memory is cut there.
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
