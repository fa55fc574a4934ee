use serde::Serialize;

use super::envelope::{Container, LayoutSource};
use crate::base::{Addr, named_enum};

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

named_enum! {
    /// Whether a command can answer.
    pub enum AnswerKind {
        /// Fully: the command ends with exit code 0.
        Full = "full",
        /// Partially: exit code 5.
        Partial = "partial",
        /// Not at all: exit code 4, or 5 with an empty answer.
        No = "no",
        /// Not at all (exit code 4): the runtime does not describe the required data. Nothing is missing from the dump.
        Undescribed = "undescribed",
    }
}

named_enum! {
    /// Basis of the verdict on a command.
    pub enum AnswerBasis {
        /// The command's answer was computed.
        Answered = "answered",
        /// For large heaps: the data for a heap walk was read, and the presence of the objects was checked. Damaged objects are found only
        /// by a walk.
        Bound = "bound",
    }
}

/// `info`: the contents of the dump, the commands that can answer, and the command to run next.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InfoReport {
    /// Kind of dump.
    pub kind: DumpKind,
    /// Evidence for the kind.
    pub kind_evidence: String,
    /// Container.
    pub format: Container,
    /// Operating system of the process.
    pub os: crate::base::Os,
    /// Architecture of the process.
    pub architecture: crate::base::Arch,
    /// Process id.
    pub process_id: Option<u32>,
    /// Size of the decompressed dump file in bytes.
    pub file_bytes: u64,
    /// Captured memory in bytes.
    pub captured_bytes: u64,
    /// Program that wrote the dump, if known.
    pub writer: Option<DumpWriter>,
    /// Mapped address space in bytes, captured or not.
    pub mapped_bytes: Option<u64>,
    /// Bytes missing at the end of a truncated file.
    pub truncated_bytes: u64,
    /// Name of the process.
    pub process_name: Option<String>,
    /// Command line: as kept by Windows, or the arguments quoted for a shell. In cores without the arguments, only the first 80 bytes.
    /// `(hidden)` if contents are not shown.
    pub command_line: Option<String>,
    /// Arguments, starting with the name of the program; `null` if they are not in the dump.
    pub arguments: Option<Vec<String>>,
    /// Settings of the runtime: environment variables that it reads, and GC properties from `runtimeconfig.json`.
    pub settings: Vec<super::SettingModel>,
    /// Time at which the dump was written, in seconds since 1970.
    pub time: Option<u64>,
    /// Time at which the process was started, in seconds since 1970.
    pub started: Option<u64>,
    /// Number of loaded images; an image that is mapped twice is counted twice.
    pub modules: u64,
    /// Number of OS threads.
    pub os_threads: u64,
    /// Why the process ended: signal or exception.
    pub crash: Option<String>,
    /// OS id of the crashed thread.
    pub crashed_thread: Option<u32>,
    /// Location of the crash; `null` without a crash.
    pub fault: Option<super::FaultModel>,
    /// The suspension of all threads, if one was in progress.
    pub suspension: Option<super::SuspensionModel>,
    /// The report that a NativeAOT program writes into its memory when it ends itself.
    pub crash_report: Option<super::CrashReport>,
    /// The GC; `null` if it cannot be read.
    pub gc: Option<GcModel>,
    /// The GC heap; `null` if it cannot be read.
    pub heap: Option<HeapSizeModel>,
    /// Number of managed threads; `null` if they cannot be read.
    pub managed_threads: Option<u64>,
    /// The runtimes of the process, the selected one first.
    pub runtimes: Vec<RuntimeBrief>,
    /// Why no runtime could be read.
    pub runtime_error: Option<String>,
    /// Module files used to fill in missing pages.
    pub module_files: Vec<ModuleFileModel>,
    /// Contracts with their versions, as advertised.
    pub contracts: Vec<String>,
    /// For each command, whether it can answer.
    pub answers: Vec<AnswerModel>,
    /// The answers that would be more precise with module files; `null` if none would.
    pub more_precise: Option<MorePrecise>,
    /// The command to run next.
    pub next: Option<String>,
    /// Whether tables include the technical part.
    #[serde(skip)]
    pub verbose: bool,
    /// The path, if the table has one line per dump.
    #[serde(skip)]
    pub in_one_line: Option<String>,
}

/// Size of the GC heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapSizeModel {
    /// Size of the objects and of the free space between them.
    pub allocated_bytes: u64,
    /// Committed bytes of the segments in use.
    pub committed_bytes: u64,
    /// Committed bytes of free regions.
    pub free_region_bytes: u64,
}

/// Stacks that would be more precise with module files. Some of their frames, or the GC references of some frames, are not known.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MorePrecise {
    /// Number of threads with such a stack.
    pub stacks: u64,
    /// Number of threads with a stack.
    pub total: u64,
    /// Names of the files.
    pub files: Vec<String>,
    /// Command that fetches them.
    pub command: String,
}

impl MorePrecise {
    /// Text such as `1 of 3 stacks are not exact`.
    pub(crate) fn stacks(&self) -> String {
        format!("{} of {} stacks are not exact", self.stacks, self.total)
    }
}

