//! Method tables of CoreCLR. Release-specific parts are in separate modules.
//!
//! Source: contract `RuntimeTypeSystem` 1.

use super::info::{Category, MethodTableInfo, WellKnown};
use super::net8::Net8;
use super::net9::Net9;
use crate::base::missed::may_be_mapped;
use crate::base::{Addr, CorElementType};
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, EEClass, HAS_COMPONENT_SIZE, MethodTable, bind, component_size};
use crate::memory::{Memory, ReadError};
use crate::model::Generics;

// Bits of `MTFlags`.
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
const GENERICS: u32 = 0x30;
const GENERICS_DEFINITION: u32 = 0x30;

/// Release-specific parts: the TypeDef row, the modules and the statics of a type.
#[derive(Clone, Debug)]
enum Release {
    Net8(Net8),
    Net9(Net9),
}

impl Release {
    fn bind(d: &Descriptor) -> Result<Release, ContractError> {
        if Net8::fits(d) { Net8::bind(d).map(Release::Net8) } else { Net9::bind(d).map(Release::Net9) }
    }
}

/// Reader of CoreCLR's method tables.
#[derive(Clone, Debug)]
pub(super) struct CoreClr {
    /// The fields that exist in all releases.
    table: Bound<MethodTable>,
    class: Bound<EEClass>,
    release: Release,
    collectible: u32,
    /// Bit of `EEClassOrCanonMT` that is set if the word is a canonical method table and not an EEClass. It is bit 0, or bit 1 before .NET
    /// 8.
    canonical_tag: u64,
    continuations: Option<Continuations>,
}

/// The types of continuations (.NET 11). The runtime creates these types for suspended methods, and all of them share one EEClass.
#[derive(Clone, Copy, Debug)]
struct Continuations {
    /// The base type, `System.Runtime.CompilerServices.Continuation`.
    base: Addr,
    /// The shared EEClass; null until the first of these types is created.
    class: Addr,
}

impl Continuations {
    fn bind(memory: &Memory, d: &Descriptor) -> Option<Continuations> {
        let variable = |name| d.pointer(name).ok().and_then(|at| memory.ptr(at).ok());
        let base = variable("ContinuationMethodTable").filter(|at| !at.is_null())?;
        Some(Continuations { base, class: variable("ContinuationSingletonEEClass").unwrap_or(Addr::NULL) })
    }
}

impl CoreClr {
    pub(super) fn bind(memory: &Memory, d: &Descriptor) -> Result<CoreClr, ContractError> {
        let collectible = d.number("MethodTableFlagCollectible").ok().and_then(|n| u32::try_from(n).ok());
        Ok(CoreClr {
            table: bind!(d, MethodTable { MTFlags, BaseSize, ParentMethodTable, EEClassOrCanonMT, PerInstInfo, NumInterfaces? })?,
            class: bind!(d, EEClass { MethodTable, InternalCorElementType? })?,
            release: Release::bind(d)?,
            collectible: collectible.unwrap_or(COLLECTIBLE),
            canonical_tag: d.number("CanonicalMethodTableTag").unwrap_or(1),
            continuations: Continuations::bind(memory, d),
        })
    }

    pub(super) fn read(&self, memory: &Memory, known: &WellKnown, mt: Addr) -> Result<MethodTableInfo, ReadError> {
        let table = &self.table;
        let flags = table.read(memory, mt, MethodTable::MTFlags)?;
        let component_size = component_size(flags).unwrap_or(0);
        let category = category(flags);
        let is_array = matches!(category, Category::Array | Category::SzArray);
        let is_free = known.free == Some(mt);
        let generics = match flags & GENERICS {
            _ if flags & HAS_COMPONENT_SIZE != 0 => Generics::None,
            0 => Generics::None,
            GENERICS_DEFINITION => Generics::Definition,
            _ => Generics::Instance,
        };
        Ok(MethodTableInfo {
            address: mt,
            flags,
            base_size: table.read(memory, mt, MethodTable::BaseSize)?,
            component_size,
            contains_pointers: flags & CONTAINS_POINTERS != 0,
            is_collectible: flags & self.collectible != 0,
            has_finalizer: flags & FINALIZER != 0,
            category,
            generics,
            is_array,
            is_string: known.string.map_or(component_size == 2 && !is_array && !is_free, |s| s == mt),
            is_free,
            class_or_canonical: table.read(memory, mt, MethodTable::EEClassOrCanonMT)?,
            parent: table.read(memory, mt, MethodTable::ParentMethodTable)?,
        })
    }

    pub(super) fn canonical(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        let word = self.table.read(memory, mt, MethodTable::EEClassOrCanonMT)?;
        let tag = self.canonical_tag;
        Ok(if word.0 & tag != 0 { Addr(word.0 & !tag) } else { mt })
    }

