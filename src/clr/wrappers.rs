//! Wrappers that represent managed objects in native code. Their reference counts decide whether a ref-counted handle keeps its
//! object alive.
//!
//! Source: contracts `ComWrappers` and `BuiltInCOM`; `interoplibabi.h`, `comcallablewrapper.h`. `ManagedObjectWrapperLayout` was
//! verified on the objects that the lab's program passed to `GetOrCreateComInterfaceForObject` on .NET 10.

use std::sync::Arc;

use super::fields::Types;
use super::header::Headers;
use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{Contract, Descriptor};
use crate::memory::Memory;

/// The managed half of a wrapper since .NET 10: the object of its ref-counted handle.
const HOLDER: &str = "System.Runtime.InteropServices.ComWrappers+ManagedObjectWrapperHolder";
/// References of COM clients, in the lower half of the count. The bit above them marks a wrapper that is being destroyed.
const COM_COUNT: u64 = 0x7fff_ffff;
/// References of a reference tracker, in the upper half.
const TRACKER_SHIFT: u32 = 32;
/// `SimpleComCallWrapper`: the handle is weak whatever the count.
const IS_HANDLE_WEAK: u32 = 0x4;

layout! {
    struct ManagedLayout : "ManagedObjectWrapperLayout" {
        count: req "RefCount",
    }
}

layout! {
    struct BlockLayout : "SyncBlock" {
        interop: req "InteropInfo",
    }
}

layout! {
    struct InteropLayout : "InteropSyncBlockInfo" {
        wrapper: req "CCW",
    }
}

layout! {
    struct WrapperLayout : "ComCallWrapper" {
        simple: req "SimpleWrapper",
    }
}

layout! {
    struct SimpleLayout : "SimpleComCallWrapper" {
        count: req "RefCount",
        flags: req "Flags",
    }
}

/// Layouts of built-in COM.
#[derive(Debug)]
struct BuiltIn {
    block: BlockLayout,
    interop: InteropLayout,
    wrapper: WrapperLayout,
    simple: SimpleLayout,
}

impl BuiltIn {
    fn bind(d: &Descriptor) -> Option<BuiltIn> {
        Some(BuiltIn {
            block: BlockLayout::bind(d).ok()?,
            interop: InteropLayout::bind(d).ok()?,
            wrapper: WrapperLayout::bind(d).ok()?,
            simple: SimpleLayout::bind(d).ok()?,
        })
    }
}

/// The reference count of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefCount {
    /// References of COM clients.
    pub count: u64,
    /// Whether it keeps the object alive; `None` where a reference tracker decides.
    pub strong: Option<bool>,
}

impl RefCount {
    /// A count of ComWrappers: tracker references count while the tracker pegs the wrapper, which the count does not tell.
    fn of_com_wrappers(raw: u64) -> RefCount {
        let count = raw & COM_COUNT;
        RefCount { count, strong: if count == 0 && raw >> TRACKER_SHIFT != 0 { None } else { Some(count > 0) } }
    }

    /// A count of built-in COM.
    fn of_built_in(raw: u64, flags: u32) -> RefCount {
        let count = raw & COM_COUNT;
        RefCount { count, strong: Some(count > 0 && flags & IS_HANDLE_WEAK == 0) }
    }
}

/// Reads the reference counts behind ref-counted handles, where the runtime describes them: ComWrappers since .NET 10, built-in COM
/// since .NET 11.
#[derive(Debug)]
pub struct Wrappers {
    memory: Arc<Memory>,
    managed: Option<ManagedLayout>,
    built_in: Option<(BuiltIn, Headers)>,
}

impl Wrappers {
    /// The contract of ComWrappers; .NET 11 is the first to advertise it.
    pub const COM_WRAPPERS: Contract = Contract::optional("ComWrappers", &["1"]);
    /// The contract of built-in COM, on Windows.
    pub const BUILT_IN_COM: Contract = Contract::optional("BuiltInCOM", &["1"]);

    /// Binds to a runtime; what it does not describe has no counts.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, headers: Option<Headers>) -> Wrappers {
        let managed = || ManagedLayout::bind(d).ok().filter(|_| Self::COM_WRAPPERS.permit(d).is_ok());
        let built_in = || BuiltIn::bind(d).filter(|_| Self::BUILT_IN_COM.permit(d).is_ok());
        Wrappers { memory: Arc::clone(memory), managed: managed(), built_in: built_in().zip(headers) }
    }

    /// The count that decides about a ref-counted handle to the object at `object`, whose type is at `mt`. `None` where it is not
    /// described, or not in the dump.
    pub fn ref_count(&self, object: Addr, mt: Addr, types: &Types) -> Option<RefCount> {
        self.managed(object, mt, types).or_else(|| self.built_in(object))
    }

    fn managed(&self, object: Addr, mt: Addr, types: &Types) -> Option<RefCount> {
        let layout = self.managed.as_ref()?;
        let names = types.names();
        (names.name(mt).name == HOLDER).then_some(())?;
        let wrapper = self.memory.ptr(object.plus(types.own_offset(mt, "_wrapper")?)).ok().filter(|a| !a.is_null())?;
        Some(RefCount::of_com_wrappers(self.memory.u64(wrapper.plus(layout.count)).ok()?))
    }

    fn built_in(&self, object: Addr) -> Option<RefCount> {
        let (l, headers) = self.built_in.as_ref()?;
        // A wrapper that is gone leaves an odd word behind.
        let valid = |a: &Addr| !a.is_null() && a.is_aligned(self.memory.ptr_bytes());
        let follow = |from: Addr, offset: u64| self.memory.ptr(from.plus(offset)).ok().filter(valid);
        let block = headers.read(object)?.sync_block?.address?;
        let wrapper = follow(follow(block, l.block.interop)?, l.interop.wrapper)?;
        let simple = follow(wrapper, l.wrapper.simple)?;
        let (count, flags) = (self.memory.u64(simple.plus(l.simple.count)).ok()?, self.memory.u32(simple.plus(l.simple.flags)).ok()?);
        Some(RefCount::of_built_in(count, flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_hold_and_trackers_leave_it_open() {
        let com_wrappers = |raw| RefCount::of_com_wrappers(raw);
        assert_eq!(com_wrappers(1), RefCount { count: 1, strong: Some(true) });
        assert_eq!(com_wrappers(0x3_0000_0002), RefCount { count: 2, strong: Some(true) });
        assert_eq!(com_wrappers(0x1_0000_0000), RefCount { count: 0, strong: None });
        // Released by all: the sentinel is no reference.
        assert_eq!(com_wrappers(0x8000_0000), RefCount { count: 0, strong: Some(false) });
    }

    #[test]
    fn a_weak_handle_of_built_in_com_holds_nothing() {
        assert_eq!(RefCount::of_built_in(3, 0), RefCount { count: 3, strong: Some(true) });
        assert_eq!(RefCount::of_built_in(3, IS_HANDLE_WEAK | 1), RefCount { count: 3, strong: Some(false) });
        assert_eq!(RefCount::of_built_in(0x8000_0000, 0), RefCount { count: 0, strong: Some(false) });
    }
}
