//! Global options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::cache::CacheArg;
use crate::heapgraph::IndexUse;
use crate::model::{Carve, Stacks};
use crate::output::{Format, Screen};

/// Global options.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Config {
    /// Output format.
    #[arg(short, long, value_parser = format(), default_value = Format::Table.name(), global = true)]
    pub format: Format,

    /// Short for --format json.
    #[arg(short, long, global = true, conflicts_with = "format")]
    pub json: bool,

    /// Write the answer to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    pub output: Option<PathBuf>,

    /// Tables with all columns and whole names on a terminal of any width; pipes and files always get them.
    #[arg(long, global = true)]
    pub wide: bool,

    /// Only these columns of lists, in tables, CSV and Markdown: named as in CSV, separated by commas.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', global = true)]
    pub select: Vec<String>,

    /// Show what does not fit the terminal in CMD [default: $GCDUMP_PAGER, $PAGER, less].
    #[arg(long, value_name = "CMD", num_args = 0..=1, require_equals = true, default_missing_value = "", global = true)]
    pub pager: Option<String>,

    /// When to use colors. NO_COLOR and CLICOLOR_FORCE are honored.
    #[arg(long, value_enum, ignore_case = true, value_name = "WHEN", default_value_t = Colors::Auto, global = true)]
    pub color: Colors,

    /// Folder with the module files of the process, by name, or one such file, to fill in pages missing from the dump (repeatable).
    ///
    /// A file is used only if its build id (ELF) or its time stamp and size (PE) match. Of a single-file program, its file is enough:
    /// the assemblies are read from it.
    #[arg(long, value_name = "PATH", global = true)]
    pub modules: Vec<PathBuf>,

    /// Folder with PDBs of the program, by name (repeatable): portable PDBs have source lines, those of NativeAOT programs fields.
    ///
    /// A PDB is used only if it is the one that the module names. PDBs within assemblies and in the folders of --modules are used
    /// as well.
    #[arg(long, value_name = "DIR", global = true)]
    pub symbols: Vec<PathBuf>,

    /// Root of a file tree with the module files under their original paths.
    #[arg(long, value_name = "DIR", global = true)]
    pub sysroot: Option<PathBuf>,

    /// Open no file but the dump and those that options name: no module files of this machine (see gcdump help files), no index.
    #[arg(long, global = true)]
    pub no_local_files: bool,

    /// Descriptor overlay for a runtime unknown to gcdump (repeatable).
    #[arg(long, value_name = "FILE", global = true)]
    pub overlay: Vec<PathBuf>,

    /// Which index answers may come from (see `gcdump index`): auto, the one beside the dump if it fits; none; or FILE, which must fit.
    #[arg(long, value_name = "FILE", default_value = "auto", value_parser = OsStringValueParser::new().map(index), global = true)]
    pub index: IndexUse,

    /// Number of the runtime to inspect, from 0, where the process has several (see `gcdump info`).
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    pub runtime: usize,

    /// When to carve the heap out of memory, by the objects in it, rather than to read the GC's structures: auto, where those cannot be
    /// read.
    #[arg(long, value_enum, ignore_case = true, value_name = "WHEN", default_value_t = Carve::Auto, global = true)]
    pub carve: Carve,

    /// Memory limit, beside the dump itself and 16 MiB of the program's own (suffixes K, M, G). Graphs of heaps that may exceed it
    /// go to temporary files (`TMPDIR`), which is slower. Exit code 2 beyond it.
    #[arg(long, value_name = "BYTES", value_parser = size, global = true)]
    pub max_memory: Option<u64>,

    /// Give up after this time with exit code 6: 30s, 2m, 1h; a plain number is seconds.
    #[arg(long, value_name = "DURATION", value_parser = duration, global = true)]
    pub timeout: Option<Duration>,

    /// Number of threads, at most four per processor [default: one per processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), global = true)]
    pub threads: Option<u16>,

    /// Exit with code 5 on any warning, not only on a partial answer.
    #[arg(long, global = true)]
    pub strict: bool,

    /// Maximum size of a decompressed dump (suffixes K, M, G, T).
    #[arg(long, value_name = "BYTES", default_value = "1T", value_parser = size, global = true)]
    pub max_decompressed: u64,

    /// Keep decompressed dumps in a private folder, so that the next command opens them at once: DIR, auto (gcdump in the user's
    /// folder for caches), or off.
    #[arg(long, value_name = "DIR", env = "GCDUMP_CACHE", hide_env_values = true, default_value = "off", value_parser = OsStringValueParser::new().map(CacheArg::from), global = true)]
    pub cache: CacheArg,

    /// Maximum size of that folder, from which the dumps used longest ago go first (suffixes K, M, G, T).
    #[arg(long, value_name = "BYTES", env = "GCDUMP_CACHE_SIZE", hide_env_values = true, default_value = "32G", value_parser = size, global = true)]
    pub cache_size: u64,
}

