use serde::Serialize;

use super::envelope::{Container, LayoutSource};
use crate::base::{Addr, named_enum};

named_enum! {
    /// Kinds of runtimes.
    pub enum RuntimeKind {
        /// The runtime of most programs, single-file ones included.
        CoreClr = "coreclr",
        /// A program compiled ahead of time, with the runtime in it.
        NativeAot = "native-aot",
    }
}

named_enum! {
    /// Sources of a version.
    pub enum VersionSource {
        /// A descriptor global (.NET 11).
        Descriptor = "descriptor",
        /// The report of a crash in the process's memory (NativeAOT).
        CrashReport = "crash-report",
        /// The module list of the dump.
        ModuleList = "module-list",
        /// The path of the runtime module.
        Path = "path",
        /// The build id of the runtime module.
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
        /// Like `mini`, without potentially confidential data.
        Triage = "triage",
        /// An ELF core of the kernel, as selected by the core filter of the process.
        KernelCore = "kernel-core",
        /// An ELF core of gcore: all memory.
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
    /// Whether a command can be answered.
    pub enum AnswerKind {
        /// Fully: the command ends with exit code 0.
        Full = "full",
        /// Partially: exit code 5.
        Partial = "partial",
        /// Not at all: exit code 4, or 5 with an empty answer.
        No = "no",
        /// Not at all, since the runtime does not describe what it needs: exit code 4. No loss of the dump.
        Undescribed = "undescribed",
    }
}

named_enum! {
    /// How it is known what a command can answer.
    pub enum AnswerBasis {
        /// The command's own answer was made.
        Answered = "answered",
        /// Large heaps: what a walk needs was read, and the objects are in the dump or not. Damage to objects shows only in a walk.
        Bound = "bound",
    }
}

/// `info`: what the dump contains, what it can answer, what to run next.
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
    /// Program that wrote it, if known.
    pub writer: Option<DumpWriter>,
    /// Mapped address space in bytes, captured or not.
    pub mapped_bytes: Option<u64>,
    /// Bytes missing at the end of a truncated file.
    pub truncated_bytes: u64,
    /// Name of the process.
    pub process_name: Option<String>,
    /// Its command line: the arguments as a shell takes them, the line that Windows keeps, or else the first 80 bytes, as cores of the kernel and of
    /// gdb have them; `(hidden)` where contents are not shown.
    pub command_line: Option<String>,
    /// Its arguments, the name of the program first; `null` where the dump does not have them.
    pub arguments: Option<Vec<String>>,
    /// Settings of the runtime: variables of the environment that it reads, and properties of the GC from `runtimeconfig.json`.
    pub settings: Vec<super::SettingModel>,
    /// When the dump was written, in seconds since 1970.
    pub time: Option<u64>,
    /// When the process was started, in seconds since 1970.
    pub started: Option<u64>,
    /// Number of loaded images; an image that is mapped twice counts twice.
    pub modules: u64,
    /// Number of OS threads.
    pub os_threads: u64,
    /// Why the process ended: signal or exception.
    pub crash: Option<String>,
    /// OS id of the crashed thread.
    pub crashed_thread: Option<u32>,
    /// Where the thread crashed; `null` without a crash.
    pub fault: Option<super::FaultModel>,
    /// The suspension of all threads that was under way; `null` without one.
    pub suspension: Option<super::SuspensionModel>,
    /// What a NativeAOT program said of its own end.
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
    /// Which commands the dump can answer.
    pub answers: Vec<AnswerModel>,
    /// The part of the answers that files of modules would make more precise; `null` where none would.
    pub more_precise: Option<MorePrecise>,
    /// The command to run next.
    pub next: Option<String>,
    /// Whether tables have the technical part.
    #[serde(skip)]
    pub verbose: bool,
    /// The path, where tables have one line for each dump.
    #[serde(skip)]
    pub in_one_line: Option<String>,
}

/// How large the GC heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapSizeModel {
    /// Objects and the free space between them.
    pub allocated_bytes: u64,
    /// Committed for the segments in use.
    pub committed_bytes: u64,
    /// Committed in free regions.
    pub free_region_bytes: u64,
}

/// Stacks that files of modules would make more precise: what their frames hold, or the frames themselves, is not known.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MorePrecise {
    /// Threads with such a stack.
    pub stacks: u64,
    /// Threads with a stack.
    pub total: u64,
    /// Names of the files.
    pub files: Vec<String>,
    /// The command that gets them.
    pub command: String,
}

impl MorePrecise {
    /// `1 of 3 stacks are not known precisely`.
    pub(crate) fn stacks(&self) -> String {
        format!("{} of {} stacks are not known precisely", self.stacks, self.total)
    }
}

