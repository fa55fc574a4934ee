//! Method tables: the type structure that every object points to.
//!
//! Source: contract `RuntimeTypeSystem`. Parts common to all releases are read here; `Release` covers the differences.

mod net8;
mod net9;

use std::sync::Arc;

use super::metadata::signature::Primitive;
use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::memory::{Memory, ReadError};
pub use crate::model::Generics;
use net8::Net8;
use net9::Net9;

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

layout! {
    /// Offsets of `MethodTable` common to all versions.
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
    struct ClassLayout : "EEClass" {
        method_table: req "MethodTable",
        element: opt "InternalCorElementType",
    }
}

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

/// Category of a type (`enum_flag_Category_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A class.
    Class,
    /// A structure, an enum, `Nullable`, a primitive.
    ValueType,
    /// An interface.
    Interface,
    /// A one-dimensional, zero-based array.
    SzArray,
    /// Any other array.
    Array,
}

/// A decoded method table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodTableInfo {
    /// Its address.
    pub address: Addr,
    /// Raw `MTFlags`.
    pub flags: u32,
    /// Base size in bytes: header word included, elements excluded.
    pub base_size: u32,
    /// Component size in bytes; 0 for fixed-size objects.
    pub component_size: u32,
    /// Whether objects contain references: a CGCDesc precedes the method table.
    pub contains_pointers: bool,
    /// Whether the type is collectible.
    pub is_collectible: bool,
    /// Whether the type has a finalizer.
    pub has_finalizer: bool,
    /// Category of the type.
    pub category: Category,
    /// Whether the type is generic.
    pub generics: Generics,
    /// Whether this is an array of any kind.
    pub is_array: bool,
    /// Whether this is `System.String`.
    pub is_string: bool,
    /// Whether this is the method table of free space.
    pub is_free: bool,
    /// Raw `EEClassOrCanonMT`: bit 0 marks a pointer to the canonical method table.
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
    release: Release,
    collectible: u32,
    /// Method table of `System.String`.
    pub string: Option<Addr>,
    /// Method table of free space.
    pub free: Option<Addr>,
    /// Method table of `System.Object`.
    pub object: Option<Addr>,
    /// Method table of `System.Exception`.
    pub exception: Option<Addr>,
}

