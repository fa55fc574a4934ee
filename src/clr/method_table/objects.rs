//! Sizes and offsets in objects, which differ between Mono and the other runtimes. Readers of objects see no other difference.

use super::{Flavor, MethodTableInfo, MethodTables};
use crate::base::Addr;
use crate::clr::gcdesc::GcDesc;

impl MethodTables {
    /// Whether each object on 64-bit targets has half a word of padding in front of it.
    pub(crate) fn has_padding(&self) -> bool {
        self.mono().is_none()
    }

    /// Minimum bytes of an object: the word in front of it, method table, one field; in Mono, vtable and synchronization word.
    ///
    /// Source: `MIN_OBJECT_SIZE` in `src/coreclr/gc/gcpriv.h`.
    pub(crate) fn smallest(&self) -> u64 {
        self.mono().map_or_else(|| self.memory.ptr_bytes().saturating_mul(3), |m| m.header())
    }

    /// Offset of the length in arrays or strings of this type.
    pub(crate) fn length_at(&self, info: &MethodTableInfo) -> u64 {
        self.mono().map_or_else(|| self.memory.ptr_bytes(), |m| m.length_at(info))
    }

    /// Offset of the first element of an array of this type.
    pub(crate) fn elements_at(&self, info: &MethodTableInfo) -> Option<u64> {
        match self.mono() {
            Some(m) => Some(m.elements()),
            // The base size covers the word in front of the object and everything up to the first element.
            None => u64::from(info.base_size).checked_sub(self.memory.ptr_bytes()),
        }
    }

    /// Offset of the value in a box.
    pub(crate) fn boxed_at(&self) -> u64 {
        self.mono().map_or_else(|| self.memory.ptr_bytes(), |m| m.header())
    }

    /// Offset of the end of the fields. Field offsets of a structure include one word in front of the value.
    pub(crate) fn fields_end(&self, info: &MethodTableInfo) -> u64 {
        let size = u64::from(info.base_size);
        let is_object = info.category != super::Category::ValueType;
        if self.mono().is_some() && is_object { size } else { size.saturating_sub(self.memory.ptr_bytes()) }
    }

    /// The lengths and lower bounds of the array at `array`; `None` for runtimes that store them in the array itself, after its fixed part.
    pub(crate) fn bounds(&self, info: &MethodTableInfo, array: Addr) -> Option<Vec<(u32, i32)>> {
        self.mono()?.bounds(&self.memory, info, array)
    }

    /// Offsets of the references in objects of this type; `Unknown` if the offsets have more runs than `afford` allows.
    pub(crate) fn gc_desc(&self, info: &MethodTableInfo, afford: impl FnOnce(u64) -> bool) -> GcDesc {
        match &self.flavor {
            Flavor::Mono(m) => m.gc_desc(&self.memory, info, afford),
            Flavor::CoreClr(_) | Flavor::NativeAot(_) => GcDesc::of(&self.memory, info, afford),
        }
    }

    /// Number of dimensions of an array of Mono; `None` for other runtimes, whose method tables do not have this number.
    pub(crate) fn rank(&self, info: &MethodTableInfo) -> Option<u8> {
        self.mono()?.rank(&self.memory, info)
    }
}
