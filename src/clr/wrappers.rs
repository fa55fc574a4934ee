//! Wrappers that represent managed objects in native code. Their reference counts decide whether a ref-counted handle keeps its object
//! alive.
//!
//! Source: contracts `ComWrappers` and `BuiltInCOM`; `interoplibabi.h`, `comcallablewrapper.h`, `interoplibinterface_comwrappers.cpp`.
//! `ManagedObjectWrapperLayout` and the path to it were verified on the objects that the lab's program passed to
//! `GetOrCreateComInterfaceForObject` on .NET 8, 9 and 10 (`docs/internals/gc-structures.md#handles`).

use std::sync::Arc;

use super::fields::Types;
use super::header::Headers;
use crate::base::hash::Map;
use crate::base::{Addr, Disjoint};
use crate::contract::{Contract, Descriptor};
use crate::data::{
    Bound, ComCallWrapper, InteropSyncBlockInfo, ManagedObjectComWrapperMapEntry, ManagedObjectWrapperLayout, SHash, SimpleComCallWrapper,
    Structure, SyncBlock, bind,
};
use crate::memory::Memory;

/// The managed part of a wrapper since .NET 10, which is the object of its ref-counted handle.
const HOLDER: &str = "System.Runtime.InteropServices.ComWrappers+ManagedObjectWrapperHolder";
/// Mask of the COM references, in the lower half of the count. The next higher bit marks a wrapper that is being destroyed.
const COM_COUNT: u64 = 0x7fff_ffff;
/// Shift of the references by a reference tracker, in the upper half of the count.
const TRACKER_SHIFT: u32 = 32;
/// Flag of `SimpleComCallWrapper`: the handle is weak even if there are references.
const IS_HANDLE_WEAK: u32 = 0x4;
/// Maximum number of slots of an object's table of wrappers, which has an entry for each `ComWrappers` instance that wrapped the object.
const MAX_SLOTS: u32 = 4096;

/// Layouts of built-in COM wrappers.
#[derive(Debug)]
struct BuiltIn {
    wrapper: Bound<ComCallWrapper>,
    simple: Bound<SimpleComCallWrapper>,
}

/// Layouts of the wrappers listed in an object's sync block: .NET 8 and 9.
#[derive(Debug)]
struct Listed {
    map: Bound<SHash>,
    entry: Bound<ManagedObjectComWrapperMapEntry>,
    entry_bytes: u64,
    /// Mask that yields the start of a block from the address of an interface in the block. The first word of the block is the address of the
    /// wrapper.
    mask: u64,
}

impl Listed {
    fn bind(d: &Descriptor, managed: &Bound<ManagedObjectWrapperLayout>) -> Option<Listed> {
        let entry = bind!(d, ManagedObjectComWrapperMapEntry { Value }).ok()?;
        Some(Listed {
            map: bind!(d, SHash { Table, TableSize }).ok()?,
            entry,
            entry_bytes: ManagedObjectComWrapperMapEntry::size(d).ok()?,
            mask: d.number("DispatchThisPtrMask").ok()?,
        })
        .filter(|_| managed.has(ManagedObjectWrapperLayout::Target))
    }
}

/// The reference count of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefCount {
    /// Number of COM references.
    pub count: u64,
    /// Whether a wrapper keeps the object alive. `None` if a reference tracker decides, or if a wrapper of the object cannot be read.
    pub strong: Option<bool>,
}

impl RefCount {
    /// Decodes a count of ComWrappers. References by a tracker keep the object alive only while the tracker pegs the wrapper. The count does
    /// not show whether the tracker does.
    fn of_com_wrappers(raw: u64) -> RefCount {
        let count = raw & COM_COUNT;
        RefCount { count, strong: if count == 0 && raw >> TRACKER_SHIFT != 0 { None } else { Some(count > 0) } }
    }

    /// Decodes a count of built-in COM.
    fn of_built_in(raw: u64, flags: u32) -> RefCount {
        let count = raw & COM_COUNT;
        RefCount { count, strong: Some(count > 0 && flags & IS_HANDLE_WEAK == 0) }
    }

    /// The count of the wrapper of `handle`. `wrappers` are all wrappers of the object, each with its handle, because any referenced wrapper
    /// keeps the object alive (`IsManagedObjectComWrapper`). `has_com` indicates a built-in COM wrapper with an unknown count.
    fn among(wrappers: &[Option<(Addr, RefCount)>], handle: Addr, has_com: bool) -> Option<RefCount> {
        let own = wrappers.iter().flatten().find(|(target, _)| *target == handle)?.1;
        let strong = |wrapper: &Option<(Addr, RefCount)>| wrapper.and_then(|(_, count)| count.strong);
        let all = || wrappers.iter().map(strong);
        let strong =
            if all().any(|s| s == Some(true)) { Some(true) } else { (!has_com && all().all(|s| s == Some(false))).then_some(false) };
        Some(RefCount { strong, ..own })
    }
}

