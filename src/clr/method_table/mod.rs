//! Method tables: the type structure that every object points to.
//!
//! Source: contract `RuntimeTypeSystem`: version 1 for CoreCLR, version n1 for NativeAOT.

mod coreclr;
mod inferred;
mod info;
mod mono;
mod native_aot;
mod net8;
mod net9;
mod objects;

use std::sync::Arc;

use crate::base::missed::contradiction;
use crate::base::{Addr, CorElementType};
use crate::contract::{Contract, ContractError, Descriptor, InferredTypes};
use crate::data::globals::{self, Global};
use crate::memory::{Memory, ReadError};
pub use crate::model::Generics;
use coreclr::CoreClr;
use info::WellKnown;
pub use info::{Category, MethodTableInfo};
pub(crate) use mono::{Mono, MonoField, MonoForm};
use native_aot::NativeAot;

/// The flavor of the runtime, which determines the layout of method tables.
#[derive(Clone, Debug)]
enum Flavor {
    CoreClr(CoreClr),
    NativeAot(NativeAot),
    Mono(Box<Mono>),
}

/// Reader of method tables.
#[derive(Clone, Debug)]
pub struct MethodTables {
    memory: Arc<Memory>,
    flavor: Flavor,
    /// Types whose method tables are lost.
    inferred: Option<Arc<InferredTypes>>,
    /// Method table of `System.String`.
    pub string: Option<Addr>,
    /// Method table of free objects.
    pub free: Option<Addr>,
    /// Method table of `System.Object`.
    pub object: Option<Addr>,
    /// Method table of `System.Exception`.
    pub exception: Option<Addr>,
}

impl MethodTables {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("RuntimeTypeSystem", &["1", "n1", "1001", "m1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have an offset.
    pub fn bind(memory: &Arc<Memory>, descriptor: &Descriptor) -> Result<MethodTables, ContractError> {
        Self::CONTRACT.require(descriptor)?;
        let flavor = if descriptor.is_native_aot() {
            Flavor::NativeAot(NativeAot::bind(descriptor)?)
        } else if descriptor.is_mono() {
            Flavor::Mono(Box::new(Mono::bind(memory, descriptor)?))
        } else {
            Flavor::CoreClr(CoreClr::bind(memory, descriptor)?)
        };
        let well_known = |global: Global<Addr>| {
            let found = global.of(descriptor).ok().and_then(|a| memory.ptr(a).ok()).filter(|a| !a.is_null())?;
            // Mono's variables point to classes.
            Some(if let Flavor::Mono(m) = &flavor { m.handle(memory, found) } else { found })
        };
        let [string, free, object, exception] =
            [globals::StringMethodTable, globals::FreeObjectMethodTable, globals::ObjectMethodTable, globals::ExceptionMethodTable]
                .map(well_known);
        let inferred = descriptor.inferred.clone();
        let string = string.or_else(|| inferred.as_ref()?.string);
        Ok(MethodTables { memory: Arc::clone(memory), flavor, inferred, string, free, object, exception })
    }

    /// Reads the method table at `mt` without validation; see [`MethodTables::is_valid`].
    ///
    /// # Errors
    /// [`ReadError`] if a part of the method table is absent.
    pub fn read(&self, mt: Addr) -> Result<MethodTableInfo, ReadError> {
        if let Some(info) = self.inferred(mt) {
            return Ok(info);
        }
        let known = WellKnown { string: self.string, free: self.free };
        match &self.flavor {
            Flavor::CoreClr(m) => m.read(&self.memory, &known, mt),
            Flavor::NativeAot(m) => m.read(&self.memory, &known, mt),
            Flavor::Mono(m) => m.read(&self.memory, mt),
        }
    }

    /// The canonical method table, with which `mt` shares its code and EEClass. For most types, the canonical method table is `mt` itself.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn canonical(&self, mt: Addr) -> Result<Addr, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.canonical(&self.memory, mt),
            Flavor::NativeAot(_) | Flavor::Mono(_) => Ok(mt),
        }
    }

