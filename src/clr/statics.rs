//! Where the values of static fields lie.
//!
//! Source: `docs/internals/types.md#statics`, every rule measured; contracts `RuntimeTypeSystem` and `Thread` for .NET 10 and
//! later. Structures are boxed, so that the slot of a static structure holds a reference to its box.
//!
//! .NET 8 keeps statics in tables of the module; .NET 9 and later beside the method table.

use std::sync::Arc;

use super::fields::{Field, Storage, Types, VALUE_TYPE, is_reference};
use super::metadata::Source;
use super::metadata::signature::Primitive;
use super::method_table::MethodTableInfo;
use super::pe;
use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::memory::Memory;

/// Bit of a base pointer that says that the class constructor has not run to its end.
const NOT_INITIALISED: u64 = 1;
/// Bytes of a box that are looked at.
const MAX_BOX: u64 = 4096;
/// .NET 8: the class constructor has run.
const CLASS_INITIALISED: u8 = 1;
/// No place has been given to the thread statics of the type.
const NO_INDEX: u32 = u32::MAX;
/// Kinds of places of thread statics, the high byte of an index.
const IN_ARRAY: u32 = 0;
const COLLECTIBLE: u32 = 1;
const DIRECT: u32 = 2;
const INDEX_MASK: u32 = 0x00ff_ffff;
/// Entries of a thread's list of thread statics that are not in its array yet.
const MAX_IN_FLIGHT: u32 = 65_536;
/// The offset of an RVA field that does not fit its 27 bits: metadata has it.
const BIG_RVA: u64 = 0x07ff_ffff;

layout! {
    struct StaticsLayout : "DynamicStaticsInfo" {
        gc: req "GCStatics",
        plain: req "NonGCStatics",
    }
}

layout! {
    struct ThreadStaticsLayout : "ThreadStaticsInfo" {
        plain: req "NonGCTlsIndex",
        gc: req "GCTlsIndex",
    }
}

layout! {
    struct LocalsLayout : "ThreadLocalData" {
        array: req "NonCollectibleTlsArrayData",
        array_count: req "NonCollectibleTlsDataCount",
        collectible: req "CollectibleTlsArrayData",
        collectible_count: req "CollectibleTlsDataCount",
        // What has not been moved into the array yet; .NET 10 and later publish it.
        in_flight: opt "InFlightData",
    }
}

layout! {
    struct InFlightLayout : "InFlightTLSData" {
        next: req "Next",
        index: req "TlsIndex",
        data: req "TLSData",
    }
}

layout! {
    struct ThreadLayout : "Thread" {
        locals: opt "ThreadLocalDataPtr",
        table: opt "ThreadLocalBlockTable",
        table_size: opt "ThreadLocalBlockSize",
    }
}

layout! {
    struct DomainModuleLayout : "DomainLocalModule" {
        dynamic: req "DynamicTable",
        count: req "DynamicCount",
        gc: req "GCStatics",
        index: req "ModuleIndex",
        // A byte of flags for each row of TypeDef, from the first.
        flags: opt "DataBlob",
    }
}

layout! {
    struct ThreadModuleLayout : "ThreadLocalModule" {
        dynamic: req "DynamicTable",
        count: req "DynamicCount",
        gc: req "GCStaticsHandle",
    }
}

/// Where a static field's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticPlace {
    /// Here: of a structure, its data in the box.
    At(Addr),
    /// The class has not been initialised and the field is still zero, or the thread has not touched it.
    NotInitialised,
    /// What says where is not in the dump, or its layout is not known.
    Unknown,
}

/// .NET 9 and later.
#[derive(Clone, Debug)]
struct Modern {
    statics: StaticsLayout,
    statics_bytes: u64,
    mask: u64,
    thread: Option<(ThreadStaticsLayout, u64, LocalsLayout)>,
    in_flight: Option<InFlightLayout>,
    /// Places at the start of the array that are not used.
    skipped: u64,
}

/// .NET 8.
#[derive(Clone, Debug)]
struct Tables {
    domain: DomainModuleLayout,
    thread: ThreadModuleLayout,
    /// `Module.DomainLocalModule`.
    module: u64,
    optional: Option<(u64, u64)>,
}

