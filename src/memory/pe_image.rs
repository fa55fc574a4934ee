//! PE images in memory and their module files: extent, exported symbols, loaded layout.

use super::image::{Export, Image, ImageFormat};
use super::pe::{Directory, PeHeaders};
use super::symbols::{Nearest, Section};
use super::{Memory, ReadError};
use crate::base::{Addr, AddrRange};

/// Cap on exported names. coreclr.dll has about 30, large system libraries a few thousand.
const MAX_NAMES: u64 = 65_536;
/// Size in bytes of the largest image that is laid out in memory. coreclr.dll has 5 MB.
const MAX_IMAGE: u32 = 1 << 30;

fn le16(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    let b = memory.bytes(at, 2)?;
    Ok(b.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

fn le32(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    let b = memory.bytes(at, 4)?;
    Ok(b.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

fn headers(memory: &Memory, base: Addr) -> Option<PeHeaders> {
    PeHeaders::read(|at| le16(memory, base.plus(at)).ok().and_then(|n| u16::try_from(n).ok()))
}

pub(super) fn read(memory: &Memory, base: Addr) -> Option<Image> {
    let headers = headers(memory, base)?;
    let range = |rva: u32, size: u32| {
        let start = base.plus(u64::from(rva));
        AddrRange::new(start, start.plus(u64::from(size)))
    };
    Some(Image {
        base,
        format: ImageFormat::Pe,
        range: range(0, headers.size_of_image),
        writable: headers.sections.iter().filter(|s| s.is_writable()).map(|s| range(s.rva, s.virtual_size)).collect(),
        build_id: None,
        timestamp: Some(headers.timestamp),
        bias: base.0,
        exports: headers.exports.map(|d| range(d.rva, d.size)),
    })
}

/// The sections of an image that have names.
pub(super) fn sections(image: &Image, memory: &Memory) -> Vec<Section> {
    let named = |s: &super::pe::Section| {
        let name: String = s.name.iter().take_while(|b| **b != 0).map(|b| char::from(*b)).collect();
        let start = image.base.plus(u64::from(s.rva));
        (!name.is_empty()).then(|| Section { name, range: AddrRange::new(start, start.plus(u64::from(s.virtual_size))) })
    };
    headers(memory, image.base).iter().flat_map(|h| &h.sections).filter_map(named).collect()
}

/// Tells `nearest` every named export. Returns whether a part of them is not in the dump.
pub(super) fn each_export(image: &Image, memory: &Memory, nearest: &mut Nearest) -> bool {
    let Some(directory) = image.exports else { return false };
    let field = |offset: u64| le32(memory, directory.start.plus(offset)).ok();
    let at = |offset: u64| field(offset).map(|rva| image.base.plus(rva));
    let (Some(names), Some(functions), Some(name_table), Some(ordinals)) = (field(24), at(28), at(32), at(36)) else { return true };
    let mut incomplete = names > MAX_NAMES;
    for i in 0..names.min(MAX_NAMES) {
        let read = || {
            let ordinal = le16(memory, ordinals.element(i, 2))?;
            let function = le32(memory, functions.element(ordinal, 4))?;
            Ok::<_, ReadError>((image.base.plus(function), image.base.plus(le32(memory, name_table.element(i, 4))?)))
        };
        match read() {
            // Of a forwarded export, the "function" is the name of another library's, in the export directory.
            Ok((function, name)) if !directory.contains(function) => nearest.meet(function, name),
            Ok(_) => {}
            Err(_) => incomplete = true,
        }
    }
    incomplete
}

pub(super) fn export(image: &Image, memory: &Memory, name: &str) -> Option<Export> {
    let directory = image.exports?.start;
    let names = le32(memory, directory.plus(24)).ok()?.min(MAX_NAMES);
    let functions = image.base.plus(le32(memory, directory.plus(28)).ok()?);
    let name_table = image.base.plus(le32(memory, directory.plus(32)).ok()?);
    let ordinals = image.base.plus(le32(memory, directory.plus(36)).ok()?);
    let (mut low, mut high) = (0, names);
    // The linker sorts the names, and a binary search touches few pages.
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

impl PeHeaders {
    /// The parts that the process cannot have modified, as ranges of RVAs.
    pub(super) fn read_only(&self) -> impl Iterator<Item = std::ops::Range<u32>> {
        let headers = 0..self.headers_size;
        let fixed = self.sections.iter().filter(|s| !s.is_writable());
        std::iter::once(headers).chain(fixed.map(|s| s.rva..s.rva.saturating_add(s.virtual_size)))
    }

    /// The image of `file` as the loader lays it out at `base`, with relocations applied.
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
        let Some(Directory { rva: start, size }) = self.relocations else { return };
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
                // 10 = DIR64, 3 = HIGHLOW; others do not occur in images that .NET loads.
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
