//! Sources of metadata blobs: memory of the process, or a file.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::missed::{contradiction, tried};
use crate::base::{Addr, PAGE, Shape, len64};
use crate::dump::Bytes;
use crate::memory::{Memory, utf8};

/// Number of zeros after a text that shows that the next texts are lost. Between two texts is one zero, and up to three more at the end of the heap.
const ZEROS: u64 = 16;

/// A metadata blob. Any of its bytes may be absent.
#[derive(Clone, Debug)]
pub enum Source {
    /// A blob in memory. Individual pages may be absent.
    Memory {
        /// The memory of the process.
        memory: Arc<Memory>,
        /// Start address of the blob.
        base: Addr,
        /// Size of the blob in bytes.
        len: u64,
    },
    /// A blob in a file.
    File {
        /// The file.
        bytes: Arc<Bytes>,
        /// Offset of the blob in the file.
        offset: u64,
        /// Size of the blob in bytes.
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

    /// The `count` bytes at `at`; `None` past the end of the blob, or if any byte is absent.
    pub fn bytes(&self, at: u64, count: u64) -> Option<Cow<'_, [u8]>> {
        if at.checked_add(count)? > self.len() {
            return None;
        }
        match self {
            Source::Memory { memory, base, .. } => memory.bytes(base.plus(at), count).ok(),
            Source::File { bytes, offset, .. } => bytes.range(offset.checked_add(at)?, count).map(Cow::Borrowed),
        }
    }

    /// Reports that the bytes at `at` contradict others. A file is not a part of the dump, so nothing is reported for files.
    pub(super) fn deny(&self, at: u64, what: &'static str) {
        if let Source::Memory { base, .. } = self {
            contradiction(base.plus(at), what);
        }
    }

    /// Whether the text of `len` bytes at `at` seems to end early, because its end is the start of a page that contains only zeros there. At least `room`
    /// bytes of texts begin at `at`.
    pub(super) fn is_cut(&self, at: u64, len: u64, room: u64) -> bool {
        let Source::Memory { memory, base, .. } = self else { return false };
        let end = base.plus(at).plus(len);
        let follows = || memory.bytes(end, ZEROS).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
        end.0.is_multiple_of(PAGE) && len.saturating_add(ZEROS) <= room && tried(follows)
    }

    /// A little-endian number of `N` bytes, at most 8. Metadata is little endian on all targets.
    fn number<const N: usize>(&self, at: u64) -> Option<u64> {
        let count = len64(N);
        if at.checked_add(count)? > self.len() {
            return None;
        }
        match self {
            Source::Memory { memory, base, .. } => memory.little::<N>(base.plus(at)).ok(),
            Source::File { bytes, offset, .. } => {
                let chunk: &[u8; N] = bytes.range(offset.checked_add(at)?, count)?.first_chunk()?;
                Some(Shape::LE64.number(chunk))
            }
        }
    }

    /// The byte at `at`.
    pub fn u8(&self, at: u64) -> Option<u8> {
        self.number::<1>(at).and_then(|n| u8::try_from(n).ok())
    }

    /// The 16-bit number at `at`.
    pub fn u16(&self, at: u64) -> Option<u16> {
        self.number::<2>(at).and_then(|n| u16::try_from(n).ok())
    }

    /// The 32-bit number at `at`.
    pub fn u32(&self, at: u64) -> Option<u32> {
        self.number::<4>(at).and_then(|n| u32::try_from(n).ok())
    }

    /// The 64-bit number at `at`.
    pub fn u64(&self, at: u64) -> Option<u64> {
        self.number::<8>(at)
    }

    /// The NUL-terminated UTF-8 text at `at`; `None` if a NUL does not follow within `cap` bytes, or the text is absent.
    pub fn text(&self, at: u64, cap: u64) -> Option<String> {
        let most = cap.min(self.len().checked_sub(at)?);
        let (text, ended) = match self {
            Source::Memory { memory, base, .. } => memory.until_nul(base.plus(at), most),
            Source::File { bytes, offset, .. } => {
                let rest = bytes.get(usize::try_from(offset.checked_add(at)?).ok()?..)?;
                let rest = rest.get(..usize::try_from(most).ok()?).unwrap_or(rest);
                let end = memchr::memchr(0, rest);
                (rest.get(..end?)?.to_vec(), true)
            }
        };
        ended.then(|| utf8(text))
    }
}
