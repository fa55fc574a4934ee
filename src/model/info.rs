use serde::Serialize;

use super::envelope::Container;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Where layouts come from.
    pub enum LayoutSource {
        /// The runtime's own descriptor.
        Descriptor = "descriptor",
        /// The runtime's own pointer data, with the JSON of an overlay.
        OverlayJson = "overlay-json",
        /// An overlay and `g_dacTable`.
        Overlay = "overlay",
        /// Made from `GcDacVars`.
        Synthesised = "synthesised",
        /// Nowhere: not available.
        None = "none",
    }
}

named_enum! {
    /// Where a version was read.
    pub enum VersionSource {
        /// A global of the descriptor (.NET 11).
        Descriptor = "descriptor",
        /// The module list of the dump.
        ModuleList = "module-list",
        /// The path of the runtime's module.
        Path = "path",
        /// The build id of the runtime's module.
        BuildId = "build-id",
        /// The version text in the runtime's image.
        Image = "image",
        /// The overlay that fits: major and minor only.
        Overlay = "overlay",
    }
}

named_enum! {
    /// Kind of a dump: how much of the process it holds.
    pub enum DumpKind {
        /// All memory.
        Full = "full",
        /// The GC heap and what belongs to it, without code.
        Heap = "heap",
        /// Stacks and the structures of the runtime, without the heap.
        Mini = "mini",
        /// As `mini`, with what may be confidential left out.
        Triage = "triage",
        /// An ELF core of the kernel: what the process's core filter says.
        KernelCore = "kernel-core",
        /// An ELF core of gcore: all memory.
        Gcore = "gcore",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

named_enum! {
    /// Program that wrote a dump.
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
        /// In full.
        Full = "full",
        /// In part.
        Partial = "partial",
        /// Not at all.
        No = "no",
    }
}

/// `info`: what this dump is, what it can answer, what to run next.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct InfoReport {
    /// Kind of dump.
    pub kind: DumpKind,
    /// What the kind was told by.
    pub kind_evidence: String,
    /// Container.
    pub format: Container,
    /// Operating system of the process.
    pub os: crate::base::Os,
    /// Architecture of the process.
    pub architecture: crate::base::Arch,
    /// Process id.
    pub process_id: Option<u32>,
    /// Bytes of the dump file, decompressed.
    pub file_bytes: u64,
    /// Bytes of memory in the dump.
    pub captured_bytes: u64,
    /// Program that wrote it, as far as known.
    pub writer: Option<DumpWriter>,
    /// Bytes of address space that the dump describes, captured or not.
    pub mapped_bytes: Option<u64>,
    /// Bytes that the dump announces but the file does not hold.
    pub truncated_bytes: u64,
    /// Name or command line of the process.
    pub process_name: Option<String>,
    /// When the dump was written, seconds since 1970.
    pub time: Option<u64>,
    /// Loaded modules.
    pub modules: u64,
    /// Threads of the operating system.
    pub os_threads: u64,
    /// Why the process ended: signal or exception, in words.
    pub crash: Option<String>,
    /// Thread that crashed (operating system id).
    pub crashed_thread: Option<u32>,
    /// The GC; `null` where nothing of it can be read.
    pub gc: Option<GcModel>,
    /// Managed threads; `null` where they cannot be read.
    pub managed_threads: Option<u64>,
    /// Every runtime of the process, the one that is read first.
    pub runtimes: Vec<RuntimeBrief>,
    /// Why no runtime could be read.
    pub runtime_error: Option<String>,
    /// Module files beside the dump that filled pages in.
    pub module_files: Vec<ModuleFileModel>,
    /// Contracts with their versions, as advertised.
    pub contracts: Vec<String>,
    /// What this dump can and cannot answer.
    pub answers: Vec<AnswerModel>,
    /// The command to run next.
    pub next: Option<String>,
}

/// A runtime of the process.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RuntimeBrief {
    /// Version.
    pub version: Option<String>,
    /// Where the version was read.
    pub version_source: Option<VersionSource>,
    /// Path of its module.
    pub module: Option<String>,
    /// Where it is loaded.
    pub base: Option<Addr>,
    /// Build id (ELF), hexadecimal.
    pub build_id: Option<String>,
    /// Where the descriptor lies.
    pub descriptor: Option<Addr>,
    /// How the descriptor was found.
    pub descriptor_found_by: Option<String>,
    /// Format version of the descriptor's JSON.
    pub descriptor_version: Option<u64>,
    /// Where `g_dacTable` lies.
    pub dac_table: Option<Addr>,
    /// Where `GcDacVars` lies.
    pub gc_dac_vars: Option<Addr>,
    /// Where the layouts of the VM come from.
    pub vm: LayoutSource,
    /// Where the layouts of the GC come from.
    pub gc: LayoutSource,
    /// Overlay in use.
    pub overlay: Option<String>,
}

/// A module file beside the dump.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ModuleFileModel {
    /// Path of the file on this machine.
    pub file: String,
    /// Bytes of memory that it filled in.
    pub bytes: u64,
}

/// Whether a command can be answered.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct AnswerModel {
    /// The command.
    pub command: String,
    /// Whether it can.
    pub answer: AnswerKind,
    /// Why not in full.
    pub reason: Option<String>,
}

named_enum! {
    /// Which garbage collector.
    pub enum GcKind {
        /// One heap, collected by the allocating thread.
        Workstation = "workstation",
        /// Several heaps, each with its own GC thread.
        Server = "server",
    }
}

named_enum! {
    /// How the heap is laid out.
    pub enum GcLayout {
        /// Many small regions, each of one generation (.NET 7 and later by default).
        Regions = "regions",
        /// Few large segments; one of them is ephemeral (`libclrgc`).
        Segments = "segments",
    }
}

named_enum! {
    /// State of the background collection (`c_gc_state`, gcpriv.h).
    pub open enum GcState(u64) {
        /// It is marking.
        Marking = "marking",
        /// It is planning.
        Planning = "planning",
        /// There is none.
        Free = "free",
    }
}

/// State of the garbage collector.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GcModel {
    /// Workstation or server.
    pub kind: Option<GcKind>,
    /// Regions or segments.
    pub layout: Option<GcLayout>,
    /// Identifiers as the GC publishes them.
    pub identifiers: Vec<String>,
    /// Whether the build has background (concurrent) collection.
    pub background: bool,
    /// Whether the heap count adapts to the application's size (DATAS); `null` where the runtime does not publish it.
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
    /// Whether the heap's structures were valid; `false` in the plan phase of a collection.
    pub structures_valid: Option<bool>,
    /// Whether a collection was in progress: structures invalid, or a background collection marking or planning.
    pub gc_in_progress: Option<bool>,
    /// Global mechanisms, counted by GCs built with `GC_CONFIG_DRIVEN`.
    pub global_mechanisms: Option<Vec<crate::model::NamedCount>>,
}
