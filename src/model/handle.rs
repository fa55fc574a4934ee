use std::fmt;

use serde::Serialize;

use crate::base::Addr;

/// Type of a GC handle (`HNDTYPE_…`, gcinterface.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandleKind {
    /// Weak; cleared when the object is due for finalization.
    WeakShort,
    /// Weak; cleared when the object is gone (tracks resurrection).
    WeakLong,
    /// Keeps its object alive.
    Strong,
    /// Keeps its object alive and in place.
    Pinned,
    /// Unused.
    Variable,
    /// Strong while its COM or ComWrappers reference count says so.
    RefCounted,
    /// Keeps the secondary object alive as long as the primary one lives.
    Dependent,
    /// Pinned for overlapped I/O; not used since .NET 8.
    AsyncPinned,
    /// Measures what it holds; not used since .NET 9.
    SizedRef,
    /// Weak, to a native COM object; not used since .NET 8.
    WeakNativeCom,
    /// Weak; its secondary value is the address of an interior pointer (collectible statics).
    WeakInteriorPointer,
    /// Of the Java bridge; its secondary value is the native context.
    CrossReference,
}

impl HandleKind {
    /// Every type, at its number.
    pub const ALL: [HandleKind; 12] = [
        HandleKind::WeakShort,
        HandleKind::WeakLong,
        HandleKind::Strong,
        HandleKind::Pinned,
        HandleKind::Variable,
        HandleKind::RefCounted,
        HandleKind::Dependent,
        HandleKind::AsyncPinned,
        HandleKind::SizedRef,
        HandleKind::WeakNativeCom,
        HandleKind::WeakInteriorPointer,
        HandleKind::CrossReference,
    ];

    /// Name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            HandleKind::WeakShort => "weak-short",
            HandleKind::WeakLong => "weak-long",
            HandleKind::Strong => "strong",
            HandleKind::Pinned => "pinned",
            HandleKind::Variable => "variable",
            HandleKind::RefCounted => "ref-counted",
            HandleKind::Dependent => "dependent",
            HandleKind::AsyncPinned => "async-pinned",
            HandleKind::SizedRef => "sized-ref",
            HandleKind::WeakNativeCom => "weak-native-com",
            HandleKind::WeakInteriorPointer => "weak-interior-pointer",
            HandleKind::CrossReference => "cross-reference",
        }
    }

    /// Whether handles of this type carry a secondary value.
    pub const fn has_secondary(self) -> bool {
        matches!(self, HandleKind::Dependent | HandleKind::WeakInteriorPointer | HandleKind::CrossReference)
    }
}

impl fmt::Display for HandleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A GC handle.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HandleModel {
    /// Address of the handle itself: the value of a `GCHandle`.
    pub address: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Type name of the object; `null` where it cannot be told.
    pub object_type: Option<String>,
    /// Method table of the object; `null` where the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Dependent handles: the dependent object. Weak interior pointers: the location of the pointer. Cross references:
    /// the native context. `null` for all others.
    pub secondary: Option<Addr>,
    /// Dependent handles: type name of the dependent object; `null` where there is none or it cannot be told.
    pub secondary_type: Option<String>,
}

/// What `handles --by` groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandleBy {
    /// Type of the handle.
    Type,
    /// Type of the object.
    ObjectType,
    /// Generation or kind of segment that the object lies in.
    Generation,
}

/// Handles of one group.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HandleGroup {
    /// Type of the handles, type name of the objects (the method table's address where nothing is known), or generation;
    /// `null` where the object is not in the dump, or in no segment.
    pub key: Option<String>,
    /// How many.
    pub count: u64,
}

/// Handles of one type.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HandleStat {
    /// Type of the handles.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// How many.
    pub count: u64,
}

/// `handles`: the GC handles of all handle tables.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HandlesReport {
    /// Handles found, by the types asked for.
    pub total: u64,
    /// Number of handles by type.
    pub counts: Vec<HandleStat>,
    /// Types that this runtime has.
    pub supported: Vec<HandleKind>,
    /// Handle tables that were walked: one per processor with server GC.
    pub tables: u64,
    /// The handles, in the order of the tables; `null` with `--stat` and `--by`.
    pub handles: Option<Vec<HandleModel>>,
    /// With `--by`: what the groups stand for.
    pub by: Option<HandleBy>,
    /// With `--by`: the groups, the largest first.
    pub groups: Option<Vec<HandleGroup>>,
}