    /// The EEClass of a type; null in NativeAOT programs and in Mono, which have no EEClasses.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn class(&self, mt: Addr) -> Result<Addr, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.class(&self.memory, mt),
            Flavor::NativeAot(_) | Flavor::Mono(_) => Ok(Addr::NULL),
        }
    }

    /// The canonical method table of the EEClass at `class`; `None` if `class` is not a valid EEClass or cannot be read, in NativeAOT programs and
    /// in Mono.
    pub fn of_class(&self, class: Addr) -> Option<Addr> {
        let Flavor::CoreClr(m) = &self.flavor else { return None };
        let aligned = !class.is_null() && class.is_aligned(self.memory.ptr_bytes());
        let mt = m.of_class(&self.memory, class).ok().filter(|_| aligned)?;
        (self.is_valid(mt) == Ok(true) && self.class(mt) == Ok(class)).then_some(mt)
    }

    /// Whether a method table is at `mt`. In CoreCLR, its EEClass must point back to the canonical method table. In NativeAOT, its chain of
    /// base types must end at `System.Object`. In Mono, the class of a vtable must list the vtable.
    ///
    /// # Errors
    /// [`ReadError`] if the structures to validate are not in the dump.
    pub fn is_valid(&self, mt: Addr) -> Result<bool, ReadError> {
        if mt.is_null() || !mt.is_aligned(self.memory.ptr_bytes()) {
            return Ok(false);
        }
        // These method tables are in the runtime's globals, so they need no validation. Validation could even fail, because the method table of
        // free objects has no EEClass, and a mini dump contains the method table of strings but not its EEClass.
        if [self.free, self.string, self.object].contains(&Some(mt)) || self.is_inferred(mt) {
            return Ok(true);
        }
        match &self.flavor {
            Flavor::CoreClr(m) => m.is_valid(&self.memory, mt),
            Flavor::NativeAot(m) => m.is_valid(&self.memory, mt),
            Flavor::Mono(m) => m.is_valid(&self.memory, mt),
        }
    }

    /// Reports a base size that is not a multiple of a word. For `System.String`, the base size plus two bytes (the terminator) is the multiple.
    pub(crate) fn check_base_size(&self, info: &MethodTableInfo) {
        let more = if info.is_string { 2 } else { 0 };
        let fits = u64::from(info.base_size).saturating_add(more).is_multiple_of(self.memory.ptr_bytes());
        if !fits && self.mono().is_none() {
            contradiction(info.address, "a method table has a base size that is impossible for its type");
        }
    }

    /// The base type of continuations, if `mt` is a type that the runtime created for the variables of a suspended method.
    pub(crate) fn continuation(&self, mt: Addr) -> Option<Addr> {
        self.coreclr()?.continuation(&self.memory, mt).ok().flatten()
    }

    /// The element type of an array, as a type handle.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn element_type(&self, mt: Addr) -> Result<Addr, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.per_inst_info(&self.memory, mt),
            Flavor::NativeAot(m) => m.related(&self.memory, mt),
            Flavor::Mono(m) => m.element_type(&self.memory, mt),
        }
    }

    /// The dictionaries of a generic instance of CoreCLR.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn per_inst_info(&self, mt: Addr) -> Result<Addr, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.per_inst_info(&self.memory, mt),
            Flavor::NativeAot(_) | Flavor::Mono(_) => Ok(Addr::NULL),
        }
    }

    /// The module that defines a type. For arrays, it is the loader module, not the module of the element type. In Mono, it is the
    /// `MonoImage`. Null in NativeAOT programs, whose method tables do not refer to a module.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn module(&self, info: &MethodTableInfo) -> Result<Addr, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.module(&self.memory, info),
            Flavor::NativeAot(_) => Ok(Addr::NULL),
            Flavor::Mono(m) => m.image(&self.memory, info),
        }
    }

    /// Row of the type in TypeDef of its module; 0 for arrays, and in NativeAOT programs.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn rid(&self, info: &MethodTableInfo) -> Result<u32, ReadError> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.rid(&self.memory, info),
            Flavor::NativeAot(_) => Ok(0),
            Flavor::Mono(m) => m.rid(&self.memory, info),
        }
    }

    /// .NET 9 and later: the auxiliary data of a type with statics. The structures of the statics precede it.
    pub fn statics_end(&self, mt: Addr) -> Option<Addr> {
        self.coreclr()?.statics_end(&self.memory, mt)
    }

    /// .NET 8: for a generic instance with statics, its copy of the FieldDescs and its index in the tables of statics.
    pub fn generic_statics(&self, info: &MethodTableInfo) -> Option<(Addr, u64)> {
        self.coreclr()?.generic_statics(&self.memory, info)
    }

    /// The loader module of the type. For an instance over a collectible type, it is the module of an argument. In .NET 8, the tables of the loader
    /// module contain the statics of the type.
    pub fn loader_module(&self, mt: Addr) -> Option<Addr> {
        self.coreclr()?.loader_module(&self.memory, mt)
    }

    /// Number of interfaces that a type implements.
    pub fn interfaces(&self, mt: Addr) -> Option<u16> {
        match &self.flavor {
            Flavor::CoreClr(m) => m.interfaces(&self.memory, mt),
            Flavor::NativeAot(m) => m.interfaces(&self.memory, mt),
            Flavor::Mono(_) => None,
        }
    }

    /// Whether a type is an enum (CoreCLR: `enum_flag_Category_PrimitiveValueType`).
    pub fn is_enum(&self, info: &MethodTableInfo) -> bool {
        match &self.flavor {
            Flavor::CoreClr(_) => CoreClr::is_enum(info.flags),
            Flavor::NativeAot(m) => m.is_enum(&self.memory, info),
            Flavor::Mono(_) => Mono::is_enum(info.flags),
        }
    }

    /// Whether a type is a primitive (CoreCLR: `enum_flag_Category_TruePrimitive`).
    pub fn is_primitive(&self, info: &MethodTableInfo) -> bool {
        match &self.flavor {
            Flavor::CoreClr(_) => CoreClr::is_primitive(info.flags),
            Flavor::NativeAot(m) => m.primitive(&self.memory, info).is_some(),
            Flavor::Mono(_) => Mono::primitive(info).is_some(),
        }
    }

    /// The name of a type that is known without metadata: a type in the runtime's globals, or a primitive, which has its own element type.
    pub fn known_name(&self, info: &MethodTableInfo) -> Option<&'static str> {
        let mt = Some(info.address);
        match mt {
            _ if mt == self.object => Some("System.Object"),
            _ if mt == self.string => Some("System.String"),
            _ if mt == self.exception => Some("System.Exception"),
            _ => match &self.flavor {
                Flavor::CoreClr(m) => m.primitive(&self.memory, info)?.type_name(),
                Flavor::NativeAot(m) => m.known_name(&self.memory, info),
                Flavor::Mono(_) => Mono::primitive(info)?.type_name(),
            },
        }
    }

    /// Whether a type is `System.Nullable` (CoreCLR: `enum_flag_Category_Nullable`).
    pub fn is_nullable(&self, info: &MethodTableInfo) -> bool {
        match &self.flavor {
            Flavor::CoreClr(_) => CoreClr::is_nullable(info.flags),
            Flavor::NativeAot(_) => NativeAot::is_nullable(info.flags),
            Flavor::Mono(_) => Mono::is_nullable(info.flags),
        }
    }

    /// The definition and the arguments of a generic instance. `None` for other types, and in CoreCLR, which has the arguments in
    /// dictionaries.
    pub(crate) fn instance(&self, info: &MethodTableInfo) -> Option<Result<(Addr, Vec<Addr>), ReadError>> {
        match &self.flavor {
            Flavor::NativeAot(m) if info.generics == Generics::Instance => Some(m.instance(&self.memory, info.address)),
            Flavor::Mono(m) if info.generics == Generics::Instance => Some(m.instance(&self.memory, info)),
            _ => None,
        }
    }

    /// Element type of the values of a primitive or an enum, in a NativeAOT program or in Mono.
    pub(crate) fn value_type(&self, info: &MethodTableInfo) -> Option<CorElementType> {
        match &self.flavor {
            Flavor::CoreClr(_) => None,
            Flavor::NativeAot(_) => NativeAot::value_type(info.flags),
            Flavor::Mono(m) => m.value_type(&self.memory, info),
        }
    }

    /// Whether objects of a type contain the static fields of another type, which occurs only in NativeAOT programs.
    pub(crate) fn holds_statics(&self, mt: Addr) -> bool {
        match &self.flavor {
            Flavor::CoreClr(_) | Flavor::Mono(_) => false,
            Flavor::NativeAot(m) => m.holds_statics(&self.memory, mt).unwrap_or(false),
        }
    }

    /// Whether Mono's bridge to another collector has said that objects of this type are bridged, and whether that their references are not
    /// followed.
    pub(crate) fn bridged(&self, mt: Addr) -> [bool; 2] {
        self.mono().map(|m| m.bridged(&self.memory, mt)).unwrap_or_default()
    }

    /// Whether these are the method tables of a NativeAOT program.
    pub(crate) fn is_native_aot(&self) -> bool {
        matches!(self.flavor, Flavor::NativeAot(_))
    }

    /// The reader of Mono's types; `None` for another runtime.
    pub(crate) fn mono(&self) -> Option<&Mono> {
        match &self.flavor {
            Flavor::Mono(m) => Some(m),
            Flavor::CoreClr(_) | Flavor::NativeAot(_) => None,
        }
    }

    fn coreclr(&self) -> Option<&CoreClr> {
        match &self.flavor {
            Flavor::CoreClr(m) => Some(m),
            Flavor::NativeAot(_) | Flavor::Mono(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
