//! Collections of the .NET library and their elements.

use serde::Serialize;

use super::FieldValue;
use crate::base::named_enum;

named_enum! {
    /// Kinds of collections whose elements can be read.
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
        /// `PriorityQueue`; keys are priorities, and elements are not sorted.
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
        /// `ConditionalWeakTable`; only entries with a live key are counted.
        ConditionalWeakTable = "conditional-weak-table",
        /// `StringBuilder`; elements are characters.
        StringBuilder = "string-builder",
        /// `MemoryStream`; elements are bytes.
        MemoryStream = "memory-stream",
        /// `Lazy`; one element if the value was created.
        Lazy = "lazy",
        /// An array of references; only elements that are not null are counted.
        Array = "array",
    }
}

impl ContainerKind {
    /// Whether the elements are in an array that the collection refers to, whose length is its capacity.
    pub(crate) const fn has_capacity(self) -> bool {
        use ContainerKind as K;
        matches!(self, K::Dictionary | K::HashSet | K::List | K::Stack | K::Queue | K::PriorityQueue | K::SortedList | K::ArrayList)
    }
}

/// A collection with its first elements.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ContainerModel {
    /// Kind.
    pub kind: ContainerKind,
    /// Number of elements.
    pub count: u64,
    /// Number of elements that fit without growing; `null` if the collection has no such limit, or if its elements are
    /// not in the dump.
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
    /// Key.
    pub key: Option<FieldValue>,
    /// Value.
    pub value: Option<FieldValue>,
}
