//! PE images in memory and their module files: extent, exported symbols, loaded layout.

use super::copies::Copies;
use super::image::{CodeView, Export, Image, ImageFormat};
use super::pe::{DEBUG, Directory, EXCEPTIONS, PeHeaders};
use super::symbols::{Nearest, Section};
use super::{Memory, ReadError};
use crate::base::{Addr, AddrRange, Shape, file_name, len64};

/// Size in bytes of an entry of the debug directory.
const DEBUG_ENTRY: u64 = 28;
/// Cap on the entries of the debug directory.
const MAX_DEBUG_ENTRIES: u64 = 64;
/// `IMAGE_DEBUG_TYPE_CODEVIEW`.
const CODE_VIEW: u64 = 2;
/// Maximum size in bytes of a CodeView record, which contains a path.
const MAX_CODE_VIEW: u64 = 4096;
/// Size in bytes of GUID and age in a CodeView record.
const PDB_ID: usize = 20;
/// Cap on exported names. coreclr.dll has about 30, large system libraries a few thousand.
const MAX_NAMES: u64 = 65_536;
/// Maximum length in bytes of an export's name in comparisons.
const MAX_NAME: u64 = 512;
/// Number of bytes of a name whose comparison takes one step of the opening's budget.
const BYTES_OF_A_STEP: u64 = 4;

fn le16(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    Ok(Shape::LE64.number(&memory.bytes(at, 2)?))
}

fn le32(memory: &Memory, at: Addr) -> Result<u64, ReadError> {
    Ok(Shape::LE64.number(&memory.bytes(at, 4)?))
}

fn headers(memory: &Memory, base: Addr) -> Option<PeHeaders> {
    PeHeaders::read(|at| le16(memory, base.plus(at)).ok().and_then(|n| u16::try_from(n).ok()))
}

pub(super) fn read(memory: &Memory, base: Addr) -> Option<Image> {
    let headers = headers(memory, base)?;
    memory.afford_steps(len64(headers.sections.len()).saturating_mul(16)).then_some(())?;
    let range = |rva: u32, size: u32| {
        let start = base.plus(u64::from(rva));
        AddrRange::of(start, u64::from(size))
    };
    Some(Image {
        base,
        format: ImageFormat::Pe,
        range: range(0, headers.size_of_image),
        writable: headers.sections.iter().filter(|s| s.is_writable()).map(|s| range(s.rva, s.virtual_size)).collect(),
        relocated: Vec::new(),
        build_id: None,
        timestamp: Some(headers.timestamp),
        bias: base.0,
        exports: headers.exports.map(|d| range(d.rva, d.size)),
    })
}

/// The data directory of `.pdata`, if the image has one.
pub(super) fn unwind_table(image: &Image, memory: &Memory) -> Result<Option<AddrRange>, ReadError> {
    directory(image, memory, EXCEPTIONS)
}

/// The range of the data directory `index`, if the image has one. Does not use [`PeHeaders`], because `PeHeaders` treats absent fields as 0, and
/// here they are errors.
fn directory(image: &Image, memory: &Memory, index: u64) -> Result<Option<AddrRange>, ReadError> {
    let optional = optional_header(image, memory)?;
    let directories = optional.plus(if le16(memory, optional)? == 0x20b { 112 } else { 96 });
    let entry = directories.element(index, 8);
    let (rva, size) = (le32(memory, entry)?, le32(memory, entry.plus(4))?);
    let start = image.base.plus(rva);
    Ok((rva != 0).then(|| AddrRange::of(start, size)))
}

fn optional_header(image: &Image, memory: &Memory) -> Result<Addr, ReadError> {
    Ok(image.base.plus(le32(memory, image.base.plus(0x3c))?).plus(24))
}

