//! Where the bytes of a metadata blob come from.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::Addr;
use crate::dump::Bytes;
use crate::memory::Memory;

/// The bytes of a metadata blob. Any of them may be absent.
#[derive(Clone, Debug)]
pub enum Source {
    /// In the dump, or in what tops it up. Pages of it may be missing: whatever lies in the others can be read.
    Memory {
        /// The address space.
        memory: Arc<Memory>,
        /// Where the blob starts.
        base: Addr,
        /// Its bytes.
        len: u64,
    },
    /// In a file.
    File {
        /// The file.
        bytes: Arc<Bytes>,
        /// Where the blob starts.
        offset: u64,
        /// Its bytes.
        len: u64,
    },
}

impl Source {
    /// Bytes of the blob.
    pub fn len(&self) -> u64 {
        match self {
            Source::Memory { len, .. } | Source::File { len, .. } => *len,
        }
    }

    /// Whether the blob has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `count` bytes at `at`; `None` past the end, or where one of them is absent.
    pub fn bytes(&self, at: u64, count: u64) -> Option<Cow<'_, [u8]>> {
        if at.checked_add(count)? > self.len() {
            return None;
        }
        match self {
            Source::Memory { memory, base, .. } => memory.bytes(base.plus(at), count).ok(),
            Source::File { bytes, offset, .. } => bytes.range(offset.checked_add(at)?, count).map(Cow::Borrowed),
        }
    }

    /// A little-endian number of at most 8 bytes: metadata is little endian on every machine.
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

    /// The NUL-terminated UTF-8 text at `at`, at most `cap` bytes; `None` where it does not end, or is absent.
    pub fn text(&self, at: u64, cap: u64) -> Option<String> {
        const STEP: u64 = 64;
        let mut out: Vec<u8> = Vec::new();
        let mut done = 0;
        while done < cap {
            let from = at.checked_add(done)?;
            let want = STEP.min(cap.saturating_sub(done)).min(self.len().saturating_sub(from));
            // A step may run into a page that is absent although the text ends before it.
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
