//! Finds the metadata of a managed image, in loaded or flat (file) layout.

use super::metadata::Source;
use crate::memory::PeHeaders;

/// Size of the CLI header (ECMA-335 II.25.3.3), its first field.
const COR20_BYTES: u32 = 72;

/// The headers of a managed image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// `TimeDateStamp`: link time or, in deterministic builds, a hash of the contents.
    pub(super) timestamp: u32,
    /// Size of the mapped image in bytes.
    pub(super) size_of_image: u32,
    pe: PeHeaders,
}

/// Location of the metadata in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset from the start of the image, in its actual layout.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) len: u64,
    /// Its RVA.
    pub(super) rva: u32,
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

    /// Whether `image` has flat layout: its metadata is found at the file offset, but not at the RVA.
    pub(super) fn is_flat(&self, image: &Source) -> bool {
        self.mapped(image).is_none() && self.flat(image).is_some()
    }

    /// Finds the metadata of `image`, trying loaded layout first, then flat layout.
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
