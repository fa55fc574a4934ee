//! Locations of static fields.
//!
//! Source: `docs/internals/types.md#statics`; every rule was verified on dumps. A static structure is boxed, and the slot of the field
//! contains a reference to the box.
//!
//! The offset of a field is relative to a *base*. A type has separate bases for references and for other fields. Thread statics have
//! separate bases in each thread. The location of the bases depends on the release: see `Bases`.

mod base;
mod net8;
mod net9;

use std::sync::Arc;

use super::fields::{Field, Storage, Types};
use super::library::NoSuchField;
use super::metadata::Source;
use super::method_table::MethodTableInfo;
use super::pe;
use super::threads::Threads;
use crate::base::{Addr, Collector};
use crate::contract::Descriptor;
use crate::memory::Memory;
use base::Base;
use net8::Net8;
use net9::Net9;

/// Maximum number of bytes of a boxed structure that [`Statics::is_zero`] examines.
const MAX_BOX: u64 = 4096;
/// Offset of an RVA field whose RVA does not fit in 27 bits (`FIELD_OFFSET_BIG_RVA` in `field.h`). The metadata contains the RVA. The offsets above
/// have other special meanings.
const BIG_RVA: u64 = 0x07ff_fffa;

/// Location of a static field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticPlace {
    /// The address of the field; for a structure, the address of the data in its box.
    At(Addr),
    /// The class is not initialized and the field is still zero, or the thread has never accessed the field.
    NotInitialized,
    /// The location is not in the dump, or the layout is unknown.
    Unknown,
}

/// Locator of the bases of statics, by release.
#[derive(Clone, Debug)]
enum Bases {
    Net8(Net8),
    Net9(Net9),
}

/// Index of a thread static, which is the same in the blocks of all threads.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Net8(net8::ThreadSlot),
    Net9(u32),
}

/// Index of a thread static in the blocks of threads. `None` if unknown, `Some(None)` if not assigned yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSlot(Option<Option<Slot>>);

impl ThreadSlot {
    /// Whether a thread may have a value of the thread static. False only if no index is assigned yet.
    pub(crate) const fn is_used(&self) -> bool {
        !matches!(self.0, Some(None))
    }
}

/// Address and length of a thread's block of thread statics. `None` if unknown; the address is null if the thread has no block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadBlock(Option<(Addr, u64)>);

impl ThreadBlock {
    /// Address of the block; null if absent, `None` if unknown.
    pub(crate) fn address(self) -> Option<Addr> {
        self.0.map(|(at, _)| at)
    }
}

/// Locator of static fields.
#[derive(Debug)]
pub struct Statics {
    memory: Arc<Memory>,
    types: Arc<Types>,
    bases: Option<Bases>,
}

