//! Fields: FieldDesc gives the place, metadata the name and the type.
//!
//! Source: contract `RuntimeTypeSystem` (FieldDesc); `docs/internals/types.md#fields`, measured on .NET 8 to 10.

use std::sync::Arc;

mod index;
mod list;
mod names;
mod resolve;

pub use list::Field;
pub use resolve::{Definition, Types};
pub(crate) use resolve::{VALUE_TYPE, is_reference};

use super::method_table::MethodTableInfo;
use super::type_names::TypeNames;
use crate::base::{Addr, AddrRange};
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
pub use crate::model::Storage;

layout! {
    struct FieldDescLayout : "FieldDesc" {
        token: req "DWord1",
        offset: req "DWord2",
    }
}

layout! {
    struct ClassLayout : "EEClass" {
        fields: req "FieldDescList",
        // .NET 9 and later.
        count: opt "NumInstanceFields",
        statics: opt "NumStaticFields",
        // .NET 8 keeps the counts behind the fixed part of the class.
        fixed_size: opt "FixedSize",
        packed: opt "FieldsArePacked",
        element: opt "InternalCorElementType",
    }
}

layout! {
    struct PackedLayout : "EEClassPacked" {
        count: req "NumInstanceFields",
        statics: req "NumStaticFields",
    }
}

layout! {
    struct StringLayout : "String" {
        length: req "m_StringLength",
        first: req "m_FirstChar",
    }
}

/// Row of the field in its metadata.
const TOKEN_MASK: u32 = 0x00ff_ffff;
const IS_STATIC: u32 = 0x0100_0000;
const IS_THREAD_STATIC: u32 = 0x0200_0000;
const IS_RVA: u32 = 0x0400_0000;
/// Offset behind the method table pointer, or behind the base of statics.
const OFFSET_MASK: u32 = 0x07ff_ffff;
/// Where the `CorElementType` begins.
const TYPE_SHIFT: u32 = 27;
/// A type with more fields of its own is damage: metadata has 24 bits of rows, the runtime counts in 16 bits from .NET 9 on.
const MAX_FIELDS: u32 = 65_535;

/// A field descriptor of the runtime, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldDesc {
    /// Row of Field in the metadata of the module that defines the type.
    pub(super) rid: u32,
    pub(super) storage: Storage,
    /// As the runtime has it: without the method table pointer.
    pub(super) offset: u64,
    /// `CorElementType`; references are `CLASS`, enums are what they are made of.
    pub(super) element: u8,
}

/// The descriptors of the fields that a type declares itself.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnFields {
    pub(super) instance: Vec<FieldDesc>,
    pub(super) statics: Vec<FieldDesc>,
}

/// Finds fields.
#[derive(Clone, Debug)]
pub struct Fields {
    memory: Arc<Memory>,
    desc: FieldDescLayout,
    desc_bytes: u64,
    class: ClassLayout,
    packed: Option<PackedLayout>,
    string: StringLayout,
}