/// The identity of the PDB in the image's `RSDS` record.
pub(super) fn code_view(image: &Image, memory: &Memory) -> Option<CodeView> {
    let entries = directory(image, memory, DEBUG).ok()??;
    let count = (entries.len() / DEBUG_ENTRY).min(MAX_DEBUG_ENTRIES);
    let entry = (0..count).map(|i| entries.start.element(i, DEBUG_ENTRY)).find(|e| le32(memory, e.plus(12)) == Ok(CODE_VIEW))?;
    let len = le32(memory, entry.plus(16)).ok()?.min(MAX_CODE_VIEW);
    let bytes = memory.bytes(image.base.plus(le32(memory, entry.plus(20)).ok()?), len).ok()?;
    let (id, path) = bytes.strip_prefix(b"RSDS")?.split_at_checked(PDB_ID)?;
    let path = path.split(|b| *b == 0).next()?;
    Some(CodeView { id: id.to_vec(), name: file_name(&String::from_utf8_lossy(path)).to_string() })
}

/// The RVA of each section, in the order of the section table. `None` if any RVA is absent, because symbols refer to sections by number.
pub(super) fn section_starts(image: &Image, memory: &Memory) -> Option<Vec<u64>> {
    const SECTION: u64 = 40;
    const MAX_SECTIONS: u64 = 96;
    let optional = optional_header(image, memory).ok()?;
    let file_header = optional.minus(20)?;
    let count = le16(memory, file_header.plus(2)).ok()?.min(MAX_SECTIONS);
    let table = optional.plus(le16(memory, file_header.plus(16)).ok()?);
    (0..count).map(|i| le32(memory, table.element(i, SECTION).plus(12)).ok()).collect()
}

/// The sections of an image that have names.
pub(super) fn sections(image: &Image, memory: &Memory) -> Vec<Section> {
    let named = |s: &super::pe::Section| {
        let name: String = s.name.iter().take_while(|b| **b != 0).map(|b| char::from(*b)).collect();
        let start = image.base.plus(u64::from(s.rva));
        (!name.is_empty()).then(|| Section { name, range: AddrRange::of(start, u64::from(s.virtual_size)) })
    };
    headers(memory, image.base).iter().flat_map(|h| &h.sections).filter_map(named).collect()
}

/// Passes every named export to `nearest`. Returns whether some exports may be missing because parts of the tables are not in the dump.
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
            // An RVA within the export directory is a forwarded export: it refers to the name of another library's export, not to a function.
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
    // The linker sorts the names, so a binary search touches few pages.
    while low < high {
        let middle = low.midpoint(high);
        let at = image.base.plus(le32(memory, name_table.element(middle, 4)).ok()?);
        let text = memory.text(at, MAX_NAME).ok()?;
        memory.afford_steps(len64(text.len()) / BYTES_OF_A_STEP + 1).then_some(())?;
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

/// The headers or a section of a PE file, at their address in an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    /// The addresses of the part.
    pub(crate) range: AddrRange,
    /// Offset and size of the bytes in the file; the rest of `range` is zero.
    raw: u32,
    raw_size: u32,
}

impl Loaded {
    /// Copies those bytes of the part that are in `range` into `to`, a zeroed buffer for `range`.
    pub(crate) fn read(&self, file: &[u8], range: AddrRange, to: &mut [u8]) {
        let count = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let start = self.range.start.max(range.start);
        let skip = start.since(self.range.start);
        let from = count(skip.and_then(|n| n.checked_add(u64::from(self.raw))));
        let len = count(skip.map(|n| u64::from(self.raw_size).saturating_sub(n)));
        let bytes = file.get(from..).unwrap_or_default();
        let bytes = bytes.get(..len).unwrap_or(bytes);
        let to = to.get_mut(count(start.since(range.start))..).unwrap_or_default();
        to.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }
}

impl PeHeaders {
    /// The headers and the sections that are not writable, in an image at `base`. `None` if two of these overlap; the loader rejects such a file.
    pub(crate) fn loaded(&self, base: Addr) -> Option<Vec<Loaded>> {
        let headers = self.part(base, 0, self.headers_size, 0, self.headers_size);
        let mut all: Vec<Loaded> = std::iter::once(headers).chain(self.sections_at(base, false)).collect();
        all.sort_by_key(|s| s.range.start);
        all.windows(2).all(|w| matches!(w, [a, b] if a.range.end <= b.range.start)).then_some(all)
    }

