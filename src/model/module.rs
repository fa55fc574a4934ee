use crate::base::named_enum;

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