/// Finds the values of static fields.
#[derive(Debug)]
pub struct Statics {
    memory: Arc<Memory>,
    types: Arc<Types>,
    modern: Option<Modern>,
    tables: Option<Tables>,
    thread: Option<ThreadLayout>,
    /// Where the elements of an `Object[]` begin.
    array_data: Option<u64>,
}

impl Statics {
    /// Binds to a runtime; where the descriptor lacks a part, its fields are [`StaticPlace::Unknown`].
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, types: &Arc<Types>) -> Statics {
        let modern = || {
            let thread = || {
                let size = d.size_of("ThreadStaticsInfo").ok()?;
                Some((ThreadStaticsLayout::bind(d).ok()?, size, LocalsLayout::bind(d).ok()?))
            };
            Some(Modern {
                statics: StaticsLayout::bind(d).ok()?,
                statics_bytes: d.size_of("DynamicStaticsInfo").ok()?,
                mask: d.number("StaticsPointerMask").unwrap_or(!NOT_INITIALISED),
                thread: thread(),
                in_flight: InFlightLayout::bind(d).ok(),
                skipped: d.number("NumberOfTlsOffsetsNotUsedInNoncollectibleArray").unwrap_or(2),
            })
        };
        let tables = || {
            let optional =
                || Some((d.offset("EEClass", "OptionalFields").ok()?, d.offset("EEClassOptionalFields", "ModuleDynamicID").ok()?));
            Some(Tables {
                domain: DomainModuleLayout::bind(d).ok()?,
                thread: ThreadModuleLayout::bind(d).ok()?,
                module: d.offset("Module", "DomainLocalModule").ok()?,
                optional: optional(),
            })
        };
        Statics {
            memory: Arc::clone(memory),
            types: Arc::clone(types),
            modern: modern(),
            tables: tables(),
            thread: ThreadLayout::bind(d).ok(),
            array_data: d.number("PtrArrayOffsetToDataArray").ok().or_else(|| d.size_of("Array").ok()),
        }
    }

    /// Where the value of a static field is; for thread statics use [`Statics::of_thread`].
    pub fn place(&self, info: &MethodTableInfo, field: &Field) -> StaticPlace {
        match field.storage {
            Storage::Rva => self.in_image(info, field).map_or(StaticPlace::Unknown, StaticPlace::At),
            Storage::Static => {
                let Some((base, initialised)) = self.base(info, has_reference(field)) else { return StaticPlace::Unknown };
                match self.behind(Some(base), field) {
                    StaticPlace::At(at) if !initialised && self.is_zero(at, field) => StaticPlace::NotInitialised,
                    place => place,
                }
            }
            Storage::ThreadStatic | Storage::Instance => StaticPlace::Unknown,
        }
    }

    /// Where the value of a thread static is for the thread at `thread`, a `Thread` of the runtime.
    pub fn of_thread(&self, thread: Addr, info: &MethodTableInfo, field: &Field) -> StaticPlace {
        if field.storage != Storage::ThreadStatic {
            return StaticPlace::Unknown;
        }
        let base = match (&self.modern, &self.tables) {
            (Some(modern), _) => self.thread_base(modern, thread, info, has_reference(field)),
            (None, Some(tables)) => self.thread_table(tables, thread, info, has_reference(field)),
            (None, None) => None,
        };
        self.behind(base, field)
    }

    /// The arrays that the runtime itself keeps for the thread statics of the thread at `thread`: where the reference lies,
    /// and the array. .NET 8 keeps them in strong handles and has none here.
    pub fn thread_arrays(&self, thread: Addr) -> Option<(Addr, Addr)> {
        let (_, _, locals) = self.modern.as_ref()?.thread.as_ref()?;
        let data = self.memory.ptr(thread.plus(self.thread.as_ref()?.locals?)).ok().filter(|d| !d.is_null())?;
        let at = data.plus(locals.array);
        self.memory.ptr(at).ok().filter(|a| !a.is_null()).map(|array| (at, array))
    }

    /// `base` is null where there is no memory yet, `None` where that cannot be told.
    fn behind(&self, base: Option<Addr>, field: &Field) -> StaticPlace {
        let Some(base) = base else { return StaticPlace::Unknown };
        if base.is_null() {
            return StaticPlace::NotInitialised;
        }
        let slot = base.plus(field.offset);
        if field.element != VALUE_TYPE {
            return StaticPlace::At(slot);
        }
        match self.memory.ptr(slot) {
            Ok(b) if b.is_null() => StaticPlace::NotInitialised,
            Ok(b) => StaticPlace::At(b.plus(self.memory.ptr_bytes())),
            Err(_) => StaticPlace::Unknown,
        }
    }

    /// Whether nothing has been written to a field yet: a class that has memory but has not been initialised may be in the
    /// middle of its constructor.
    fn is_zero(&self, at: Addr, field: &Field) -> bool {
        let word = self.memory.ptr_bytes();
        let boxed = || {
            let mt = self.memory.ptr(at.minus(word)?).ok()?;
            let info = self.types.names().method_tables().read(mt).ok()?;
            u64::from(info.base_size).checked_sub(word.checked_mul(2)?)
        };
        let bytes = match field.element {
            VALUE_TYPE => boxed().unwrap_or(0),
            element => Primitive::of(element).and_then(|p| p.bytes(word)).unwrap_or(word),
        };
        self.memory.bytes(at, bytes.min(MAX_BOX)).is_ok_and(|b| b.iter().all(|b| *b == 0))
    }

    /// The base of statics, null where there is none yet, and whether the class has been initialised.
    fn base(&self, info: &MethodTableInfo, gc: bool) -> Option<(Addr, bool)> {
        const NONE: (Addr, bool) = (Addr::NULL, false);
        if let Some(modern) = &self.modern {
            let Some(end) = self.types.names().method_tables().statics_end(info.address) else { return Some(NONE) };
            let statics = end.minus(modern.statics_bytes)?;
            let word = self.memory.word(statics.plus(if gc { modern.statics.gc } else { modern.statics.plain })).ok()?;
            return Some((Addr(word & modern.mask), word & NOT_INITIALISED == 0));
        }
        let tables = self.tables.as_ref()?;
        let module = self.types.names().method_tables().loader_module(info.address)?;
        let domain = self.memory.ptr(module.plus(tables.module)).ok()?;
        if domain.is_null() {
            return Some(NONE);
        }
        match self.dynamic_id(tables, info)? {
            None => {
                let base = if gc { self.memory.ptr(domain.plus(tables.domain.gc)).ok()? } else { domain };
                Some((base, self.is_initialised(tables, domain, info)))
            }
            Some(id) => {
                let entry = self.entry(domain, tables.domain.dynamic, tables.domain.count, id)?;
                Some((self.dynamic(info, module, entry, gc, false)?, true))
            }
        }
    }

    /// .NET 8: the memory for the statics of a module is there before its classes are initialised. Measured: the flag is that
    /// of all 204 classes on three dumps, Linux and Windows, of which ClrMD says whether they are.
    fn is_initialised(&self, tables: &Tables, domain: Addr, info: &MethodTableInfo) -> bool {
        let read = || {
            let row = u64::from(self.types.names().method_tables().rid(info).ok()?).checked_sub(1)?;
            self.memory.u8(domain.plus(tables.domain.flags?).plus(row)).ok()
        };
        read().is_none_or(|flags| flags & CLASS_INITIALISED != 0)
    }

    /// .NET 8: place of a type in the tables for types that come and go: `Some(None)` for ordinary types.
    fn dynamic_id(&self, tables: &Tables, info: &MethodTableInfo) -> Option<Option<u64>> {
        let method_tables = self.types.names().method_tables();
        if let Some((_, id)) = method_tables.generic_statics(info) {
            return Some(Some(id));
        }
        if !info.is_collectible {
            return Some(None);
        }
        let (optional, id) = tables.optional?;
        let optional = self.memory.ptr(method_tables.class(info.address).ok()?.plus(optional)).ok().filter(|o| !o.is_null())?;
        Some(Some(u64::from(self.memory.u32(optional.plus(id)).ok()?)))
    }

    /// .NET 8: entry `id` of a table of {pointer, flags}; null where there is none yet.
    fn entry(&self, owner: Addr, table: u64, count: u64, id: u64) -> Option<Addr> {
        let table = self.memory.ptr(owner.plus(table)).ok()?;
        if table.is_null() || id >= self.memory.word(owner.plus(count)).ok()? {
            return Some(Addr::NULL);
        }
        let stride = self.memory.ptr_bytes().checked_mul(2)?;
        self.memory.ptr(table.element(id, stride)).ok()
    }

    /// .NET 8: the base that an entry leads to. That of references comes first, then the primitive ones follow in place;
    /// collectible types have both in objects that the managed `LoaderAllocator` holds.
    fn dynamic(&self, info: &MethodTableInfo, module: Addr, entry: Addr, gc: bool, of_thread: bool) -> Option<Addr> {
        if entry.is_null() {
            return Some(Addr::NULL);
        }
        let word = self.memory.ptr_bytes();
        if info.is_collectible {
            let handle = self.memory.word(entry.plus(if gc { 0 } else { word })).ok()?;
            if handle == 0 {
                return Some(Addr::NULL);
            }
            let object = self.collectible_object(module, handle)?;
            // The offsets of primitive fields count from one pointer before the data of the box or array.
            let data = self.array_data?;
            return Some(object.plus(if gc { data } else { data.checked_sub(word)? }));
        }
        match (gc, of_thread) {
            (false, _) => Some(entry),
            (true, false) => self.memory.ptr(entry).ok(),
            (true, true) => self.object_behind(entry),
        }
    }

    /// The object of the handle stored at `at`, from where its elements begin; null where there is none.
    fn object_behind(&self, at: Addr) -> Option<Addr> {
        let object = self.behind_handle(at)?;
        Some(if object.is_null() { Addr::NULL } else { object.plus(self.array_data?) })
    }

    /// .NET 8: an object held by the managed `LoaderAllocator` of a module: number `handle / 2` of its slots, from 1.
    fn collectible_object(&self, module: Addr, handle: u64) -> Option<Addr> {
        if handle & 1 != 0 {
            // A handle with bit 0 set points to the reference itself.
            return self.memory.ptr(Addr(handle & !1)).ok().filter(|o| !o.is_null());
        }
        let slots = self.types.loader().allocator_slots(module, &self.types)?;
        let n = (handle >> 1).checked_sub(1)?;
        self.memory.ptr(slots.plus(self.array_data?).element(n, self.memory.ptr_bytes())).ok().filter(|o| !o.is_null())
    }

    /// .NET 8: the base of thread statics.
    fn thread_table(&self, tables: &Tables, thread: Addr, info: &MethodTableInfo, gc: bool) -> Option<Addr> {
        let layout = self.thread.as_ref()?;
        let module = self.types.names().method_tables().loader_module(info.address)?;
        let domain = self.memory.ptr(module.plus(tables.module)).ok()?;
        if domain.is_null() {
            return Some(Addr::NULL);
        }
        let index = self.memory.word(domain.plus(tables.domain.index)).ok()?;
        let blocks = self.memory.ptr(thread.plus(layout.table?)).ok()?;
        let size = u64::from(self.memory.u32(thread.plus(layout.table_size?)).ok()?);
        if blocks.is_null() || index >= size {
            return Some(Addr::NULL);
        }
        let block = self.memory.ptr(blocks.element(index, self.memory.ptr_bytes())).ok()?;
        if block.is_null() {
            return Some(Addr::NULL);
        }
        match self.dynamic_id(tables, info)? {
            None if gc => self.object_behind(block.plus(tables.thread.gc)),
            None => Some(block),
            Some(id) => {
                let entry = self.entry(block, tables.thread.dynamic, tables.thread.count, id)?;
                self.dynamic(info, module, entry, gc, true)
            }
        }
    }

    /// .NET 9 and later: the base of thread statics.
    fn thread_base(&self, modern: &Modern, thread: Addr, info: &MethodTableInfo, gc: bool) -> Option<Addr> {
        let (layout, bytes, locals) = modern.thread.as_ref()?;
        let Some(end) = self.types.names().method_tables().statics_end(info.address) else { return Some(Addr::NULL) };
        let index = self.memory.u32(end.minus(*bytes)?.plus(if gc { layout.gc } else { layout.plain })).ok()?;
        if index == NO_INDEX {
            return Some(Addr::NULL);
        }
        // Null for threads that are dead or have not started, and for those that never touched a thread static.
        let data = self.memory.ptr(thread.plus(self.thread.as_ref()?.locals?)).ok()?;
        if data.is_null() {
            return Some(Addr::NULL);
        }
        let base = self.indexed(modern, locals, data, index)?;
        if base.is_null() { self.in_flight(modern, locals, data, index) } else { Some(base) }
    }

    /// The base that an index leads to; null where there is none.
    fn indexed(&self, modern: &Modern, locals: &LocalsLayout, data: Addr, index: u32) -> Option<Addr> {
        let (kind, n) = (index >> 24, index & INDEX_MASK);
        let word = self.memory.ptr_bytes();
        let within = |count: u64| self.memory.u32(data.plus(count)).ok().map(|c| n < c);
        match kind {
            DIRECT => Some(data.plus(u64::from(n))),
            IN_ARRAY => {
                let array = self.memory.ptr(data.plus(locals.array)).ok()?;
                if array.is_null() || !within(locals.array_count)? {
                    return Some(Addr::NULL);
                }
                let n = u64::from(n).checked_sub(modern.skipped)?;
                self.memory.ptr(array.plus(self.array_data?).element(n, word)).ok()
            }
            COLLECTIBLE => {
                let handles = self.memory.ptr(data.plus(locals.collectible)).ok()?;
                if handles.is_null() || !within(locals.collectible_count)? {
                    return Some(Addr::NULL);
                }
                self.behind_handle(handles.element(u64::from(n), word))
            }
            _ => None,
        }
    }

    /// The object of the handle stored at `at`; null where there is no handle.
    fn behind_handle(&self, at: Addr) -> Option<Addr> {
        let handle = self.memory.ptr(at).ok()?;
        if handle.is_null() { Some(Addr::NULL) } else { self.memory.ptr(handle).ok() }
    }

    /// A thread whose class constructor runs, or ran when the array was made, keeps the object in a list of its own
    /// (measured: ClrMD finds the same).
    fn in_flight(&self, modern: &Modern, locals: &LocalsLayout, data: Addr, index: u32) -> Option<Addr> {
        let (Some(layout), Some(head)) = (&modern.in_flight, locals.in_flight) else { return Some(Addr::NULL) };
        let mut at = self.memory.ptr(data.plus(head)).ok()?;
        for _ in 0..MAX_IN_FLIGHT {
            if at.is_null() {
                break;
            }
            if self.memory.u32(at.plus(layout.index)).ok()? == index {
                return self.behind_handle(at.plus(layout.data));
            }
            at = self.memory.ptr(at.plus(layout.next)).ok()?;
        }
        Some(Addr::NULL)
    }

    /// The initial value of a field in its module's image.
    fn in_image(&self, info: &MethodTableInfo, field: &Field) -> Option<Addr> {
        let names = self.types.names();
        let address = names.method_tables().module(info).ok()?;
        let base = names.modules().image_base(address)?;
        let in_desc = || u32::try_from(field.offset).ok().filter(|_| field.offset < BIG_RVA);
        let in_metadata = || names.module(address).metadata.as_ref()?.field_rva(field.token & INDEX_MASK);
        let rva = in_desc().or_else(in_metadata)?;
        let mapped = base.plus(rva.into());
        // Assemblies without native code lie in memory as in their file, where sections are packed.
        let image = Source::Memory { memory: Arc::clone(&self.memory), base, len: 1 << 32 };
        let flat = || {
            let headers = pe::Headers::read(&image)?;
            headers.is_flat(&image).then(|| headers.file_offset(rva))?
        };
        Some(flat().map_or(mapped, |offset| base.plus(offset.into())))
    }
}

/// Whether the slot of a field holds a reference: structures are boxed.
fn has_reference(field: &Field) -> bool {
    is_reference(field.element) || field.element == VALUE_TYPE
}
