//! Sort orders of lists: `--sort COLUMN`, with `:asc` or `:desc`.

use crate::base::named_enum;

named_enum! {
    /// Direction of an order.
    pub enum SortDirection {
        /// Smallest first.
        Ascending = "asc" | "ascending",
        /// Largest first.
        Descending = "desc" | "descending",
    }
}

/// A sort order of rows. Unknown values come last in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order<C> {
    /// The column.
    pub by: C,
    /// The direction; `None` for the usual one of the column, which is descending for amounts and ascending for all others.
    pub direction: Option<SortDirection>,
}

impl<C> From<C> for Order<C> {
    fn from(by: C) -> Order<C> {
        Order { by, direction: None }
    }
}

impl<C> Order<C> {
    /// Whether the direction is the opposite of `usual`, the usual one of the column.
    pub fn reverses(&self, usual: SortDirection) -> bool {
        self.direction.is_some_and(|asked| asked != usual)
    }
}

named_enum! {
    /// Sort order of `handles`.
    pub enum HandleSort {
        /// Address of the handle.
        Address = "address",
        /// Type of the handle.
        Type = "type",
        /// Address of the object.
        Object = "object",
        /// Size of the object, largest first.
        ObjectSize = "object-size",
        /// Type of the object.
        ObjectType = "object-type",
        /// Reference count, highest first.
        RefCount = "ref-count",
        /// With --stat or --by: most handles first.
        Count = "count",
        /// With --by: most bytes first.
        Bytes = "bytes",
    }
}

named_enum! {
    /// Sort order of `statics`.
    pub enum StaticSort {
        /// Declaring type.
        DeclaringType = "declaring-type",
        /// Name of the field.
        Name = "name",
        /// Type of the field.
        Type = "type",
        /// Storage of the field.
        Storage = "storage",
        /// Managed id of the thread.
        Thread = "thread",
        /// Address of the value.
        Address = "address",
        /// With --retained: largest retained size first.
        Retained = "retained",
    }
}

named_enum! {
    /// Sort order of `segments`.
    pub enum SegmentSort {
        /// Index of the GC heap.
        Heap = "heap",
        /// Generation, youngest first.
        Generation = "generation",
        /// Address of the `heap_segment`.
        Address = "address",
        /// Start of the objects.
        Start = "start",
        /// Allocated bytes, most first.
        AllocatedBytes = "allocated-bytes",
        /// Committed bytes, most first; for other memory, its size.
        CommittedBytes = "committed-bytes",
        /// With --walk: most objects first.
        Objects = "objects",
        /// With --walk: most free bytes first.
        FreeBytes = "free-bytes",
    }
}

named_enum! {
    /// Sort order of `roots`.
    pub enum RootSort {
        /// Kind of root.
        Kind = "kind",
        /// Address of the root.
        Address = "address",
        /// Address of the object.
        Object = "object",
        /// Type of the object.
        Type = "type",
        /// With --stat: most roots first.
        Count = "count",
        /// With --stat: most objects first.
        Objects = "objects",
    }
}

named_enum! {
    /// Sort order of `threads`.
    pub enum ThreadSort {
        /// Managed id.
        ManagedId = "managed-id",
        /// OS id.
        OsId = "os-id",
        /// Name.
        Name = "name",
        /// Type of the exception.
        ExceptionType = "exception-type",
        /// With --waits: most locks first.
        LocksHeld = "locks-held",
        /// Bytes that the thread has allocated since it began, most first.
        Allocated = "allocated",
    }
}

named_enum! {
    /// Sort order of `exceptions`.
    pub enum ExceptionSort {
        /// Address.
        Address = "address",
        /// Type.
        Type = "type",
        /// Message.
        Message = "message",
        /// Managed id of the thread.
        Thread = "thread",
        /// With --stat: the method that threw the exceptions.
        Method = "method",
        /// With --stat: most exceptions first.
        Count = "count",
        /// With --stat: most thrown first.
        Thrown = "thrown",
    }
}

named_enum! {
    /// Sort order of `timers`.
    pub enum TimerSort {
        /// Due time, next first; for waits, the timeout.
        Due = "due" | "due-ms" | "due-in-ms",
        /// Time between two calls, longest first.
        Period = "period" | "period-ms",
        /// Kind.
        Kind = "kind",
        /// The method that is called.
        Method = "method" | "callback",
        /// Type of the state.
        StateType = "state-type",
        /// Address of the timer.
        Object = "object",
    }
}

named_enum! {
    /// Sort order of `finalizers`.
    pub enum FinalizerSort {
        /// Type.
        Type = "type",
        /// Most objects registered for finalization first.
        Registered = "registered",
        /// Most objects ready for finalization first.
        Ready = "ready",
        /// Most objects with a critical finalizer first.
        Critical = "critical",
        /// With --objects: address of the object.
        Object = "object",
        /// With --objects: state.
        State = "state",
        /// With --objects: generation, youngest first.
        Generation = "generation",
        /// With --objects: index of the GC heap.
        Heap = "heap",
    }
}

named_enum! {
    /// Sort order of `objects`.
    pub enum ObjectSort {
        /// Size, largest first.
        Size = "size" | "bytes",
        /// Elements of an array or characters of a string, most first.
        Length = "length",
        /// Address: the order on the heap.
        Address = "address",
    }
}