impl Fields {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] where the descriptor lacks what fields need: .NET 9 and 10 publish no FieldDesc, the overlays add it.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Fields, ContractError> {
        Ok(Fields {
            memory: Arc::clone(memory),
            desc: FieldDescLayout::bind(d)?,
            desc_bytes: d.size_of("FieldDesc")?,
            class: ClassLayout::bind(d)?,
            packed: PackedLayout::bind(d).ok(),
            string: StringLayout::bind(d)?,
        })
    }

    /// Instance fields of a type, inherited ones included, and static fields of its own.
    fn counts(&self, class: Addr) -> Option<(u32, u32)> {
        if let Some(at) = self.class.count {
            let read = |at: u64| self.memory.u16(class.plus(at)).ok().map(u32::from);
            return Some((read(at)?, self.class.statics.and_then(read).unwrap_or(0)));
        }
        // Packed, the counts have as many bits as they need; no class of 738 was.
        if self.class.packed.is_some_and(|at| self.memory.u8(class.plus(at)).ok().is_some_and(|p| p != 0)) {
            return None;
        }
        let fixed = u64::from(self.memory.u8(class.plus(self.class.fixed_size?)).ok()?);
        let read = |at: u64| self.memory.u32(class.plus(fixed).plus(at)).ok();
        let packed = self.packed.as_ref()?;
        Some((read(packed.count)?, read(packed.statics)?))
    }

    /// `CorElementType` of the type as a value: what an enum is made of, `VALUETYPE` for structures.
    pub(super) fn element_type(&self, class: Addr) -> Option<u8> {
        self.memory.u8(class.plus(self.class.element?)).ok()
    }

    fn desc(&self, at: Addr) -> Option<FieldDesc> {
        let (token, place) = (self.memory.u32(at.plus(self.desc.token)).ok()?, self.memory.u32(at.plus(self.desc.offset)).ok()?);
        let storage = match token {
            t if t & IS_STATIC == 0 => Storage::Instance,
            t if t & IS_THREAD_STATIC != 0 => Storage::ThreadStatic,
            t if t & IS_RVA != 0 => Storage::Rva,
            _ => Storage::Static,
        };
        Some(FieldDesc {
            rid: token & TOKEN_MASK,
            storage,
            offset: u64::from(place & OFFSET_MASK),
            element: u8::try_from(place >> TYPE_SHIFT).ok()?,
        })
    }

    /// The fields that a type declares itself: instance fields first, as the runtime keeps them.
    pub(super) fn own(&self, names: &TypeNames, info: &MethodTableInfo) -> Option<OwnFields> {
        let tables = names.method_tables();
        let class = tables.class(info.address).ok()?;
        let inherited = if info.parent.is_null() { 0 } else { self.counts(tables.class(info.parent).ok()?)?.0 };
        let (all, statics) = self.counts(class)?;
        let own = all.checked_sub(inherited)?.min(MAX_FIELDS);
        let statics = statics.min(MAX_FIELDS);
        let list = self.memory.ptr(class.plus(self.class.fields)).ok()?;
        let read = |list: Addr, from: u32, count: u32| {
            let places = (u64::from(from)..).take(usize::try_from(count).unwrap_or(0));
            places.map_while(|i| self.desc(list.element(i, self.desc_bytes))).collect::<Vec<_>>()
        };
        let instance = read(list, 0, own);
        // .NET 8: instances of generic types have a copy of the descriptors of their statics.
        let statics = match tables.generic_statics(info) {
            Some((list, _)) => read(list, 0, statics),
            None => read(list, own, statics),
        };
        Some(OwnFields { instance, statics })
    }

    /// Offset from the start of the object of the field `name` that the type itself declares.
    pub fn offset(&self, names: &TypeNames, mt: Addr, name: &str) -> Option<u64> {
        let tables = names.method_tables();
        let info = tables.read(mt).ok()?;
        let module = names.module(tables.module(&info).ok()?);
        let metadata = module.metadata.as_ref()?;
        let own = self.own(names, &info)?.instance;
        let field = own.iter().find(|f| metadata.field_name(f.rid).is_some_and(|n| n == name))?;
        Some(self.memory.ptr_bytes().saturating_add(field.offset))
    }

    /// The content of the string object at `address`, at most `cap` characters.
    pub fn string(&self, address: Addr, cap: u32) -> Option<String> {
        let length = self.string_length(address)?.min(cap);
        self.holds_text(address, u64::from(length));
        self.memory.utf16(address.plus(self.string.first), u64::from(length) * 2, u64::from(cap) * 2).ok()
    }

    /// Characters (UTF-16 units) of the string object at `address`.
    pub fn string_length(&self, address: Addr) -> Option<u32> {
        self.memory.u32(address.plus(self.string.length)).ok()
    }

    /// Where the characters of a string begin, from the start of the object in bytes.
    pub fn string_content(&self) -> u64 {
        self.string.first
    }

    /// The text of the string object at `address`, at most `cap` characters (UTF-16 units) of it, and the length of all of
    /// it; halves of surrogate pairs that stand alone become U+FFFD.
    pub fn string_text(&self, address: Addr, cap: u32) -> Option<(String, u32)> {
        let length = self.string_length(address)?;
        let units = self.string_units(address, cap)?;
        let units = match units.split_last() {
            // A pair that the cap cut in two.
            Some((last, rest)) if (0xd800..0xdc00).contains(last) && length > cap => rest,
            _ => units.as_slice(),
        };
        let text = char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Some((text, length))
    }

    fn holds_text(&self, string: Addr, length: u64) {
        let first = string.plus(self.string.first);
        self.memory.holds_text(AddrRange::new(first, first.plus(length.saturating_mul(2))));
    }

    /// The UTF-16 units of the string object at `address`, at most `cap`; unlike [`Fields::string`], also those behind a NUL.
    pub(super) fn string_units(&self, address: Addr, cap: u32) -> Option<Vec<u16>> {
        let length = u64::from(self.string_length(address)?.min(cap));
        self.holds_text(address, length);
        let bytes = self.memory.bytes(address.plus(self.string.first), length.checked_mul(2)?).ok()?;
        let shape = self.memory.shape();
        Some(bytes.as_chunks::<2>().0.iter().filter_map(|c| u16::try_from(shape.number(c)).ok()).collect())
    }
}
