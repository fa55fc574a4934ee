//! The report of `where_is`.

use serde::Serialize;

use crate::analysis::{CodeKind, ObjectBrief};
use crate::base::{Addr, AddrRange, Name, named_enum};
use crate::model::{CodeTier, Generation, HandleKind};

named_enum! {
    /// Kinds of things at an address.
    pub enum PlaceKind {
        /// An object, or an address inside one.
        Object = "object",
        /// Free space on the heap.
        Free = "free",
        /// An allocation context.
        AllocationContext = "allocation-context",
        /// A gap between the objects of a segment: corrupt memory, an object that was being allocated, or memory that is not in the dump.
        Gap = "gap",
        /// Unused memory after the last object of a segment.
        SegmentUnused = "segment-unused",
        /// A static field, or a thread static.
        Static = "static",
        /// A `heap_segment`, the structure of a segment or region.
        Segment = "segment",
        /// A `gc_heap`, the structure of a heap of server GC.
        GcHeap = "gc-heap",
        /// A GC handle.
        Handle = "handle",
        /// An entry of a finalization queue.
        FinalizationQueue = "finalization-queue",
        /// A word of a card table.
        CardTable = "card-table",
        /// A word of a mark array.
        MarkArray = "mark-array",
        /// Other GC memory: free regions, bookkeeping, handle tables.
        Gc = "gc",
        /// A `Thread` of the runtime.
        Thread = "thread",
        /// A method table.
        MethodTable = "method-table",
        /// An `EEClass`.
        Class = "class",
        /// A `Module` of the runtime.
        RuntimeModule = "runtime-module",
        /// Managed code.
        Code = "code",
        /// The image of a module.
        Module = "module",
        /// The stack of a thread.
        Stack = "stack",
        /// Other captured memory.
        Memory = "memory",
        /// Memory that is mapped in the process but not in the dump.
        NotCaptured = "not-captured",
        /// Memory that the dump does not describe.
        Unknown = "unknown",
    }
}

/// `where`: the contents of an address.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhereReport {
    /// The queried address.
    pub address: Addr,
    /// Kind of thing at the address.
    pub kind: PlaceKind,
    /// Description of the thing at the address.
    pub text: String,
    /// Whether the byte at the address is in the dump.
    pub captured: bool,
    /// The object or free space containing the address.
    pub object: Option<ObjectBrief>,
    /// Offset of the address within the object, structure or module, in bytes.
    pub offset: Option<u64>,
    /// The heap segment.
    pub segment: Option<SegmentPlace>,
    /// The enclosing range: context, structure, table, module, stack, or mapping.
    pub range: Option<AddrRange>,
    /// Name of the module, type, static field, or kind of GC memory.
    pub name: Option<String>,
    /// Managed thread id, for stacks, `Thread`s and thread statics.
    pub managed_id: Option<u32>,
    /// OS thread id, for stacks, `Thread`s and thread statics.
    pub os_id: Option<u32>,
    /// The object that the handle, static field or finalization queue refers to.
    pub target: Option<Addr>,
    /// Type name of that object; `null` if the object is not in the dump.
    pub target_type: Option<Name>,
    /// Type of the handle.
    pub handle_type: Option<HandleKind>,
    /// Heap addresses that the word of a card table or mark array covers.
    pub covers: Option<AddrRange>,
    /// For a method table: the `Module` of the runtime that defines the type.
    pub module: Option<Addr>,
    /// For a method table: the `EEClass` of the type.
    pub class: Option<Addr>,
    /// Section of the module. For ELF modules, whose section names are not in memory: the permissions of the segment, such as `rw-`, or
    /// `bss`.
    pub section: Option<String>,
    /// The module's last export at or below the address, if there is one in the same section.
    pub symbol: Option<String>,
    /// Offset of the address from that export, in bytes.
    pub symbol_offset: Option<u64>,
    /// The method, for managed code.
    pub code: Option<CodePlace>,
}

/// Managed code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// The method, as the compiler named it: `Lab.Program.Main(System.String[])`; `null` if unknown.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of the `MethodDesc`.
    pub method_desc: Addr,
    /// File name of the declaring module.
    pub module: Option<String>,
    /// Start of the method's code.
    pub start: Addr,
    /// Origin of the code.
    pub code: CodeKind,
    /// Optimization tier of the code; `null` for code that the JIT did not compile, and if the tier cannot be
    /// determined.
    pub tier: Option<CodeTier>,
    /// Whether the address is in a catch, finally, fault or filter block.
    pub funclet: bool,
}

/// A location in the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SegmentPlace {
    /// Address of the segment.
    pub address: Addr,
    /// Index of the heap.
    pub heap: u64,
    /// Generation at the address.
    pub generation: Generation,
    /// Start of the objects.
    pub start: Addr,
    /// End of the objects.
    pub allocated: Addr,
}
