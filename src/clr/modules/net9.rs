//! Saved metadata of emitted modules in .NET 9 and later.
//!
//! Source: contract `EcmaMetadata`.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::memory::Memory;

layout! {
    struct ModuleLayout : "Module" {
        // Null for modules with an image.
        metadata: req "DynamicMetadata",
    }
}

layout! {
    struct BlobLayout : "DynamicMetadata" {
        size: req "Size",
        data: req "Data",
    }
}

#[derive(Clone, Debug)]
pub(super) struct Net9 {
    module: ModuleLayout,
    blob: BlobLayout,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net9> {
        Some(Net9 { module: ModuleLayout::bind(d).ok()?, blob: BlobLayout::bind(d).ok()? })
    }

    /// Address and size of the saved metadata of a module.
    pub(super) fn blob(&self, memory: &Memory, module: Addr) -> Option<(Addr, u32)> {
        let blob = memory.ptr(module.plus(self.module.metadata)).ok().filter(|b| !b.is_null())?;
        Some((blob.plus(self.blob.data), memory.u32(blob.plus(self.blob.size)).ok()?))
    }
}
