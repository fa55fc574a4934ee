//! Statics of .NET 8. Each module has a table of statics (`DomainLocalModule`). For thread statics, each module has a table for each thread
//! (`ThreadLocalModule`).
//!
//! Source: `appdomain.hpp`, `threadstatics.h` of .NET 8; every rule was verified on dumps (`docs/internals/types.md#statics`).

use std::sync::{Arc, Mutex, PoisonError};

use super::base::{Base, object_of_handle};
use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::missed::contradiction;
use crate::clr::fields::Types;
use crate::clr::method_table::MethodTableInfo;
use crate::contract::Descriptor;
use crate::data::{
    Bound, DomainLocalModule, EEClass, EEClassOptionalFields, Field, Module, Offset, Structure, Thread, ThreadLocalModule, Word, bind,
};
use crate::memory::Memory;

/// Flag in `DataBlob` of a class whose constructor has run.
const CLASS_INITIALIZED: u8 = 1;

/// Index of a type's thread statics in the tables of each thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSlot {
    module: Addr,
    /// Index of the module in a thread's table of modules (`ThreadLocalBlock`).
    index: u64,
    /// Index in the dynamic part: see [`Net8::dynamic_id`].
    dynamic: Option<Option<u64>>,
}

/// Locator of the bases of statics. The fields of ordinary types have fixed offsets in the module's tables. Generic and collectible types
/// have an entry in the *dynamic* table.
#[derive(Clone, Debug)]
pub(super) struct Net8 {
    memory: Arc<Memory>,
    domain: Bound<DomainLocalModule>,
    thread_module: Bound<ThreadLocalModule>,
    thread: Option<Bound<Thread>>,
    /// The `DomainLocalModule` of a module.
    statics: Offset<Module, Addr>,
    /// The optional fields of a class and, in them, the index of a collectible type in the dynamic table.
    optional: Option<(Offset<EEClass, Addr>, Offset<EEClassOptionalFields, u32>)>,
    array_data: Option<u64>,
    /// The thread that owns each table of modules read so far. A second owner is a contradiction.
    owners: Arc<Mutex<Map<Addr, Addr>>>,
}

impl Net8 {
    /// Binds to a runtime. `threads` enables thread statics.
    pub(super) fn bind(memory: &Arc<Memory>, d: &Descriptor, threads: bool, array_data: Option<u64>) -> Option<Net8> {
        let optional = || Some((EEClass::OptionalFields.bind(d).ok()?, EEClassOptionalFields::ModuleDynamicID.bind(d).ok()?));
        Some(Net8 {
            memory: Arc::clone(memory),
            domain: bind!(d, DomainLocalModule { DynamicTable, DynamicCount, GCStatics, ModuleIndex, DataBlob? }).ok()?,
            thread_module: bind!(d, ThreadLocalModule { DynamicTable, DynamicCount, GCStaticsHandle }).ok()?,
            thread: if threads { bind!(d, Thread { ThreadLocalBlockTable, ThreadLocalBlockSize }).ok() } else { None },
            statics: Module::DomainLocalModule.bind(d).ok()?,
            optional: optional(),
            array_data,
            owners: Arc::default(),
        })
    }

    /// The base of a type's statics. If `gc`, this is the base for references, otherwise the base for other fields.
    pub(super) fn base(&self, types: &Types, info: &MethodTableInfo, gc: bool) -> Option<Base> {
        let module = types.names().method_tables().loader_module(info.address)?;
        let domain = self.statics.link_or_null(&self.memory, module)?;
        // The runtime allocates the statics of a module before it loads a type from it.
        if domain.is_null() {
            contradiction(self.statics.place(module), "the module of a type has no memory for static fields");
            return None;
        }
        match self.dynamic_id(types, info)? {
            None => {
                let address = if gc { self.domain.link_or_null(&self.memory, domain, DomainLocalModule::GCStatics)? } else { domain };
                if address.is_null() {
                    let at = self.domain.place(domain, DomainLocalModule::GCStatics).unwrap_or(domain);
                    contradiction(at, "the module of a type has no memory for static fields");
                    return None;
                }
                Some(Base { address, initialized: self.is_initialized(types, domain, info) })
            }
            Some(id) => {
                let entry = self.entry(&self.domain, domain, (DomainLocalModule::DynamicTable, DomainLocalModule::DynamicCount), id)?;
                Some(Base { address: self.dynamic(types, info, module, entry, gc, false)?, initialized: true })
            }
        }
    }

    /// The index of a type's thread statics, which is the same in the tables of all threads. `None` if the index is unknown; `Some(None)` if no
    /// thread has thread statics of the type yet.
    pub(super) fn thread_slot(&self, types: &Types, info: &MethodTableInfo) -> Option<Option<ThreadSlot>> {
        self.thread.as_ref()?;
        let module = types.names().method_tables().loader_module(info.address)?;
        let domain = self.statics.link_or_null(&self.memory, module)?;
        if domain.is_null() {
            contradiction(self.statics.place(module), "the module of a type has no memory for static fields");
            return None;
        }
        let index = self.domain.get(&self.memory, domain, DomainLocalModule::ModuleIndex)?;
        Some(Some(ThreadSlot { module, index, dynamic: self.dynamic_id(types, info) }))
    }

    /// The table of modules of `thread`, with its length; null if the thread has no table.
    pub(super) fn block(&self, thread: Addr) -> Option<(Addr, u64)> {
        let fields = self.thread.as_ref()?;
        let at = fields.place(thread, Thread::ThreadLocalBlockTable)?;
        let blocks = self.memory.link_or_null(at)?;
        let count = u64::from(fields.get(&self.memory, thread, Thread::ThreadLocalBlockSize)?);
        if blocks.is_null() != (count == 0) {
            contradiction(at, "the table of a thread's statics does not match its size");
        }
        if !blocks.is_null() && *self.owners.lock().unwrap_or_else(PoisonError::into_inner).entry(blocks).or_insert(thread) != thread {
            contradiction(at, "two threads have the same table of statics");
        }
        Some((blocks, count))
    }

