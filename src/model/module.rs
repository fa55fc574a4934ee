//! Places where files of modules are found.

use crate::base::named_enum;

named_enum! {
    /// Places where the file of a module was found, in search order.
    pub enum FilePlace {
        /// Given with `--modules`, directly or in a directory.
        Given = "modules",
        /// Under `--sysroot`.
        Sysroot = "sysroot",
        /// At the path that the dump records.
        Recorded = "recorded-path",
        /// In a single-file program: the program of the process, or a given one.
        Bundle = "single-file-program",
        /// In a directory of `$GCDUMP_MODULES`.
        Variable = "gcdump-modules",
        /// In an installation of .NET.
        Installed = "dotnet",
        /// In a NuGet package.
        Package = "nuget",
        /// In a cache of files from a symbol server.
        Symbols = "symbol-cache",
        /// In gcdump's own cache (`gcdump modules --fetch`).
        Own = "gcdump-cache",
    }
}

impl FilePlace {
    /// Whether the user specified the place for this dump. Files in such a place are reported if they do not match the module, and trusted
    /// if the dump cannot verify them.
    pub const fn is_given(self) -> bool {
        matches!(self, FilePlace::Given | FilePlace::Sysroot)
    }

    /// Whether the place has files of many programs. Files in such a place are not reported if they do not match the module.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, FilePlace::Variable | FilePlace::Installed | FilePlace::Package | FilePlace::Symbols | FilePlace::Own)
    }
}
