//! Facts about a dump, its runtime and its GC.

use serde::Serialize;

use crate::base::named_enum;

named_enum! {
    /// Sources of a version.
    pub enum VersionSource {
        /// A descriptor global (.NET 11).
        Descriptor = "descriptor",
        /// The crash report in the process's memory (NativeAOT).
        CrashReport = "crash-report",
        /// The module list of the dump.
        ModuleList = "module-list",
        /// The path of the runtime module.
        Path = "path",
        /// The build ID of the runtime module.
        BuildId = "build-id",
        /// The version string in the runtime image.
        Image = "image",
        /// The matching overlay: major and minor only.
        Overlay = "overlay",
    }
}

named_enum! {
    /// Kind of a dump: how much of the process it contains.
    pub enum DumpKind {
        /// All memory.
        Full = "full",
        /// The GC heap and related structures, without code.
        Heap = "heap",
        /// Stacks and runtime structures, without the heap.
        Mini = "mini",
        /// Like `mini`, but without potentially confidential data.
        Triage = "triage",
        /// An ELF core written by the kernel, with the memory that the core filter of the process selects.
        KernelCore = "kernel-core",
        /// An ELF core written by gcore: all memory.
        Gcore = "gcore",
        /// A heap snapshot (`.gcdump`): types, sizes and references.
        Snapshot = "snapshot",
        /// Unknown.
        Unknown = "unknown",
    }
}

named_enum! {
    /// Programs that write dumps.
    pub enum DumpWriter {
        /// .NET's createdump.
        Createdump = "createdump",
        /// The Linux kernel.
        Kernel = "kernel",
        /// gdb or its gcore.
        Gdb = "gdb",
        /// Windows: `MiniDumpWriteDump`.
        Windows = "windows",
    }
}

/// Size of the GC heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapSizeModel {
    /// Size of the objects and of the free space between them.
    pub allocated_bytes: u64,
    /// Committed bytes of the segments in use.
    pub committed_bytes: u64,
    /// Committed bytes of free regions; `null` if the lists of free regions are not whole.
    pub free_region_bytes: Option<u64>,
}

named_enum! {
    /// State of the background collection (`c_gc_state`, gcpriv.h).
    pub open enum GcState(u64) {
        /// Marking.
        Marking = "marking",
        /// Planning.
        Planning = "planning",
        /// No background collection.
        Free = "free",
    }
}

named_enum! {
    /// Phases of the garbage collector.
    pub enum GcPhase {
        /// None.
        None = "none",
        /// The threads were suspended or being suspended, but no collection had begun; the purpose need not be a collection.
        Suspending = "suspending",
        /// A blocking collection was marking, starting or ending. It was not moving objects.
        Marking = "marking",
        /// A blocking collection was planning, compacting or sweeping: heap structures are not valid, and objects may be partially moved.
        Moving = "moving",
        /// Only a background collection was in progress.
        Background = "background",
    }
}

/// Limit on the memory that the GC commits: `GCHeapHardLimit`, `GCHeapHardLimitPercent`, or the limit of a container. With segments, only a limit that the
/// environment or `runtimeconfig.json` sets can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcLimitModel {
    /// The limit in bytes.
    pub hard_limit_bytes: u64,
    /// Memory of the container, 75 % of which is the GC's limit; `null` if the limit has another source.
    pub container_bytes: Option<u64>,
    /// Committed bytes of the heap, free regions included; `null` if the lists of segments or free regions are not whole. The GC also counts its card
    /// tables and similar structures.
    pub committed_bytes: Option<u64>,
}

/// Committed share of the limit, 0 to 1, at which the limit is treated as reached. It is less than 1 because the GC also counts its own
/// tables.
const REACHED: f64 = 0.9;

impl GcLimitModel {
    /// Whether the heap is so close to the limit that it explains a failed allocation.
    pub(crate) fn is_reached(&self) -> bool {
        self.share().is_some_and(|share| share >= REACHED)
    }

    /// Text such as `64.0 MiB (75 % of the container's 85.3 MiB), 62.8 MiB committed (98.1 %)`.
    pub(crate) fn words(&self) -> String {
        let of = self.container_bytes.map(|n| format!(" (75 % of the container's {})", crate::base::in_units(n))).unwrap_or_default();
        let limit = crate::base::in_units(self.hard_limit_bytes);
        let Some(committed) = self.committed_bytes.map(crate::base::in_units) else { return format!("{limit}{of}") };
        format!("{limit}{of}, {committed} committed ({:.1} %)", self.share().unwrap_or(0.0) * 100.0)
    }

    fn share(&self) -> Option<f64> {
        crate::base::share(self.committed_bytes?, self.hard_limit_bytes)
    }
}

named_enum! {
    /// Kinds of runtimes.
    pub enum RuntimeKind {
        /// CoreCLR: the runtime of most programs, single-file ones included.
        CoreClr = "coreclr",
        /// NativeAOT: a program compiled ahead of time that contains its runtime.
        NativeAot = "native-aot",
        /// Mono, with the collector SGen.
        Mono = "mono",
    }
}

named_enum! {
    /// Kind of garbage collector.
    pub enum GcKind {
        /// One heap, collected by the allocating thread.
        Workstation = "workstation",
        /// Several heaps, each with a GC thread.
        Server = "server",
    }
}

named_enum! {
    /// Layout of the heap.
    pub enum GcLayout {
        /// Many small regions, each of one generation (.NET 7 and later by default).
        Regions = "regions",
        /// Few large segments, one of them ephemeral (`libclrgc`).
        Segments = "segments",
    }
}
