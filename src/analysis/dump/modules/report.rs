//! The report of `modules`.

use serde::Serialize;

use crate::base::{Addr, AddrRange, named_enum};
use crate::model::FilePlace;

named_enum! {
    /// Kinds of modules.
    pub enum ModuleKind {
        /// The runtime, or a program that contains it.
        Runtime = "runtime",
        /// A managed assembly with a file.
        Assembly = "assembly",
        /// A managed assembly without a file: emitted at run time, or loaded from bytes that are no longer an image.
        Dynamic = "dynamic",
        /// An image that is not in the runtime's list: a native library, a program.
        Native = "native",
    }
}

named_enum! {
    /// Parts of a module that are missing from the dump and that the module's file supplies.
    pub enum ModuleNeed {
        /// The runtime's descriptor or its data.
        Runtime = "runtime",
        /// Names of types, methods and fields.
        Names = "names",
        /// Unwind information and GC information of code on stacks.
        Stacks = "stacks",
    }
}

/// A module of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModuleModel {
    /// File name; for an assembly without a file, its assembly name. `null` if unknown.
    pub name: Option<String>,
    /// Kind.
    pub kind: ModuleKind,
    /// Path of the module's file in the process; `null` without a file, and in single-file programs.
    pub path: Option<String>,
    /// Version: of the assembly or the runtime, or of the file as recorded in a minidump. `null` if unknown.
    pub version: Option<String>,
    /// Load address of the image; `null` for a module without an image.
    pub base: Option<Addr>,
    /// Size of the image in bytes; `null` if unknown.
    pub size: Option<u64>,
    /// Address of the runtime's `Module`; `null` for native images.
    pub module: Option<Addr>,
    /// Address of the runtime's `Assembly`; `null` for native images, and if the runtime does not describe it.
    pub assembly: Option<Addr>,
    /// Module version id (MVID) of an assembly, a GUID; `null` if its metadata is not available.
    pub mvid: Option<String>,
    /// GNU build ID (ELF), hexadecimal; `null` for other images, and if it is not in the dump.
    pub build_id: Option<String>,
    /// `TimeDateStamp` (PE), a link time or a hash; `null` for other images, and if it is not in the dump.
    pub timestamp: Option<u32>,
    /// `SizeOfImage` (PE) in bytes; together with `timestamp` it identifies the file. `null` for other images, and if it is not in the dump.
    pub image_size: Option<u64>,
    /// Name of the assembly's portable PDB, as recorded in the assembly; `null` if none is recorded.
    pub pdb: Option<String>,
    /// Identity of that PDB: GUID and stamp, 20 bytes as stored, hexadecimal.
    pub pdb_id: Option<String>,
    /// Address of the native structure of the module's load context (`AssemblyLoadContext`); `null` if the runtime does
    /// not describe it.
    pub load_context: Option<Addr>,
    /// Whether the load context is the one of the framework; `null` if unknown.
    pub default_context: Option<bool>,
    /// Whether the module can be unloaded; `null` for native images, and if the runtime does not describe it.
    pub collectible: Option<bool>,
    /// Whether answers are partial without the module's file, because it supplies data that is missing from the dump.
    pub needed: bool,
    /// The parts that are missing from the dump.
    pub needed_for: Vec<ModuleNeed>,
    /// Pages of the image that stack walks need and that are not in the dump.
    pub missing: Vec<AddrRange>,
    /// Number of those pages.
    pub missing_pages: u64,
    /// The module's file on this machine; `null` if none was found or looked for.
    pub file: Option<String>,
    /// Place where the file was found.
    pub found: Option<FilePlace>,
}

named_enum! {
    /// Results of fetching a file.
    pub enum FetchOutcome {
        /// The file is in gcdump's cache.
        Fetched = "fetched",
        /// No source has the file.
        NotFound = "not-found",
        /// A source sent another file or an invalid one.
        Refused = "refused",
        /// A source could not be reached.
        Failed = "failed",
        /// No source was asked, because none is permitted for the file.
        NotAsked = "not-asked",
    }
}

/// A file to be fetched.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FetchModel {
    /// Name of the file.
    pub name: String,
    /// Identity that the file must have.
    pub identity: Option<String>,
    /// Result.
    pub outcome: FetchOutcome,
    /// URL that the file came from; `null` unless it was fetched.
    pub source: Option<String>,
    /// Size in bytes; `null` unless it was fetched.
    pub bytes: Option<u64>,
    /// Why the file was not fetched: one sentence for each source that was asked.
    pub reasons: Vec<String>,
}

/// `modules`: the modules of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModulesReport {
    /// The modules: first those in the runtime's list, in load order, then other images by address.
    pub modules: Vec<ModuleModel>,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// Number of requested modules.
    pub total: u64,
    /// Number of listed modules whose files supply data that is missing from the dump.
    pub needed: u64,
    /// Number of these modules whose files were not found.
    pub needed_not_found: u64,
    /// Files to be fetched; `null` without `--fetch`.
    pub fetched: Option<Vec<FetchModel>>,
}
