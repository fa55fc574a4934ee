//! Method tables of .NET 9 and later: TypeDef row in 32-bit flags, everything else in the auxiliary data.
//!
//! Source: contract `RuntimeTypeSystem`.

use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};
use crate::memory::{Memory, ReadError};

/// In flags2: statics precede the auxiliary data (`enum_flag_HasDynamicStatics`).
const DYNAMIC_STATICS: u32 = 0x2;

layout! {
    struct Layout : "MethodTable" {
        flags2: req "MTFlags2",
        module: req "Module",
        auxiliary: opt "AuxiliaryData",
    }
}

/// Parts specific to .NET 9 and later.
#[derive(Clone, Debug)]
pub(super) struct Net9 {
    layout: Layout,
    /// Offset of the loader module in the auxiliary data.
    loader_module: Option<u64>,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Result<Net9, ContractError> {
        Ok(Net9 { layout: Layout::bind(d)?, loader_module: d.offset("MethodTableAuxiliaryData", "LoaderModule").ok() })
    }

    pub(super) fn module(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        memory.ptr(mt.plus(self.layout.module))
    }

    pub(super) fn rid(&self, memory: &Memory, mt: Addr) -> Result<u32, ReadError> {
        Ok(memory.u32(mt.plus(self.layout.flags2))? >> 8)
    }

    /// The auxiliary data of a type with statics, preceded by the structures of the statics.
    pub(super) fn statics_end(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        let flags2 = memory.u32(mt.plus(self.layout.flags2)).ok()?;
        (flags2 & DYNAMIC_STATICS != 0).then(|| self.auxiliary(memory, mt))?
    }

    /// Address of the loader module pointer.
    pub(super) fn loader_module(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        Some(self.auxiliary(memory, mt)?.plus(self.loader_module?))
    }

    fn auxiliary(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        memory.ptr(mt.plus(self.layout.auxiliary?)).ok().filter(|a| !a.is_null())
    }
}
