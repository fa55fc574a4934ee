//! Field counts of .NET 8, which follow the fixed part of the EEClass and may be packed.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{Bound, EEClass, EEClassPacked, bind};
use crate::memory::Memory;

#[derive(Clone, Debug)]
pub(super) struct Net8 {
    class: Bound<EEClass>,
    counts: Bound<EEClassPacked>,
}

impl Net8 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net8> {
        let class = bind!(d, EEClass { FixedSize, FieldsArePacked? }).ok()?;
        Some(Net8 { class, counts: bind!(d, EEClassPacked { NumInstanceFields, NumStaticFields }).ok()? })
    }

    /// Number of instance and static fields of the EEClass at `class`.
    pub(super) fn counts(&self, memory: &Memory, class: Addr) -> Option<(u32, u32)> {
        // Packed counts have variable width. None of the 738 classes seen was packed.
        if self.class.get(memory, class, EEClass::FieldsArePacked).is_some_and(|packed| packed != 0) {
            return None;
        }
        let fixed = u64::from(self.class.get(memory, class, EEClass::FixedSize)?);
        let read = |field| self.counts.get(memory, class.plus(fixed), field);
        Some((read(EEClassPacked::NumInstanceFields)?, read(EEClassPacked::NumStaticFields)?))
    }
}