impl MethodTables {
    /// The contract read.
    pub const CONTRACT: Contract = Contract::needed("RuntimeTypeSystem", &["1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor lacks an offset.
    pub fn bind(memory: &Arc<Memory>, descriptor: &Descriptor) -> Result<MethodTables, ContractError> {
        Self::CONTRACT.require(descriptor)?;
        let layout = Layout::bind(descriptor)?;
        let well_known = |name| descriptor.pointer(name).ok().and_then(|a| memory.ptr(a).ok()).filter(|a| !a.is_null());
        let collectible = descriptor.number("MethodTableFlagCollectible").ok().and_then(|n| u32::try_from(n).ok());
        Ok(MethodTables {
            memory: Arc::clone(memory),
            class: ClassLayout::bind(descriptor)?,
            release: Release::bind(descriptor)?,
            layout,
            collectible: collectible.unwrap_or(COLLECTIBLE),
            string: well_known("StringMethodTable"),
            free: well_known("FreeObjectMethodTable"),
            object: well_known("ObjectMethodTable"),
            exception: well_known("ExceptionMethodTable"),
        })
    }

    /// Reads the method table at `mt` without validation; see [`MethodTables::is_valid`].
    ///
    /// # Errors
    /// [`ReadError`] if a part of it is absent.
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

    /// The canonical method table, with which `mt` shares code and EEClass; itself for most types.
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

    /// The canonical method table of the EEClass at `class`; `None` if there is no EEClass.
    pub fn of_class(&self, class: Addr) -> Option<Addr> {
        let aligned = !class.is_null() && class.is_aligned(self.memory.ptr_bytes());
        let mt = self.memory.ptr(class.plus(self.class.method_table)).ok().filter(|_| aligned)?;
        (self.is_valid(mt) == Ok(true) && self.class(mt) == Ok(class)).then_some(mt)
    }

    /// Whether there is a method table at `mt`: its EEClass must point back to the canonical method table.
    ///
    /// # Errors
    /// [`ReadError`] if the structures to check are not in the dump.
    pub fn is_valid(&self, mt: Addr) -> Result<bool, ReadError> {
        if mt.is_null() || !mt.is_aligned(self.memory.ptr_bytes()) {
            return Ok(false);
        }
        // The method table of free space has no EEClass, and those in the runtime's globals need no proof: a mini dump contains
        // the method table of strings but not its EEClass.
        if [self.free, self.string, self.object].contains(&Some(mt)) {
            return Ok(true);
        }
        let canonical = self.canonical(mt)?;
        let class = self.memory.ptr(canonical.plus(self.layout.class))?;
        // A structure full of pointers to itself is not a method table.
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

    /// The module that defines a type; for arrays, the module of the loader, not of the element type.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn module(&self, info: &MethodTableInfo) -> Result<Addr, ReadError> {
        match &self.release {
            Release::Net8(net8) => net8.module(&self.memory, info, || self.canonical(info.address)),
            Release::Net9(net9) => net9.module(&self.memory, info.address),
        }
    }

    /// Row of the type in TypeDef of its module; 0 for arrays.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn rid(&self, info: &MethodTableInfo) -> Result<u32, ReadError> {
        match &self.release {
            Release::Net8(net8) => net8.rid(&self.memory, info),
            Release::Net9(net9) => net9.rid(&self.memory, info.address),
        }
    }

    /// .NET 9 and later: the auxiliary data of a type with statics, preceded by the structures of the statics.
    pub fn statics_end(&self, mt: Addr) -> Option<Addr> {
        match &self.release {
            Release::Net8(_) => None,
            Release::Net9(net9) => net9.statics_end(&self.memory, mt),
        }
    }

    /// .NET 8: for a generic instance with statics, its copy of the field descriptors and its index in the tables of statics.
    pub fn generic_statics(&self, info: &MethodTableInfo) -> Option<(Addr, u64)> {
        match &self.release {
            Release::Net8(net8) => net8.generic_statics(&self.memory, info),
            Release::Net9(_) => None,
        }
    }

    /// The loader module of the type: for an instance over a collectible type, that of an argument. In .NET 8, its tables
    /// contain the statics of the type.
    pub fn loader_module(&self, mt: Addr) -> Option<Addr> {
        let at = match &self.release {
            Release::Net8(net8) => net8.loader_module(mt),
            Release::Net9(net9) => net9.loader_module(&self.memory, mt)?,
        };
        self.memory.ptr(at).ok().filter(|m| !m.is_null())
    }

    /// Number of interfaces implemented by a type.
    pub fn interfaces(&self, mt: Addr) -> Option<u16> {
        self.memory.u16(mt.plus(self.layout.interfaces?)).ok()
    }

    /// Whether a type is an enum (`enum_flag_Category_PrimitiveValueType`).
    pub fn is_enum(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_ENUM
    }

    /// Whether a type is a primitive (`enum_flag_Category_TruePrimitive`).
    pub fn is_primitive(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_PRIMITIVE
    }

    /// The name of a type that the runtime itself knows: those of its globals, and the primitives, by their element type. Needs no
    /// metadata.
    pub fn known_name(&self, info: &MethodTableInfo) -> Option<&'static str> {
        let mt = Some(info.address);
        match mt {
            _ if mt == self.object => Some("System.Object"),
            _ if mt == self.string => Some("System.String"),
            _ if mt == self.exception => Some("System.Exception"),
            _ if self.is_primitive(info) => {
                let class = self.class(info.address).ok()?;
                Primitive::of(self.memory.u8(class.plus(self.class.element?)).ok()?).map(Primitive::name)
            }
            _ => None,
        }
    }

    /// Whether a type is `System.Nullable` (`enum_flag_Category_Nullable`).
    pub fn is_nullable(&self, info: &MethodTableInfo) -> bool {
        info.flags & CATEGORY == CATEGORY_NULLABLE
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
