//! Method tables of NativeAOT ("EEType"). The compiler generates them. The runtime creates method tables of types that only reflection needs.
//!
//! Source: contract `RuntimeTypeSystem` n1; `MethodTable.h`, `MethodTable.cs`; measured on .NET 8.0.31, 9.0.20, 10.0.12 and 11.0.0.

use super::info::{Category, MethodTableInfo, WellKnown};
use crate::base::missed::tried;
use crate::base::{Addr, CorElementType};
use crate::clr::aot::has_pointers;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, HAS_COMPONENT_SIZE, MethodTable, bind, component_size};
use crate::memory::{Memory, ReadError};
use crate::model::Generics;

// Bits of `Flags`. Assertions in the runtime keep them stable for readers of the debug header.
const KIND: u32 = 0x0003_0000;
const KIND_DEFINITION: u32 = 0x0003_0000;
const DISPATCH_MAP: u32 = 0x0004_0000;
const DYNAMIC: u32 = 0x0008_0000;
const FINALIZER: u32 = 0x0010_0000;
const SEALED_SLOTS: u32 = 0x0040_0000;
/// Flag of .NET 8, where another flag indicates references.
const OPTIONAL_FIELDS: u32 = 0x0100_0000;
const GENERIC: u32 = 0x0200_0000;
const ELEMENT_SHIFT: u32 = 26;
const ELEMENT_MASK: u32 = 0x1f;

// Element types (`EETypeElementType`). The values up to 0x0b are those of metadata; 0x0c to 0x0f are `IntPtr`, `UIntPtr`, `Single` and
// `Double`.
const ELEMENT_VALUE_TYPE: u32 = 0x10;
const ELEMENT_NULLABLE: u32 = 0x12;
const ELEMENT_CLASS: u32 = 0x14;
const ELEMENT_INTERFACE: u32 = 0x15;
const ELEMENT_SYSTEM_ARRAY: u32 = 0x16;
const ELEMENT_ARRAY: u32 = 0x17;
const ELEMENT_SZ_ARRAY: u32 = 0x18;
const ELEMENT_LAST: u32 = 0x1b;

/// Maximum length of a chain of base types.
const MAX_BASES: usize = 256;
/// Upper limit of the number of vtable slots and of interfaces.
const MAX_SLOTS: u16 = 0x4000;
/// Maximum number of arguments of a generic type.
const MAX_ARGUMENTS: u32 = 64;

/// Reader of NativeAOT's method tables.
#[derive(Clone, Debug)]
pub(super) struct NativeAot {
    table: Bound<MethodTable>,
    /// The flag of types whose objects contain references.
    has_pointers: u32,
}

impl NativeAot {
    pub(super) fn bind(d: &Descriptor) -> Result<NativeAot, ContractError> {
        let table = bind!(d, MethodTable { Flags, BaseSize, RelatedType, NumVtableSlots, NumInterfaces, VTable })?;
        Ok(NativeAot { table, has_pointers: has_pointers(d) })
    }

    pub(super) fn read(&self, memory: &Memory, known: &WellKnown, mt: Addr) -> Result<MethodTableInfo, ReadError> {
        let flags = self.table.read(memory, mt, MethodTable::Flags)?;
        let kind = flags & KIND;
        let is_free = known.free == Some(mt);
        let component_size = component_size(flags).unwrap_or(0);
        let category = match element(flags) {
            // A free object is an array of bytes without an element type.
            _ if is_free => Category::Class,
            ELEMENT_SZ_ARRAY => Category::SzArray,
            ELEMENT_ARRAY => Category::Array,
            ELEMENT_INTERFACE => Category::Interface,
            1..=ELEMENT_NULLABLE => Category::ValueType,
            _ => Category::Class,
        };
        let is_array = matches!(category, Category::Array | Category::SzArray);
        let generics = match kind {
            KIND_DEFINITION => Generics::Definition,
            _ if flags & GENERIC != 0 => Generics::Instance,
            _ => Generics::None,
        };
        let related = self.table.read(memory, mt, MethodTable::RelatedType)?;
        Ok(MethodTableInfo {
            address: mt,
            flags,
            base_size: self.table.read(memory, mt, MethodTable::BaseSize)?,
            component_size,
            contains_pointers: flags & self.has_pointers != 0,
            is_collectible: false,
            has_finalizer: flags & FINALIZER != 0,
            category,
            generics,
            is_array,
            is_string: component_size == 2 && kind == 0 && !is_free,
            is_free,
            class_or_canonical: Addr::NULL,
            parent: if kind == 0 { related } else { Addr::NULL },
        })
    }

