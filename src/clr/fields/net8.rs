//! Field counts of .NET 8: after the fixed part of the EEClass, packed or not.

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::memory::Memory;

layout! {
    struct ClassLayout : "EEClass" {
        fixed_size: req "FixedSize",
        packed: opt "FieldsArePacked",
    }
}

layout! {
    struct CountsLayout : "EEClassPacked" {
        instance: req "NumInstanceFields",
        statics: req "NumStaticFields",
    }
}

#[derive(Clone, Debug)]
pub(super) struct Net8 {
    class: ClassLayout,
    counts: CountsLayout,
}

impl Net8 {
    pub(super) fn bind(d: &Descriptor) -> Option<Net8> {
        Some(Net8 { class: ClassLayout::bind(d).ok()?, counts: CountsLayout::bind(d).ok()? })
    }

    /// Number of instance and static fields of the EEClass at `class`.
    pub(super) fn counts(&self, memory: &Memory, class: Addr) -> Option<(u32, u32)> {
        // Packed counts have variable width; none of 738 classes seen was packed.
        if self.class.packed.is_some_and(|at| memory.u8(class.plus(at)).is_ok_and(|p| p != 0)) {
            return None;
        }
        let fixed = u64::from(memory.u8(class.plus(self.class.fixed_size)).ok()?);
        let read = |at: u64| memory.u32(class.plus(fixed).plus(at)).ok();
        Some((read(self.counts.instance)?, read(self.counts.statics)?))
    }
}
