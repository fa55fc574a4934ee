//! Method tables of .NET 8: 16-bit TypeDef row, 16-bit flags, and optional pointers, some of them after the vtable.
//!
//! Source: `methodtable.h` of .NET 8; `docs/internals/types.md#net-8-method-tables`.

use super::info::MethodTableInfo;
use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, HAS_COMPONENT_SIZE, MethodTable, Structure, bind};
use crate::memory::{Memory, ReadError};
use crate::model::Generics;

/// Bit of `MTFlags`: a generic type with static fields.
pub(super) const GENERIC_STATICS: u32 = 0x4;
// Bits of the 16-bit flags2, one for each optional pointer.
const SLOTS: u16 = 0x1f;
const SLOT_INTERFACE_MAP: u16 = 0x2;
const SLOT_MODULE_OVERRIDE: u16 = 0x10;
/// Number of virtual methods in a chunk of the vtable (`VTABLE_SLOTS_PER_CHUNK`).
const VTABLE_CHUNK: u64 = 8;
/// Value of the TypeDef row if it does not fit in 16 bits.
const RID_OVERFLOW: u16 = 0xffff;

/// Offsets specific to .NET 8.
#[derive(Clone, Debug)]
pub(super) struct Net8 {
    table: Bound<MethodTable>,
    /// Size of the fixed part of a method table in bytes.
    fixed: u64,
}

impl Net8 {
    /// Whether a descriptor is for .NET 8, the only release with 16-bit rows.
    pub(super) fn fits(d: &Descriptor) -> bool {
        MethodTable::TypeDefRidShort.is_in(d)
    }

    pub(super) fn bind(d: &Descriptor) -> Result<Net8, ContractError> {
        let table = bind!(d, MethodTable { TypeDefRidShort, Flags2Short, NumVirtuals, LoaderModule, PerInstInfo, InterfaceMap })?;
        Ok(Net8 { table, fixed: MethodTable::size(d)? })
    }

    /// The module that defines a type. `canonical` returns the canonical method table.
    pub(super) fn module(
        &self,
        memory: &Memory,
        info: &MethodTableInfo,
        canonical: impl FnOnce() -> Result<Addr, ReadError>,
    ) -> Result<Addr, ReadError> {
        // The loader module is the defining module, except for instances over collectible types.
        if info.generics == Generics::None {
            return self.table.read(memory, info.address, MethodTable::LoaderModule);
        }
        let canonical = canonical()?;
        let flags2 = self.table.read(memory, canonical, MethodTable::Flags2Short)?;
        if flags2 & SLOT_MODULE_OVERRIDE == 0 {
            return self.table.read(memory, canonical, MethodTable::LoaderModule);
        }
        memory.ptr(self.slot(memory, canonical, flags2, SLOT_MODULE_OVERRIDE)?)
    }

    pub(super) fn rid(&self, memory: &Memory, info: &MethodTableInfo) -> Result<u32, ReadError> {
        let short = self.table.read(memory, info.address, MethodTable::TypeDefRidShort)?;
        if short != RID_OVERFLOW {
            return Ok(u32::from(short));
        }
        let optional = self.after_slots(memory, info.address)?;
        let at = if has_statics(info) { optional.element(2, memory.ptr_bytes()) } else { optional };
        // Rows have 24 bits; higher values match no row.
        Ok(u32::try_from(memory.word(at)?).unwrap_or(u32::MAX))
    }

    /// The copy of the FieldDescs of a generic instance with statics, and its index in the tables of dynamic statics.
    pub(super) fn generic_statics(&self, memory: &Memory, info: &MethodTableInfo) -> Option<(Addr, u64)> {
        has_statics(info).then_some(())?;
        let at = self.after_slots(memory, info.address).ok()?;
        Some((memory.ptr(at).ok()?, memory.word(at.plus(memory.ptr_bytes())).ok()?))
    }

    /// Address of the pointer to the loader module.
    pub(super) fn loader_module(&self, mt: Addr) -> Option<Addr> {
        self.table.place(mt, MethodTable::LoaderModule)
    }

    /// End of the pointers to the chunks of the vtable.
    fn after_vtable(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        let chunks = u64::from(self.table.read(memory, mt, MethodTable::NumVirtuals)?).div_ceil(VTABLE_CHUNK);
        Ok(mt.plus(self.fixed).element(chunks, memory.ptr_bytes()))
    }

    /// End of the optional pointers, two of which are in the fixed part.
    fn after_slots(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        let slots = u64::from((self.table.read(memory, mt, MethodTable::Flags2Short)? & SLOTS).count_ones());
        Ok(self.after_vtable(memory, mt)?.element(slots.saturating_sub(2), memory.ptr_bytes()))
    }

    /// Address of the optional pointer `bit`. The first two are in the fixed part, the others after the vtable.
    fn slot(&self, memory: &Memory, mt: Addr, flags2: u16, bit: u16) -> Result<Addr, ReadError> {
        let before = flags2 & SLOTS & bit.saturating_sub(1);
        match before.count_ones() {
            0 => self.table.at(mt, MethodTable::PerInstInfo),
            // The interface map always has the second slot, so the next pointer has the first.
            1 if before == SLOT_INTERFACE_MAP => self.table.at(mt, MethodTable::PerInstInfo),
            1 => self.table.at(mt, MethodTable::InterfaceMap),
            n => Ok(self.after_vtable(memory, mt)?.element(u64::from(n).saturating_sub(2), memory.ptr_bytes())),
        }
    }
}

/// Whether the type is a generic instance with statics. For arrays, the low bits of the flags are the component size.
fn has_statics(info: &MethodTableInfo) -> bool {
    info.flags & HAS_COMPONENT_SIZE == 0 && info.flags & GENERIC_STATICS != 0
}