impl Config {
    /// Returns the requested format.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Returns these options. Options for which `given` is false come from `base`.
    pub(super) fn over(self, base: &Config, given: impl Fn(&str) -> bool) -> Config {
        fn of<T: Clone>(given: bool, own: T, base: &T) -> T {
            if given { own } else { base.clone() }
        }
        let form = given("format") || given("json");
        Config {
            format: of(form, self.format, &base.format),
            json: of(form, self.json, &base.json),
            output: of(given("output"), self.output, &base.output),
            wide: of(given("wide"), self.wide, &base.wide),
            select: of(given("select"), self.select, &base.select),
            pager: of(given("pager"), self.pager, &base.pager),
            color: of(given("color"), self.color, &base.color),
            modules: of(given("modules"), self.modules, &base.modules),
            symbols: of(given("symbols"), self.symbols, &base.symbols),
            sysroot: of(given("sysroot"), self.sysroot, &base.sysroot),
            no_local_files: of(given("no_local_files"), self.no_local_files, &base.no_local_files),
            overlay: of(given("overlay"), self.overlay, &base.overlay),
            index: of(given("index"), self.index, &base.index),
            runtime: of(given("runtime"), self.runtime, &base.runtime),
            carve: of(given("carve"), self.carve, &base.carve),
            max_memory: of(given("max_memory"), self.max_memory, &base.max_memory),
            timeout: of(given("timeout"), self.timeout, &base.timeout),
            threads: of(given("threads"), self.threads, &base.threads),
            strict: of(given("strict"), self.strict, &base.strict),
            max_decompressed: of(given("max_decompressed"), self.max_decompressed, &base.max_decompressed),
            cache: of(given("cache"), self.cache, &base.cache),
            cache_size: of(given("cache_size"), self.cache_size, &base.cache_size),
        }
    }

    /// Whether both configurations open dumps in the same way.
    pub(super) fn opens_like(&self, other: &Config) -> bool {
        let files = |c: &Config| {
            let folders = (c.modules.clone(), c.symbols.clone(), c.sysroot.clone(), c.no_local_files);
            (folders, c.overlay.clone(), c.index.clone())
        };
        files(self) == files(other)
            && (self.carve, self.max_memory, self.max_decompressed) == (other.carve, other.max_memory, other.max_decompressed)
    }

    /// Returns the options that suggested command lines repeat: the runtime, and the module and symbol files. `--index` and limits are not repeated.
    pub(super) fn repeated(&self) -> Vec<String> {
        let folder = |option: &str, path: &PathBuf| [option.to_string(), path.display().to_string()];
        let runtime = (self.runtime > 0).then(|| ["--runtime".to_string(), self.runtime.to_string()]);
        let modules = self.modules.iter().map(|p| folder("--modules", p));
        let symbols = self.symbols.iter().map(|p| folder("--symbols", p));
        let sysroot = self.sysroot.iter().map(|p| folder("--sysroot", p));
        let overlays = self.overlay.iter().map(|p| folder("--overlay", p));
        let local = self.no_local_files.then(|| "--no-local-files".to_string());
        let carve = (self.carve != Carve::Auto).then(|| ["--carve".to_string(), self.carve.name().to_string()]);
        runtime.into_iter().chain(carve).chain(modules).chain(symbols).chain(sysroot).chain(overlays).flatten().chain(local).collect()
    }

