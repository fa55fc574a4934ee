//! The bytes of a file: mapped where possible. The only `unsafe` of the crate lives here.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// No system has larger ordinary pages.
#[cfg(unix)]
const RELEASED_PAGE: u64 = 64 << 10;

/// The bytes of a dump or of a module file.
pub enum Bytes {
    /// A read-only private mapping of a file.
    Mapped(Mmap),
    /// Bytes that were made or read into memory.
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Whatever opening or mapping reports. An empty file gives empty bytes, not an error.
    pub fn map_path(path: &Path) -> io::Result<Bytes> {
        Bytes::map_file(&File::open(path)?)
    }

    /// Maps an open file. The mapping outlives the handle, also for an unlinked temporary file.
    ///
    /// # Errors
    /// Whatever mapping reports. An empty file gives empty bytes, not an error.
    #[allow(unsafe_code)]
    pub fn map_file(file: &File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::Owned(Vec::new()));
        }
        // SAFETY: the mapping is read-only and private, and every reader treats its bytes as untrusted data without
        // invariants, so a concurrent change of the file can change answers but not break memory safety. If the file
        // is cut off while mapped, touching the lost pages ends the process with SIGBUS: the price of not reading a
        // 20 GB dump into memory. Dumps are written once and not changed afterwards.
        let map = unsafe { Mmap::map(file)? };
        Ok(Bytes::Mapped(map))
    }

    /// The `len` bytes at `offset`, or `None` where the file has not got all of them.
    pub fn range(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.get(start..end)
    }

    /// Says that the whole pages inside `len` bytes at `offset` will not be read again soon: they leave this process,
    /// though not the system's cache. Reading them again is allowed and costs the page faults again.
    #[allow(unsafe_code)]
    pub fn release(&self, offset: u64, len: u64) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = self {
            let from = offset.checked_next_multiple_of(RELEASED_PAGE).unwrap_or(u64::MAX);
            let to = offset.saturating_add(len) & !RELEASED_PAGE.saturating_sub(1);
            let inside = usize::try_from(from).ok().zip(usize::try_from(to.saturating_sub(from)).ok());
            if let Some((from, len)) = inside.filter(|(from, len)| *len > 0 && from.saturating_add(*len) <= map.len()) {
                // SAFETY: the mapping is read-only and backed by the file: a dropped page comes back with the file's bytes,
                // so no byte that was borrowed changes. A refusal of the system changes nothing and is of no interest.
                let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, len) };
            }
        }
        #[cfg(not(unix))]
        let _ = (offset, len);
    }
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
