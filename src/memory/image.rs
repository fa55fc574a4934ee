//! Executable images in the target's memory: extent, identity, exported symbols.
//!
//! Unlike `goblin`, which works on files and needs all pages, a lookup here needs only the pages that it touches.
//! createdump keeps exactly the pages that the DAC's own lookup of two exports touched, so the hash lookup works where a
//! linear scan of the symbol table fails (measured, 9.0.5 to 10.0.14).

use super::{Memory, ReadError, elf_image, pe_image};
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

/// What an image for Windows says of its PDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeView {
    /// GUID and age, 20 bytes.
    pub(crate) id: Vec<u8>,
    /// File name when it was linked.
    pub(crate) name: String,
}

/// An image in memory, as described by its headers.
#[derive(Clone, Debug)]
pub struct Image {
    /// Load address.
    pub base: Addr,
    /// Image format.
    pub format: ImageFormat,
    /// From the base to the end of its last segment, `.bss` included.
    pub range: AddrRange,
    /// Its writable segments or sections.
    pub writable: Vec<AddrRange>,
    /// GNU build id (ELF), if its note was captured.
    pub build_id: Option<Vec<u8>>,
    /// `TimeDateStamp` (PE).
    pub timestamp: Option<u32>,
    /// Load bias: memory address minus link-time address (`p_vaddr`, symbol value, RVA). Wraps.
    pub(super) bias: u64,
    /// Where export lookup starts: dynamic section (ELF), export directory (PE).
    pub(super) exports: Option<AddrRange>,
}

impl Image {
    /// An image whose headers are not read: its extent and its writable parts are known from elsewhere, and nothing else is.
    pub(crate) fn bare(format: ImageFormat, range: AddrRange, writable: Vec<AddrRange>) -> Image {
        Image { base: range.start, format, range, writable, build_id: None, timestamp: None, bias: range.start.0, exports: None }
    }

    /// Reads the headers of the image at `base`. `None` if there is no image, or its first page is absent.
    pub fn at(memory: &Memory, base: Addr) -> Option<Image> {
        let magic = memory.bytes(base, 4).ok()?;
        match magic.as_ref() {
            [0x7f, b'E', b'L', b'F'] => elf_image::read(memory, base),
            [b'M', b'Z', ..] => pe_image::read(memory, base),
            _ => None,
        }
    }

    /// Looks up an exported symbol. `None` if it is not exported *or* if a page that the lookup needs is absent.
    pub fn export(&self, memory: &Memory, name: &str) -> Option<Export> {
        match self.format {
            ImageFormat::Elf => elf_image::export(self, memory, name),
            ImageFormat::Pe => pe_image::export(self, memory, name),
        }
    }

    /// The PDB that the image names. `None` if it names none, or a page that tells is absent.
    #[cfg_attr(not(feature = "minidump"), allow(dead_code))]
    pub(crate) fn code_view(&self, memory: &Memory) -> Option<CodeView> {
        match self.format {
            ImageFormat::Elf => None,
            ImageFormat::Pe => pe_image::code_view(self, memory),
        }
    }

    /// Where each section of a PE image begins, relative to its base, in the order of their table. `None` if any is absent.
    #[cfg_attr(not(feature = "minidump"), allow(dead_code))]
    pub(crate) fn section_starts(&self, memory: &Memory) -> Option<Vec<u64>> {
        match self.format {
            ImageFormat::Elf => None,
            ImageFormat::Pe => pe_image::section_starts(self, memory),
        }
    }

    /// Load bias: memory address minus link-time address, as in symbols and debug information. Wraps.
    pub(crate) fn bias(&self) -> u64 {
        self.bias
    }

    /// Where the table is that leads to the unwind information of its native code: `.eh_frame_hdr` (ELF), `.pdata` (PE). `None` if it
    /// has none.
    ///
    /// # Errors
    /// Fails if a part of its headers is absent.
    pub(crate) fn unwind_table(&self, memory: &Memory) -> Result<Option<AddrRange>, ReadError> {
        match self.format {
            ImageFormat::Elf => elf_image::unwind_table(self, memory),
            ImageFormat::Pe => pe_image::unwind_table(self, memory),
        }
    }
}
