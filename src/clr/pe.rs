//! Locates the metadata of a managed image, in mapped or flat (file) layout.

use super::metadata::Source;
use crate::memory::PeHeaders;

/// Size of the CLI header (ECMA-335 II.25.3.3). The first field of the header contains this size.
const COR20_BYTES: u32 = 72;

/// Index of the data directory entry for the debug directory, and size of an entry of the debug directory.
const DEBUG: u64 = 6;
const DEBUG_ENTRY_BYTES: u64 = 28;
/// Maximum number of entries of a debug directory. Compilers write at most five entries.
const MAX_DEBUG_ENTRIES: u64 = 64;

/// The headers of a managed image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// `TimeDateStamp`: the link time or, in deterministic builds, a hash of the contents.
    pub(super) timestamp: u32,
    /// Size of the mapped image in bytes.
    pub(super) size_of_image: u32,
    pe: PeHeaders,
}

/// Location of the metadata in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset from the start of the image in its actual layout.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) len: u64,
    /// RVA of the metadata.
    pub(super) rva: u32,
}

/// An entry of the debug directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DebugEntry {
    /// Type of the entry.
    pub(super) kind: u32,
    /// `TimeDateStamp`.
    pub(super) stamp: u32,
    /// Minor version.
    pub(super) minor: u16,
    /// Size of the data in bytes.
    pub(super) size: u32,
    /// RVA of the data; 0 if the data is not mapped.
    pub(super) rva: u32,
    /// File offset of the data.
    pub(super) raw: u32,
}

impl Headers {
    /// Reads the headers at the start of `image`.
    pub(super) fn read(image: &Source) -> Option<Headers> {
        let pe = PeHeaders::read(|at| image.u16(at))?;
        Some(Headers { timestamp: pe.timestamp, size_of_image: pe.size_of_image, pe })
    }

    /// File offset of the byte at `rva`.
    pub(super) fn file_offset(&self, rva: u32) -> Option<u32> {
        self.pe.file_offset(rva)
    }

    /// Whether `image` has flat layout: its metadata is at the file offset, but not at the RVA.
    pub(super) fn is_flat(&self, image: &Source) -> bool {
        self.mapped(image).is_none() && self.flat(image).is_some()
    }

    /// The debug directory of `image`. `None` if the image has no debug directory, or if a part of the directory is absent. The location of the
    /// directory is read from the image again, because [`PeHeaders`] does not distinguish an absent directory from an unreadable directory.
    pub(super) fn debug_directory(&self, image: &Source, flat: bool) -> Option<Vec<DebugEntry>> {
        let optional = u64::from(image.u32(0x3c)?).checked_add(24)?;
        let directories = optional.checked_add(if image.u16(optional)? == 0x20b { 112 } else { 96 })?;
        let at = directories.checked_add(DEBUG.checked_mul(8)?)?;
        let (rva, size) = (image.u32(at).filter(|rva| *rva != 0)?, image.u32(at.checked_add(4)?)?);
        let first = u64::from(if flat { self.file_offset(rva)? } else { rva });
        let entry = |i: u64| {
            let at = first.checked_add(i.checked_mul(DEBUG_ENTRY_BYTES)?)?;
            let field = |offset: u64| image.u32(at.checked_add(offset)?);
            let minor = image.u16(at.checked_add(10)?)?;
            Some(DebugEntry { kind: field(12)?, stamp: field(4)?, minor, size: field(16)?, rva: field(20)?, raw: field(24)? })
        };
        (0..(u64::from(size) / DEBUG_ENTRY_BYTES).min(MAX_DEBUG_ENTRIES)).map(entry).collect()
    }

    /// Finds the metadata of `image`, first in mapped layout, then in flat layout.
    pub(super) fn metadata(&self, image: &Source) -> Option<Place> {
        self.mapped(image).or_else(|| self.flat(image))
    }

    fn mapped(&self, image: &Source) -> Option<Place> {
        find(image, self.pe.cli?.rva, &Some)
    }

    fn flat(&self, image: &Source) -> Option<Place> {
        find(image, self.pe.cli?.rva, &|rva| self.file_offset(rva))
    }
}

fn find(image: &Source, cli: u32, offset_of: &dyn Fn(u32) -> Option<u32>) -> Option<Place> {
    let header = u64::from(offset_of(cli)?);
    if image.u32(header)? != COR20_BYTES {
        return None;
    }
    let rva = image.u32(header.checked_add(8)?)?;
    let len = u64::from(image.u32(header.checked_add(12)?)?);
    let offset = u64::from(offset_of(rva)?);
    (image.u32(offset)? == u32::from_le_bytes(*b"BSJB")).then_some(Place { offset, len, rva })
}
