//! The types of collections, with their layouts.

use std::sync::Arc;

use super::layouts::{Layouts, PerType};
use crate::clr::fields::Types;
use crate::clr::library::{Classifier, library_types};
use crate::model::ContainerKind;

library_types! {
    /// Supported collection types.
    pub(crate) enum CollectionType {
        in "System.Private.CoreLib" {
            Dictionary = "System.Collections.Generic.Dictionary`2",
            HashSet = "System.Collections.Generic.HashSet`1",
            List = "System.Collections.Generic.List`1",
            Queue = "System.Collections.Generic.Queue`1",
            ConcurrentQueue = "System.Collections.Concurrent.ConcurrentQueue`1",
            CoreConcurrentDictionary = "System.Collections.Concurrent.ConcurrentDictionary`2",
            Hashtable = "System.Collections.Hashtable",
            ArrayList = "System.Collections.ArrayList",
            CoreBitArray = "System.Collections.BitArray",
            ConditionalWeakTable = "System.Runtime.CompilerServices.ConditionalWeakTable`2",
            StringBuilder = "System.Text.StringBuilder",
            MemoryStream = "System.IO.MemoryStream",
            Lazy = "System.Lazy`1",
        }
        in "System.Collections" {
            OldQueue = "System.Collections.Generic.Queue`1",
            Stack = "System.Collections.Generic.Stack`1",
            LinkedList = "System.Collections.Generic.LinkedList`1",
            SortedDictionary = "System.Collections.Generic.SortedDictionary`2",
            SortedList = "System.Collections.Generic.SortedList`2",
            SortedSet = "System.Collections.Generic.SortedSet`1",
            PriorityQueue = "System.Collections.Generic.PriorityQueue`2",
            BitArray = "System.Collections.BitArray",
        }
        in "System.Collections.Concurrent" {
            ConcurrentDictionary = "System.Collections.Concurrent.ConcurrentDictionary`2",
            ConcurrentStack = "System.Collections.Concurrent.ConcurrentStack`1",
            ConcurrentBag = "System.Collections.Concurrent.ConcurrentBag`1",
        }
        in "System.Collections.Immutable" {
            ImmutableDictionary = "System.Collections.Immutable.ImmutableDictionary`2",
            ImmutableList = "System.Collections.Immutable.ImmutableList`1",
        }
    }
}

library_types! {
    /// Entries and nodes of dictionaries, and types that store keys in a separate array next to their values.
    pub(super) enum EntryType {
        in "System.Private.CoreLib" {
            Entry = "System.Collections.Generic.Dictionary`2+Entry",
            Bucket = "System.Collections.Hashtable+Bucket",
            OldBucket = "System.Collections.Hashtable+bucket",
            CoreNode = "System.Collections.Concurrent.ConcurrentDictionary`2+Node",
            Pair = "System.Collections.Generic.KeyValuePair`2",
            CoreListNode = "System.Collections.ListDictionaryInternal+DictionaryNode",
        }
        in "System.Collections" {
            OrderedEntry = "System.Collections.Generic.OrderedDictionary`2+Entry",
            SetNode = "System.Collections.Generic.SortedSet`1+Node",
            SortedList = "System.Collections.Generic.SortedList`2",
        }
        in "System.Collections.NonGeneric" {
            OldSortedList = "System.Collections.SortedList",
        }
        in "System.Collections.Specialized" {
            ListNode = "System.Collections.Specialized.ListDictionary+DictionaryNode",
            NameEntry = "System.Collections.Specialized.NameObjectCollectionBase+NameObjectEntry",
        }
        in "System.Collections.Concurrent" {
            Node = "System.Collections.Concurrent.ConcurrentDictionary`2+Node",
        }
        in "System.Collections.Immutable" {
            HashNode = "System.Collections.Immutable.SortedInt32KeyNode`1",
            HashBucket = "System.Collections.Immutable.ImmutableDictionary`2+HashBucket",
            ImmutableNode = "System.Collections.Immutable.ImmutableList`1+Node",
            SortedNode = "System.Collections.Immutable.ImmutableSortedDictionary`2+Node",
            Frozen = "System.Collections.Frozen.FrozenDictionary`2",
        }
    }
}

/// Bound types and layouts of collections.
#[derive(Debug)]
pub(in crate::bcl) struct Tables {
    pub(super) classifier: Classifier<CollectionType>,
    pub(super) kinds: PerType<Option<ContainerKind>>,
    pub(super) entries: Classifier<EntryType>,
    pub(super) layouts: Layouts,
}

impl Tables {
    /// Binds to the types of an answer.
    pub(in crate::bcl) fn bind(types: &Arc<Types>) -> Tables {
        Tables {
            classifier: Classifier::bind(types),
            kinds: PerType::default(),
            entries: Classifier::bind(types),
            layouts: Layouts::default(),
        }
    }
}