    /// The base type, or for arrays and pointers the element type.
    pub(super) fn related(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        self.table.read(memory, mt, MethodTable::RelatedType)
    }

    pub(super) fn interfaces(&self, memory: &Memory, mt: Addr) -> Option<u16> {
        self.table.get(memory, mt, MethodTable::NumInterfaces)
    }

    /// Whether the chain of element types and base types from `mt` ends at a type without a base type.
    pub(super) fn is_valid(&self, memory: &Memory, mt: Addr) -> Result<bool, ReadError> {
        let mut at = mt;
        if self.holds_statics(memory, mt)? {
            // The method table of a block of statics ends after its base type.
            at = self.related(memory, mt)?;
        }
        for _ in 0..MAX_BASES {
            let flags = self.table.read(memory, at, MethodTable::Flags)?;
            let (kind, element) = (flags & KIND, element(flags));
            let slots = self.table.read(memory, at, MethodTable::NumVtableSlots)?;
            let interfaces = self.table.read(memory, at, MethodTable::NumInterfaces)?;
            let small = flags & HAS_COMPONENT_SIZE != 0 || flags & 0xffff < 0x100;
            if kind == KIND_DEFINITION {
                return Ok(at != mt);
            }
            if element == 0 || element > ELEMENT_LAST || slots > MAX_SLOTS || interfaces > MAX_SLOTS || !small {
                return Ok(false);
            }
            let related = self.related(memory, at)?;
            if related.is_null() {
                let base_size = u64::from(self.table.read(memory, at, MethodTable::BaseSize)?);
                let root = element == ELEMENT_CLASS && base_size == memory.ptr_bytes().saturating_mul(3) && slots > 0;
                return Ok(kind == 0 && (root || element == ELEMENT_INTERFACE));
            }
            if !related.is_aligned(memory.ptr_bytes()) || related == at {
                return Ok(false);
            }
            at = related;
        }
        Ok(false)
    }

    /// Whether objects with this method table contain the static fields of a type (`__GCStaticEEType_…`). Such a method table is truncated
    /// after the base type, and has no element type.
    pub(super) fn holds_statics(&self, memory: &Memory, mt: Addr) -> Result<bool, ReadError> {
        let word = memory.ptr_bytes();
        // Only the flag for references may be set. A block without references does not have that flag either.
        if self.table.read(memory, mt, MethodTable::Flags)? & !self.has_pointers != 0 {
            return Ok(false);
        }
        let base = self.related(memory, mt)?;
        let is_root = || Ok(self.table.read(memory, base, MethodTable::RelatedType)?.is_null());
        Ok(base.is_aligned(word) && !base.is_null() && is_root()?)
    }

    /// The primitive type of the method table; `None` if the type is not a primitive. Enums have the same element types as primitives, but the base
    /// type `System.Enum` instead of `System.ValueType`.
    pub(super) fn primitive(&self, memory: &Memory, info: &MethodTableInfo) -> Option<CorElementType> {
        let element = NativeAot::value_type(info.flags)?;
        (!self.is_enum(memory, info)).then_some(element)
    }

    /// Element type, as in metadata, of the values of a primitive or an enum.
    pub(super) fn value_type(flags: u32) -> Option<CorElementType> {
        match element(flags) {
            // From `void` to `ulong`, the values are the same as in metadata.
            n @ 1..=0xb => CorElementType::of(u8::try_from(n).ok()?),
            0xc => Some(CorElementType::I),
            0xd => Some(CorElementType::U),
            0xe => Some(CorElementType::R4),
            0xf => Some(CorElementType::R8),
            _ => None,
        }
    }

    /// Whether the type is an enum. The chain of base types of an enum has three types, and the chain of a primitive has two.
    pub(super) fn is_enum(&self, memory: &Memory, info: &MethodTableInfo) -> bool {
        let base = |mt: Addr| self.related(memory, mt).ok().filter(|b| !b.is_null());
        let depth = std::iter::successors(base(info.address), |mt| base(*mt)).take(MAX_BASES).count();
        info.flags & KIND == 0 && (1..ELEMENT_VALUE_TYPE).contains(&element(info.flags)) && depth == 3
    }

