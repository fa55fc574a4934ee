//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use super::cmd::{
    BridgeArgs, FinalizersArgs, FragmentationArgs, HandlesArgs, ObjectsArgs, PathArgs, RetainedArgs, RootsArgs, SimulateArgs, StatArgs,
    StringsArgs, TrimArgs, UnreachableArgs, VerifyArgs, WhatifArgs,
};
use super::select::address;
use crate::base::Addr;
use crate::model::{HandleKind, RootKind};
use crate::output::Format;

/// Opens a crash dump of a .NET process and shows its garbage-collected heap.
///
/// Reads Windows minidumps and ELF cores (createdump, kernel, gcore), also compressed ones (.zst, .gz), of .NET 8 and
/// later, on any machine: no .NET, no debugger and no DAC needed.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gcdump",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Examples:\n  gcdump info crash.dmp                  what is this dump, what can it answer\n  \
                  gcdump heap crash.dmp                  the heap by generation\n  \
                  gcdump handles --type strong crash.dmp\n  \
                  gcdump handles --json crash.dmp | jq '.data.counts'\n\n\
                  The dump may be left out: then it is $GCDUMP_DUMP, or the only dump in the current folder.\n\
                  Exit codes: 0 answered, 1 the answer is bad or none, 2 wrong usage, 3 no readable dump,\n\
                  4 no readable .NET runtime in it, 5 partial answer, 6 out of time."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options that every command has.
    #[command(flatten)]
    pub config: Config,
}

/// Options that every command has.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Config {
    /// Output format.
    #[arg(long, value_parser = format(), default_value = Format::Table.name(), global = true)]
    pub format: Format,

    /// Short for --format json.
    #[arg(long, global = true, conflicts_with = "format")]
    pub json: bool,

    /// Write the answer to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    pub output: Option<PathBuf>,

    /// Folder with the process's module files by name, to fill in pages that the dump lacks (repeatable).
    ///
    /// A file is taken only if its build id (ELF) or its time stamp and size (PE) match.
    #[arg(long, value_name = "DIR", global = true)]
    pub modules: Vec<PathBuf>,

    /// Root of a file tree that holds the module files under the paths that the process knew.
    #[arg(long, value_name = "DIR", global = true)]
    pub sysroot: Option<PathBuf>,

    /// Do not open module files under the recorded paths of this machine.
    #[arg(long, global = true)]
    pub no_local_files: bool,

    /// A descriptor overlay for a runtime that gcdump does not know (repeatable).
    #[arg(long, value_name = "FILE", global = true)]
    pub overlay: Vec<PathBuf>,

    /// Which runtime of the process to look at, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    pub runtime: usize,

    /// Refuse what would take more memory than this, beside the dump itself (K, M, G may follow).
    #[arg(long, value_name = "BYTES", value_parser = size, global = true)]
    pub max_memory: Option<u64>,

    /// Give up after this time, with exit code 6: 30s, 2m, 1h; a plain number means seconds.
    #[arg(long, value_name = "DURATION", value_parser = duration, global = true)]
    pub timeout: Option<Duration>,

    /// Threads to walk the heap with [default: one per processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), global = true)]
    pub threads: Option<u16>,

    /// Make any warning an exit code 5, not only a partial answer.
    #[arg(long, global = true)]
    pub strict: bool,

    /// Refuse to decompress a dump to more than this many bytes (K, M, G, T may follow).
    #[arg(long, value_name = "BYTES", default_value = "1T", value_parser = size, global = true)]
    pub max_decompressed: u64,
}

impl Config {
    /// The format that was asked for.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// The dump to look at.
#[derive(Clone, Debug, Args)]
pub struct DumpArg {
    /// The dump [default: $GCDUMP_DUMP, else the only dump in the current folder].
    #[arg(value_name = "DUMP")]
    pub dump: Option<PathBuf>,
}

/// Commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// What this dump is, what it can and cannot answer, and what to run next.
    Info(DumpArg),