    /// The writable sections, in an image at `base`, with their initial contents.
    pub(crate) fn writable(&self, base: Addr) -> Vec<Loaded> {
        self.sections_at(base, true).collect()
    }

    fn sections_at(&self, base: Addr, writable: bool) -> impl Iterator<Item = Loaded> + '_ {
        let wanted = self.sections.iter().filter(move |s| s.is_writable() == writable);
        wanted.map(move |s| self.part(base, s.rva, s.virtual_size, s.raw, s.raw_size))
    }

    fn part(&self, base: Addr, rva: u32, size: u32, raw: u32, raw_size: u32) -> Loaded {
        let start = base.plus(u64::from(rva));
        // A section of a corrupt file is cut at the end of the image.
        let size = size.min(self.size_of_image.saturating_sub(rva));
        Loaded { range: AddrRange::of(start, u64::from(size)), raw, raw_size: raw_size.min(size) }
    }

    /// The import address table in an image at `base`, if the loader fills it. An image with managed code imports at most the function that starts
    /// the runtime, which no loader of .NET resolves.
    pub(super) fn imports(&self, base: Addr) -> Option<AddrRange> {
        let table = self.import_addresses.filter(|_| self.cli.is_none())?;
        let start = base.plus(u64::from(table.rva));
        Some(AddrRange::of(start, u64::from(table.size)))
    }

    /// Relocates `value`, a pointer stored in the file, for an image at `base`. `None` if the pointer is outside of the image.
    pub(crate) fn relocated(&self, value: u64, base: Addr) -> Option<Addr> {
        let rva = value.checked_sub(self.image_base).filter(|rva| *rva < u64::from(self.size_of_image))?;
        Some(base.plus(rva))
    }

    /// Applies the base relocations of `file`, loaded at `base`, to `copies`. `None` if `afford` refuses the steps.
    pub(super) fn relocate(&self, file: &[u8], base: Addr, copies: &mut Copies, afford: impl Fn(u64) -> bool) -> Option<()> {
        let delta = base.0.wrapping_sub(self.image_base);
        let Some(Directory { rva, size }) = self.relocations else { return Some(()) };
        let table = self.file_offset(rva).and_then(|at| file.get(usize::try_from(at).ok()?..)).unwrap_or_default();
        let mut table = table.get(..usize::try_from(size).ok()?).unwrap_or(table);
        // The table consists of a block for each page: RVA of the page, size of the block, and 16 bits for each relocation.
        while let Some(([p0, p1, p2, p3, l0, l1, l2, l3], _)) = table.split_first_chunk::<8>() {
            let page = u32::from_le_bytes([*p0, *p1, *p2, *p3]);
            let len = usize::try_from(u32::from_le_bytes([*l0, *l1, *l2, *l3])).unwrap_or(usize::MAX);
            let Some((block, rest)) = table.split_at_checked(len.min(table.len())).filter(|_| len >= 8) else { break };
            table = rest;
            afford(len64(block.len()) / 2).then_some(())?;
            for entry in block.get(8..).unwrap_or_default().as_chunks::<2>().0 {
                let entry = u16::from_le_bytes(*entry);
                let place = base.plus(u64::from(page).saturating_add(u64::from(entry & 0xfff)));
                // `IMAGE_REL_BASED_DIR64` is 10, `IMAGE_REL_BASED_HIGHLOW` 3. Other types do not occur in images that .NET loads.
                match entry >> 12 {
                    10 => {
                        if let Some(n) = copies.at::<8>(place) {
                            *n = u64::from_le_bytes(*n).wrapping_add(delta).to_le_bytes();
                        }
                    }
                    3 => {
                        if let Some(n) = copies.at::<4>(place) {
                            let low = u32::try_from(delta & 0xffff_ffff).unwrap_or(0);
                            *n = u32::from_le_bytes(*n).wrapping_add(low).to_le_bytes();
                        }
                    }
                    _ => {}
                }
            }
        }
        Some(())
    }
}