    pub(super) fn is_nullable(flags: u32) -> bool {
        element(flags) == ELEMENT_NULLABLE
    }

    /// The name of a type that its element type determines.
    pub(super) fn known_name(&self, memory: &Memory, info: &MethodTableInfo) -> Option<&'static str> {
        let is_object = || self.related(memory, info.address) == Ok(Addr::NULL) && element(info.flags) == ELEMENT_CLASS;
        match element(info.flags) {
            _ if info.is_string => Some("System.String"),
            _ if info.is_free || info.flags & KIND != 0 => None,
            ELEMENT_SYSTEM_ARRAY => Some("System.Array"),
            ELEMENT_CLASS if is_object() => Some("System.Object"),
            _ => self.primitive(memory, info)?.type_name(),
        }
    }

    /// Number of parameters of a generic definition. It is stored in the field of the base size or, in .NET 8, of the component size.
    fn parameters(&self, memory: &Memory, definition: Addr) -> Result<u32, ReadError> {
        let flags = self.table.read(memory, definition, MethodTable::Flags)?;
        if flags & HAS_COMPONENT_SIZE != 0 { Ok(flags & 0xffff) } else { self.table.read(memory, definition, MethodTable::BaseSize) }
    }

    /// The definition and the arguments of a generic instance.
    pub(super) fn instance(&self, memory: &Memory, mt: Addr) -> Result<(Addr, Vec<Addr>), ReadError> {
        let table = &self.table;
        let flags = table.read(memory, mt, MethodTable::Flags)?;
        let slots = u64::from(table.read(memory, mt, MethodTable::NumVtableSlots)?);
        let slots = slots.saturating_add(u64::from(table.read(memory, mt, MethodTable::NumInterfaces)?));
        // Compiler-generated types contain 32-bit relative addresses; types created at run time contain full pointers.
        let dynamic = flags & DYNAMIC != 0;
        let width = if dynamic { memory.ptr_bytes() } else { 4 };
        let tail = table.at(mt, MethodTable::VTable)?.element(slots, memory.ptr_bytes());
        // The type manager and the writable data come before the optional pointers.
        let optional_fields = if self.has_pointers == OPTIONAL_FIELDS { 0 } else { OPTIONAL_FIELDS };
        let optional = [DISPATCH_MAP, FINALIZER, optional_fields, SEALED_SLOTS].iter().filter(|f| flags & **f != 0).count();
        let before = u64::try_from(optional).unwrap_or(0).saturating_add(2);
        let at = |i: u64| tail.element(before.saturating_add(i), width);
        let leads = |at: Addr| if dynamic { memory.ptr(at) } else { relative(memory, at) };
        let definition = leads(at(0))?;
        let count = self.parameters(memory, definition)?.min(MAX_ARGUMENTS);
        let list = leads(at(1))?;
        if count == 1 {
            return Ok((definition, vec![list]));
        }
        let plausible = |a: Addr| a.is_aligned(memory.ptr_bytes()) && table.read(memory, a, MethodTable::Flags).is_ok();
        // The list has relative addresses or full pointers. A full pointer that is read as a relative address yields an arbitrary address. The list
        // therefore has relative addresses if the first element, read as a relative address, leads to a valid method table.
        let near = tried(|| relative(memory, list).is_ok_and(|a| plausible(a) && self.is_valid(memory, a).unwrap_or(false)));
        let arguments = (0..u64::from(count)).map(|i| match near {
            true => relative(memory, list.element(i, 4)),
            false => memory.ptr(list.element(i, memory.ptr_bytes())),
        });
        Ok((definition, arguments.collect::<Result<_, _>>()?))
    }
}

fn element(flags: u32) -> u32 {
    flags >> ELEMENT_SHIFT & ELEMENT_MASK
}

/// The address to which the 32-bit relative address at `at` points.
fn relative(memory: &Memory, at: Addr) -> Result<Addr, ReadError> {
    let distance = i64::from(memory.i32(at)?);
    Ok(Addr(at.0.wrapping_add_signed(distance)))
}
