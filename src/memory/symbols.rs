//! What an image's headers say about one of its addresses: its section, and the export before it.

use super::image::{Image, ImageFormat};
use super::{Memory, elf_image, pe_image};
use crate::base::{Addr, AddrRange};

/// A part of an image, as its headers divide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name in the section table (PE). The section table of an ELF image is not loaded: the permissions of the segment, `rw-`;
    /// `bss` for the part that is not in the file.
    pub name: String,
    /// Its addresses.
    pub range: AddrRange,
}

/// The exports of an image around an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearestExport {
    /// The last export at or below the address: name and address.
    pub export: Option<(String, Addr)>,
    /// Whether a part of the export table is not in the dump: another export may be nearer.
    pub incomplete: bool,
}

impl Image {
    /// The section that `address` lies in.
    pub fn section(&self, memory: &Memory, address: Addr) -> Option<Section> {
        let list = match self.format {
            ImageFormat::Elf => elf_image::sections(self, memory),
            ImageFormat::Pe => pe_image::sections(self, memory),
        };
        list.into_iter().find(|s| s.range.contains(address))
    }

    /// The last export at or below `address`, in `within` where there is one, else anywhere in the image.
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

/// Bytes of an export's name that are read. C++ names can be long.
const MAX_NAME: u64 = 4096;

/// Looks for the nearest of the exports that it is told.
pub(super) struct Nearest {
    image: AddrRange,
    address: Addr,
    within: Option<AddrRange>,
    /// The nearest in the same section, and in the image: its address, and that of its name.
    same: Option<(Addr, Addr)>,
    any: Option<(Addr, Addr)>,
}

impl Nearest {
    /// Takes an export into account; of several at one address, the first counts.
    pub(super) fn meet(&mut self, at: Addr, name: Addr) {
        if at > self.address || !self.image.contains(at) {
            return;
        }
        let nearer = |best: &Option<(Addr, Addr)>| best.is_none_or(|(b, _)| at > b);
        if nearer(&self.any) {
            self.any = Some((at, name));
        }
        if self.within.is_some_and(|w| w.contains(at)) && nearer(&self.same) {
            self.same = Some((at, name));
        }
    }
}
