//! Options that every command has.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::output::Format;

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
    dump: Option<PathBuf>,
}

impl DumpArg {
    /// The dump, where one is named.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.dump.clone()
    }
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
    use super::*;

    #[test]
    fn times() {
        assert_eq!(["30", "30s", "500ms", "2m", "1h"].map(|t| duration(t).unwrap().as_millis()), [30_000, 30_000, 500, 120_000, 3_600_000]);
        assert!(["", "0", "s", "5d", "-1s", "99999999999999999h"].iter().all(|t| duration(t).is_err()));
    }

    #[test]
    fn sizes() {
        assert_eq!((size("4096"), size("64K"), size("2GiB")), (Ok(4096), Ok(65536), Ok(2 << 30)));
        assert!(size("x").is_err() && size("99999999T").is_err() && size("5Q").is_err());
    }
}