/// A runtime of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RuntimeBrief {
    /// Number of the runtime, from 0: the value of `--runtime`.
    pub index: u64,
    /// CoreCLR, NativeAOT or Mono.
    pub kind: RuntimeKind,
    /// Version.
    pub version: Option<String>,
    /// Source of the version.
    pub version_source: Option<VersionSource>,
    /// Path of the runtime module.
    pub module: Option<String>,
    /// Load address.
    pub base: Option<Addr>,
    /// Build ID (ELF) in hex.
    pub build_id: Option<String>,
    /// Address of the descriptor.
    pub descriptor: Option<Addr>,
    /// How the descriptor was found.
    pub descriptor_found_by: Option<String>,
    /// Format version of the descriptor's JSON.
    pub descriptor_version: Option<u64>,
    /// Address of `g_dacTable`.
    pub dac_table: Option<Addr>,
    /// Address of `GcDacVars`.
    pub gc_dac_vars: Option<Addr>,
    /// Source of the VM layouts.
    pub vm: LayoutSource,
    /// Source of the GC layouts.
    pub gc: LayoutSource,
    /// Overlay in use.
    pub overlay: Option<String>,
}

/// A module file used to fill in missing pages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModuleFileModel {
    /// Local path of the file.
    pub file: String,
    /// Number of bytes filled in from the file.
    pub bytes: u64,
}

/// Whether a command can answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AnswerModel {
    /// The command.
    pub command: String,
    /// Whether it can answer.
    pub answer: AnswerKind,
    /// Why the answer is not complete.
    pub reason: Option<String>,
    /// Basis of this verdict.
    pub basis: AnswerBasis,
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

/// State of the garbage collector.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcModel {
    /// How the heap was carved; absent if it was not. Nothing else is known about the GC of a carved heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<super::CarvedModel>,
    /// Workstation or server.
    pub kind: Option<GcKind>,
    /// Regions or segments.
    pub layout: Option<GcLayout>,
    /// Identifiers published by the GC.
    pub identifiers: Vec<String>,
    /// Whether the build supports background (concurrent) collection. It may still be turned off.
    pub background: bool,
    /// Whether background collections are enabled: `true` if the latency mode of the last collection is `interactive` or
    /// `sustained-low-latency`, `false` if it is `batch`. `null` in other modes, before the first collection, and if the records of the GC
    /// were not found.
    pub concurrent: Option<bool>,
    /// Whether the heap count adapts to the application (DATAS); `null` if not published by the runtime.
    pub datas: Option<bool>,
    /// Raw dynamic adaptation mode.
    pub dynamic_adaptation_mode: Option<i32>,
    /// Number of heaps.
    pub heap_count: Option<u64>,
    /// Oldest generation of the small object heap.
    pub max_generation: Option<u64>,
    /// Lowest address of the GC's reserved range.
    pub lowest_address: Option<Addr>,
    /// Highest address of the GC's reserved range.
    pub highest_address: Option<Addr>,
    /// State of the background collection.
    pub state: Option<GcState>,
    /// Raw state (`c_gc_state`).
    pub state_value: Option<u64>,
    /// Whether the heap structures were valid; `false` during the plan phase of a collection.
    pub structures_valid: Option<bool>,
    /// Phase of the collector; `null` if it cannot be determined.
    pub phase: Option<GcPhase>,
    /// Whether a collection was in progress: `phase` is `marking`, `moving` or `background`.
    pub gc_in_progress: Option<bool>,
    /// The `Thread` that suspended the others; `null` if the runtime does not publish it. `0x0` if no managed thread did, for example
    /// because a thread of server GC did.
    pub suspended_by: Option<Addr>,
    /// Limit on the memory that the GC commits; `null` if none was found.
    pub limit: Option<GcLimitModel>,
    /// Records that the GC keeps about its collections; `null` if they were not found.
    pub collections: Option<crate::model::CollectionsModel>,
    /// Global mechanism counts (GC builds with `GC_CONFIG_DRIVEN` only).
    pub global_mechanisms: Option<Vec<crate::model::NamedCount>>,
}

/// Limit on the memory that the GC commits: `GCHeapHardLimit`, `GCHeapHardLimitPercent`, or the limit of a container. It can be found only
/// with regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcLimitModel {
    /// The limit in bytes.
    pub hard_limit_bytes: u64,
    /// Memory of the container, 75 % of which is the GC's limit; `null` if the limit has another source.
    pub container_bytes: Option<u64>,
    /// Committed bytes of the heap, free regions included. The GC also counts its card tables and similar structures.
    pub committed_bytes: u64,
}

impl GcLimitModel {
    /// Whether the heap is so close to the limit that it explains a failed allocation.
    pub(crate) fn is_reached(&self) -> bool {
        crate::base::share(self.committed_bytes, self.hard_limit_bytes).is_some_and(|share| share >= REACHED)
    }

    /// Text such as `64.0 MiB (75 % of the container's 85.3 MiB), 62.8 MiB committed (98.1 %)`.
    pub(crate) fn words(&self) -> String {
        let of = self.container_bytes.map(|n| format!(" (75 % of the container's {})", crate::base::in_units(n))).unwrap_or_default();
        let share = crate::base::share(self.committed_bytes, self.hard_limit_bytes).unwrap_or(0.0) * 100.0;
        let (limit, committed) = (crate::base::in_units(self.hard_limit_bytes), crate::base::in_units(self.committed_bytes));
        format!("{limit}{of}, {committed} committed ({share:.1} %)")
    }
}

/// Committed share of the limit, 0 to 1, at which the limit is treated as reached. It is less than 1 because the GC also counts its own
/// tables.
const REACHED: f64 = 0.9;
