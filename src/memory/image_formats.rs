//! Reads the headers of ELF and PE images.

use super::image::{CodeView, Export, Image, ImageFormat};
use super::symbols::{Nearest, NearestExport, Section};
use super::{Memory, ReadError, elf_image, pe_image};
use crate::base::{Addr, AddrRange};

/// Maximum length in bytes of an export's name. C++ names can be long.
const MAX_NAME: u64 = 4096;

impl Image {
    /// Reads the headers of the image at `base`. `None` if no image is there, or if its first page is absent.
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

    /// The PDB that the image names. `None` if it does not name one, or a page with the record is absent.
    #[cfg_attr(not(feature = "minidump"), allow(dead_code))]
    pub(crate) fn code_view(&self, memory: &Memory) -> Option<CodeView> {
        match self.format {
            ImageFormat::Elf => None,
            ImageFormat::Pe => pe_image::code_view(self, memory),
        }
    }

    /// The start of each section of a PE image, relative to the base, in the order of the section table. `None` if any is absent.
    #[cfg_attr(not(feature = "minidump"), allow(dead_code))]
    pub(crate) fn section_starts(&self, memory: &Memory) -> Option<Vec<u64>> {
        match self.format {
            ImageFormat::Elf => None,
            ImageFormat::Pe => pe_image::section_starts(self, memory),
        }
    }

    /// The table that leads to the unwind information of native code: `.eh_frame_hdr` (ELF) or `.pdata` (PE). `None` if the image has none.
    ///
    /// # Errors
    /// A part of the headers is absent.
    pub(crate) fn unwind_table(&self, memory: &Memory) -> Result<Option<AddrRange>, ReadError> {
        match self.format {
            ImageFormat::Elf => elf_image::unwind_table(self, memory),
            ImageFormat::Pe => pe_image::unwind_table(self, memory),
        }
    }

    /// The section that contains `address`.
    pub fn section(&self, memory: &Memory, address: Addr) -> Option<Section> {
        let list = match self.format {
            ImageFormat::Elf => elf_image::sections(self, memory),
            ImageFormat::Pe => pe_image::sections(self, memory),
        };
        list.into_iter().find(|s| s.range.contains(address))
    }

    /// The last export at or below `address`: within `within` if there is one, else anywhere in the image.
    pub fn nearest_export(&self, memory: &Memory, address: Addr, within: Option<AddrRange>) -> NearestExport {
        let mut nearest = Nearest { image: self.range, address, within, same: None, any: None };
        let incomplete = match self.format {
            ImageFormat::Elf => elf_image::each_export(self, memory, &mut nearest),
            ImageFormat::Pe => pe_image::each_export(self, memory, &mut nearest),
        };
        let name = nearest.same.or(nearest.any);
        let export = name.and_then(|(at, name)| Some((memory.text(name, MAX_NAME).ok()?, at)));
        NearestExport { incomplete: incomplete || name.is_some() && export.is_none(), export }
    }
}
