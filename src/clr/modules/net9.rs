//! Saved metadata of dynamic modules in .NET 9 and later.
//!
//! Source: contract `EcmaMetadata`.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{Bound, DynamicMetadata, Module, bind};
use crate::memory::Memory;

#[derive(Clone, Debug)]
pub(super) struct Net9 {
    module: Bound<Module>,
    blob: Bound<DynamicMetadata>,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net9> {
        let blob = bind!(d, DynamicMetadata { Size, Data }).ok()?;
        Some(Net9 { module: bind!(d, Module { DynamicMetadata }).ok()?, blob })
    }

    /// Address and size of the saved metadata of a module.
    pub(super) fn blob(&self, memory: &Memory, module: Addr) -> Option<(Addr, u32)> {
        let blob = self.module.pointer(memory, module, Module::DynamicMetadata)?;
        let data = self.blob.place(blob, DynamicMetadata::Data)?;
        Some((data, self.blob.get(memory, blob, DynamicMetadata::Size)?))
    }
}
