//! Sources of metadata blobs: target memory or a file.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::Addr;
use crate::dump::Bytes;
use crate::memory::Memory;

/// A metadata blob. Any byte may be absent.
#[derive(Clone, Debug)]
pub enum Source {
    /// In target memory. Individual pages may be absent.
    Memory {
        /// The address space.
        memory: Arc<Memory>,
        /// Start of the blob.
        base: Addr,
        /// Its size in bytes.
        len: u64,
    },
    /// In a file.
    File {
        /// The file.
        bytes: Arc<Bytes>,
        /// Start of the blob.
        offset: u64,
        /// Its size in bytes.
        len: u64,
    },
}

impl Source {
    /// Size of the blob in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Source::Memory { len, .. } | Source::File { len, .. } => *len,
        }
    }

    /// Whether the blob is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `count` bytes at `at`; `None` beyond the end, or if any is absent.
    pub fn bytes(&self, at: u64, count: u64) -> Option<Cow<'_, [u8]>> {
        if at.checked_add(count)? > self.len() {
            return None;
        }
        match self {
            Source::Memory { memory, base, .. } => memory.bytes(base.plus(at), count).ok(),
            Source::File { bytes, offset, .. } => bytes.range(offset.checked_add(at)?, count).map(Cow::Borrowed),
        }
    }

    /// A little-endian number of at most 8 bytes: metadata is little endian on all targets.
    fn number(&self, at: u64, count: u64) -> Option<u64> {
        Some(self.bytes(at, count)?.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }

    /// A byte.
    pub fn u8(&self, at: u64) -> Option<u8> {
        self.number(at, 1).and_then(|n| u8::try_from(n).ok())
    }

    /// A 16-bit number.
    pub fn u16(&self, at: u64) -> Option<u16> {
        self.number(at, 2).and_then(|n| u16::try_from(n).ok())
    }

    /// A 32-bit number.
    pub fn u32(&self, at: u64) -> Option<u32> {
        self.number(at, 4).and_then(|n| u32::try_from(n).ok())
    }

    /// A 64-bit number.
    pub fn u64(&self, at: u64) -> Option<u64> {
        self.number(at, 8)
    }

    /// The NUL-terminated UTF-8 text at `at`, at most `cap` bytes; `None` if unterminated or absent.
    pub fn text(&self, at: u64, cap: u64) -> Option<String> {
        const STEP: u64 = 64;
        let mut out: Vec<u8> = Vec::new();
        let mut done = 0;
        while done < cap {
            let from = at.checked_add(done)?;
            let want = STEP.min(cap.saturating_sub(done)).min(self.len().saturating_sub(from));
            // A chunk may extend into an absent page although the text ends before it.
            let chunk = match self.bytes(from, want) {
                Some(chunk) if !chunk.is_empty() => chunk,
                _ => self.bytes(from, 1)?,
            };
            if let Some(end) = chunk.iter().position(|b| *b == 0) {
                out.extend_from_slice(chunk.get(..end)?);
                return Some(String::from_utf8_lossy(&out).into_owned());
            }
            out.extend_from_slice(&chunk);
            done = done.saturating_add(u64::try_from(chunk.len()).ok()?);
        }
        None
    }
}