impl Statics {
    /// Binds to a runtime. If the descriptor does not have a layout, the fields that need it are [`StaticPlace::Unknown`].
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, types: &Arc<Types>) -> Statics {
        // Offset of the first element of an `object[]`.
        let array_data = d.number("PtrArrayOffsetToDataArray").ok().or_else(|| types.objects().array_bytes());
        let threads = Threads::CONTRACT.require(d).is_ok();
        let net8 = || Net8::bind(memory, d, threads, array_data).map(Bases::Net8);
        let bases = Net9::bind(memory, d, threads, array_data).map(Bases::Net9).or_else(net8);
        Statics { memory: Arc::clone(memory), types: Arc::clone(types), bases }
    }

    /// Whether the descriptor has the layouts of statics.
    pub fn is_described(&self) -> bool {
        self.bases.is_some() || self.types.names().native_aot().is_some() || self.types.names().method_tables().mono().is_some()
    }

    /// Adds notes about lists that were not read completely. Locations may be missing because of these lists.
    pub(crate) fn note(&self, notes: &Collector) {
        if let Some(Bases::Net9(net9)) = &self.bases {
            net9.note(notes);
        }
    }

    /// The location of a static field; for thread statics use [`Statics::of_thread`].
    pub fn place(&self, info: &MethodTableInfo, field: &Field) -> StaticPlace {
        match field.storage {
            Storage::Rva => self.in_image(info, field).map_or(StaticPlace::Unknown, StaticPlace::At),
            // In NativeAOT programs, the offset of a static field is its address.
            Storage::Static if let Some(program) = self.types.names().native_aot() => {
                let at = Addr(field.offset);
                if program.is_current(at) { StaticPlace::At(at) } else { StaticPlace::Unknown }
            }
            // In Mono programs as well, the offset of a static field is its address.
            Storage::Static if self.types.names().method_tables().mono().is_some() => StaticPlace::At(Addr(field.offset)),
            Storage::Static => {
                let Some(base) = self.base(info, has_reference(field)) else { return StaticPlace::Unknown };
                match self.field_at(Some(base.address), field) {
                    StaticPlace::At(at) if !base.initialized && self.is_zero(at, field) => StaticPlace::NotInitialized,
                    place => place,
                }
            }
            Storage::ThreadStatic | Storage::Instance => StaticPlace::Unknown,
        }
    }

    /// The location of a static field of the type at `method_table`. `names` are alternative names, separated by `|`. For a thread static,
    /// `thread` is the address of the `Thread`.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn named(&self, method_table: Addr, names: &'static str, thread: Option<Addr>) -> Result<StaticPlace, NoSuchField> {
        let fields = self.types.static_fields(method_table);
        let found = fields.iter().flat_map(|list| list.iter()).find(|f| names.split('|').any(|name| name == f.name));
        let missing = || NoSuchField::of(&self.types, method_table, fields.as_ref().map(|list| list.as_slice()), names);
        let field = found.ok_or_else(missing)?;
        let Ok(info) = self.types.names().method_tables().read(method_table) else { return Ok(StaticPlace::Unknown) };
        Ok(match thread {
            Some(thread) => self.of_thread(thread, &info, field),
            None => self.place(&info, field),
        })
    }

    /// The location of a thread static for the `Thread` at `thread`.
    pub fn of_thread(&self, thread: Addr, info: &MethodTableInfo, field: &Field) -> StaticPlace {
        self.in_block(self.thread_block(thread), &self.thread_slot(info, field), (info, field), &|_| true)
    }

    /// The index of a thread static in the blocks of all threads.
    pub(crate) fn thread_slot(&self, info: &MethodTableInfo, field: &Field) -> ThreadSlot {
        let gc = has_reference(field);
        let slot = match self.bases.as_ref().filter(|_| field.storage == Storage::ThreadStatic) {
            Some(Bases::Net8(net8)) => net8.thread_slot(&self.types, info).map(|slot| slot.map(Slot::Net8)),
            Some(Bases::Net9(net9)) => net9.thread_index(&self.types, info, gc).map(|index| index.map(Slot::Net9)),
            None => None,
        };
        ThreadSlot(slot)
    }

    /// The block of thread statics of the `Thread` at `thread`.
    pub(crate) fn thread_block(&self, thread: Addr) -> ThreadBlock {
        ThreadBlock(match &self.bases {
            Some(Bases::Net8(net8)) => net8.block(thread),
            Some(Bases::Net9(net9)) => net9.block(thread).map(|data| (data, 0)),
            None => None,
        })
    }

    /// The location of a thread static in a thread's block. `afford` charges steps for reading lists, and returns false if the budget is
    /// exhausted.
    pub(crate) fn in_block(
        &self,
        block: ThreadBlock,
        slot: &ThreadSlot,
        (info, field): (&MethodTableInfo, &Field),
        afford: &dyn Fn(u64) -> bool,
    ) -> StaticPlace {
        let gc = has_reference(field);
        let base = match (&self.bases, &slot.0, block.0) {
            (_, Some(None), _) => Some(Addr::NULL),
            (_, Some(_), Some((at, _))) if at.is_null() => Some(Addr::NULL),
            (Some(Bases::Net8(net8)), Some(Some(Slot::Net8(slot))), Some(block)) => net8.in_block(&self.types, block, slot, (info, gc)),
            (Some(Bases::Net9(net9)), Some(Some(Slot::Net9(index))), Some((at, _))) => net9.in_block(at, *index, afford),
            _ => None,
        };
        self.field_at(base, field)
    }

    /// The array of thread statics of the `Thread` at `thread`: the address of the reference to the array, and the address of the array.
    /// `None` for .NET 8, which uses strong handles instead.
    pub fn thread_array(&self, thread: Addr) -> Option<(Addr, Addr)> {
        match self.bases.as_ref()? {
            Bases::Net8(_) => None,
            Bases::Net9(net9) => net9.thread_array(thread),
        }
    }

    /// The location of a field relative to `base`. `base` is null if the base is not allocated yet, and `None` if the base is unknown.
    fn field_at(&self, base: Option<Addr>, field: &Field) -> StaticPlace {
        let Some(base) = base else { return StaticPlace::Unknown };
        if base.is_null() {
            return StaticPlace::NotInitialized;
        }
        let slot = base.plus(field.offset);
        if !field.is_structure() {
            return StaticPlace::At(slot);
        }
        match self.memory.link_or_null(slot) {
            Some(b) if b.is_null() => StaticPlace::NotInitialized,
            Some(b) => StaticPlace::At(b.plus(self.memory.ptr_bytes())),
            None => StaticPlace::Unknown,
        }
    }

    /// Size in bytes of the value of a field at `at`; 0 for a structure whose box is not in the dump.
    pub(crate) fn value_bytes(&self, at: Addr, field: &Field) -> u64 {
        let word = self.memory.ptr_bytes();
        let boxed = || {
            let mt = self.types.objects().method_table(at.minus(word)?)?;
            let info = self.types.names().method_tables().read(mt).ok()?;
            u64::from(info.base_size).checked_sub(word.checked_mul(2)?)
        };
        if field.is_structure() {
            return boxed().unwrap_or(0);
        }
        field.element.primitive_bytes(word).unwrap_or(word)
    }

    /// Whether a field is still zero. A class that is not initialized may have fields with values, because its constructor may be running.
    fn is_zero(&self, at: Addr, field: &Field) -> bool {
        let bytes = self.value_bytes(at, field);
        self.memory.bytes(at, bytes.min(MAX_BOX)).is_ok_and(|b| b.iter().all(|b| *b == 0))
    }

    fn base(&self, info: &MethodTableInfo, gc: bool) -> Option<Base> {
        match self.bases.as_ref()? {
            Bases::Net8(net8) => net8.base(&self.types, info, gc),
            Bases::Net9(net9) => net9.base(&self.types, info, gc),
        }
    }

    /// The address of an RVA field, whose value is in the image of its module.
    fn in_image(&self, info: &MethodTableInfo, field: &Field) -> Option<Addr> {
        let names = self.types.names();
        let address = names.method_tables().module(info).ok()?;
        let base = names.modules().image_base(address)?;
        let in_metadata = || names.module(address).metadata.as_ref()?.field_rva(field.token.rid());
        let rva = stored_rva(field.offset).or_else(in_metadata)?;
        let mapped = base.plus(rva.into());
        // The runtime may map IL-only assemblies flat. Sections are then at their file offsets instead of their RVAs.
        let image = Source::Memory { memory: Arc::clone(&self.memory), base, len: 1 << 32 };
        let flat = || {
            let headers = pe::Headers::read(&image)?;
            headers.is_flat(&image).then(|| headers.file_offset(rva))?
        };
        Some(flat().map_or(mapped, |offset| base.plus(offset.into())))
    }
}

/// Whether the slot of a field contains a reference. The slot of a structure contains a reference to the box.
fn has_reference(field: &Field) -> bool {
    field.is_reference() || field.is_structure()
}

/// The RVA that the offset of an RVA field is; `None` if the offset only says that the metadata has the RVA.
fn stored_rva(offset: u64) -> Option<u32> {
    u32::try_from(offset).ok().filter(|_| offset < BIG_RVA)
}

#[cfg(test)]
mod tests {
    use super::stored_rva;

    #[test]
    fn special_offsets_are_not_rvas() {
        // `FIELD_OFFSET_LAST_REAL_OFFSET`, `FIELD_OFFSET_BIG_RVA` and `FIELD_OFFSET_UNPLACED`.
        assert_eq!([0x2050, 0x07ff_fff9, 0x07ff_fffa, 0x07ff_ffff].map(stored_rva), [Some(0x2050), Some(0x07ff_fff9), None, None]);
    }
}
