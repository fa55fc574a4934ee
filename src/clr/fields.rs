//! Offsets of instance fields by name: FieldDesc gives the offset, metadata the name.
//!
//! Source: `RuntimeTypeSystem.md` (FieldDesc), net8-overlay §5 and fallback-8-9-10 §5, measured on .NET 8 to 10.

use super::type_names::TypeNames;
use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;

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
        // .NET 8 keeps the count behind the fixed part of the class.
        fixed_size: opt "FixedSize",
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
/// Offset behind the method table pointer.
const OFFSET_MASK: u32 = 0x07ff_ffff;
/// A type with more fields of its own is damage.
const MAX_FIELDS: u32 = 10_000;

/// Finds instance fields.
pub struct Fields<'a> {
    memory: &'a Memory,
    desc: FieldDescLayout,
    desc_bytes: u64,
    class: ClassLayout,
    packed_count: Option<u64>,
    string: StringLayout,
}

impl<'a> Fields<'a> {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] where the descriptor lacks what fields need: .NET 9 and 10 publish no FieldDesc, the overlays add it.
    pub fn bind(memory: &'a Memory, d: &Descriptor) -> Result<Fields<'a>, ContractError> {
        Ok(Fields {
            memory,
            desc: FieldDescLayout::bind(d)?,
            desc_bytes: d.size_of("FieldDesc")?,
            class: ClassLayout::bind(d)?,
            packed_count: d.offset("EEClassPacked", "NumInstanceFields").ok(),
            string: StringLayout::bind(d)?,
        })
    }

    /// Instance fields of a type, inherited ones included.
    fn count(&self, class: Addr) -> Option<u32> {
        if let Some(at) = self.class.count {
            return self.memory.u16(class.plus(at)).ok().map(u32::from);
        }
        let fixed = self.memory.u8(class.plus(self.class.fixed_size?)).ok()?;
        self.memory.u32(class.plus(u64::from(fixed)).plus(self.packed_count?)).ok()
    }

    /// Offset from the start of the object of the field `name` that the type itself declares.
    pub fn offset(&self, names: &TypeNames<'_>, mt: Addr, name: &str) -> Option<u64> {
        let tables = names.method_tables();
        let info = tables.read(mt).ok()?;
        let class = tables.class(mt).ok()?;
        let inherited = if info.parent.is_null() { Some(0) } else { self.count(tables.class(info.parent).ok()?) };
        let own = self.count(class)?.checked_sub(inherited?)?.min(MAX_FIELDS);
        let list = self.memory.ptr(class.plus(self.class.fields)).ok()?;
        let module = names.module(tables.module(&info).ok()?);
        let metadata = module.metadata.as_ref()?;
        (0..u64::from(own)).map(|i| list.element(i, self.desc_bytes)).find_map(|field| {
            let row = self.memory.u32(field.plus(self.desc.token)).ok()? & TOKEN_MASK;
            (metadata.field_name(row)? == name).then_some(())?;
            let offset = self.memory.u32(field.plus(self.desc.offset)).ok()? & OFFSET_MASK;
            Some(self.memory.ptr_bytes().saturating_add(u64::from(offset)))
        })
    }

    /// The content of the string object at `address`, at most `cap` characters.
    pub fn string(&self, address: Addr, cap: u32) -> Option<String> {
        let length = self.memory.u32(address.plus(self.string.length)).ok()?.min(cap);
        self.memory.utf16(address.plus(self.string.first), u64::from(length) * 2, u64::from(cap) * 2).ok()
    }
}