    /// Applies the width and color options to `screen`.
    pub(super) fn screen(&self, screen: Screen) -> Screen {
        let screen = if self.wide { screen.wide() } else { screen };
        match self.color {
            Colors::Auto => screen,
            Colors::Always => screen.colored(true),
            Colors::Never => screen.colored(false),
        }
    }
}

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colors {
    /// On terminals.
    Auto,
    /// In pipes and files as well.
    Always,
    /// Nowhere.
    Never,
}

/// The dump argument.
#[derive(Clone, Debug, Args)]
pub struct DumpArg {
    /// The dump, here or before the command [default: $GCDUMP_DUMP, else the only dump in the current folder].
    #[arg(value_name = "DUMP", help_heading = None::<&'static str>)]
    dump: Option<PathBuf>,
}

impl DumpArg {
    /// Returns the path of the dump, if given.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.dump.clone()
    }
}

/// Shows all frames of the framework. All commands with stacks or chains share it.
#[derive(Clone, Copy, Debug, Args)]
pub struct FrameworkArg {
    /// Show all frames of .NET and its libraries. By default, tables and pages fold each run of them into one line; other formats always
    /// have all.
    #[arg(long)]
    pub(super) framework: bool,
}

/// Selects the stack values that are roots. All commands that follow roots share it.
#[derive(Clone, Copy, Debug, Args)]
pub struct StacksArg {
    /// Which stack and register values count as roots. For retained sizes, handles, statics and finalization queues come first: a
    /// stack value counts only for what none of them holds.
    #[arg(long, value_enum, ignore_case = true, value_name = "WHICH", default_value_t = Stacks::default())]
    pub(super) stacks: Stacks,
}

/// Parses a byte count: `4096`, `64K`, `2GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or("not a size")?;
    let number: u64 = number.parse().map_err(|_| "expected a byte count, such as 4096, 64K or 2G".to_string())?;
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("unknown unit '{unit}' (expected K, M, G or T)")),
    };
    number.checked_shl(shift).filter(|n| n >> shift == number).ok_or_else(|| "too large".to_string())
}

/// Parses a duration: `30`, `30s`, `500ms`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or("not a duration")?;
    let number: u64 = number.parse().map_err(|_| "expected a duration, such as 30s or 2m".to_string())?;
    let milliseconds: u64 = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("unknown unit '{unit}' (expected ms, s, m or h)")),
    };
    number.checked_mul(milliseconds).filter(|n| *n > 0).map(Duration::from_millis).ok_or_else(|| "out of range".to_string())
}

fn index(given: OsString) -> IndexUse {
    match given.to_str() {
        Some("auto") => IndexUse::Auto,
        Some("none") => IndexUse::None,
        _ => IndexUse::File(given.into()),
    }
}

fn format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|f| PossibleValue::new(f.name()).help(f.help()));
    PossibleValuesParser::new(names).map(|name| Format::named(&name).unwrap_or(Format::Table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        assert_eq!(["30", "30s", "500ms", "2m", "1h"].map(|t| duration(t).unwrap().as_millis()), [30_000, 30_000, 500, 120_000, 3_600_000]);
        assert!(["", "0", "s", "5d", "-1s", "99999999999999999h"].iter().all(|t| duration(t).is_err()));
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!((size("4096"), size("64K"), size("2GiB")), (Ok(4096), Ok(65536), Ok(2 << 30)));
        assert!(size("x").is_err() && size("99999999T").is_err() && size("5Q").is_err());
    }
}
