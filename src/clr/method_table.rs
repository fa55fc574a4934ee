//! Method tables: the runtime's description of a type, which every object points to.
//!
//! Source: contract `RuntimeTypeSystem`; for .NET 8 `methodtable.h` and `docs/internals/types.md#net-8-method-tables`.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};
use crate::memory::{Memory, ReadError};
pub use crate::model::Generics;

// Bits of MTFlags.
const CATEGORY: u32 = 0x000f_0000;
const CATEGORY_VALUE_TYPE: u32 = 0x0004_0000;
const CATEGORY_NULLABLE: u32 = 0x0005_0000;
const CATEGORY_ENUM: u32 = 0x0006_0000;
const CATEGORY_PRIMITIVE: u32 = 0x0007_0000;
const CATEGORY_VALUE_TYPE_MASK: u32 = 0x000c_0000;
const CATEGORY_ARRAY: u32 = 0x0008_0000;
const CATEGORY_SZ_ARRAY: u32 = 0x000a_0000;
const CATEGORY_INTERFACE: u32 = 0x000c_0000;
const FINALIZER: u32 = 0x0010_0000;
const COLLECTIBLE: u32 = 0x0020_0000;
const CONTAINS_POINTERS: u32 = 0x0100_0000;
const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;
const GENERICS: u32 = 0x30;
const GENERICS_DEFINITION: u32 = 0x30;
/// .NET 8: a generic type with static fields.
const GENERIC_STATICS: u32 = 0x4;

// .NET 8: bits of the 16-bit flags2, one for each optional pointer behind the fixed part.
const SLOTS: u16 = 0x1f;
const SLOT_INTERFACE_MAP: u16 = 0x2;
const SLOT_MODULE_OVERRIDE: u16 = 0x10;
/// .NET 9 and later, in flags2: statics lie before the auxiliary data (`enum_flag_HasDynamicStatics`).
const DYNAMIC_STATICS: u32 = 0x2;
/// .NET 8: virtual methods per chunk of the vtable (`VTABLE_SLOTS_PER_CHUNK`).
const VTABLE_CHUNK: u64 = 8;
/// .NET 8: the TypeDef row does not fit 16 bits.
const RID_OVERFLOW: u16 = 0xffff;

layout! {
    /// Offsets of `MethodTable` that all versions have.
    struct Layout : "MethodTable" {
        flags: req "MTFlags",
        base_size: req "BaseSize",
        parent: req "ParentMethodTable",
        class: req "EEClassOrCanonMT",
        per_inst_info: req "PerInstInfo",
        interfaces: opt "NumInterfaces",
    }
}

layout! {
    /// How .NET 9 and later write down the TypeDef row and the module of a type.
    struct PlainLayout : "MethodTable" {
        flags2: req "MTFlags2",
        module: req "Module",
        auxiliary: opt "AuxiliaryData",
    }
}

layout! {
    /// How .NET 8 does: 16 bits of row, 16 bits of flags, and overflow slots behind the vtable.
    struct PackedLayout : "MethodTable" {
        rid: req "TypeDefRidShort",
        flags2: req "Flags2Short",
        virtuals: req "NumVirtuals",
        module: req "LoaderModule",
        slot1: req "PerInstInfo",
        slot2: req "InterfaceMap",
    }
}

layout! {
    struct ClassLayout : "EEClass" {
        method_table: req "MethodTable",
    }
}

#[derive(Clone, Debug)]
enum Identity {
    Plain(PlainLayout),
    Packed(PackedLayout, Packed),
}

/// Size of the fixed part of a packed method table.
#[derive(Clone, Copy, Debug)]
struct Packed {
    size: u64,
}

impl Identity {
    fn bind(d: &Descriptor) -> Result<Identity, ContractError> {
        // Only .NET 8 has a row of 16 bits.
        if d.offset("MethodTable", "TypeDefRidShort").is_ok() {
            return Ok(Identity::Packed(PackedLayout::bind(d)?, Packed { size: d.size_of("MethodTable")? }));
        }
        PlainLayout::bind(d).map(Identity::Plain)
    }
}

/// Bits of an object's first word that are not part of the method table pointer: the mark, the bridge mark and one of the
/// GC's own (Object contract).
pub fn object_unmask(memory: &Memory, descriptor: &Descriptor) -> u64 {
    descriptor.number("ObjectToMethodTableUnmask").unwrap_or_else(|_| memory.ptr_bytes().saturating_sub(1))
}

