//! Bundled copies of descriptors whose JSON is not in the dump.

use super::Opener;
use crate::base::Addr;
use crate::contract::header::Header;
use crate::contract::overlay::{self, Overlay};
use crate::dump::Module;
use crate::memory::{Image, hex};

impl<'a> Opener<'a> {
    /// The module whose data contains `address`. In the list of modules, a module ends at its last file-backed page, so `address` may be after its
    /// end.
    pub(super) fn module_around(&self, address: Addr) -> Option<&'a Module> {
        self.dump.modules.iter().filter(|m| m.base <= address).max_by_key(|m| m.base)
    }

    /// The bundled copy of the descriptor at `header`, if it has the same size and is for the build ID of the module. Otherwise the only copy that
    /// has this size and is for a module of this name. The checks must confirm such a copy.
    pub(super) fn copy_of(&self, header: &Header) -> Option<&'static Overlay> {
        let module = self.module_around(header.address)?;
        let has_size = |o: &&Overlay| o.section.descriptor.is_some_and(|r| (r.json_bytes, r.slots) == (header.json_bytes, header.slots));
        let candidates: Vec<_> = overlay::texts(self.dump.facts.os, self.dump.facts.arch).filter(has_size).collect();
        let build_id = Image::at(self.memory, module.base).and_then(|image| image.build_id).map(|id| hex(&id));
        if let Some(proven) = candidates.iter().find(|o| build_id.as_ref().is_some_and(|id| o.section.build_ids.contains_key(id))) {
            return Some(proven);
        }
        let is_named = |o: &&&Overlay| o.section.module.as_ref().is_some_and(|name| module.file_name().eq_ignore_ascii_case(name));
        let mut named = candidates.iter().filter(is_named);
        named.next().filter(|_| named.next().is_none()).copied()
    }
}
