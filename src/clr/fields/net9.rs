//! Field counts of .NET 9 and later: 16 bits each in the EEClass.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{Bound, EEClass, bind};
use crate::memory::Memory;

#[derive(Clone, Debug)]
pub(super) struct Net9 {
    class: Bound<EEClass>,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net9> {
        Some(Net9 { class: bind!(d, EEClass { NumInstanceFields, NumStaticFields? }).ok()? })
    }

    /// Number of instance and static fields of the EEClass at `class`.
    pub(super) fn counts(&self, memory: &Memory, class: Addr) -> Option<(u32, u32)> {
        let read = |field| self.class.get(memory, class, field).map(u32::from);
        Some((read(EEClass::NumInstanceFields)?, read(EEClass::NumStaticFields).unwrap_or(0)))
    }
}
