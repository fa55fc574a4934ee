//! Executable images in the target's memory: extent, identity, exported symbols.
//!
//! The readers `elf_image` and `pe_image` are used instead of the crate `goblin`, because `goblin` needs the whole file. Of the symbol tables, a
//! dump by createdump has only the pages that the DAC read to look up two exports. So a lookup through the hash table works, while a linear scan
//! of the symbol table fails (measured on .NET 9.0.5 to 10.0.14).

use crate::base::{Addr, AddrRange};

/// Container format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// ELF (Linux).
    Elf,
    /// Portable Executable (Windows, and managed assemblies everywhere).
    Pe,
}

/// An exported symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Address in the process.
    pub address: Addr,
    /// Size in bytes, if the format records one (ELF `st_size`).
    pub size: Option<u64>,
}

/// The identity of a PE image's PDB, from its CodeView record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeView {
    /// GUID and age, 20 bytes as stored.
    pub(crate) id: Vec<u8>,
    /// File name of the PDB at link time.
    pub(crate) name: String,
}

/// An image in memory, as described by its headers.
#[derive(Clone, Debug)]
pub struct Image {
    /// Load address.
    pub base: Addr,
    /// Image format.
    pub format: ImageFormat,
    /// The range from the base to the end of the last segment, including `.bss`.
    pub range: AddrRange,
    /// Writable segments or sections.
    pub writable: Vec<AddrRange>,
    /// GNU build ID (ELF), if its note was captured.
    pub build_id: Option<Vec<u8>>,
    /// `TimeDateStamp` (PE).
    pub timestamp: Option<u32>,
    /// Load bias: memory address minus link-time address (`p_vaddr`, symbol value, RVA). Wraps.
    pub(super) bias: u64,
    /// Where the lookup of exports starts: the dynamic section (ELF) or the export directory (PE).
    pub(super) exports: Option<AddrRange>,
}

impl Image {
    /// An image whose headers are absent. Its range and writable parts are known from another source.
    pub(crate) fn bare(format: ImageFormat, range: AddrRange, writable: Vec<AddrRange>) -> Image {
        Image { base: range.start, format, range, writable, build_id: None, timestamp: None, bias: range.start.0, exports: None }
    }

    /// Load bias: memory address minus link-time address, which symbols and debug information use. Wraps.
    pub(crate) fn bias(&self) -> u64 {
        self.bias
    }
}
