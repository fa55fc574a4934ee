use serde::Serialize;

use super::FieldValue;
use crate::base::named_enum;

named_enum! {
    /// Kinds of collections whose elements are known.
    pub enum ContainerKind {
        /// `Dictionary`.
        Dictionary = "dictionary",
        /// `HashSet`.
        HashSet = "hash-set",
        /// `List`.
        List = "list",
        /// `Stack`; the element pushed last comes first.
        Stack = "stack",
        /// `Queue`; the oldest element comes first.
        Queue = "queue",
        /// `PriorityQueue`; keys are priorities, in no order.
        PriorityQueue = "priority-queue",
        /// `LinkedList`.
        LinkedList = "linked-list",
        /// `SortedDictionary`.
        SortedDictionary = "sorted-dictionary",
        /// `SortedList`.
        SortedList = "sorted-list",
        /// `SortedSet`.
        SortedSet = "sorted-set",
        /// `ConcurrentDictionary`.
        ConcurrentDictionary = "concurrent-dictionary",
        /// `ConcurrentQueue`; the oldest element comes first.
        ConcurrentQueue = "concurrent-queue",
        /// `ConcurrentStack`; the element pushed last comes first.
        ConcurrentStack = "concurrent-stack",
        /// `ConcurrentBag`.
        ConcurrentBag = "concurrent-bag",
        /// `ImmutableDictionary`.
        ImmutableDictionary = "immutable-dictionary",
        /// `ImmutableList`.
        ImmutableList = "immutable-list",
        /// `Hashtable`.
        Hashtable = "hashtable",
        /// `ArrayList`.
        ArrayList = "array-list",
        /// `BitArray`; elements are bits.
        BitArray = "bit-array",
        /// `ConditionalWeakTable`; keys that are still alive count.
        ConditionalWeakTable = "conditional-weak-table",
        /// `StringBuilder`; elements are characters.
        StringBuilder = "string-builder",
        /// `MemoryStream`; elements are bytes.
        MemoryStream = "memory-stream",
        /// `Lazy`; one element once it was made.
        Lazy = "lazy",
        /// An array of references; elements that are not null count.
        Array = "array",
    }
}

/// A collection: how many elements it has, and the first ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ContainerModel {
    /// Its kind.
    pub kind: ContainerKind,
    /// Number of elements.
    pub count: u64,
    /// Elements that it has room for without growing; `null` where it has no such limit.
    pub capacity: Option<u64>,
    /// Text of a `StringBuilder`.
    pub text: Option<String>,
    /// The first elements.
    pub items: Vec<ItemModel>,
}

/// An element of a collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ItemModel {
    /// Its key.
    pub key: Option<FieldValue>,
    /// Its value.
    pub value: Option<FieldValue>,
}
