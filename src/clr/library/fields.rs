//! Fields of library types, bound once for each type.

use std::fmt;

use crate::base::{Addr, Collector, CorElementType, Missing, Remedy};
use crate::clr::fields::{Field, Storage, Types};

/// Location of an instance field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldAt {
    /// Offset in bytes from the start of the object.
    pub(crate) offset: u64,
    /// Element type as stored by the runtime.
    pub(crate) element: CorElementType,
    /// Method table of the field's type, for structures.
    pub(crate) method_table: Option<Addr>,
}

impl FieldAt {
    fn of(field: &Field) -> FieldAt {
        FieldAt { offset: field.offset, element: field.element, method_table: field.method_table }
    }

    /// Address of the field in the object at `object`.
    pub(crate) fn of_object(self, object: Addr) -> Addr {
        object.plus(self.offset)
    }

    /// The field `inner` of this structure, with an offset from the start of the outer object.
    pub(crate) fn then(self, inner: FieldAt, types: &Types) -> FieldAt {
        // Offsets of the fields of a structure include one word, as in its boxed form.
        let within = inner.offset.saturating_sub(types.pointer_bytes());
        FieldAt { offset: self.offset.saturating_add(within), ..inner }
    }
}

/// Reason why a field was not found. The parts of an answer that depend on the field are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoSuchField {
    /// The type does not have the field in this runtime.
    Absent {
        /// Full name of the type.
        type_name: String,
        /// The names that were looked for, separated by `|`.
        field: &'static str,
    },
    /// A field of the type has no name, so it may be the one: a part of the metadata is not in the dump, or is invalid.
    Unnamed {
        /// Full name of the type.
        type_name: String,
        /// The names that were looked for, separated by `|`.
        field: &'static str,
        /// File name of the type's module.
        module: Option<String>,
    },
    /// The fields of the type cannot be read: its metadata is not in the dump.
    Unread {
        /// Full name of the type.
        type_name: String,
    },
    /// The locations of the type's static fields are unknown: in a NativeAOT program, only symbols have them.
    Unplaced {
        /// Full name of the type.
        type_name: String,
    },
}

impl NoSuchField {
    /// The error for the type at `method_table` without a field of these `names`; `fields` are its fields, if known.
    pub(crate) fn of(types: &Types, method_table: Addr, fields: Option<&[Field]>, names: &'static str) -> NoSuchField {
        let type_name = types.names().name(method_table).name.clone();
        let native_aot = types.names().native_aot().is_some();
        match fields {
            // In NativeAOT programs, fields without names are references that no symbol names.
            Some(list) if !native_aot && list.iter().any(|field| !field.is_named) => NoSuchField::Unnamed {
                type_name,
                field: names,
                module: types.names().name(method_table).module.as_deref().map(str::to_owned),
            },
            // A type whose fields are asked for has some: here, the list itself is not in the dump.
            Some([]) if !native_aot => NoSuchField::Unread { type_name },
            Some(_) => NoSuchField::Absent { type_name, field: names },
            None if native_aot => NoSuchField::Unplaced { type_name },
            None => NoSuchField::Unread { type_name },
        }
    }
}

impl NoSuchField {
    /// The source of the field, if one is known.
    pub(crate) const fn remedy(&self) -> Option<Remedy> {
        match self {
            NoSuchField::Unplaced { .. } => Some(Remedy::Symbols),
            NoSuchField::Unnamed { .. } => Some(Remedy::ModuleFile),
            NoSuchField::Absent { .. } | NoSuchField::Unread { .. } => None,
        }
    }
}

impl fmt::Display for NoSuchField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSuchField::Absent { type_name, field } => {
                write!(f, "{type_name} has no field {} in this runtime", field.replace('|', " or "))
            }
            NoSuchField::Unnamed { type_name, field, module } => {
                let of = module.as_deref().map(|module| format!(" of {module}")).unwrap_or_default();
                write!(
                    f,
                    "{type_name} has a field without a name, which may be {}: a part of the metadata{of} is not in the dump",
                    field.replace('|', " or ")
                )
            }
            NoSuchField::Unread { type_name } => write!(f, "the fields of {type_name} are not in the dump"),
            NoSuchField::Unplaced { type_name } => write!(
                f,
                "the static fields of {type_name} can be located only with the symbols of the program, in its file or in the .dbg or \
                 PDB beside it"
            ),
        }
    }
}

/// The bound fields. If binding failed, adds a note that `what` is unavailable because of the missing field.
pub(crate) fn noted<T>(bound: Result<T, NoSuchField>, what: &str, notes: &Collector) -> Option<T> {
    let note = |missing: NoSuchField| notes.add(Missing::Metadata.supplied_by(missing.remedy()), None, format!("{what}: {missing}"));
    bound.map_err(note).ok()
}

impl Types {
    /// The instance field of the type at `method_table` with one of these `names`, separated by `|`. A field that the type declares hides fields of
    /// its base types.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn field_named(&self, method_table: Addr, names: &'static str) -> Result<Field, NoSuchField> {
        let fields = self.instance_fields(method_table);
        let mut instance = fields.iter().flat_map(|list| list.iter().rev()).filter(|f| f.storage == Storage::Instance);
        let found = instance.find(|f| names.split('|').any(|name| name == f.name)).cloned();
        found.ok_or_else(|| NoSuchField::of(self, method_table, fields.as_ref().map(|list| list.as_slice()), names))
    }

    /// Location of the field that [`Types::field_named`] finds.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn field_at(&self, method_table: Addr, names: &'static str) -> Result<FieldAt, NoSuchField> {
        self.field_named(method_table, names).map(|field| FieldAt::of(&field))
    }
}

/// Defines a structure of instance fields of a type.
///
/// ```text
/// fields_of! {
///     struct TaskFields {
///         flags: req "m_stateFlags",
///         continuation: opt "m_continuationObject",
///     }
/// }
/// ```
///
/// This defines the structure and `bind(types, method_table)`, which fails with [`NoSuchField`] if a required field is missing. Several names
/// for a field are separated by `|`.
macro_rules! fields_of {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $( $(#[$about:meta])* $field:ident : $need:ident $names:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name { $( $(#[$about])* pub(crate) $field: $crate::clr::library::fields_of!(@type $need) ),+ }

        impl $name {
            /// Binds to the type at `method_table`.
            pub(crate) fn bind(
                types: &$crate::clr::fields::Types,
                method_table: $crate::base::Addr,
            ) -> Result<$name, $crate::clr::library::NoSuchField> {
                Ok($name { $( $field: $crate::clr::library::fields_of!(@bind $need types method_table $names) ),+ })
            }
        }
    };
    (@type req) => { $crate::clr::library::FieldAt };
    (@type opt) => { Option<$crate::clr::library::FieldAt> };
    (@bind req $t:ident $mt:ident $l:literal) => { $t.field_at($mt, $l)? };
    (@bind opt $t:ident $mt:ident $l:literal) => { $t.field_at($mt, $l).ok() };
}
pub(crate) use fields_of;