/// What a type is (`enum_flag_Category_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A class.
    Class,
    /// A structure, an enum, `Nullable`, a primitive.
    ValueType,
    /// An interface.
    Interface,
    /// A one-dimensional array that starts at 0.
    SzArray,
    /// Any other array.
    Array,
}

/// One method table, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodTableInfo {
    /// Where it is.
    pub address: Addr,
    /// `MTFlags` as written.
    pub flags: u32,
    /// Bytes of an object without its elements, the header word included.
    pub base_size: u32,
    /// Bytes of an element; 0 for objects of fixed size.
    pub component_size: u32,
    /// Whether objects hold references, so that a CGCDesc lies before the method table.
    pub contains_pointers: bool,
    /// Whether the type can be unloaded.
    pub is_collectible: bool,
    /// Whether the type has a finalizer.
    pub has_finalizer: bool,
    /// Kind of type.
    pub category: Category,
    /// Whether the type is generic.
    pub generics: Generics,
    /// Whether this is an array, of either kind.
    pub is_array: bool,
    /// Whether this is `System.String`.
    pub is_string: bool,
    /// Whether this describes free space, not objects.
    pub is_free: bool,
    /// `EEClassOrCanonMT` as written: bit 0 marks a pointer to the canonical method table.
    pub class_or_canonical: Addr,
    /// Method table of the base type.
    pub parent: Addr,
}

/// Reads method tables.
#[derive(Clone, Debug)]
pub struct MethodTables {
    memory: Arc<Memory>,
    layout: Layout,
    class: ClassLayout,
    identity: Identity,
    /// Where the auxiliary data of .NET 9 and later have the loader's module.
    loader: Option<u64>,
    collectible: u32,
    /// Method table of `System.String`.
    pub string: Option<Addr>,
    /// Method table of free space.
    pub free: Option<Addr>,
    /// Method table of `System.Object`.
    pub object: Option<Addr>,
}

