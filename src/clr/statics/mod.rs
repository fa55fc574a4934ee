//! Where the values of static fields lie.
//!
//! Source: `docs/internals/types.md#statics`, every rule measured. Structures are boxed: the slot of a static structure holds a
//! reference to its box.
//!
//! A field lies at an offset from the *base* of its kind (references or not, of the process or of a thread). Where bases are
//! differs between releases: see `Bases`.

mod net8;
mod net9;

use std::sync::Arc;

use super::fields::{Field, Storage, Types, VALUE_TYPE, is_reference};
use super::metadata::Source;
use super::metadata::signature::Primitive;
use super::method_table::MethodTableInfo;
use super::pe;
use super::threads::Threads;
use crate::base::Addr;
use crate::contract::Descriptor;
use crate::memory::Memory;
use net8::Net8;
use net9::Net9;

/// Bytes of a box that are looked at.
const MAX_BOX: u64 = 4096;
/// Row of a metadata token.
const RID: u32 = 0x00ff_ffff;
/// The offset of an RVA field that does not fit its 27 bits: metadata has it.
const BIG_RVA: u64 = 0x07ff_ffff;

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

/// The base of a type's statics.
#[derive(Clone, Copy, Debug)]
struct Base {
    /// Null where there is no memory yet.
    address: Addr,
    /// Whether the class constructor has run.
    initialised: bool,
}

impl Base {
    const NONE: Base = Base { address: Addr::NULL, initialised: false };
}

/// Where a release keeps the bases of statics.
#[derive(Clone, Debug)]
enum Bases {
    Net8(Net8),
    Net9(Net9),
}

/// Finds the values of static fields.
#[derive(Debug)]
pub struct Statics {
    memory: Arc<Memory>,
    types: Arc<Types>,
    bases: Option<Bases>,
}

impl Statics {
    /// Binds to a runtime; where the descriptor lacks a part, its fields are [`StaticPlace::Unknown`].
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, types: &Arc<Types>) -> Statics {
        // Where the elements of an `Object[]` begin.
        let array_data = d.number("PtrArrayOffsetToDataArray").ok().or_else(|| types.objects().array_bytes());
        let threads = Threads::CONTRACT.require(d).is_ok();
        let net8 = || Net8::bind(memory, d, threads, array_data).map(Bases::Net8);
        let bases = Net9::bind(memory, d, threads, array_data).map(Bases::Net9).or_else(net8);
        Statics { memory: Arc::clone(memory), types: Arc::clone(types), bases }
    }

    /// Whether the descriptor says where static fields are.
    pub fn is_described(&self) -> bool {
        self.bases.is_some()
    }

    /// Where the value of a static field is; for thread statics use [`Statics::of_thread`].
    pub fn place(&self, info: &MethodTableInfo, field: &Field) -> StaticPlace {
        match field.storage {
            Storage::Rva => self.in_image(info, field).map_or(StaticPlace::Unknown, StaticPlace::At),
            Storage::Static => {
                let Some(base) = self.base(info, has_reference(field)) else { return StaticPlace::Unknown };
                match self.behind(Some(base.address), field) {
                    StaticPlace::At(at) if !base.initialised && self.is_zero(at, field) => StaticPlace::NotInitialised,
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
        let gc = has_reference(field);
        let base = match &self.bases {
            Some(Bases::Net8(net8)) => net8.thread_base(&self.types, thread, info, gc),
            Some(Bases::Net9(net9)) => net9.thread_base(&self.types, thread, info, gc),
            None => None,
        };
        self.behind(base, field)
    }

    /// The array that the runtime itself keeps for the thread statics of the thread at `thread`: where the reference lies, and
    /// the array. .NET 8 keeps them in strong handles and has none here.
    pub fn thread_array(&self, thread: Addr) -> Option<(Addr, Addr)> {
        match self.bases.as_ref()? {
            Bases::Net8(_) => None,
            Bases::Net9(net9) => net9.thread_array(thread),
        }
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

    fn base(&self, info: &MethodTableInfo, gc: bool) -> Option<Base> {
        match self.bases.as_ref()? {
            Bases::Net8(net8) => net8.base(&self.types, info, gc),
            Bases::Net9(net9) => net9.base(&self.types, info, gc),
        }
    }

    /// The initial value of a field in its module's image.
    fn in_image(&self, info: &MethodTableInfo, field: &Field) -> Option<Addr> {
        let names = self.types.names();
        let address = names.method_tables().module(info).ok()?;
        let base = names.modules().image_base(address)?;
        let in_desc = || u32::try_from(field.offset).ok().filter(|_| field.offset < BIG_RVA);
        let in_metadata = || names.module(address).metadata.as_ref()?.field_rva(field.token & RID);
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

/// The object behind the handle stored at `at`; null where there is no handle.
fn behind_handle(memory: &Memory, at: Addr) -> Option<Addr> {
    let handle = memory.ptr(at).ok()?;
    if handle.is_null() { Some(Addr::NULL) } else { memory.ptr(handle).ok() }
}

/// Whether the slot of a field holds a reference: structures are boxed.
fn has_reference(field: &Field) -> bool {
    is_reference(field.element) || field.element == VALUE_TYPE
}