    /// The heap by generation: segments, allocated, committed and reserved bytes.
    #[command(visible_alias = "eeheap")]
    Heap {
        /// Everything else that the GC publishes about each heap.
        #[arg(long)]
        detail: bool,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// Every segment or region of the heap.
    Segments {
        /// Also what the GC holds outside of them: free regions, bookkeeping, handle tables.
        #[arg(long)]
        free: bool,
        /// Walk through the objects of each: how many, how much is free, and whether the walk ends exactly at its end.
        #[arg(long)]
        walk: bool,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// What fills the heap: number and bytes of the objects of every type.
    #[command(visible_alias = "dumpheap")]
    Stat(StatArgs),

    /// Strings by content: which ones are there many times, and what that costs.
    Strings(StringsArgs),

    /// Free space: by generation and segment, by size, the largest blocks, and the pinned objects that keep it apart.
    Fragmentation(FragmentationArgs),

    /// The objects themselves, in the order of the heap.
    Objects(ObjectsArgs),

    /// One object: type, place, lock and hash code, fields or elements. An address inside of an object finds it.
    #[command(visible_aliases = ["dumpobj", "do"])]
    Object {
        /// The address.
        #[arg(value_parser = address)]
        address: Addr,
        /// First element of an array to list.
        #[arg(long, value_name = "N", default_value_t = 0)]
        start: u64,
        /// Most elements to list.
        #[arg(long, value_name = "N", default_value_t = 100)]
        count: u64,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// What lies at an address: object, segment and generation, or module, stack, mapping.
    #[command(visible_alias = "gcwhere")]
    Where {
        /// The address.
        #[arg(value_parser = address)]
        address: Addr,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// The objects before and after an address of the heap, gaps named.
    #[command(visible_aliases = ["listnearobj", "lno"])]
    Near {
        /// The address.
        #[arg(value_parser = address)]
        address: Addr,
        /// Objects to show in front of it.
        #[arg(long, value_name = "N", default_value_t = 5)]
        before: usize,
        /// Objects to show behind it.
        #[arg(long, value_name = "N", default_value_t = 5)]
        after: usize,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// Every GC handle: type, object, method table, secondary value.
    #[command(visible_alias = "gchandles")]
    Handles(HandlesArgs),

    /// What keeps an object alive: shortest paths from roots. With --type, the paths of all its objects, merged.
    #[command(visible_alias = "gcroot")]
    Path(PathArgs),

    /// What would be freed without an object: exact retained sizes by object and type, tree, suspects.
    Retained(RetainedArgs),

    /// Everything that an object leads to, and how much of that it alone keeps alive.
    Objsize {
        /// The object: its address, or one inside of it.
        #[arg(value_parser = address)]
        address: Addr,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// What keeps objects alive from outside of the heap: handles, stacks, registers, the finalization queue.
    ///
    /// Stacks and registers are read conservatively: every word that leads to an object counts, stale ones too.
    Roots(RootsArgs),

    /// The finalization queue: objects with a finalizer, and those whose finalizer is due.
    #[command(visible_alias = "finalizequeue")]
    Finalizers(FinalizersArgs),

    /// Garbage that has not been collected: objects that no root reaches, by type, and what each still waits for.
    Unreachable(UnreachableArgs),

    /// What would live and die if these objects were kept alive, or these handles were gone.
    Whatif(WhatifArgs),

    /// What would happen if the garbage collector ran now.
    Simulate(SimulateArgs),

    /// Objects shared with another collector (Java): dead ones as strongly connected components, and the references between.
    Bridge(BridgeArgs),

    /// Whether an allocation failed, and why.
    #[command(visible_alias = "analyzeoom")]
    Oom(DumpArg),

    /// Managed threads: ids, state, allocation context, exception, and which one crashed.
    #[command(visible_alias = "clrthreads")]
    Threads(DumpArg),

    /// Every exception object of the heap: type, message, stack trace, and the thread that has it in flight.
    #[command(visible_alias = "dumpexceptions")]
    Exceptions {
        /// Only how many there are by type and message.
        #[arg(long)]
        stat: bool,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// Static fields of all loaded types, with their values.
    Statics {
        /// Only of types whose full name fits (`*` any characters, `?` one).
        #[arg(long = "type", value_name = "GLOB")]
        pattern: Option<String>,
        /// Thread statics instead: each once for every managed thread.
        #[arg(long)]
        thread_statics: bool,
        /// Also fields of types that have not been initialised, thread statics that a thread has not touched, and initial
        /// values in module images (RVA fields).
        #[arg(long)]
        all: bool,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// A type: its base types, size, fields with their offsets, and its statics.
    #[command(visible_alias = "dumpmt")]
    Type {
        /// Full name, as other answers print it, pattern (`*` any characters, `?` one), or method table (0x…).
        #[arg(value_name = "NAME|MT")]
        name: String,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },

    /// Writes a smaller dump that answers the same: only the memory that some command reads. With --redact, without contents.
    Trim(TrimArgs),
    /// What is wrong with the heap: objects, references, locks, handles, segments. Exit code 1 if something is broken.
    #[command(visible_alias = "verifyheap")]
    Verify(VerifyArgs),

    /// What the runtime says about itself: contracts, types, fields, globals, each with its origin.
    Contracts {
        /// Only run the self-checks of the descriptor or overlay against the dump; exit code 1 if one fails.
        #[arg(long)]
        check: bool,
        /// The dump.
        #[command(flatten)]
        dump: DumpArg,
    },
}

/// A handle type by our name or by SOS's (`WeakShort`, `WeakWinRT` …).
pub(super) fn handle_kind(text: &str) -> Result<HandleKind, String> {
    let plain = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_ascii_lowercase();
    let wanted = match plain(text).as_str() {
        "weakwinrt" => "weaknativecom".to_string(),
        other => other.to_string(),
    };
    HandleKind::ALL.into_iter().find(|k| plain(k.name()) == wanted).ok_or_else(|| {
        let names: Vec<&str> = HandleKind::ALL.iter().map(|k| k.name()).collect();
        format!("handle types are {}", names.join(", "))
    })
}

/// A kind of roots by its name; `strong` and the like mean the handles.
pub(super) fn root_kind(text: &str) -> Result<RootKind, String> {
    let wanted = text.to_ascii_lowercase();
    let named = |k: &RootKind| k.name() == wanted || k.name().strip_suffix("-handle") == Some(wanted.as_str());
    RootKind::ALL.into_iter().find(named).ok_or_else(|| {
        let names: Vec<&str> = RootKind::ALL.iter().map(|k| k.name()).collect();
        format!("kinds of roots are {}", names.join(", "))
    })
}

/// A number of bytes: `4096`, `64K`, `2GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or("not a size")?;
    let number: u64 = number.parse().map_err(|_| "a number of bytes is wanted, like 4096, 64K or 2G".to_string())?;
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("unknown unit {unit:?}; K, M, G or T are known")),
    };
    number.checked_shl(shift).filter(|n| n >> shift == number).ok_or_else(|| "too large".to_string())
}

/// A time: `30`, `30s`, `500ms`, `2m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or("not a time")?;
    let number: u64 = number.parse().map_err(|_| "a whole number is wanted, like 30s or 2m".to_string())?;
    let milliseconds: u64 = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("unknown unit {unit:?}; ms, s, m or h are known")),
    };
    number.checked_mul(milliseconds).filter(|n| *n > 0).map(Duration::from_millis).ok_or_else(|| "too long, or no time at all".to_string())
}

fn format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|f| PossibleValue::new(f.name()).help(f.help()));
    PossibleValuesParser::new(names).map(|name| Format::named(&name).unwrap_or(Format::Table))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times() {
        assert_eq!(["30", "30s", "500ms", "2m", "1h"].map(|t| duration(t).unwrap().as_millis()), [30_000, 30_000, 500, 120_000, 3_600_000]);
        assert!(["", "0", "s", "5d", "-1s", "99999999999999999h"].iter().all(|t| duration(t).is_err()));
    }

    #[test]
    fn sizes_and_handle_types() {
        assert_eq!((size("4096"), size("64K"), size("2GiB")), (Ok(4096), Ok(65536), Ok(2 << 30)));
        assert!(size("x").is_err() && size("99999999T").is_err() && size("5Q").is_err());
        assert_eq!(handle_kind("weak-short"), Ok(HandleKind::WeakShort));
        assert_eq!(handle_kind("WeakShort"), Ok(HandleKind::WeakShort));
        assert_eq!(handle_kind("WeakWinRT"), Ok(HandleKind::WeakNativeCom));
        assert!(handle_kind("nonsense").unwrap_err().contains("cross-reference"));
    }
}
