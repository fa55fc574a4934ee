//! PE images in memory: headers, sections, export directory. PE is little endian on every target.

use super::image::{Export, Image, ImageFormat};
use super::{Memory, ReadError};
use crate::base::{Addr, AddrRange};

/// The loader's own limit on sections.
const MAX_SECTIONS: u64 = 96;
/// Exported names; coreclr.dll has about 30, large system libraries some thousands.
const MAX_NAMES: u64 = 65_536;
const SECTION_WRITABLE: u32 = 0x8000_0000;

fn le16(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    let b = memory.bytes(at, 2)?;
    Ok(b.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

fn le32(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    let b = memory.bytes(at, 4)?;
    Ok(b.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

pub(super) fn read(memory: &Memory, base: Addr) -> Option<Image> {
    let nt = base.plus(le32(memory, base.plus(0x3c)).ok()?);
    if memory.bytes(nt, 4).ok()?.as_ref() != b"PE\0\0" {
        return None;
    }
    let sections = le16(memory, nt.plus(6)).ok()?.min(MAX_SECTIONS);
    let timestamp = le32(memory, nt.plus(8)).ok()?;
    let optional_size = le16(memory, nt.plus(20)).ok()?;
    let optional = nt.plus(24);
    let directories = match le16(memory, optional).ok()? {
        0x10b => optional.plus(96),
        0x20b => optional.plus(112),
        _ => return None,
    };
    let size = le32(memory, optional.plus(56)).ok()?;
    let exports = le32(memory, directories).ok().filter(|rva| *rva != 0).map(|rva| {
        let start = base.plus(rva);
        AddrRange::new(start, start.plus(le32(memory, directories.plus(4)).unwrap_or(0)))
    });
    let table = optional.plus(optional_size);
    let writable = (0..sections)
        .map(|i| table.element(i, 40))
        .filter_map(|s| {
            let flags = le32(memory, s.plus(36)).ok()?;
            let start = base.plus(le32(memory, s.plus(12)).ok()?);
            let len = le32(memory, s.plus(8)).ok()?;
            (flags & u64::from(SECTION_WRITABLE) != 0).then(|| AddrRange::new(start, start.plus(len)))
        })
        .collect();
    Some(Image {
        base,
        format: ImageFormat::Pe,
        range: AddrRange::new(base, base.plus(size)),
        writable,
        build_id: None,
        timestamp: u32::try_from(timestamp).ok(),
        bias: base.0,
        exports,
    })
}

pub(super) fn export(image: &Image, memory: &Memory, name: &str) -> Option<Export> {
    let directory = image.exports?.start;
    let names = le32(memory, directory.plus(24)).ok()?.min(MAX_NAMES);
    let functions = image.base.plus(le32(memory, directory.plus(28)).ok()?);
    let name_table = image.base.plus(le32(memory, directory.plus(32)).ok()?);
    let ordinals = image.base.plus(le32(memory, directory.plus(36)).ok()?);
    let (mut low, mut high) = (0, names);
    // The linker sorts the names; a binary search touches few pages.
    while low < high {
        let middle = low.midpoint(high);
        let at = image.base.plus(le32(memory, name_table.element(middle, 4)).ok()?);
        let text = memory.text(at, 512).ok()?;
        match text.as_str().cmp(name) {
            std::cmp::Ordering::Less => low = middle.saturating_add(1),
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                let ordinal = le16(memory, ordinals.element(middle, 2)).ok()?;
                let rva = le32(memory, functions.element(ordinal, 4)).ok()?;
                return Some(Export { address: image.base.plus(rva), size: None });
            }
        }
    }
    None
}

/// A PE file on disk: enough to lay it out as the loader does.
pub(super) struct PeFile {
    pub(super) timestamp: u32,
    pub(super) size_of_image: u32,
    image_base: u64,
    headers_size: u32,
    sections: Vec<Section>,
    relocations: Option<(u32, u32)>,
}

struct Section {
    rva: u32,
    raw: u32,
    raw_size: u32,
    virtual_size: u32,
    flags: u32,
}

/// coreclr.dll has 5 MB; a file that claims more than this is not laid out in memory.
const MAX_IMAGE: u32 = 1 << 30;

impl PeFile {
    pub(super) fn parse(bytes: &[u8]) -> Option<PeFile> {
        let u16_at = |at: u32| Some(u16::from_le_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?));
        let u32_at = |at: u32| Some(u32::from_le_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?));
        let nt = u32_at(0x3c)?;
        let at = |offset: u32| nt.checked_add(offset);
        if u32_at(nt)? != u32::from_le_bytes(*b"PE\0\0") {
            return None;
        }
        let count = u32::from(u16_at(at(6)?)?).min(96);
        let optional = at(24)?;
        let wide = match u16_at(optional)? {
            0x10b => false,
            0x20b => true,
            _ => return None,
        };
        let image_base =
            if wide { u64::from(u32_at(at(24 + 24)?)?) | u64::from(u32_at(at(24 + 28)?)?) << 32 } else { u64::from(u32_at(at(24 + 28)?)?) };
        let directories = at(24 + if wide { 112 } else { 96 })?;
        let relocations = u32_at(directories.checked_add(40)?).zip(u32_at(directories.checked_add(44)?));
        let table = optional.checked_add(u32::from(u16_at(at(20)?)?))?;
        let sections = (0..count).map_while(|i| {
            let s = table.checked_add(i * 40)?;
            Some(Section {
                virtual_size: u32_at(s.checked_add(8)?)?,
                rva: u32_at(s.checked_add(12)?)?,
                raw_size: u32_at(s.checked_add(16)?)?,
                raw: u32_at(s.checked_add(20)?)?,
                flags: u32_at(s.checked_add(36)?)?,
            })
        });
        Some(PeFile {
            timestamp: u32_at(at(8)?)?,
            size_of_image: u32_at(at(24 + 56)?)?,
            image_base,
            headers_size: u32_at(at(24 + 60)?)?,
            sections: sections.collect(),
            relocations: relocations.filter(|r| r.0 != 0),
        })
    }

    /// The parts that the process cannot have changed, as ranges of RVAs.
    pub(super) fn read_only(&self) -> impl Iterator<Item = std::ops::Range<u32>> {
        let headers = 0..self.headers_size;
        let fixed = self.sections.iter().filter(|s| s.flags & SECTION_WRITABLE == 0);
        std::iter::once(headers).chain(fixed.map(|s| s.rva..s.rva.saturating_add(s.virtual_size)))
    }

    /// The image as the loader lays it out at `base`, relocations applied.
    pub(super) fn loaded_at(&self, file: &[u8], base: Addr) -> Option<Vec<u8>> {
        if self.size_of_image > MAX_IMAGE {
            return None;
        }
        let mut image = vec![0u8; usize::try_from(self.size_of_image).ok()?];
        let mut copy = |rva: u32, raw: u32, len: u32| -> Option<()> {
            let from = file.get(usize::try_from(raw).ok()?..)?;
            let to = image.get_mut(usize::try_from(rva).ok()?..)?;
            let n = usize::try_from(len).ok()?.min(from.len()).min(to.len());
            to.get_mut(..n)?.copy_from_slice(from.get(..n)?);
            Some(())
        };
        copy(0, 0, self.headers_size)?;
        for s in &self.sections {
            copy(s.rva, s.raw, s.raw_size.min(s.virtual_size))?;
        }
        self.relocate(&mut image, base.0.wrapping_sub(self.image_base));
        Some(image)
    }

    fn relocate(&self, image: &mut [u8], delta: u64) {
        let Some((start, size)) = self.relocations else { return };
        let read32 =
            |image: &[u8], at: u32| -> Option<u32> { Some(u32::from_le_bytes(*image.get(usize::try_from(at).ok()?..)?.first_chunk()?)) };
        let end = start.saturating_add(size);
        let mut block = start;
        while block.saturating_add(8) <= end {
            let (Some(page), Some(len)) = (read32(image, block), read32(image, block.saturating_add(4))) else { return };
            if len < 8 {
                return;
            }
            for i in (8..len).step_by(2) {
                let at = block.saturating_add(i);
                let Some(entry) = usize::try_from(at).ok().and_then(|a| image.get(a..)?.first_chunk::<2>().copied()) else {
                    return;
                };
                let entry = u16::from_le_bytes(entry);
                let Ok(place) = usize::try_from(page.saturating_add(u32::from(entry & 0xfff))) else { return };
                // 10 = DIR64, 3 = HIGHLOW; the others do not occur in images that .NET loads.
                match entry >> 12 {
                    10 => {
                        if let Some(n) = image.get_mut(place..).and_then(|p| p.first_chunk_mut::<8>()) {
                            *n = u64::from_le_bytes(*n).wrapping_add(delta).to_le_bytes();
                        }
                    }
                    3 => {
                        if let Some(n) = image.get_mut(place..).and_then(|p| p.first_chunk_mut::<4>()) {
                            let low = u32::try_from(delta & 0xffff_ffff).unwrap_or(0);
                            *n = u32::from_le_bytes(*n).wrapping_add(low).to_le_bytes();
                        }
                    }
                    _ => {}
                }
            }
            block = block.saturating_add(len);
        }
    }
}
