use serde::Serialize;

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Where the file of a module was found, in the order in which places are looked at.
    pub enum FilePlace {
        /// In a folder of `--modules`, or such a file.
        Given = "modules",
        /// Under `--sysroot`.
        Sysroot = "sysroot",
        /// At the path that the dump records.
        Recorded = "recorded-path",
        /// In a single-file program: the process's own, or one that was given.
        Bundle = "single-file-program",
        /// In a folder of `$GCDUMP_MODULES`.
        Variable = "gcdump-modules",
        /// In an installation of .NET.
        Installed = "dotnet",
        /// In a package of NuGet.
        Package = "nuget",
        /// In a cache of a symbol server's files.
        Symbols = "symbol-cache",
        /// In gcdump's own cache (`gcdump modules --fetch`).
        Own = "gcdump-cache",
    }
}

impl FilePlace {
    /// Whether the user named the place for this dump: then a file that is not the module's is reported, and one that the dump cannot
    /// verify is believed.
    pub const fn is_given(self) -> bool {
        matches!(self, FilePlace::Given | FilePlace::Sysroot)
    }

    /// Whether files there that are not the module's are nothing to report: places with files of many programs.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, FilePlace::Variable | FilePlace::Installed | FilePlace::Package | FilePlace::Symbols | FilePlace::Own)
    }
}

named_enum! {
    /// Kinds of modules.
    pub enum ModuleKind {
        /// The runtime, or a program that it is in.
        Runtime = "runtime",
        /// A managed assembly with a file.
        Assembly = "assembly",
        /// A managed assembly without a file: emitted, or loaded from bytes that are not an image any more.
        Dynamic = "dynamic",
        /// An image that is not on the runtime's list: a native library, a program.
        Native = "native",
    }
}

named_enum! {
    /// Parts of a module that the dump does not have and that its file supplies.
    pub enum ModuleNeed {
        /// The runtime's description of itself, or its data.
        Runtime = "runtime",
        /// The names of types, methods and fields.
        Names = "names",
        /// Code that is unwound, and what its frames hold.
        Stacks = "stacks",
    }
}

/// A module of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModuleModel {
    /// File name, or the name of the assembly without a file; `null` if neither is known.
    pub name: Option<String>,
    /// Its kind.
    pub kind: ModuleKind,
    /// Path of its file in the process; `null` without a file, and in single-file programs.
    pub path: Option<String>,
    /// Version: of the assembly, of the runtime, or of the file where a minidump records it; `null` if unknown.
    pub version: Option<String>,
    /// Load address of its image; `null` without one.
    pub base: Option<Addr>,
    /// Size of its image in bytes; `null` if unknown.
    pub size: Option<u64>,
    /// Address of the runtime's `Module`; `null` for native images.
    pub module: Option<Addr>,
    /// Address of the runtime's `Assembly`; `null` for native images, and where the runtime does not describe it.
    pub assembly: Option<Addr>,
    /// Module version id of an assembly, a GUID; `null` if its metadata is not at hand.
    pub mvid: Option<String>,
    /// GNU build id (ELF), hexadecimal; `null` for other images, and where it is not in the dump.
    pub build_id: Option<String>,
    /// `TimeDateStamp` (PE), a link time or a hash; `null` for other images, and where it is not in the dump.
    pub timestamp: Option<u32>,
    /// `SizeOfImage` (PE) in bytes: with `timestamp`, what identifies its file. `null` for other images, and where it is not in the dump.
    pub image_size: Option<u64>,
    /// Name of the portable PDB that the assembly names; `null` if it names none.
    pub pdb: Option<String>,
    /// Identity of that PDB: GUID and stamp, 20 bytes as they are stored, hexadecimal.
    pub pdb_id: Option<String>,
    /// Native address of its load context (`AssemblyLoadContext`); `null` where the runtime does not describe it.
    pub load_context: Option<Addr>,
    /// Whether that is the context that the framework is loaded in; `null` if unknown.
    pub default_context: Option<bool>,
    /// Whether it can be unloaded; `null` for native images, and where the runtime does not describe it.
    pub collectible: Option<bool>,
    /// Whether its file supplies what the dump does not have, so that answers are partial without it.
    pub needed: bool,
    /// The parts that are missing from the dump.
    pub needed_for: Vec<ModuleNeed>,
    /// Pages of its image that walks of the stacks read and that are not in the dump.
    pub missing: Vec<AddrRange>,
    /// Number of those pages.
    pub missing_pages: u64,
    /// Its file on this machine; `null` if none was found or looked for.
    pub file: Option<String>,
    /// Where that was found.
    pub found: Option<FilePlace>,
}

named_enum! {
    /// Outcomes of fetching a file.
    pub enum FetchOutcome {
        /// The file is in gcdump's cache.
        Fetched = "fetched",
        /// No source has it.
        NotFound = "not-found",
        /// A source sent another file, or none that is used.
        Refused = "refused",
        /// A source could not be asked.
        Failed = "failed",
        /// No source may be asked for it.
        NotAsked = "not-asked",
    }
}

/// A file that was to be fetched.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FetchModel {
    /// Name of the file.
    pub name: String,
    /// Identity that it must have.
    pub identity: Option<String>,
    /// The outcome.
    pub outcome: FetchOutcome,
    /// The address that it came from; `null` unless it was fetched.
    pub source: Option<String>,
    /// Its size in bytes; `null` unless it was fetched.
    pub bytes: Option<u64>,
    /// Why it was not fetched, one sentence for each source that was asked.
    pub reasons: Vec<String>,
}

/// Answer of `modules`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModulesReport {
    /// The modules: those on the runtime's list in load order, then other images by address.
    pub modules: Vec<ModuleModel>,
    /// Number of rows, if `--top` cut them; `null` otherwise.
    pub shown: Option<u64>,
    /// Number of modules that were asked for.
    pub total: u64,
    /// Number of listed modules whose files supply what the dump does not have.
    pub needed: u64,
    /// Number of those whose files were not found.
    pub needed_not_found: u64,
    /// Files that were to be fetched; `null` without `--fetch`.
    pub fetched: Option<Vec<FetchModel>>,
}
