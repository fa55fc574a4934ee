use serde::Serialize;

use super::info::LayoutSource;
use crate::base::{Addr, Arch, Note, Os, named_enum};

named_enum! {
    /// Container format of a dump.
    pub enum Container {
        /// ELF core file (Linux).
        ElfCore = "elf-core",
        /// Windows minidump.
        Minidump = "minidump",
    }
}

named_enum! {
    /// Compression that a dump was stored with.
    pub enum Compression {
        /// Zstandard.
        Zstd = "zstd",
        /// gzip.
        Gzip = "gzip",
    }
}

/// What every answer begins with.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Head {
    /// Version of this format: `gcdump/1`.
    pub schema: String,
    /// The command that was run.
    pub command: String,
    /// Version of gcdump.
    pub gcdump: String,
    /// The dump.
    pub dump: DumpModel,
    /// The runtime that the answer is about; `null` where none could be read.
    pub runtime: Option<RuntimeModel>,
}

/// A JSON answer.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Envelope<T> {
    /// What it begins with.
    #[serde(flatten)]
    pub head: Head,
    /// The answer.
    pub data: Data<T>,
    /// What went less than perfectly.
    pub warnings: Vec<Note>,
}

/// An answer, and whether it is all of it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(inline)]
pub struct Data<T> {
    /// Whether nothing is missing that the process had: no warning says so.
    pub complete: bool,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

/// The dump, in short.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DumpModel {
    /// Path as given.
    pub path: String,
    /// Container.
    pub format: Container,
    /// How the file was compressed; `null` where it was not.
    pub compression: Option<Compression>,
    /// Bytes of the dump file, decompressed.
    pub file_bytes: u64,
    /// Bytes of memory in the dump.
    pub captured_bytes: u64,
    /// Operating system of the process.
    pub os: Os,
    /// Architecture of the process.
    pub architecture: Arch,
    /// Bytes of a pointer.
    pub pointer_bytes: u64,
    /// Process id.
    pub process_id: Option<u32>,
}

/// The runtime, in short.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RuntimeModel {
    /// Version: `10.0.12`, or only `10.0` where the dump says no more.
    pub version: Option<String>,
    /// Path of the runtime's module as the process knew it.
    pub module: Option<String>,
    /// Where it is loaded.
    pub base: Option<Addr>,
    /// Build id (ELF) of the module, hexadecimal.
    pub build_id: Option<String>,
    /// Where the layouts of the VM come from: `descriptor`, `overlay-json`, `overlay`, `none`.
    pub vm: LayoutSource,
    /// Where the layouts of the GC come from: `descriptor`, `synthesised`, `none`.
    pub gc: LayoutSource,
    /// Overlay in use.
    pub overlay: Option<String>,
}
