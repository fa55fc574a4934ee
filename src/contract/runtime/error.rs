//! Why no runtime can be read.

use crate::base::{be, plural};

/// Why no runtime can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// The file is a heap snapshot (`.gcdump`).
    #[error(
        "a .gcdump file holds the types, sizes and references of a heap and nothing else of the process: stat, retained, objsize, path \
         and diff answer from it, all else needs a dump"
    )]
    Snapshot,
    /// The process contains no .NET runtime.
    #[error(
        "no .NET runtime found in this process: {}, and its captured memory contains no descriptor",
        no_runtime_among(*modules)
    )]
    NoRuntime {
        /// Number of modules examined.
        modules: usize,
    },
    /// Runtime index out of range.
    #[error("runtime index {index} is out of range: {have} found, counted from 0")]
    NoSuchRuntime {
        /// Requested index.
        index: usize,
        /// Number of readable runtimes.
        have: usize,
    },
    /// What leads to the runtime cannot be read, and the dump lacks a part of what it announces.
    #[error(
        "no .NET runtime can be read because the dump is cut off: {} of the memory that it announces {} missing{}; copy it again, \
         or write a new one",
        plural(*missing, "byte"),
        be(*missing),
        why.lost()
    )]
    Cut {
        /// Bytes that are missing.
        missing: u64,
        /// What could not be read, as it would be for a whole dump.
        why: Box<RuntimeError>,
    },
    /// Structures that lead to the runtime cannot be read, and the compressed data is damaged.
    #[error("no .NET runtime can be read because {damage}; copy the dump again, or write a new one")]
    Damaged {
        /// The damage.
        damage: String,
        /// The error that a whole dump would have.
        why: Box<RuntimeError>,
    },
    /// Opening the dump ended at its limits, which a genuine one does not meet, before a runtime was read.
    #[error("no .NET runtime was read before opening the dump reached its limits: {why}")]
    Bounded {
        /// What the search had come to.
        why: Box<RuntimeError>,
    },
    /// A NativeAOT program of .NET 8 to 10 whose debug header is of no use.
    #[error("{path} is a NativeAOT program that gcdump cannot read: {why}")]
    NativeAot {
        /// Path of the program.
        path: String,
        /// Why it cannot be read.
        why: String,
    },
    /// .NET Framework or Mono.
    #[error("the process runs {what} ({path}), which gcdump does not read; it reads .NET (CoreCLR) 8 and later")]
    Foreign {
        /// Which runtime.
        what: &'static str,
        /// Path of its module.
        path: String,
    },
    /// CoreCLR is loaded, but its image is not in the dump and no matching file was found.
    #[error(
        "{path} was loaded, but the dump lacks its first page and no matching file was found; specify the folder with the \
         runtime files with --modules"
    )]
    Headless {
        /// Path of the module.
        path: String,
    },
    /// CoreCLR is loaded, but its version is unsupported.
    #[error(
        "{path} is a CoreCLR runtime that gcdump cannot read: it has no usable descriptor, and no overlay matches ({details}); \
         .NET 8, 9, 10 and 11 are supported, --overlay FILE adds others"
    )]
    Unsupported {
        /// Path of the module.
        path: String,
        /// Build id, table size, and why each overlay was rejected.
        details: String,
    },
}

fn no_runtime_among(modules: usize) -> String {
    match modules {
        0 => {
            "the dump has no list of modules (NT_FILE of an ELF core, ModuleListStream of a minidump) and no headers of an ELF image".into()
        }
        n => format!("none of its modules ({n}) is a CoreCLR runtime or exports a data contract descriptor"),
    }
}

impl RuntimeError {
    /// What a cut dump lacks, if that is known.
    fn lost(&self) -> String {
        match self {
            RuntimeError::Headless { path } | RuntimeError::Unsupported { path, .. } | RuntimeError::NativeAot { path, .. } => {
                format!(", and among them the variables of the runtime ({path}), without which nothing tells where the heap is")
            }
            _ => String::new(),
        }
    }
}
