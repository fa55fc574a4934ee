//! Finds the metadata of a managed image, mapped by the loader or lying flat as in its file.
//!
//! `Machine` is ignored: ReadyToRun images for other systems have it scrambled (x64 Linux: 0xFD1D).

use super::metadata::Source;

/// The loader's own limit on sections.
const MAX_SECTIONS: u16 = 96;
/// Size of the CLI header (ECMA-335 II.25.3.3), its first field.
const COR20_BYTES: u32 = 72;
const CLI_DIRECTORY: u64 = 14;

/// What the headers of a managed image say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// Link time stamp; of deterministic builds, a hash of the content.
    pub(super) timestamp: u32,
    /// Bytes that the image takes when mapped.
    pub(super) size_of_image: u32,
    cli: u32,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    rva: u32,
    raw: u32,
    raw_size: u32,
}

/// Where the metadata of an image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset from the start of the image, in the layout that it was found in.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u64,
    /// Its RVA.
    pub(super) rva: u32,
}

impl Headers {
    /// Reads the headers at the start of `image`.
    pub(super) fn read(image: &Source) -> Option<Headers> {
        if image.u16(0)? != u16::from_le_bytes(*b"MZ") {
            return None;
        }
        let nt = u64::from(image.u32(0x3c)?);
        if image.u32(nt)? != u32::from_le_bytes(*b"PE\0\0") {
            return None;
        }
        let at = |offset: u64| nt.checked_add(offset);
        let optional = at(24)?;
        let directories = match image.u16(optional)? {
            0x10b => at(24 + 96)?,
            0x20b => at(24 + 112)?,
            _ => return None,
        };
        let table = optional.checked_add(u64::from(image.u16(at(20)?)?))?;
        let count = image.u16(at(6)?)?.min(MAX_SECTIONS);
        let sections = (0..u64::from(count)).map_while(|i| {
            let s = table.checked_add(i.checked_mul(40)?)?;
            Some(Section {
                rva: image.u32(s.checked_add(12)?)?,
                raw_size: image.u32(s.checked_add(16)?)?,
                raw: image.u32(s.checked_add(20)?)?,
            })
        });
        Some(Headers {
            timestamp: image.u32(at(8)?)?,
            size_of_image: image.u32(at(24 + 56)?)?,
            cli: image.u32(directories.checked_add(CLI_DIRECTORY * 8)?)?,
            sections: sections.collect(),
        })
    }

    /// Where the byte at `rva` lies in the file.
    pub(super) fn file_offset(&self, rva: u32) -> Option<u32> {
        let section = self.sections.iter().find(|s| rva.checked_sub(s.rva).is_some_and(|d| d < s.raw_size))?;
        rva.checked_sub(section.rva)?.checked_add(section.raw)
    }

    /// Whether `image` lies in memory as in its file: its metadata is found there, and not where the loader would map it.
    pub(super) fn is_flat(&self, image: &Source) -> bool {
        self.cli != 0 && find(image, self.cli, &|rva| Some(rva)).is_none() && find(image, self.cli, &|rva| self.file_offset(rva)).is_some()
    }

    /// Finds the metadata of `image`: as mapped first, then as in the file.
    pub(super) fn metadata(&self, image: &Source) -> Option<Place> {
        if self.cli == 0 {
            return None;
        }
        let mapped = |rva: u32| Some(rva);
        let flat = |rva: u32| self.file_offset(rva);
        find(image, self.cli, &mapped).or_else(|| find(image, self.cli, &flat))
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
