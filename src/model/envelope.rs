//! Facts about dump, runtime and rows that precede the data of every answer.

use serde::Serialize;

use crate::base::{Addr, Arch, Note, Os, named_enum};

named_enum! {
    /// Container format of a dump.
    pub enum Container {
        /// ELF core file (Linux).
        ElfCore = "elf-core",
        /// Windows minidump.
        Minidump = "minidump",
        /// Heap snapshot of `dotnet-gcdump`, PerfView or `gcdump export`.
        Gcdump = "gcdump",
    }
}

named_enum! {
    /// Compression of a dump file.
    pub enum Compression {
        /// Zstandard.
        Zstd = "zstd",
        /// gzip.
        Gzip = "gzip",
    }
}

named_enum! {
    /// Sources of layouts.
    pub enum LayoutSource {
        /// The descriptor of the runtime.
        Descriptor = "descriptor",
        /// Pointer data of the runtime, with the JSON of an overlay.
        OverlayJson = "overlay-json",
        /// An overlay and `g_dacTable`.
        Overlay = "overlay",
        /// The debug header of a NativeAOT program.
        DebugHeader = "debug-header",
        /// The runtime is lost: sizes of types were inferred from the distances between objects.
        Inferred = "inferred",
        /// Synthesized from `GcDacVars`.
        Synthesized = "synthesized",
        /// Not available.
        None = "none",
    }
}

/// Header of every answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Head {
    /// Format version: `gcdump/2`.
    pub schema: String,
    /// Name of the command.
    pub command: String,
    /// Version of gcdump.
    pub gcdump: String,
    /// The dump.
    pub dump: DumpModel,
    /// The runtime; `null` if none could be read.
    pub runtime: Option<RuntimeModel>,
    /// Number of runtimes in the process that can be read. `--runtime` selects one of them.
    pub runtimes: u64,
    /// With `--skip`: the range of listed rows, for each list of the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageModel>,
}

/// The range of listed rows of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageModel {
    /// Name of the list in the answer.
    pub list: String,
    /// Number of rows that were skipped before the first listed row.
    pub skipped: u64,
    /// Number of rows listed.
    pub listed: u64,
    /// Number of all rows.
    pub total: u64,
}

/// A JSON answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Envelope<T> {
    /// Header.
    #[serde(flatten)]
    pub head: Head,
    /// The answer.
    pub data: Data<T>,
    /// Warnings.
    pub warnings: Vec<Note>,
}

/// An answer and its completeness.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", schemars(inline))]
pub struct Data<T> {
    /// Whether the answer is complete, that is, no warning reports missing data.
    pub complete: bool,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

/// Summary of the dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DumpModel {
    /// Path as given.
    pub path: String,
    /// Container.
    pub format: Container,
    /// Compression of the file; `null` if none.
    pub compression: Option<Compression>,
    /// Size of the decompressed dump file in bytes.
    pub file_bytes: u64,
    /// Captured memory in bytes.
    pub captured_bytes: u64,
    /// Operating system of the process.
    pub os: Os,
    /// Architecture of the process.
    pub architecture: Arch,
    /// Pointer size in bytes.
    pub pointer_bytes: u64,
    /// Process id.
    pub process_id: Option<u32>,
}

/// Summary of the runtime.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RuntimeModel {
    /// Number of the runtime, from 0: the value of `--runtime`.
    pub index: u64,
    /// Version: `10.0.12`, or only `10.0` if the dump does not have the full version.
    pub version: Option<String>,
    /// Path of the runtime module in the process.
    pub module: Option<String>,
    /// Load address.
    pub base: Option<Addr>,
    /// Build ID (ELF) of the module in hex.
    pub build_id: Option<String>,
    /// Source of the VM layouts: `descriptor`, `overlay-json`, `overlay`, `none`.
    pub vm: LayoutSource,
    /// Source of the GC layouts: `descriptor`, `synthesized`, `none`.
    pub gc: LayoutSource,
    /// Overlay in use.
    pub overlay: Option<String>,
}
