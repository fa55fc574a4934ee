//! Field counts of .NET 9 and later: 16 bits each in the EEClass.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::memory::Memory;

layout! {
    struct ClassLayout : "EEClass" {
        instance: req "NumInstanceFields",
        statics: opt "NumStaticFields",
    }
}

#[derive(Clone, Debug)]
pub(super) struct Net9 {
    class: ClassLayout,
}

impl Net9 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net9> {
        Some(Net9 { class: ClassLayout::bind(d).ok()? })
    }

    /// Number of instance and static fields of the EEClass at `class`.
    pub(super) fn counts(&self, memory: &Memory, class: Addr) -> Option<(u32, u32)> {
        let read = |at: u64| memory.u16(class.plus(at)).ok().map(u32::from);
        Some((read(self.class.instance)?, self.class.statics.and_then(read).unwrap_or(0)))
    }
}
