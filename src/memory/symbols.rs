//! The parts of an image around an address: its section, and the nearest export.

use crate::base::{Addr, AddrRange};

/// A part of an image, as its headers divide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name in the section table (PE). The section table of an ELF image is not loaded, so the name is the permissions of the segment, such
    /// as `rw-`, or `bss` for the part that is not in the file.
    pub name: String,
    /// The addresses of the section.
    pub range: AddrRange,
}

/// The exports of an image around an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearestExport {
    /// The last export at or below the address: name and address.
    pub export: Option<(String, Addr)>,
    /// Whether a part of the export table is not in the dump, so that another export may be nearer.
    pub incomplete: bool,
}

/// Finds the nearest of the exports passed to it.
pub(super) struct Nearest {
    pub(super) image: AddrRange,
    pub(super) address: Addr,
    pub(super) within: Option<AddrRange>,
    /// The nearest export in the same section, and in the image: its address, and the address of its name.
    pub(super) same: Option<(Addr, Addr)>,
    pub(super) any: Option<(Addr, Addr)>,
}

impl Nearest {
    /// Considers an export. The first of several exports at one address wins.
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