impl MethodTables {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] where the descriptor lacks an offset.
    pub fn new(memory: &Arc<Memory>, descriptor: &Descriptor) -> Result<MethodTables, ContractError> {
        let layout = Layout::bind(descriptor)?;
        let well_known = |name| descriptor.pointer(name).ok().and_then(|a| memory.ptr(a).ok()).filter(|a| !a.is_null());
        let collectible = descriptor.number("MethodTableFlagCollectible").ok().and_then(|n| u32::try_from(n).ok());
        Ok(MethodTables {
            memory: Arc::clone(memory),
            class: ClassLayout::bind(descriptor)?,
            identity: Identity::bind(descriptor)?,
            loader: descriptor.offset("MethodTableAuxiliaryData", "LoaderModule").ok(),
            layout,
            collectible: collectible.unwrap_or(COLLECTIBLE),
            string: well_known("StringMethodTable"),
            free: well_known("FreeObjectMethodTable"),
            object: well_known("ObjectMethodTable"),
        })
    }

    /// Reads the method table at `mt`. Says nothing about whether there is one: see [`MethodTables::is_valid`].
    ///
    /// # Errors
    /// [`ReadError`] where a part of it is absent.
    pub fn read(&self, mt: Addr) -> Result<MethodTableInfo, ReadError> {
        let l = &self.layout;
        let flags = self.memory.u32(mt.plus(l.flags))?;
        let component_size = if flags & HAS_COMPONENT_SIZE != 0 { flags & 0xffff } else { 0 };
        let category = category(flags);
        let is_array = matches!(category, Category::Array | Category::SzArray);
        let is_free = self.free == Some(mt);
        let generics = match flags & GENERICS {
            _ if flags & HAS_COMPONENT_SIZE != 0 => Generics::None,
            0 => Generics::None,
            GENERICS_DEFINITION => Generics::Definition,
            _ => Generics::Instance,
        };
        Ok(MethodTableInfo {
            address: mt,
            flags,
            base_size: self.memory.u32(mt.plus(l.base_size))?,
            component_size,
            contains_pointers: flags & CONTAINS_POINTERS != 0,
            is_collectible: flags & self.collectible != 0,
            has_finalizer: flags & FINALIZER != 0,
            category,
            generics,
            is_array,
            is_string: self.string.map_or(component_size == 2 && !is_array && !is_free, |s| s == mt),
            is_free,
            class_or_canonical: self.memory.ptr(mt.plus(l.class))?,
            parent: self.memory.ptr(mt.plus(l.parent))?,
        })
    }

    /// The method table that shares its code and its EEClass with `mt`; itself for most types.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn canonical(&self, mt: Addr) -> Result<Addr, ReadError> {
        let word = self.memory.ptr(mt.plus(self.layout.class))?;
        Ok(if word.0 & 1 != 0 { Addr(word.0 & !1) } else { mt })
    }

    /// The EEClass of a type.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn class(&self, mt: Addr) -> Result<Addr, ReadError> {
        let canonical = self.canonical(mt)?;
        self.memory.ptr(canonical.plus(self.layout.class))
    }

    /// Whether there is a method table at `mt`: its EEClass points back to its canonical method table.
    ///
    /// # Errors
    /// [`ReadError`] where what tells is not in the dump.
    pub fn is_valid(&self, mt: Addr) -> Result<bool, ReadError> {
        if mt.is_null() || !mt.is_aligned(self.memory.ptr_bytes()) {
            return Ok(false);
        }
        // That of free space has no EEClass, and those that the runtime's globals name need no proof: a mini dump holds the
        // method table of strings but not the class behind it.
        if [self.free, self.string, self.object].contains(&Some(mt)) {
            return Ok(true);
        }
        let canonical = self.canonical(mt)?;
        let class = self.memory.ptr(canonical.plus(self.layout.class))?;
        // A structure that points to itself again and again is no method table.
        if class.is_null() || class == canonical || !class.is_aligned(self.memory.ptr_bytes()) {
            return Ok(false);
        }
        Ok(self.memory.ptr(class.plus(self.class.method_table))? == canonical)
    }

    /// The element type of an array, as a type handle.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn element_type(&self, mt: Addr) -> Result<Addr, ReadError> {
        self.memory.ptr(mt.plus(self.layout.per_inst_info))
    }

    /// The dictionaries of a generic instance.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn per_inst_info(&self, mt: Addr) -> Result<Addr, ReadError> {
        self.memory.ptr(mt.plus(self.layout.per_inst_info))
    }

    /// The module that defines a type. Of an array: the module of its loader, not of its element.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn module(&self, info: &MethodTableInfo) -> Result<Addr, ReadError> {
        let layout = match &self.identity {
            Identity::Plain(layout) => return self.memory.ptr(info.address.plus(layout.module)),
            Identity::Packed(layout, _) => layout,
        };
        // The loader's module is the defining one, except for instances over collectible types.
        if info.generics == Generics::None {
            return self.memory.ptr(info.address.plus(layout.module));
        }
        let canonical = self.canonical(info.address)?;
        let flags2 = self.memory.u16(canonical.plus(layout.flags2))?;
        if flags2 & SLOT_MODULE_OVERRIDE == 0 {
            return self.memory.ptr(canonical.plus(layout.module));
        }
        self.memory.ptr(self.slot(canonical, flags2, SLOT_MODULE_OVERRIDE)?)
    }

    /// Row of the type in TypeDef of its module; 0 for arrays.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn rid(&self, info: &MethodTableInfo) -> Result<u32, ReadError> {
        let mt = info.address;
        let (layout, fixed) = match &self.identity {
            Identity::Plain(layout) => return Ok(self.memory.u32(mt.plus(layout.flags2))? >> 8),
            Identity::Packed(layout, fixed) => (layout, fixed),
        };
        let short = self.memory.u16(mt.plus(layout.rid))?;
        if short != RID_OVERFLOW {
            return Ok(u32::from(short));
        }
        let slots = u64::from((self.memory.u16(mt.plus(layout.flags2))? & SLOTS).count_ones());
        let word = self.memory.ptr_bytes();
        let optional = self.behind_vtable(mt, layout, *fixed)?.element(slots.saturating_sub(2), word);
        let statics = info.flags & HAS_COMPONENT_SIZE == 0 && info.flags & GENERIC_STATICS != 0;
        let at = if statics { optional.element(2, word) } else { optional };
        // Rows have 24 bits; anything above is no row, and finds none.
        Ok(u32::try_from(self.memory.word(at)?).unwrap_or(u32::MAX))
    }

    /// .NET 9 and later: the auxiliary data of a type that has statics; the structures of the statics lie before it.
    pub fn statics_end(&self, mt: Addr) -> Option<Addr> {
        let Identity::Plain(layout) = &self.identity else { return None };
        let flags2 = self.memory.u32(mt.plus(layout.flags2)).ok()?;
        (flags2 & DYNAMIC_STATICS != 0).then_some(())?;
        self.memory.ptr(mt.plus(layout.auxiliary?)).ok().filter(|a| !a.is_null())
    }

    /// .NET 8: of a generic instance with statics, its list of field descriptors and its place in the tables of statics.
    pub fn generic_statics(&self, info: &MethodTableInfo) -> Option<(Addr, u64)> {
        let Identity::Packed(layout, fixed) = &self.identity else { return None };
        (info.flags & HAS_COMPONENT_SIZE == 0 && info.flags & GENERIC_STATICS != 0).then_some(())?;
        let slots = u64::from((self.memory.u16(info.address.plus(layout.flags2)).ok()? & SLOTS).count_ones());
        let word = self.memory.ptr_bytes();
        let at = self.behind_vtable(info.address, layout, *fixed).ok()?.element(slots.saturating_sub(2), word);
        Some((self.memory.ptr(at).ok()?, self.memory.word(at.plus(word)).ok()?))
    }

    /// The module whose loader the type belongs to: that of an argument for an instance over a collectible type. .NET 8: its
    /// tables hold the statics of the type.
    pub fn loader_module(&self, mt: Addr) -> Option<Addr> {
        let at = match &self.identity {
            Identity::Packed(layout, _) => mt.plus(layout.module),
            Identity::Plain(layout) => self.memory.ptr(mt.plus(layout.auxiliary?)).ok().filter(|a| !a.is_null())?.plus(self.loader?),
        };
        self.memory.ptr(at).ok().filter(|m| !m.is_null())
    }

    /// How many interfaces a type implements.
    pub fn interfaces(&self, mt: Addr) -> Option<u16> {
        self.memory.u16(mt.plus(self.layout.interfaces?)).ok()
    }

    /// Whether a type is an enum (`enum_flag_Category_PrimitiveValueType`).
    pub fn is_enum(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_ENUM
    }

    /// Whether a type is one of the primitives (`enum_flag_Category_TruePrimitive`).
    pub fn is_primitive(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_PRIMITIVE
    }

    /// Whether a type is `System.Nullable` (`enum_flag_Category_Nullable`).
    pub fn is_nullable(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_NULLABLE
    }

    /// .NET 8: where the pointers to the chunks of the vtable end.
    fn behind_vtable(&self, mt: Addr, layout: &PackedLayout, fixed: Packed) -> Result<Addr, ReadError> {
        let chunks = u64::from(self.memory.u16(mt.plus(layout.virtuals))?).div_ceil(VTABLE_CHUNK);
        Ok(mt.plus(fixed.size).element(chunks, self.memory.ptr_bytes()))
    }

    /// .NET 8: address of the optional pointer `bit`. The first two lie in the fixed part, the others behind the vtable.
    fn slot(&self, mt: Addr, flags2: u16, bit: u16) -> Result<Addr, ReadError> {
        let Identity::Packed(layout, fixed) = &self.identity else { return Ok(Addr::NULL) };
        let before = flags2 & SLOTS & bit.saturating_sub(1);
        match before.count_ones() {
            0 => Ok(mt.plus(layout.slot1)),
            // The interface map always takes the second place, so whatever comes next takes the first.
            1 if before == SLOT_INTERFACE_MAP => Ok(mt.plus(layout.slot1)),
            1 => Ok(mt.plus(layout.slot2)),
            n => Ok(self.behind_vtable(mt, layout, *fixed)?.element(u64::from(n).saturating_sub(2), self.memory.ptr_bytes())),
        }
    }
}

fn category(flags: u32) -> Category {
    match flags & CATEGORY {
        CATEGORY_ARRAY => Category::Array,
        CATEGORY_SZ_ARRAY => Category::SzArray,
        CATEGORY_INTERFACE => Category::Interface,
        c if c & CATEGORY_VALUE_TYPE_MASK == CATEGORY_VALUE_TYPE => Category::ValueType,
        _ => Category::Class,
    }
}

#[cfg(test)]
mod tests;
