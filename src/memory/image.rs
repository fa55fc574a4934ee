//! Executable images as they lie in the target's memory: their extent, identity and exported symbols.
//!
//! The `goblin` crate maps addresses to file offsets and needs all pages; here any page may be absent, and only the
//! pages that a lookup touches are needed. createdump keeps exactly the pages that the DAC's own lookup of the two
//! exports touched, so a linear scan of the symbol table fails where the hash lookup works (measured, 9.0.5 to 10.0.14).

use super::{Memory, elf_image, pe_image};
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
    /// Size of the symbol, where the format records one (ELF `st_size`).
    pub size: Option<u64>,
}

/// An image in memory. Holds only what its first pages say.
#[derive(Clone, Debug)]
pub struct Image {
    /// Where it is loaded.
    pub base: Addr,
    /// Format.
    pub format: ImageFormat,
    /// From the base to the end of its last segment, `.bss` included.
    pub range: AddrRange,
    /// Its writable segments or sections.
    pub writable: Vec<AddrRange>,
    /// GNU build id (ELF), where its note is captured.
    pub build_id: Option<Vec<u8>>,
    /// Link time stamp (PE).
    pub timestamp: Option<u32>,
    /// What to add to an address of the file (`p_vaddr`, symbol value, RVA) to get the one in memory. Wraps.
    pub(super) bias: u64,
    /// Where the lookup of exports starts: dynamic section (ELF), export directory (PE).
    pub(super) exports: Option<AddrRange>,
}

impl Image {
    /// Reads the headers of the image at `base`. `None` where there is no image, or where its first page is absent.
    pub fn at(memory: &Memory, base: Addr) -> Option<Image> {
        let magic = memory.bytes(base, 4).ok()?;
        match magic.as_ref() {
            [0x7f, b'E', b'L', b'F'] => elf_image::read(memory, base),
            [b'M', b'Z', ..] => pe_image::read(memory, base),
            _ => None,
        }
    }

    /// Looks an exported symbol up. `None` where it is not exported *or* a page that the lookup needs is absent.
    pub fn export(&self, memory: &Memory, name: &str) -> Option<Export> {
        match self.format {
            ImageFormat::Elf => elf_image::export(self, memory, name),
            ImageFormat::Pe => pe_image::export(self, memory, name),
        }
    }
}
