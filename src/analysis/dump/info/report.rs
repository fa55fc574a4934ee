//! The report of `info`.

use serde::Serialize;

use crate::analysis::{SettingModel, SuspensionModel};
use crate::base::{Addr, Remedy, named_enum};
use crate::model::{
    CarvedModel, Container, CrashReport, DumpKind, DumpWriter, FaultModel, GcKind, GcLayout, GcLimitModel, GcPhase, GcState, HeapSizeModel,
    LayoutSource, RuntimeKind, StandaloneGc, VersionSource,
};

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
    pub settings: Vec<SettingModel>,
    /// Time at which the dump was written, in seconds since 1970.
    pub time: Option<u64>,
    /// Time at which the process was started, in seconds since 1970.
    pub started: Option<u64>,
    /// Number of modules, as `modules` lists them: assemblies and other images. An assembly that is mapped twice is counted once.
    pub modules: u64,
    /// Number of OS threads.
    pub os_threads: u64,
    /// Why the process ended: signal or exception.
    pub crash: Option<String>,
    /// OS id of the crashed thread.
    pub crashed_thread: Option<u32>,
    /// Location of the crash; `null` without a crash.
    pub fault: Option<FaultModel>,
    /// The suspension of all threads, if one was in progress.
    pub suspension: Option<SuspensionModel>,
    /// The report that a NativeAOT program writes into its memory when it ends itself.
    pub crash_report: Option<CrashReport>,
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
    /// The command with `DUMP` as the path of the dump.
    #[serde(skip)]
    pub short_command: String,
}

impl MorePrecise {
    /// Text such as `what 1 of 3 stacks hold is not exact`.
    pub(crate) fn stacks(&self) -> String {
        format!("what {} of {} stacks hold is not exact", self.stacks, self.total)
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
    /// The source of the missing data, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Basis of this verdict.
    pub basis: AnswerBasis,
}

/// State of the garbage collector.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GcModel {
    /// How the heap was carved; absent if it was not. Nothing else is known about the GC of a carved heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<CarvedModel>,
    /// The standalone GC, if the process has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standalone: Option<StandaloneGc>,
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
