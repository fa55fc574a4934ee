//! `refs`: references of objects, both ways.

use serde::Serialize;

use super::root::{RootCoverageModel, RootModel, Stacks};
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// What keeps the target of a reference alive as long as its source.
    pub enum RefVia {
        /// A field of the source, or an element of an array.
        Field = "field",
        /// A dependent handle, whose primary object is the source.
        DependentHandle = "dependent-handle",
        /// The type of the source, which is collectible: the target is its loader allocator.
        LoaderAllocator = "loader-allocator",
        /// A reference of a `.gcdump` file, which has no fields.
        Unknown = "unknown",
    }
}

impl RefVia {
    /// In place of the name of a field.
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
        /// Its size, or the size of all of them, largest first.
        Size = "size",
        /// With --retained: its retained size, largest first.
        Retained = "retained",
        /// Its type.
        Type = "type",
        /// The field.
        Field = "field",
        /// With --by type: most references first.
        References = "references",
    }
}

named_enum! {
    /// Groups of references.
    pub enum RefBy {
        /// By the types at both ends, and the field.
        Type = "type",
    }
}

/// `refs`: which objects refer to some objects, and to which these refer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefsReport {
    /// The object that was asked for; `null` for all objects of types.
    pub object: Option<RefObject>,
    /// Number of objects that were asked for.
    pub targets: u64,
    /// References to them; `null` if only outgoing ones were requested.
    pub incoming: Option<RefList>,
    /// References that they have; `null` if only incoming ones were requested.
    pub outgoing: Option<RefList>,
    /// Roots of the object; `null` for types, and if only outgoing references were requested.
    pub roots: Option<Vec<RootModel>>,
    /// How completely the dump shows each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack values count as roots.
    pub stacks: Stacks,
    /// With `--young`: the cards of older objects; `null` if the dump does not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cards: Option<YoungCards>,
}

/// The cards of older objects. A card covers a range of the heap; where it is set, a collection of younger generations looks
/// for references to these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct YoungCards {
    /// Bytes of the heap that a card covers.
    pub card_bytes: u64,
    /// Cards that are set in segments of older generations.
    pub set: u64,
    /// Bytes that these cover: what a collection of the young generations searches.
    pub set_bytes: u64,
    /// References of older objects to younger ones on cards that are set.
    pub references_on_set: u64,
    /// Such references on cards that are not: for large objects another card of the object counts; else `verify` reports them.
    pub references_on_clear: u64,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefObject {
    /// Its address.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Its size in bytes.
    pub size: u64,
    /// Its retained size in bytes; `null` without `--retained`.
    pub retained: Option<u64>,
}

/// References in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefList {
    /// Number of references.
    pub references: u64,
    /// Number of different objects at their other ends.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The references; `null` if they are grouped.
    pub list: Option<Vec<RefRow>>,
    /// The references by type; `null` if they are listed.
    pub types: Option<Vec<RefType>>,
    /// Number of rows listed; `null` if all are.
    pub shown: Option<u64>,
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefRow {
    /// Number of references from the object that was asked for, at least 1.
    pub depth: u32,
    /// The object that refers.
    pub from: Addr,
    /// Name of its type.
    pub from_type: Name,
    /// Its field: `_items`, `[3]`, `[3].key`; `null` for what is not a field, or if the dump does not have its name.
    pub field: Option<String>,
    /// The kind of reference.
    pub via: RefVia,
    /// The object that it refers to.
    pub to: Addr,
    /// Name of its type.
    pub to_type: Name,
    /// Bytes of the object at the other end: `from` of an incoming reference, `to` of an outgoing one.
    pub size: u64,
    /// Retained size of that object; `null` without `--retained`.
    pub retained: Option<u64>,
}

/// References between objects of two types through one field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RefType {
    /// Name of the type that refers.
    pub from_type: Name,
    /// Its method table.
    pub from_method_table: Addr,
    /// Its field, without the indices of elements: `_items`, `[].key`; `null` for what is not a field, or if the dump does not have its name.
    pub field: Option<String>,
    /// The kind of reference.
    pub via: RefVia,
    /// Name of the type that is referred to.
    pub to_type: Name,
    /// Its method table.
    pub to_method_table: Addr,
    /// Number of references.
    pub references: u64,
    /// Number of different objects at the other end.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that they jointly retain; `null` without `--retained`.
    pub retained: Option<u64>,
}
