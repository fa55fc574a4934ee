//! Thunks of async methods (.NET 11). An async method has two methods in the runtime, with the same metadata row. One method has the IL of
//! the row. The other method is a thunk, whose code the runtime generates.
//!
//! Source: `method.hpp`, `AsyncMethodData`; the measurement of the bits is in `docs/internals/stacks.md#arguments`.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{AsyncMethodData, Bound, InstantiatedMethodDesc, MethodDesc, MethodImpl, NativeCodeSlot, NonVtableSlot, Structure, bind};
use crate::memory::Memory;

/// Kinds of methods with IL, in the lowest bits of their flags.
const KIND: u16 = 0x7;
const KIND_IL: u16 = 0;
const KIND_INSTANTIATED: u16 = 5;
/// Flags for the optional slots before the data of an async method, and the flag for this data.
const NON_VTABLE_SLOT: u16 = 0x8;
const METHOD_IMPL: u16 = 0x10;
const NATIVE_CODE_SLOT: u16 = 0x20;
const ASYNC_DATA: u16 = 0x40;
/// Flag of a thunk, whose generated code calls the other method.
const THUNK: u32 = 0x10;

/// Recognizes methods whose IL is not the IL in their metadata row.
#[derive(Clone, Debug)]
pub(crate) struct Thunks {
    memory: Arc<Memory>,
    /// Layouts of methods; `None` up to .NET 10.
    layouts: Option<Layouts>,
}

#[derive(Clone, Debug)]
struct Layouts {
    desc: Bound<MethodDesc>,
    data: Bound<AsyncMethodData>,
    /// Sizes in bytes of ordinary methods, generic instances, and the optional slots that follow.
    il: u64,
    instantiated: u64,
    slots: [(u16, u64); 3],
}

impl Thunks {
    /// Binds to a runtime.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Thunks {
        let layouts = || {
            let (desc, data) = (bind!(d, MethodDesc { Flags }).ok()?, bind!(d, AsyncMethodData { Flags }).ok()?);
            let (slot, method, code) = (NonVtableSlot::size(d).ok()?, MethodImpl::size(d).ok()?, NativeCodeSlot::size(d).ok()?);
            let slots = [(NON_VTABLE_SLOT, slot), (METHOD_IMPL, method), (NATIVE_CODE_SLOT, code)];
            Some(Layouts { desc, data, il: MethodDesc::size(d).ok()?, instantiated: InstantiatedMethodDesc::size(d).ok()?, slots })
        };
        Thunks { memory: Arc::clone(memory), layouts: layouts() }
    }

    /// Whether the method at `desc` is a thunk; also true if the dump does not show this.
    pub(crate) fn is_thunk(&self, desc: Addr) -> bool {
        self.layouts.as_ref().is_some_and(|l| self.has_own_il(l, desc) != Some(true))
    }

    fn has_own_il(&self, l: &Layouts, desc: Addr) -> Option<bool> {
        let flags = l.desc.get(&self.memory, desc, MethodDesc::Flags)?;
        if flags & ASYNC_DATA == 0 {
            return Some(true);
        }
        let base = match flags & KIND {
            KIND_IL => l.il,
            KIND_INSTANTIATED => l.instantiated,
            _ => return None,
        };
        let before = l.slots.iter().filter(|(flag, _)| flags & flag != 0).fold(base, |n, (_, bytes)| n.saturating_add(*bytes));
        l.data.get(&self.memory, desc.plus(before), AsyncMethodData::Flags).map(|flags| flags & THUNK == 0)
    }
}
