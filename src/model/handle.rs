use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Type of a GC handle (`HNDTYPE_…`, gcinterface.h).
    pub enum HandleKind {
        /// Weak; cleared when the object is due for finalization.
        WeakShort = "weak-short" | "WeakShort",
        /// Weak; cleared when the object is gone (tracks resurrection).
        WeakLong = "weak-long" | "WeakLong",
        /// Keeps its object alive.
        Strong = "strong",
        /// Keeps its object alive and in place.
        Pinned = "pinned",
        /// Unused.
        Variable = "variable",
        /// Strong while its COM or ComWrappers reference count says so.
        RefCounted = "ref-counted" | "RefCounted",
        /// Keeps the secondary object alive as long as the primary one lives.
        Dependent = "dependent",
        /// Pinned for overlapped I/O; not used since .NET 8.
        AsyncPinned = "async-pinned" | "AsyncPinned",
        /// Measures what it holds; not used since .NET 9.
        SizedRef = "sized-ref" | "SizedRef",
        /// Weak, to a native COM object; not used since .NET 8.
        WeakNativeCom = "weak-native-com" | "WeakNativeCom" | "WeakWinRT",
        /// Weak; its secondary value is the address of an interior pointer (collectible statics).
        WeakInteriorPointer = "weak-interior-pointer" | "WeakInteriorPointer",
        /// Of the Java bridge; its secondary value is the native context.
        CrossReference = "cross-reference" | "CrossReference",
    }
}

impl HandleKind {
    /// Whether handles of this type carry a secondary value.
    pub const fn has_secondary(self) -> bool {
        matches!(self, HandleKind::Dependent | HandleKind::WeakInteriorPointer | HandleKind::CrossReference)
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

named_enum! {
    /// What `handles --by` groups by.
    pub enum HandleBy {
        /// Type of the handle.
        Type = "type",
        /// Type of the object.
        ObjectType = "object-type",
        /// Generation or kind of segment that the object lies in.
        Generation = "generation",
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_of_sos_are_understood() {
        let weak_com: [HandleKind; 3] = ["WeakWinRT", "weaknativecom", "weak-native-com"].map(|t| t.parse().unwrap());
        assert_eq!(weak_com, [HandleKind::WeakNativeCom; 3]);
        // All others are ours without the hyphens.
        for kind in HandleKind::ALL {
            assert_eq!(kind.name().replace('-', "").parse(), Ok(kind));
        }
    }
}
