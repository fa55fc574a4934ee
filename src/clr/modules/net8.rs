//! Saved metadata of dynamic modules in .NET 8. It is in `ReflectionModule`, a class derived from `Module`.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{Bound, Module, ReflectionDynamicMetadata, bind};
use crate::memory::Memory;

#[derive(Clone, Debug)]
pub(super) struct Net8 {
    module: Bound<Module>,
    blob: Bound<ReflectionDynamicMetadata>,
}

impl Net8 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net8> {
        let blob = bind!(d, ReflectionDynamicMetadata { Size, Buffer }).ok()?;
        Some(Net8 { module: bind!(d, Module { ReflectionDynamicMetadata }).ok()?, blob })
    }

    /// Address and size of the metadata of a module without an image.
    pub(super) fn blob(&self, memory: &Memory, module: Addr) -> Option<(Addr, u32)> {
        let blob = self.module.pointer(memory, module, Module::ReflectionDynamicMetadata)?;
        let buffer = self.blob.pointer(memory, blob, ReflectionDynamicMetadata::Buffer)?;
        Some((buffer, self.blob.get(memory, blob, ReflectionDynamicMetadata::Size)?))
    }
}
