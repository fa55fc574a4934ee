use serde::Serialize;

use crate::base::Addr;

/// Where layouts come from: `descriptor` (the runtime's own), `overlay-json` (the runtime's pointers with a bundled
/// JSON), `overlay` (a bundled description), `synthesised` (made from `GcDacVars`), `none`.
pub type SourceName = String;

/// `info`: what this dump is, what it can answer, what to run next.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct InfoReport {
    /// Kind of dump: `full`, `heap`, `mini`, `triage`, `kernel-core`, `gcore`, `partial`.
    pub kind: String,
    /// What the kind was told by.
    pub kind_evidence: String,
    /// Container: `elf-core` or `minidump`.
    pub format: String,
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
    /// Program that wrote it, as far as known: `createdump`, `kernel`, `gdb`, `windows`.
    pub writer: Option<String>,
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
    /// Where the version was read: `descriptor`, `module-list`, `path`, `build-id`, `image`, `overlay`.
    pub version_source: Option<String>,
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
    pub vm: SourceName,
    /// Where the layouts of the GC come from.
    pub gc: SourceName,
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
    /// `full`, `partial` or `no`.
    pub answer: String,
    /// Why not in full.
    pub reason: Option<String>,
}

/// Which garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GcKind {
    /// One heap, collected by the allocating thread.
    Workstation,
    /// Several heaps, each with its own GC thread.
    Server,
}

/// How the heap is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GcLayout {
    /// Many small regions, each of one generation (.NET 7 and later by default).
    Regions,
    /// Few large segments; one of them is ephemeral (`libclrgc`).
    Segments,
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
    /// State of the background collection: `marking`, `planning`, `free`, or the number.
    pub state: Option<String>,
    /// Raw state (`c_gc_state`).
    pub state_value: Option<u64>,
    /// Whether the heap's structures were valid; `false` in the plan phase of a collection.
    pub structures_valid: Option<bool>,
    /// Whether a collection was in progress: structures invalid, or a background collection marking or planning.
    pub gc_in_progress: Option<bool>,
    /// Global mechanisms, counted by GCs built with `GC_CONFIG_DRIVEN`.
    pub global_mechanisms: Option<Vec<crate::model::NamedCount>>,
}