/// A runtime of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RuntimeBrief {
    /// Its number, from 0: the value of `--runtime`.
    pub index: u64,
    /// CoreCLR or NativeAOT.
    pub kind: RuntimeKind,
    /// Version.
    pub version: Option<String>,
    /// Source of the version.
    pub version_source: Option<VersionSource>,
    /// Path of its module.
    pub module: Option<String>,
    /// Load address.
    pub base: Option<Addr>,
    /// Build id (ELF) in hex.
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
    /// Bytes filled in from it.
    pub bytes: u64,
}

/// Whether a command can be answered.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AnswerModel {
    /// The command.
    pub command: String,
    /// Whether it can be answered.
    pub answer: AnswerKind,
    /// Why not fully.
    pub reason: Option<String>,
    /// How it is known.
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
        /// Nothing.
        None = "none",
        /// The threads were being suspended, or had been: for a collection that had not begun, or for another purpose of the runtime.
        Suspending = "suspending",
        /// A blocking collection was at work and moved nothing: it marked, or was about to begin or to end.
        Marking = "marking",
        /// A blocking collection was planning, compacting or sweeping: its structures are not valid, and objects may be half moved.
        Moving = "moving",
        /// A background collection was at work, and no blocking one.
        Background = "background",
    }
}

/// State of the garbage collector.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcModel {
    /// Set if the heap was carved: then nothing else is known of the GC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<super::CarvedModel>,
    /// Workstation or server.
    pub kind: Option<GcKind>,
    /// Regions or segments.
    pub layout: Option<GcLayout>,
    /// Identifiers published by the GC.
    pub identifiers: Vec<String>,
    /// Whether the build has background (concurrent) collection, whatever is configured.
    pub background: bool,
    /// Whether background collections are in force, as the latency mode of the last collection says: `interactive` and
    /// `sustained-low-latency` have them, `batch` does not: concurrent GC is off, or the program asked for that mode. `null` where the dump
    /// does not say: before the first collection, in other modes, or if the records of the GC were not found.
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
    /// Its phase; `null` if it cannot be determined.
    pub phase: Option<GcPhase>,
    /// Whether a collection was in progress: `phase` is `marking`, `moving` or `background`.
    pub gc_in_progress: Option<bool>,
    /// The runtime's `Thread` that suspended the others, `0x0` if none did; `null` if not published by the runtime. Threads of server
    /// GC are not threads of the runtime.
    pub suspended_by: Option<Addr>,
    /// The limit on what the GC commits; `null` where none was found.
    pub limit: Option<GcLimitModel>,
    /// What the GC keeps of its collections; `null` if its records were not found.
    pub collections: Option<crate::model::CollectionsModel>,
    /// Global mechanism counts (GC builds with `GC_CONFIG_DRIVEN` only).
    pub global_mechanisms: Option<Vec<crate::model::NamedCount>>,
}

/// The limit on what the GC commits (`GCHeapHardLimit`, `GCHeapHardLimitPercent`, or that of a container). With regions only: the GC does not
/// publish it, and with segments nothing leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcLimitModel {
    /// The limit in bytes.
    pub hard_limit_bytes: u64,
    /// The memory of the container, of which the GC takes 75 % for its limit; `null` where the limit is another.
    pub container_bytes: Option<u64>,
    /// Committed bytes of the heap, free regions included. The GC counts its card tables and the like as well.
    pub committed_bytes: u64,
}

impl GcLimitModel {
    /// Whether the heap takes so much of the limit that an allocation which fails does so because of it.
    pub(crate) fn is_reached(&self) -> bool {
        crate::base::share(self.committed_bytes, self.hard_limit_bytes).is_some_and(|share| share >= REACHED)
    }

    /// `64.0 MiB (75 % of the container's 85.3 MiB), 62.8 MiB committed (98.1 %)`.
    pub(crate) fn words(&self) -> String {
        let of = self.container_bytes.map(|n| format!(" (75 % of the container's {})", crate::base::in_units(n))).unwrap_or_default();
        let share = crate::base::share(self.committed_bytes, self.hard_limit_bytes).unwrap_or(0.0) * 100.0;
        let (limit, committed) = (crate::base::in_units(self.hard_limit_bytes), crate::base::in_units(self.committed_bytes));
        format!("{limit}{of}, {committed} committed ({share:.1} %)")
    }
}

/// Share of the limit (0 to 1) from which on it is reached: beside the heap, the GC counts its own tables.
const REACHED: f64 = 0.9;
