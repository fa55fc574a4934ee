//! Fields of collections and of their nodes and entries, bound once per method table.

use std::sync::{Arc, Mutex, PoisonError};

use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::clr::fields::{Field, Types};
use crate::clr::library::{FieldAt, NoSuchField};

/// A cache with one value per method table.
#[derive(Debug)]
pub(super) struct PerType<T>(Mutex<Map<Addr, Kept<T>>>);

impl<T> Default for PerType<T> {
    fn default() -> PerType<T> {
        PerType(Mutex::default())
    }
}

impl<T: Clone> PerType<T> {
    /// The value for the type at `method_table`. `find` computes it at the first call.
    pub(super) fn get(&self, method_table: Addr, find: impl FnOnce() -> T) -> T {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&method_table) {
            return found.get().clone();
        }
        // The lock is not held here, because `find` may look up other types in the same cache.
        let found = Kept::of(find);
        known().entry(method_table).or_insert(found).get().clone()
    }
}

/// The fields of a type that a reader needs.
pub(super) trait Layout: Sized {
    fn bind(types: &Types, method_table: Addr) -> Result<Self, NoSuchField>;
}

/// The layouts of all types of one kind, by method table: each instance of a generic type has its own layout.
pub(super) type Bound<F> = PerType<Result<Arc<F>, NoSuchField>>;

impl<F: Layout> Bound<F> {
    /// The fields of the type at `method_table`.
    pub(super) fn of(&self, types: &Types, method_table: Addr) -> Result<Arc<F>, NoSuchField> {
        self.get(method_table, || F::bind(types, method_table).map(Arc::new))
    }
}