    pub(super) fn class(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        let canonical = self.canonical(memory, mt)?;
        self.table.read(memory, canonical, MethodTable::EEClassOrCanonMT)
    }

    /// The method table to which the EEClass at `class` points; not validated.
    pub(super) fn of_class(&self, memory: &Memory, class: Addr) -> Result<Addr, ReadError> {
        self.class.read(memory, class, EEClass::MethodTable)
    }

    /// The base type of continuations, if `mt` is a continuation type that the runtime created for a method.
    pub(super) fn continuation(&self, memory: &Memory, mt: Addr) -> Result<Option<Addr>, ReadError> {
        let Some(Continuations { base, class }) = self.continuations else { return Ok(None) };
        if mt == base || self.table.read(memory, mt, MethodTable::ParentMethodTable)? != base {
            return Ok(None);
        }
        Ok((self.table.read(memory, mt, MethodTable::EEClassOrCanonMT)? == class).then_some(base))
    }

    /// Whether the EEClass of `mt` points back to its canonical method table, or is the shared EEClass of continuations.
    pub(super) fn is_valid(&self, memory: &Memory, mt: Addr) -> Result<bool, ReadError> {
        let canonical = self.canonical(memory, mt)?;
        if canonical != mt && !may_be_mapped(canonical) {
            return Ok(false);
        }
        let class = self.table.read(memory, canonical, MethodTable::EEClassOrCanonMT)?;
        // A structure full of pointers to itself is not a method table.
        if !may_be_mapped(class) || class == canonical || !class.is_aligned(memory.ptr_bytes()) {
            return Ok(false);
        }
        if self.class.read(memory, class, EEClass::MethodTable)? == canonical {
            return Ok(true);
        }
        Ok(self.continuation(memory, canonical)?.is_some())
    }

    pub(super) fn per_inst_info(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        self.table.read(memory, mt, MethodTable::PerInstInfo)
    }

    pub(super) fn module(&self, memory: &Memory, info: &MethodTableInfo) -> Result<Addr, ReadError> {
        match &self.release {
            Release::Net8(net8) => net8.module(memory, info, || self.canonical(memory, info.address)),
            Release::Net9(net9) => net9.module(memory, info.address),
        }
    }

    pub(super) fn rid(&self, memory: &Memory, info: &MethodTableInfo) -> Result<u32, ReadError> {
        match &self.release {
            Release::Net8(net8) => net8.rid(memory, info),
            Release::Net9(net9) => net9.rid(memory, info.address),
        }
    }

    pub(super) fn statics_end(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        match &self.release {
            Release::Net8(_) => None,
            Release::Net9(net9) => net9.statics_end(memory, mt),
        }
    }

    pub(super) fn generic_statics(&self, memory: &Memory, info: &MethodTableInfo) -> Option<(Addr, u64)> {
        match &self.release {
            Release::Net8(net8) => net8.generic_statics(memory, info),
            Release::Net9(_) => None,
        }
    }

    pub(super) fn loader_module(&self, memory: &Memory, mt: Addr) -> Option<Addr> {
        let at = match &self.release {
            Release::Net8(net8) => net8.loader_module(mt)?,
            Release::Net9(net9) => net9.loader_module(memory, mt)?,
        };
        memory.ptr(at).ok().filter(|m| !m.is_null())
    }

    pub(super) fn interfaces(&self, memory: &Memory, mt: Addr) -> Option<u16> {
        self.table.get(memory, mt, MethodTable::NumInterfaces)
    }

    pub(super) fn is_enum(flags: u32) -> bool {
        flags & CATEGORY == CATEGORY_ENUM
    }

    pub(super) fn is_nullable(flags: u32) -> bool {
        flags & CATEGORY == CATEGORY_NULLABLE
    }

    /// The primitive type of the method table; `None` if the type is not a primitive (`enum_flag_Category_TruePrimitive`).
    pub(super) fn primitive(&self, memory: &Memory, info: &MethodTableInfo) -> Option<CorElementType> {
        if info.flags & CATEGORY != CATEGORY_PRIMITIVE {
            return None;
        }
        let class = self.class(memory, info.address).ok()?;
        CorElementType::of(self.class.get(memory, class, EEClass::InternalCorElementType)?)
    }

    pub(super) fn is_primitive(flags: u32) -> bool {
        flags & CATEGORY == CATEGORY_PRIMITIVE
    }
}

pub(super) fn category(flags: u32) -> Category {
    match flags & CATEGORY {
        CATEGORY_ARRAY => Category::Array,
        CATEGORY_SZ_ARRAY => Category::SzArray,
        CATEGORY_INTERFACE => Category::Interface,
        c if c & CATEGORY_VALUE_TYPE_MASK == CATEGORY_VALUE_TYPE => Category::ValueType,
        _ => Category::Class,
    }
}
