//! The errors of opening runtimes.

use crate::base::{be, in_units, plural};

/// Reason why no runtime can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// The file is a heap snapshot (`.gcdump`).
    #[error(
        "a .gcdump file holds only the types, sizes and references of a heap: stat, retained, objsize, path, refs, diff and analyze --since \
         can use it; all other commands need a dump"
    )]
    Snapshot,
    /// The process contains no .NET runtime.
    #[error(
        "no .NET runtime found in this process: {}, and its captured memory contains no descriptor{}",
        no_runtime_among(*modules),
        program.as_ref().map(|p| format!("; if it is a single-file or NativeAOT program, {p}")).unwrap_or_default()
    )]
    NoRuntime {
        /// Number of modules examined.
        modules: usize,
        /// Reason why the program's exports are unknown, if they are.
        program: Option<String>,
    },
    /// The dump was written by createdump, and the runtime of the process can only be in the program itself.
    #[error("a single-file or NativeAOT program: {program}")]
    Unread {
        /// Reason why the program's exports are unknown.
        program: String,
    },
    /// Runtime index out of range.
    #[error("runtime index {index} is out of range: {have} found, counted from 0")]
    NoSuchRuntime {
        /// Requested index.
        index: usize,
        /// Number of readable runtimes.
        have: usize,
    },
    /// The data that locates the runtime cannot be read, and a part of the memory that the dump announces is missing.
    #[error(
        "no .NET runtime can be read because the dump is cut off: {} of memory listed in its header {} missing{}; copy it again, \
         or write a new one",
        in_units(*missing),
        be(*missing),
        why.lost()
    )]
    Cut {
        /// Bytes that are missing.
        missing: u64,
        /// The error without the cut.
        why: Box<RuntimeError>,
    },
    /// The data that locates the runtime cannot be read, and the compressed data is damaged.
    #[error("no .NET runtime can be read because {damage}; copy the dump again, or write a new one")]
    Damaged {
        /// The damage.
        damage: String,
        /// The error without the damage.
        why: Box<RuntimeError>,
    },
    /// Opening the dump reached its limits before a runtime was read. Genuine dumps stay within the limits.
    #[error("no .NET runtime was read before opening the dump reached its limits: {why}")]
    Bounded {
        /// The error of the search so far.
        why: Box<RuntimeError>,
    },
    /// A NativeAOT program of .NET 8 to 10 whose debug header cannot be used.
    #[error("{path} is a NativeAOT program that gcdump cannot read: {why}")]
    NativeAot {
        /// Path of the program.
        path: String,
        /// Reason why the program cannot be read.
        why: String,
        /// Whether the program's file contains the missing data.
        in_file: bool,
    },
    /// Mono in a build that no overlay describes.
    #[error("the process runs Mono ({path}) in a build that gcdump cannot read: {why}")]
    Mono {
        /// Path of the runtime's module.
        path: String,
        /// Why each overlay was rejected.
        why: String,
    },
    /// The runtime is .NET Framework, or Mono without its usual collector.
    #[error("the process runs {what} ({path}), which gcdump does not read; it reads .NET (CoreCLR) 8 and later, and Mono with SGen")]
    Foreign {
        /// Name of the runtime.
        what: &'static str,
        /// Path of the runtime's module.
        path: String,
    },
    /// CoreCLR is loaded, but the dump contains nothing of its image.
    #[error(
        "{path} was loaded, but neither its headers nor its variables are in the dump{}; {TAKE}",
        left_out.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    )]
    Headless {
        /// Path of the module.
        path: String,
        /// Memory that the dump writer left out, if known.
        left_out: Option<String>,
    },
    /// The dump contains the stacks of the threads and little else.
    #[error("only stacks were captured ({}, {}): no managed memory; {TAKE}", plural(*bytes, "byte"), plural(*threads, "thread"))]
    OnlyStacks {
        /// Bytes of stacks.
        bytes: u64,
        /// Number of threads.
        threads: u64,
    },
    /// CoreCLR is loaded but has not been started.
    #[error("the runtime had not been started yet when the dump was taken: {} ({path}) has no threads and no heap", named(version.as_deref()))]
    NotStarted {
        /// Path of the module.
        path: String,
        /// Version, if known.
        version: Option<String>,
    },
    /// The host that loads the runtime is loaded, but the runtime is not.
    #[error("the runtime had not been loaded yet when the dump was taken: only its host {host} was")]
    NotLoaded {
        /// Path of the host.
        host: String,
    },
    /// An unsupported older release.
    #[error("{} is not supported (8 to 11 are): {path}", named(Some(version)))]
    Old {
        /// Path of the module.
        path: String,
        /// Version of the runtime.
        version: String,
    },
    /// CoreCLR is loaded, but neither its descriptor nor an overlay can be used.
    #[error("{path} is a CoreCLR runtime that gcdump cannot read: {}", unsupported(*undescribed, left_out.as_deref(), details))]
    Unsupported {
        /// Path of the module.
        path: String,
        /// Whether the runtime has a descriptor that the dump does not contain.
        undescribed: bool,
        /// Memory that the dump writer left out, if known.
        left_out: Option<String>,
        /// Build ID, table size, and why each overlay was rejected.
        details: String,
    },
}

fn unsupported(undescribed: bool, left_out: Option<&str>, details: &str) -> String {
    let left_out = left_out.map(|why| format!("; {why}")).unwrap_or_default();
    if undescribed {
        let what = "its descriptor is not in the dump, and no overlay matches";
        return format!("{what}{left_out} ({details})");
    }
    format!("it has no usable descriptor, and no overlay matches ({details}); .NET 8, 9, 10 and 11 are supported{left_out}")
}

/// Advice for dumps without managed memory.
const TAKE: &str = "take a heap dump: createdump --withheap PID, or dotnet-dump collect --type Heap -p PID";

/// The name of a release: .NET Core up to 3.1, .NET since 5.
fn named(version: Option<&str>) -> String {
    let Some(version) = version else { return ".NET".into() };
    let major: Option<u32> = version.split('.').next().and_then(|n| n.parse().ok());
    format!("{} {version}", if major.is_some_and(|n| n < 5) { ".NET Core" } else { ".NET" })
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
    /// The missing data of a cut dump, if known.
    fn lost(&self) -> String {
        match self {
            RuntimeError::Headless { path, .. } | RuntimeError::Unsupported { path, .. } | RuntimeError::NativeAot { path, .. } => {
                format!(", and among them the variables of the runtime ({path}), which are needed to find the heap")
            }
            _ => String::new(),
        }
    }
}