/// The wrappers in an object's table, each with its handle; `None` for a wrapper that cannot be read.
type ListedWrappers = Arc<[Option<(Addr, RefCount)>]>;

/// Reader of the reference counts that decide about ref-counted handles, if the runtime describes them. They are the counts of ComWrappers
/// and, since .NET 11, of built-in COM.
#[derive(Debug)]
pub struct Wrappers {
    memory: Arc<Memory>,
    headers: Option<Headers>,
    managed: Option<Bound<ManagedObjectWrapperLayout>>,
    info: Option<(Bound<SyncBlock>, Bound<InteropSyncBlockInfo>)>,
    built_in: Option<BuiltIn>,
    listed: Option<Listed>,
    /// Budget for slots of tables.
    slots: Disjoint,
    /// Wrappers by address of their table.
    known: Map<Addr, ListedWrappers>,
}

impl Wrappers {
    /// The contract of ComWrappers, first advertised by .NET 11.
    pub const COM_WRAPPERS: Contract = Contract::optional("ComWrappers", &["1"]);
    /// The contract of built-in COM, on Windows.
    pub const BUILT_IN_COM: Contract = Contract::optional("BuiltInCOM", &["1"]);

    /// Binds to a runtime. Wrappers that the runtime does not describe have no counts.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, headers: Option<Headers>) -> Wrappers {
        let managed = bind!(d, ManagedObjectWrapperLayout { Target?, RefCount }).ok().filter(|_| Self::COM_WRAPPERS.permit(d).is_ok());
        let built_in = || {
            let wrapper = bind!(d, ComCallWrapper { SimpleWrapper }).ok()?;
            Some(BuiltIn { wrapper, simple: bind!(d, SimpleComCallWrapper { RefCount, Flags }).ok()? })
        };
        let block = bind!(d, SyncBlock { InteropInfo });
        let info = bind!(d, InteropSyncBlockInfo { CCW?, ManagedObjectComWrapperMap? });
        let listed = managed.as_ref().and_then(|managed| Listed::bind(d, managed));
        Wrappers {
            memory: Arc::clone(memory),
            headers,
            info: block.ok().zip(info.ok()),
            built_in: built_in().filter(|_| Self::BUILT_IN_COM.permit(d).is_ok()),
            slots: Disjoint::new(memory.dump_bytes(), listed.as_ref().map_or(1, |l| l.entry_bytes.max(1))),
            listed,
            managed,
            known: Map::default(),
        }
    }

    /// The count that decides about the ref-counted handle at `handle` to the object at `object`, whose method table is at `mt`. `None` if
    /// the runtime does not describe the count, or if the count is not in the dump.
    pub fn ref_count(&mut self, handle: Addr, object: Addr, mt: Addr, types: &Types) -> Option<RefCount> {
        self.managed(object, mt, types).or_else(|| self.of_sync_block(handle, object))
    }

    fn managed(&self, object: Addr, mt: Addr, types: &Types) -> Option<RefCount> {
        let managed = self.managed.as_ref()?;
        let names = types.names();
        (names.name(mt).name == HOLDER).then_some(())?;
        let wrapper = self.memory.ptr(object.plus(types.own_offset(mt, "_wrapper")?)).ok().filter(|a| !a.is_null())?;
        Some(RefCount::of_com_wrappers(managed.get(&self.memory, wrapper, ManagedObjectWrapperLayout::RefCount)?))
    }

    /// The count in a wrapper to which the object's sync block points.
    fn of_sync_block(&mut self, handle: Addr, object: Addr) -> Option<RefCount> {
        let (block, interop) = self.info.as_ref()?;
        let block = block.place(self.headers.as_ref()?.read(object)?.sync_block?.address?, SyncBlock::InteropInfo)?;
        let info = self.follow(block)?;
        let (com, map) =
            (interop.place(info, InteropSyncBlockInfo::CCW), interop.place(info, InteropSyncBlockInfo::ManagedObjectComWrapperMap));
        let com = com.and_then(|at| self.follow(at));
        if let Some(count) = com.and_then(|com| self.built_in(com)) {
            return Some(count);
        }
        let map = self.follow(map?)?;
        RefCount::among(&self.wrappers_in(map)?, handle, com.is_some())
    }

    /// The pointer at `at`; `None` if it is null or not aligned. The runtime stores an odd value when it destroys a wrapper.
    fn follow(&self, at: Addr) -> Option<Addr> {
        self.memory.ptr(at).ok().filter(|a| !a.is_null() && a.is_aligned(self.memory.ptr_bytes()))
    }

    fn built_in(&self, wrapper: Addr) -> Option<RefCount> {
        let l = self.built_in.as_ref()?;
        let simple = self.follow(l.wrapper.place(wrapper, ComCallWrapper::SimpleWrapper)?)?;
        let count = l.simple.get(&self.memory, simple, SimpleComCallWrapper::RefCount)?;
        let flags = l.simple.get(&self.memory, simple, SimpleComCallWrapper::Flags)?;
        Some(RefCount::of_built_in(count, flags))
    }

    /// The wrappers in the hash table at `map`, which has free slots.
    fn wrappers_in(&mut self, map: Addr) -> Option<ListedWrappers> {
        if let Some(known) = self.known.get(&map) {
            return Some(Arc::clone(known));
        }
        let l = self.listed.as_ref()?;
        let size = l.map.get(&self.memory, map, SHash::TableSize)?;
        if size > MAX_SLOTS || !self.slots.take(size.into()) {
            return None;
        }
        let table = self.follow(l.map.place(map, SHash::Table)?)?;
        let interface = |slot: u32| {
            let entry = table.element(slot.into(), l.entry_bytes);
            l.entry.read(&self.memory, entry, ManagedObjectComWrapperMapEntry::Value)
        };
        let interfaces = (0..size).map(interface).filter(|read| read.as_ref().map_or(true, |at| !at.is_null()));
        let wrapper = |at: Addr| {
            let wrapper = self.follow(Addr(at.0 & l.mask))?;
            let managed = self.managed.as_ref()?;
            let handle = self.follow(managed.place(wrapper, ManagedObjectWrapperLayout::Target)?)?;
            let count = managed.get(&self.memory, wrapper, ManagedObjectWrapperLayout::RefCount)?;
            Some((handle, RefCount::of_com_wrappers(count)))
        };
        let found: ListedWrappers = interfaces.map(|read| wrapper(read.ok()?)).collect();
        self.known.insert(map, Arc::clone(&found));
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn com_references_keep_alive_and_tracker_references_are_undecided() {
        let com_wrappers = |raw| RefCount::of_com_wrappers(raw);
        assert_eq!(com_wrappers(1), RefCount { count: 1, strong: Some(true) });
        assert_eq!(com_wrappers(0x3_0000_0002), RefCount { count: 2, strong: Some(true) });
        assert_eq!(com_wrappers(0x1_0000_0000), RefCount { count: 0, strong: None });
        // After the last release, only the bit above the COM references is set. This bit is not a reference.
        assert_eq!(com_wrappers(0x8000_0000), RefCount { count: 0, strong: Some(false) });
    }

    #[test]
    fn a_weak_handle_of_built_in_com_keeps_nothing_alive() {
        assert_eq!(RefCount::of_built_in(3, 0), RefCount { count: 3, strong: Some(true) });
        assert_eq!(RefCount::of_built_in(3, IS_HANDLE_WEAK | 1), RefCount { count: 3, strong: Some(false) });
        assert_eq!(RefCount::of_built_in(0x8000_0000, 0), RefCount { count: 0, strong: Some(false) });
    }

    #[test]
    fn each_wrapper_of_an_object_keeps_it_alive() {
        let wrapper = |handle: u64, raw: u64| Some((Addr(handle), RefCount::of_com_wrappers(raw)));
        let among = |wrappers: &[_], has_com| RefCount::among(wrappers, Addr(0x10), has_com).map(|found| (found.count, found.strong));
        assert_eq!(among(&[wrapper(0x10, 1)], false), Some((1, Some(true))));
        assert_eq!(among(&[wrapper(0x10, 0)], false), Some((0, Some(false))));
        // Another `ComWrappers` instance created a second wrapper, with its own handle to the same object.
        assert_eq!(among(&[wrapper(0x18, 2), wrapper(0x10, 0)], false), Some((0, Some(true))));
        assert_eq!(among(&[wrapper(0x18, 0), wrapper(0x10, 0)], false), Some((0, Some(false))));
        // A wrapper that cannot be read, or a built-in COM wrapper, may keep the object alive.
        assert_eq!(among(&[None, wrapper(0x10, 0)], false), Some((0, None)));
        assert_eq!(among(&[None, wrapper(0x10, 3)], true), Some((3, Some(true))));
        assert_eq!(among(&[wrapper(0x10, 0)], true), Some((0, None)));
        // No wrapper has this handle, so the table belongs to another object.
        assert_eq!(among(&[wrapper(0x18, 1)], false), None);
    }
}