/// Declares the layouts, and [`Layouts`] with a cache for each. The keyword of a field determines what is bound: the location (`at`), the
/// location of a field that may not exist (`opt`), or the location and the type of a field whose value is shown to people (`shown`).
macro_rules! layouts {
    ($( $(#[$about:meta])* $own:ident : $name:ident { $( $field:ident : $need:ident $names:literal ),+ $(,)? } )+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug)]
            pub(super) struct $name { $( pub(super) $field: layouts!(@type $need) ),+ }

            impl Layout for $name {
                fn bind(types: &Types, method_table: Addr) -> Result<$name, NoSuchField> {
                    Ok($name { $( $field: layouts!(@bind $need types method_table $names) ),+ })
                }
            }
        )+

        /// Caches of the layouts of all kinds of types.
        #[derive(Debug, Default)]
        pub(super) struct Layouts {
            $( pub(super) $own: Bound<$name>, )+
            pub(super) segment: Bound<Segment>,
        }
    };
    (@type at) => { FieldAt };
    (@type opt) => { Option<FieldAt> };
    (@type shown) => { Field };
    (@bind at $t:ident $mt:ident $l:literal) => { $t.field_at($mt, $l)? };
    (@bind opt $t:ident $mt:ident $l:literal) => { $t.field_at($mt, $l).ok() };
    (@bind shown $t:ident $mt:ident $l:literal) => { $t.field_named($mt, $l)? };
}

layouts! {
    /// `Dictionary`, `HashSet`.
    hashed: Hashed { count: at "_count", free: at "_freeCount", entries: at "_entries", buckets: opt "_buckets" }
    /// An entry of a `Dictionary`.
    entry: Entry { next: at "next|Next", key: shown "key", value: shown "value" }
    /// An entry of a `HashSet`.
    member: Member { next: at "next|Next", value: shown "Value|value" }
    /// `Hashtable`.
    hashtable: Hashtable { count: at "_count", buckets: at "_buckets" }
    /// A bucket of a `Hashtable`.
    bucket: Bucket { key: shown "key", value: shown "val" }
    /// `ConditionalWeakTable`.
    weak: Weak { container: at "_container" }
    /// `ConditionalWeakTable+Container`.
    container: Container { used: at "_firstFreeEntry", entries: at "_entries" }
    /// `ConditionalWeakTable+Entry`.
    weak_entry: WeakEntry { handle: at "depHnd" }
    /// `List`, `Stack`, `ArrayList`.
    vector: Vector { size: at "_size", items: at "_items|_array" }
    /// `Queue`.
    ring: Ring { size: at "_size", head: at "_head", array: at "_array" }
    /// `PriorityQueue`.
    heap: Heap { size: at "_size", nodes: at "_nodes" }
    /// An element of a `PriorityQueue`: a tuple of element and priority.
    pair_of_heap: Prioritized { element: shown "Item1", priority: shown "Item2" }
    /// `SortedList`.
    sorted_list: SortedList { size: at "_size", keys: at "keys", values: at "values" }
    /// `BitArray`.
    bits: Bits { length: at "_bitLength|m_length" }
    /// `MemoryStream`.
    stream: Stream { length: at "_length", origin: at "_origin", capacity: at "_capacity", buffer: opt "_buffer" }
    /// `Lazy`.
    lazy: Lazy { state: at "_state", value: shown "_value" }
    /// `StringBuilder`.
    builder: Builder { offset: at "m_ChunkOffset", length: at "m_ChunkLength", chars: at "m_ChunkChars", previous: at "m_ChunkPrevious" }
    /// `LinkedList`.
    linked: Linked { count: at "count", head: at "head" }
    /// A node of a `LinkedList`.
    linked_node: LinkedNode { next: at "next", item: shown "item" }
    /// `SortedDictionary`.
    sorted_map: SortedMap { set: at "_set" }
    /// `SortedSet`.
    sorted: Sorted { count: at "count", root: at "root" }
    /// A node of a `SortedSet`.
    sorted_node: SortedNode {
        left: at "<Left>k__BackingField|Left",
        right: at "<Right>k__BackingField|Right",
        item: shown "<Item>k__BackingField|Item",
    }
    /// An entry or node of any dictionary that has a key and a value.
    keyed: Keyed { key: shown "key|_key|Key", value: shown "value|_value|Value|val" }
    /// A dictionary that stores keys and values in two arrays.
    parallel: Parallel { keys: at "keys|_keys", values: at "values|_values" }
    /// A `FrozenDictionary` of integers, whose keys are the hash codes of its table.
    frozen_integers: FrozenIntegers { values: at "_values", table: shown "_hashTable" }
    /// `FrozenHashTable`.
    frozen_table: FrozenTable { codes: at "<HashCodes>k__BackingField|HashCodes" }
    /// `KeyValuePair`.
    pair: Pair { key: shown "key", value: shown "value" }
    /// `ImmutableList`.
    immutable_list: ImmutableList { root: at "_root" }
    /// A node of an `ImmutableList`.
    list_node: ListNode { left: at "_left", right: at "_right", item: shown "_key" }
    /// The root node of an `ImmutableList`, which has the number of elements.
    list_root: ListRoot { count: at "_count" }
    /// `ImmutableDictionary`.
    immutable_map: ImmutableMap { count: at "_count", root: at "_root" }
    /// A node of an `ImmutableDictionary`.
    map_node: MapNode { left: at "_left", right: at "_right", bucket: shown "_value" }
    /// A bucket of an `ImmutableDictionary`.
    map_bucket: MapBucket { first: shown "_firstValue", more: shown "_additionalElements" }
    /// `ConcurrentDictionary`.
    concurrent: Concurrent { tables: at "_tables" }
    /// The tables of a `ConcurrentDictionary`.
    tables: DictionaryTables { counts: at "_countPerLock", buckets: at "_buckets" }
    /// A bucket of a `ConcurrentDictionary`, which is a structure since .NET 8.
    volatile: Volatile { node: opt "_node" }
    /// A node of a `ConcurrentDictionary`.
    concurrent_node: ConcurrentNode { next: at "_next", key: shown "_key", value: shown "_value" }
    /// `ConcurrentQueue`, `ConcurrentStack`.
    headed: Headed { head: at "_head" }
    /// A slot of a segment of a `ConcurrentQueue`.
    slot: SlotFields { item: shown "Item", sequence: at "SequenceNumber" }
    /// A node of a `ConcurrentStack`.
    stack_node: StackNode { next: at "_next", value: shown "_value" }
    /// `ConcurrentBag`.
    bag: Bag { queues: at "_workStealingQueues" }
    /// The queue of a thread in a `ConcurrentBag`.
    bag_queue: BagQueue {
        added: at "_addTakeCount",
        stolen: at "_stealCount",
        next: at "_nextQueue",
        array: at "_array",
        head: at "_headIndex",
        tail: at "_tailIndex",
        mask: at "_mask",
    }
    /// The local queue of a thread of the thread pool (`WorkStealingQueue`).
    local: Local { array: at "m_array", head: at "m_headIndex", tail: at "m_tailIndex", mask: at "m_mask" }
}

/// A segment of a `ConcurrentQueue`.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) slots: FieldAt,
    pub(super) mask: FieldAt,
    pub(super) head: FieldAt,
    pub(super) tail: FieldAt,
    pub(super) next: FieldAt,
    pub(super) frozen: FieldAt,
}

impl Layout for Segment {
    fn bind(types: &Types, mt: Addr) -> Result<Segment, NoSuchField> {
        let at = |name| types.field_at(mt, name);
        let ends = at("_headAndTail")?;
        let inner = |name| {
            let of = ends.method_table.ok_or_else(|| NoSuchField::Absent { type_name: "PaddedHeadAndTail".into(), field: name })?;
            Ok::<FieldAt, NoSuchField>(ends.then(types.field_at(of, name)?, types))
        };
        Ok(Segment {
            slots: at("_slots")?,
            mask: at("_slotsMask")?,
            head: inner("Head")?,
            tail: inner("Tail")?,
            next: at("_nextSegment")?,
            frozen: at("_frozenForEnqueues")?,
        })
    }
}