    /// The base of the thread statics at `slot` in a thread's table; null if not allocated yet. If `gc`, this is the base for references,
    /// otherwise the base for other fields.
    pub(super) fn in_block(
        &self,
        types: &Types,
        (blocks, count): (Addr, u64),
        slot: &ThreadSlot,
        (info, gc): (&MethodTableInfo, bool),
    ) -> Option<Addr> {
        if slot.index >= count {
            return Some(Addr::NULL);
        }
        let block = self.memory.link_or_null(blocks.element(slot.index, self.memory.ptr_bytes()))?;
        if block.is_null() {
            return Some(Addr::NULL);
        }
        match slot.dynamic? {
            None if gc => self.elements_of_handle(self.thread_module.place(block, ThreadLocalModule::GCStaticsHandle)?),
            None => Some(block),
            Some(id) => {
                let entry =
                    self.entry(&self.thread_module, block, (ThreadLocalModule::DynamicTable, ThreadLocalModule::DynamicCount), id)?;
                self.dynamic(types, info, slot.module, entry, gc, true)
            }
        }
    }

    /// Whether a class is initialized; true if this is unknown. The base does not show this, because the statics of a module are allocated
    /// before its classes are initialized. The result agreed with ClrMD for all 204 classes in three dumps from Linux and Windows.
    fn is_initialized(&self, types: &Types, domain: Addr, info: &MethodTableInfo) -> bool {
        let read = || {
            let row = u64::from(types.names().method_tables().rid(info).ok()?).checked_sub(1)?;
            self.memory.u8(self.domain.place(domain, DomainLocalModule::DataBlob)?.plus(row)).ok()
        };
        read().is_none_or(|flags| flags & CLASS_INITIALIZED != 0)
    }

    /// Index of a type in the dynamic table; `Some(None)` for ordinary types, `None` if unknown.
    fn dynamic_id(&self, types: &Types, info: &MethodTableInfo) -> Option<Option<u64>> {
        let method_tables = types.names().method_tables();
        if let Some((_, id)) = method_tables.generic_statics(info) {
            return Some(Some(id));
        }
        if !info.is_collectible {
            return Some(None);
        }
        let (optional, id) = self.optional?;
        let fields = optional.link(&self.memory, method_tables.class(info.address).ok()?)?;
        Some(Some(u64::from(id.get(&self.memory, fields)?)))
    }

    /// The pointer in entry `id` of a dynamic table, whose rows are {pointer, flags}. Null if not allocated yet.
    fn entry<S: Structure>(
        &self,
        fields: &Bound<S>,
        owner: Addr,
        (table, count): (Field<S, Addr>, Field<S, Word>),
        id: u64,
    ) -> Option<Addr> {
        let table = fields.link_or_null(&self.memory, owner, table)?;
        if table.is_null() || id >= fields.get(&self.memory, owner, count)? {
            return Some(Addr::NULL);
        }
        let stride = self.memory.ptr_bytes().checked_mul(2)?;
        self.memory.link_or_null(table.element(id, stride))
    }

    /// The base of the statics of a type in the dynamic table. The block at `entry` contains a pointer to the references, and then the
    /// primitive fields. For collectible types, the block contains two handles of objects that the managed `LoaderAllocator` keeps alive.
    fn dynamic(&self, types: &Types, info: &MethodTableInfo, module: Addr, entry: Addr, gc: bool, of_thread: bool) -> Option<Addr> {
        if entry.is_null() {
            return Some(Addr::NULL);
        }
        let word = self.memory.ptr_bytes();
        if info.is_collectible {
            let handle = self.memory.word(entry.plus(if gc { 0 } else { word })).ok()?;
            if handle == 0 {
                return Some(Addr::NULL);
            }
            let object = self.collectible_object(types, module, handle)?;
            // Offsets of primitive fields are relative to one pointer before the data of the box or array.
            let data = self.array_data?;
            return Some(object.plus(if gc { data } else { data.checked_sub(word)? }));
        }
        match (gc, of_thread) {
            (false, _) => Some(entry),
            (true, false) => self.memory.link_or_null(entry),
            (true, true) => self.elements_of_handle(entry),
        }
    }

    /// The address of the elements of the array whose handle is stored at `at`; null if the array is not allocated yet.
    fn elements_of_handle(&self, at: Addr) -> Option<Addr> {
        let object = object_of_handle(&self.memory, at)?;
        Some(if object.is_null() { Addr::NULL } else { object.plus(self.array_data?) })
    }

    /// The object of a handle of a collectible module: the element `handle / 2 - 1` of the slots of its managed `LoaderAllocator`.
    fn collectible_object(&self, types: &Types, module: Addr, handle: u64) -> Option<Addr> {
        if handle & 1 != 0 {
            // If bit 0 is set, the other bits are the address of the reference.
            return self.memory.link(Addr(handle & !1));
        }
        let slots = self.allocator_slots(types, module)?;
        let n = (handle >> 1).checked_sub(1)?;
        self.memory.link(slots.plus(self.array_data?).element(n, self.memory.ptr_bytes()))
    }

    /// The array `m_slots` of the managed `LoaderAllocator` of a collectible module.
    fn allocator_slots(&self, types: &Types, module: Addr) -> Option<Addr> {
        let allocator = types.loader().allocator_object(module)?;
        let mt = types.objects().method_table(allocator)?;
        let slots = types.own_offset(mt, "m_slots")?;
        self.memory.link(allocator.plus(slots))
    }
}
