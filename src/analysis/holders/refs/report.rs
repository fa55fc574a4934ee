//! `refs`: references to and from objects.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum, views};
use crate::model::{RootCoverageModel, RootModel, Stacks};

named_enum! {
    /// Kinds of references that keep the target alive as long as the source.
    pub enum RefVia {
        /// A field of the source, or an element of an array.
        Field = "field",
        /// A dependent handle with the source as its primary object.
        DependentHandle = "dependent-handle",
        /// The collectible type of the source; the target is the type's loader allocator.
        LoaderAllocator = "loader-allocator",
        /// A reference in a `.gcdump` file, which does not record fields.
        Unknown = "unknown",
    }
}

impl RefVia {
    /// Text shown instead of a field name.
    pub const fn words(self) -> Option<&'static str> {
        match self {
            RefVia::Field | RefVia::Unknown => None,
            RefVia::DependentHandle => Some("(dependent handle)"),
            RefVia::LoaderAllocator => Some("(its type)"),
        }
    }
}

named_enum! {
    /// Sort order of `refs`.
    pub enum RefSort {
        /// Address of the object at the other end.
        Address = "address",
        /// Size of the object, or total size of the objects, largest first.
        Size = "size",
        /// With --retained: retained size of the object at the other end, largest first.
        Retained = "retained",
        /// Type.
        Type = "type",
        /// The field.
        Field = "field",
        /// With --by type: most references first.
        References = "references",
    }
}

named_enum! {
    /// Grouping keys of `refs --by`.
    pub enum RefBy {
        /// Types at both ends, and field.
        Type = "type",
    }
}

/// `refs`: references to and from the requested objects.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefsReport {
    /// The requested object; `null` if types were requested.
    pub object: Option<RefObject>,
    /// Number of requested objects.
    pub targets: u64,
    /// References to the requested objects; `null` if only outgoing ones were requested.
    pub incoming: Option<RefList>,
    /// References from the requested objects; `null` if only incoming ones were requested.
    pub outgoing: Option<RefList>,
    /// Roots of the object; `null` for types, and if only outgoing references were requested.
    pub roots: Option<Vec<RootModel>>,
    /// How completely the dump shows each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
    /// With `young`: the cards of older objects; `null` if the dump does not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cards: Option<YoungCards>,
}

/// The cards of older objects. A card covers a range of the heap; if it is set, a collection of younger generations searches the range for
/// references to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct YoungCards {
    /// Bytes of the heap that a card covers.
    pub card_bytes: u64,
    /// Cards that are set in segments of older generations.
    pub set: u64,
    /// Bytes that these cards cover, which a collection of younger generations searches.
    pub set_bytes: u64,
    /// References of older objects to younger ones on cards that are set.
    pub references_on_set: u64,
    /// References of older objects to younger ones on cards that are not set. Another card of a large object may be set instead; otherwise
    /// `verify` reports the reference.
    pub references_on_clear: u64,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefObject {
    /// Address.
    pub address: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Size in bytes.
    pub size: u64,
    /// Retained size in bytes; `null` without `retained`.
    pub retained: Option<u64>,
}

views! {
    /// The rows of a list of references.
    #[derive(PartialEq)]
    pub enum RefListRows as RefListFields {
        /// Each reference.
        Each {
            /// The references.
            list: Vec<RefRow>,
        },
        /// Sums by type.
        Types {
            /// The references by type.
            types: Vec<RefType>,
        },
    }
}

/// References in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefList {
    /// Number of references.
    pub references: u64,
    /// Number of distinct objects at the other ends of these references.
    pub objects: u64,
    /// Size of these objects in bytes.
    pub bytes: u64,
    /// The references, or their types.
    #[serde(flatten)]
    pub rows: RefListRows,
    /// Number of rows listed; `null` if all are.
    pub shown: Option<u64>,
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefRow {
    /// Number of references between the requested object and this row's object, at least 1.
    pub depth: u32,
    /// The object that refers.
    pub from: Addr,
    /// Type name of that object.
    pub from_type: Name,
    /// Field: `_items`, `[3]`, `[3].key`; `null` if the reference is not a field, or if the field's name is not in the
    /// dump.
    pub field: Option<String>,
    /// The kind of reference.
    pub via: RefVia,
    /// The object that is referred to.
    pub to: Addr,
    /// Type name of that object.
    pub to_type: Name,
    /// Size in bytes of the object at the other end: `from` of an incoming reference, `to` of an outgoing one.
    pub size: u64,
    /// Retained size of that object; `null` without `retained`.
    pub retained: Option<u64>,
}

/// References between objects of two types through one field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefType {
    /// Name of the type that refers.
    pub from_type: Name,
    /// Method table of that type.
    pub from_method_table: Addr,
    /// Field, without the indices of elements: `_items`, `[].key`; `null` if the reference is not a field, or if the field's name is not in the dump.
    pub field: Option<String>,
    /// The kind of reference.
    pub via: RefVia,
    /// Name of the type that is referred to.
    pub to_type: Name,
    /// Method table of that type.
    pub to_method_table: Addr,
    /// Number of references.
    pub references: u64,
    /// Number of distinct objects at the other end.
    pub objects: u64,
    /// Size of these objects in bytes.
    pub bytes: u64,
    /// Bytes that these objects retain together; `null` without `retained`.
    pub retained: Option<u64>,
}
