//! Types of .NET's own libraries that analyses use, and the fields that they read.
//!
//! A type is identified by module, namespace and name, never only by name, because programs have their own classes called `Task` and `Lock`. The
//! library types that an analysis uses are an enum ([`library_types!`]). For each method table, a [`Classifier`] determines once, as a bit set,
//! which library types its type is or derives from. The fields that the analysis reads are a structure ([`fields_of!`]), bound once for each
//! type.

mod fields;

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use fields::{FieldAt, NoSuchField, fields_of, noted};

use super::fields::{Definition, Types};
use super::method_table::MethodTableInfo;
use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::missed::Kept;

/// Maximum number of base types.
const MAX_BASES: usize = 64;

/// An enum defined by [`library_types!`].
pub(crate) trait LibraryType: Copy + fmt::Debug + 'static {
    /// All types, with module and full name as in metadata: `System.Threading.SemaphoreSlim+TaskNode`,
    /// ``System.Collections.Generic.List`1``. There are at most 64.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// The bit of this type in a set.
    fn bit(self) -> u64;
}

/// Defines an enum of library types.
///
/// ```text
/// library_types! {
///     /// What is awaited.
///     pub(crate) enum AsyncType {
///         in "System.Private.CoreLib" {
///             Task = "System.Threading.Tasks.Task",
///         }
///     }
/// }
/// ```
macro_rules! library_types {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident {
            $( in $module:literal { $( $(#[$about:meta])* $Value:ident = $name:literal ),+ $(,)? } )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Enum { $($( $(#[$about])* #[doc = $name] $Value, )+)+ }

        impl $crate::clr::library::LibraryType for $Enum {
            const ALL: &'static [($Enum, &'static str, &'static str)] = &[$($( ($Enum::$Value, $module, $name), )+)+];

            fn bit(self) -> u64 {
                1u64.checked_shl(self as u32).unwrap_or(0)
            }
        }
    };
}
pub(crate) use library_types;

/// The library types that a type is or derives from.
#[derive(Debug)]
pub(crate) struct Kinds<E> {
    bits: u64,
    of: PhantomData<E>,
}

impl<E> Clone for Kinds<E> {
    fn clone(&self) -> Kinds<E> {
        *self
    }
}

impl<E> Copy for Kinds<E> {}

impl<E: LibraryType> Kinds<E> {
    fn new(bits: u64) -> Kinds<E> {
        Kinds { bits, of: PhantomData }
    }

    /// Whether the type is a `kind` or derives from it.
    pub(crate) fn is(self, kind: E) -> bool {
        self.bits & kind.bit() != 0
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// All library types that the type is or derives from, in the order of the enum.
    pub(crate) fn iter(self) -> impl Iterator<Item = E> {
        E::ALL.iter().map(|(kind, _, _)| *kind).filter(move |kind| self.is(*kind))
    }
}

/// Determines which library types a type is or derives from.
#[derive(Debug)]
pub(crate) struct Classifier<E> {
    types: Arc<Types>,
    by_definition: Map<Definition, u64>,
    known: Mutex<Map<Addr, Kept<u64>>>,
    of: PhantomData<E>,
}

impl<E: LibraryType> Classifier<E> {
    /// Looks the types up in the modules of the process. Types of modules that are not loaded are never found.
    pub(crate) fn bind(types: &Arc<Types>) -> Classifier<E> {
        let mut by_definition = Map::default();
        for definition in E::ALL {
            if let Some(found) = types.definition_named(definition.1, definition.2) {
                *by_definition.entry(found).or_insert(0) |= definition.0.bit();
            }
        }
        Classifier { types: Arc::clone(types), by_definition, known: Mutex::default(), of: PhantomData }
    }

    /// The library types that the type at `method_table` is or derives from.
    pub(crate) fn of(&self, method_table: Addr) -> Kinds<E> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&method_table).map(|bits| *bits.get());
        Kinds::new(found.unwrap_or_else(|| {
            let bits = Kept::of(|| self.read(method_table));
            *known().entry(method_table).or_insert(bits).get()
        }))
    }

    fn read(&self, method_table: Addr) -> u64 {
        let definitions = self.bases(method_table).filter(|i| !i.is_array).filter_map(|i| self.types.definition(i.address));
        definitions.fold(0, |bits, d| bits | self.by_definition.get(&d).copied().unwrap_or(0))
    }

    /// The type at `method_table` and its base types, up to the first that is not in the dump.
    fn bases(&self, method_table: Addr) -> impl Iterator<Item = MethodTableInfo> {
        let tables = self.types.names().method_tables();
        let info = |mt: Addr| (!mt.is_null()).then(|| tables.read(mt).ok())?;
        std::iter::successors(info(method_table), move |i| info(i.parent)).take(MAX_BASES)
    }

    /// Whether the dump has all base types of the type at `method_table`. Without one of them, the type may derive from more library types.
    pub(crate) fn has_all_bases(&self, method_table: Addr) -> bool {
        self.bases(method_table).last().is_some_and(|info| info.parent.is_null())
    }

    /// The library types that the object at `address` is an instance of.
    pub(crate) fn object(&self, address: Addr) -> Kinds<E> {
        self.types.objects().method_table(address).map_or(Kinds::new(0), |mt| self.of(mt))
    }

    /// The method table of a nongeneric type, if it is loaded.
    pub(crate) fn table(&self, kind: E) -> Option<Addr> {
        let (definition, _) = self.by_definition.iter().find(|(_, bits)| **bits & kind.bit() != 0)?;
        self.types.loaded(*definition)
    }

    /// Whether the dump has the definition of the type.
    pub(crate) fn defines(&self, kind: E) -> bool {
        self.by_definition.values().any(|bits| bits & kind.bit() != 0)
    }

    /// The types and their fields.
    pub(crate) fn types(&self) -> &Arc<Types> {
        &self.types
    }
}
