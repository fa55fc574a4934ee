//! PE headers: one reader for images in memory, in files and in bundles. PE is little endian on every target.
//!
//! Source: the PE/COFF specification. `Machine` is ignored, because ReadyToRun images for other systems than Windows XOR it with a constant
//! (0xfd1d for x64 Linux; `docs/internals/types.md#metadata`).

/// Maximum number of sections that the loader accepts.
const MAX_SECTIONS: u16 = 96;
/// Size in bytes of a section header.
const SECTION_BYTES: u64 = 40;
const SECTION_WRITABLE: u32 = 0x8000_0000;

/// Indices of the data directories that are read.
const EXPORTS: u64 = 0;
pub(super) const EXCEPTIONS: u64 = 3;
const RELOCATIONS: u64 = 5;
pub(super) const DEBUG: u64 = 6;
const IMPORT_ADDRESSES: u64 = 12;
const CLI: u64 = 14;

/// The headers of a PE image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeHeaders {
    /// `TimeDateStamp`: link time or, in deterministic builds, a hash of the contents.
    pub(crate) timestamp: u32,
    /// Size of the mapped image in bytes.
    pub(crate) size_of_image: u32,
    /// `SizeOfHeaders`: size in bytes of all headers, including the section table.
    pub(super) headers_size: u32,
    /// `ImageBase`: the preferred load address in a file; in memory, the Windows loader replaces it with the actual one.
    pub(super) image_base: u64,
    /// Export directory.
    pub(super) exports: Option<Directory>,
    /// Base relocation table.
    pub(super) relocations: Option<Directory>,
    /// Import address table; read from files only.
    pub(super) import_addresses: Option<Directory>,
    /// CLI header. Present in managed images only.
    pub(crate) cli: Option<Directory>,
    /// Sections, in the order of the table.
    pub(super) sections: Vec<Section>,
}

/// A data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    /// RVA of the directory, never 0.
    pub(crate) rva: u32,
    /// Size of the directory in bytes.
    pub(crate) size: u32,
}

/// A section header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Name of the section, padded with NUL; all NUL if it is absent.
    pub(super) name: [u8; 8],
    pub(super) rva: u32,
    /// Size in memory in bytes.
    pub(super) virtual_size: u32,
    /// Offset in the file.
    pub(super) raw: u32,
    /// Size in the file in bytes.
    pub(super) raw_size: u32,
    flags: u32,
}

impl Section {
    pub(super) fn is_writable(&self) -> bool {
        self.flags & SECTION_WRITABLE != 0
    }
}

impl PeHeaders {
    /// Reads the headers of an image through `u16_at`, which returns the 16-bit integer at an offset from the start of the image. `None` if a
    /// signature is wrong or an essential field is absent.
    ///
    /// A trimmed dump contains only the fields that gcdump read when it made the dump. So other absent fields are treated as 0, and the
    /// signature `MZ` is checked only if it was captured.
    pub(crate) fn read(u16_at: impl Fn(u64) -> Option<u16>) -> Option<PeHeaders> {
        PeHeaders::read_all(u16_at, false)
    }

    /// Like [`PeHeaders::read`]. If `of_file`, also reads what is used of files only: trimmed dumps do not have it.
    fn read_all(u16_at: impl Fn(u64) -> Option<u16>, of_file: bool) -> Option<PeHeaders> {
        let u32_at = |at: u64| Some(u32::from(u16_at(at)?) | u32::from(u16_at(at.checked_add(2)?)?) << 16);
        if u16_at(0).is_some_and(|magic| magic != u16::from_le_bytes(*b"MZ")) {
            return None;
        }
        let nt = u64::from(u32_at(0x3c)?);
        if u32_at(nt)? != u32::from_le_bytes(*b"PE\0\0") {
            return None;
        }
        let at = |offset: u64| nt.checked_add(offset);
        let optional = at(24)?;
        let (image_base, directories) = match u16_at(optional)? {
            0x10b => (u32_at(at(24 + 28)?).map(u64::from), at(24 + 96)?),
            0x20b => (u32_at(at(24 + 24)?).zip(u32_at(at(24 + 28)?)).map(|(l, h)| u64::from(l) | u64::from(h) << 32), at(24 + 112)?),
            _ => return None,
        };
        let directory = |index: u64| {
            let entry = directories.checked_add(index.checked_mul(8)?)?;
            let rva = u32_at(entry).filter(|rva| *rva != 0)?;
            Some(Directory { rva, size: u32_at(entry.checked_add(4)?).unwrap_or(0) })
        };
        let table = optional.checked_add(u64::from(u16_at(at(20)?)?))?;
        let section = |index: u64| {
            let header = table.checked_add(index.checked_mul(SECTION_BYTES)?)?;
            let field = |offset: u64| u32_at(header.checked_add(offset)?);
            let known = |offset: u64| field(offset).unwrap_or(0);
            let mut name = [0; 8];
            for (pair, offset) in name.chunks_exact_mut(2).zip((0u64..).step_by(2)) {
                pair.copy_from_slice(&header.checked_add(offset).and_then(&u16_at).unwrap_or(0).to_le_bytes());
            }
            Some(Section { name, virtual_size: known(8), rva: field(12)?, raw_size: known(16), raw: known(20), flags: known(36) })
        };
        let count = u16_at(at(6)?)?.min(MAX_SECTIONS);
        Some(PeHeaders {
            timestamp: u32_at(at(8)?)?,
            size_of_image: u32_at(at(24 + 56)?)?,
            headers_size: u32_at(at(24 + 60)?).unwrap_or(0),
            image_base: image_base.unwrap_or(0),
            exports: directory(EXPORTS),
            relocations: directory(RELOCATIONS),
            import_addresses: if of_file { directory(IMPORT_ADDRESSES) } else { None },
            cli: directory(CLI),
            sections: (0..u64::from(count)).filter_map(section).collect(),
        })
    }

    /// Reads the headers of the PE file `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Option<PeHeaders> {
        PeHeaders::read_all(|at| Some(u16::from_le_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?)), true)
    }

    /// File offset of the byte at `rva`; `None` if it is not in the file part of a section.
    pub(crate) fn file_offset(&self, rva: u32) -> Option<u32> {
        let section = self.sections.iter().find(|s| rva.checked_sub(s.rva).is_some_and(|d| d < s.raw_size))?;
        rva.checked_sub(section.rva)?.checked_add(section.raw)
    }
}
