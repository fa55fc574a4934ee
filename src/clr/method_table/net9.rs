//! Method tables of .NET 9 and later: the TypeDef row is in the 32-bit flags, and other data is in the auxiliary data.
//!
//! Source: contract `RuntimeTypeSystem`.

use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, MethodTable, MethodTableAuxiliaryData, Offset, bind};
use crate::memory::{Memory, ReadError};

/// Bit of flags2: statics precede the auxiliary data (`enum_flag_HasDynamicStatics`).
const DYNAMIC_STATICS: u32 = 0x2;

/// Offsets specific to .NET 9 and later.
#[derive(Clone, Debug)]
pub(super) struct Net9 {
    table: Bound<MethodTable>,
    loader_module: Option<Offset<MethodTableAuxiliaryData, Addr>>,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Result<Net9, ContractError> {
        let table = bind!(d, MethodTable { MTFlags2, Module, AuxiliaryData? })?;
        Ok(Net9 { table, loader_module: MethodTableAuxiliaryData::LoaderModule.bind(d).ok() })
    }

    pub(super) fn module(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        self.table.read(memory, mt, MethodTable::Module)
    }

    pub(super) fn rid(&self, memory: &Memory, mt: Addr) -> Result<u32, ReadError> {
        Ok(self.table.read(memory, mt, MethodTable::MTFlags2)? >> 8)
    }

    /// The auxiliary data of a type with statics. The structures of the statics precede it.
    pub(super) fn statics_end(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        let flags2 = self.table.get(memory, mt, MethodTable::MTFlags2)?;
        (flags2 & DYNAMIC_STATICS != 0).then(|| self.auxiliary(memory, mt))?
    }

    /// Address of the pointer to the loader module.
    pub(super) fn loader_module(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        Some(self.loader_module?.place(self.auxiliary(memory, mt)?))
    }

    fn auxiliary(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        self.table.pointer(memory, mt, MethodTable::AuxiliaryData)
    }
}
