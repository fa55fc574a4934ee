//! Saved metadata of emitted modules in .NET 8: in `ReflectionModule`, a class derived from `Module`.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::memory::Memory;

layout! {
    struct ModuleLayout : "Module" {
        metadata: req "ReflectionDynamicMetadata",
    }
}

layout! {
    struct BlobLayout : "ReflectionDynamicMetadata" {
        size: req "Size",
        buffer: req "Buffer",
    }
}

#[derive(Clone, Debug)]
pub(super) struct Net8 {
    module: ModuleLayout,
    blob: BlobLayout,
}

impl Net8 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net8> {
        Some(Net8 { module: ModuleLayout::bind(d).ok()?, blob: BlobLayout::bind(d).ok()? })
    }

    /// Address and size of the metadata of a module without an image.
    pub(super) fn blob(&self, memory: &Memory, module: Addr) -> Option<(Addr, u32)> {
        let blob = memory.ptr(module.plus(self.module.metadata)).ok().filter(|b| !b.is_null())?;
        let buffer = memory.ptr(blob.plus(self.blob.buffer)).ok().filter(|b| !b.is_null())?;
        Some((buffer, memory.u32(blob.plus(self.blob.size)).ok()?))
    }
}
