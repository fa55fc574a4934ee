//! GC handles: types, uses, and the memory of their tables.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Type of a GC handle (`HNDTYPE_…`, gcinterface.h), in the order of the runtime's numbers. The numbers are accepted as names.
    pub enum HandleKind {
        /// Weak; cleared when the object becomes ready for finalization.
        WeakShort = "weak-short" | "WeakShort" | "0",
        /// Weak; cleared when the object is reclaimed (tracks resurrection).
        WeakLong = "weak-long" | "WeakLong" | "1",
        /// Keeps its object alive.
        Strong = "strong" | "2",
        /// Keeps its object alive and pinned.
        Pinned = "pinned" | "3",
        /// Unused.
        Variable = "variable" | "4",
        /// Strong while its COM or ComWrappers reference count is nonzero.
        RefCounted = "ref-counted" | "RefCounted" | "5",
        /// Keeps the secondary object alive while the primary object is alive.
        Dependent = "dependent" | "6",
        /// Pinned for overlapped I/O; not used since .NET 8.
        AsyncPinned = "async-pinned" | "AsyncPinned" | "7",
        /// Measures the size of the objects it holds; not used since .NET 9.
        SizedRef = "sized-ref" | "SizedRef" | "8",
        /// Weak, to a native COM object; not used since .NET 8.
        WeakNativeCom = "weak-native-com" | "WeakNativeCom" | "WeakWinRT" | "9",
        /// Weak, with the address of an interior pointer as its secondary value (collectible statics).
        WeakInteriorPointer = "weak-interior-pointer" | "WeakInteriorPointer" | "10",
        /// Used by the Java bridge, with the native context as its secondary value.
        CrossReference = "cross-reference" | "CrossReference" | "11",
        /// Not known: a slot in a handle table of a GC whose structures are not known.
        Unknown = "unknown" | "12",
    }
}

impl HandleKind {
    /// Whether handles of this type have a secondary value.
    pub const fn has_secondary(self) -> bool {
        matches!(self, HandleKind::Dependent | HandleKind::WeakInteriorPointer | HandleKind::CrossReference)
    }

    /// Whether handles of this type keep their objects alive; `None` if that does not depend only on the handle.
    pub const fn keeps_alive(self) -> Option<bool> {
        match self {
            HandleKind::Strong | HandleKind::Pinned | HandleKind::AsyncPinned | HandleKind::SizedRef => Some(true),
            HandleKind::RefCounted | HandleKind::CrossReference | HandleKind::Variable | HandleKind::Unknown => None,
            _ => Some(false),
        }
    }
}

named_enum! {
    /// Uses of strong handles that the runtime or its library created for itself. A program cannot free them.
    pub enum HandleUse {
        /// From a sync block to its lock (.NET 11).
        SyncBlockLock = "sync-block-lock",
        /// From a wait handle to its state (NativeAOT, and .NET 11 on Unix).
        WaitHandle = "wait-handle",
    }
}

impl HandleUse {
    /// Description of the use.
    pub const fn words(self) -> &'static str {
        match self {
            HandleUse::SyncBlockLock => "lock of a sync block",
            HandleUse::WaitHandle => "state of a wait handle",
        }
    }
}

/// A GC handle.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleModel {
    /// Address of the handle, that is, the value of a `GCHandle`.
    pub address: Addr,
    /// Type of the handle.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Type name of the object; `null` if unknown.
    pub object_type: Option<Name>,
    /// Method table of the object; `null` if the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Size of the object in bytes; `null` if the object is not in the dump.
    pub object_size: Option<u64>,
    /// Whether the handle keeps its object alive. `null` for a ref-counted handle if its count cannot be read, and for cross references,
    /// for which the Java bridge decides.
    pub strong: Option<bool>,
    /// For strong handles that the runtime or its library created for itself: the use. `null` for all others.
    pub used_for: Option<HandleUse>,
    /// For ref-counted handles: number of COM references to the object's wrapper. `null` if it cannot be read, and for other handles.
    pub ref_count: Option<u64>,
    /// For dependent handles: the dependent object. For weak interior pointers: the address of the pointer. For cross
    /// references: the native context. `null` for all others.
    pub secondary: Option<Addr>,
    /// For dependent handles: type name of the dependent object; `null` if absent, or if the name is unknown.
    pub secondary_type: Option<Name>,
}

named_enum! {
    /// Sources of the list of a runtime's features.
    pub enum FeatureSource {
        /// The descriptor publishes them (`Feature…`).
        Descriptor = "descriptor",
        /// The version: all builds of this version have the feature.
        Version = "version",
    }
}

/// The memory of handle tables, which is outside of the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleMemory {
    /// Number of handle tables.
    pub tables: u64,
    /// Number of segments. A table has at least one.
    pub segments: u64,
    /// Number of segments with an object in at least one slot; only segments without one can be freed. `null` if not all segments are in
    /// the dump.
    pub segments_with_objects: Option<u64>,
    /// Bytes of a segment, its header included.
    pub segment_bytes: u64,
    /// Reserved bytes of all segments; pages in which all blocks are free need not be committed.
    pub bytes: u64,
    /// Number of slots in a block.
    pub slots_per_block: u64,
    /// Blocks that belong to no type; `null` if not all segments are in the dump.
    pub free_blocks: Option<u64>,
    /// The blocks that belong to a type, by type.
    pub types: Vec<HandleBlocks>,
}

/// The blocks of a type of handles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleBlocks {
    /// The type.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// Blocks of this type. Since handles do not move, a block becomes free only when all its handles are freed.
    pub blocks: u64,
    /// Blocks with the secondary values of these handles.
    pub secondary_blocks: u64,
    /// Blocks of this type without an object in any slot.
    pub blocks_without_objects: u64,
    /// Bytes of these blocks, including those with secondary values.
    pub bytes: u64,
    /// Slots of the blocks of this type.
    pub slots: u64,
    /// Slots with an object.
    pub handles: u64,
    /// Slots without an object: free slots, and handles whose object was collected or not set.
    pub empty_slots: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_of_sos_are_understood() {
        let weak_com: [HandleKind; 3] = ["WeakWinRT", "weaknativecom", "weak-native-com"].map(|t| t.parse().unwrap());
        assert_eq!(weak_com, [HandleKind::WeakNativeCom; 3]);
        // All other spellings are gcdump's names without the hyphens,
        for kind in HandleKind::ALL {
            assert_eq!(kind.name().replace('-', "").parse(), Ok(kind));
        }
        // or the runtime's numbers.
        assert!(HandleKind::ALL.into_iter().enumerate().all(|(number, kind)| number.to_string().parse() == Ok(kind)));
    }
}
