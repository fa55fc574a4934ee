//! Memory mappings of gcdump itself: the contents of files, and memory for large arrays. The library has `unsafe` code
//! only here.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions};

use super::files::regular;

/// The largest page size in bytes of the supported hosts. It is a multiple of every other page size, so multiples of it are page boundaries.
#[cfg(unix)]
const RELEASED_PAGE: u64 = 64 << 10;

/// The bytes of a dump or of a module file.
pub enum Bytes {
    /// A read-only private mapping of a file.
    Mapped(Mmap),
    /// Bytes in this process's memory.
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Fails if it is not a regular file, or cannot be opened or mapped. An empty file is not an error.
    pub fn map_path(path: &Path) -> io::Result<Bytes> {
        Bytes::map_file(&regular(path)?)
    }

    /// Maps an open file. The mapping outlives the handle, even for an unlinked temporary file.
    ///
    /// # Errors
    /// Fails if the file cannot be mapped. An empty file is not an error.
    #[allow(unsafe_code)]
    pub fn map_file(file: &File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::Owned(Vec::new()));
        }
        // SAFETY: the mapping is read-only and private, and readers treat its bytes as untrusted data without invariants: concurrent
        // modification of the file may change answers but cannot break memory safety. If the file is truncated while it is mapped, access to
        // the lost pages raises SIGBUS. This is accepted, because a 20 GB dump cannot be read into memory, and dumps are not modified after
        // they were written.
        let map = unsafe { Mmap::map(file)? };
        Ok(Bytes::Mapped(map))
    }

    /// Maps the `len` bytes at `offset` of the file at `path`. `None` if the bytes run past the end of the file.
    ///
    /// # Errors
    /// Fails as [`Bytes::map_path`] does.
    #[allow(unsafe_code)]
    pub(crate) fn map_part(path: &Path, offset: u64, len: u64) -> io::Result<Option<Bytes>> {
        let file = regular(path)?;
        let end = offset.checked_add(len).filter(|end| file.metadata().is_ok_and(|m| *end <= m.len()));
        let Some((_, len)) = end.zip(usize::try_from(len).ok()) else { return Ok(None) };
        if len == 0 {
            return Ok(Some(Bytes::Owned(Vec::new())));
        }
        // SAFETY: see `map_file`.
        let map = unsafe { MmapOptions::new().offset(offset).len(len).map(&file)? };
        Ok(Some(Bytes::Mapped(map)))
    }

    /// The `len` bytes at `offset`, or `None` if they run past the end.
    pub fn range(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.get(start..end)
    }

    /// Drops the whole pages within the `len` bytes at `offset` from gcdump's resident set. The pages stay in the page cache and can be read
    /// again, at the cost of page faults.
    #[allow(unsafe_code)]
    pub(crate) fn release(&self, offset: u64, len: u64) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = self {
            let from = offset.checked_next_multiple_of(RELEASED_PAGE).unwrap_or(u64::MAX);
            let to = offset.saturating_add(len) & !RELEASED_PAGE.saturating_sub(1);
            let inside = usize::try_from(from).ok().zip(usize::try_from(to.saturating_sub(from)).ok());
            if let Some((from, len)) = inside.filter(|(from, len)| *len > 0 && from.saturating_add(*len) <= map.len()) {
                // SAFETY: the mapping is read-only and file-backed, so a dropped page is reloaded with the same bytes, and borrowed data does
                // not change. An error is ignored, because it only means that the pages stay resident.
                let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, len) };
            }
        }
        #[cfg(not(unix))]
        let _ = (offset, len);
    }
}

/// Maps a file for reading and writing. The file must be an unnamed file that this process made, so that nothing else accesses it. The disk
/// blocks of the file must be allocated, because otherwise a write to the mapping while the disk is full would end the process with SIGBUS.
///
/// # Errors
/// Fails if the file cannot be mapped.
#[allow(unsafe_code)]
pub(super) fn map_own(file: &File) -> io::Result<MmapMut> {
    // SAFETY: only the `Region` that owns `file` accesses it, so no other mapping exists, and nothing else truncates or writes the file.
    unsafe { MmapMut::map_mut(file) }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self {
            Bytes::Mapped(_) => "mapped",
            Bytes::Owned(_) => "owned",
        };
        write!(f, "Bytes({how}, {} bytes)", self.len())
    }
}
