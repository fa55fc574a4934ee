//! Options that select objects.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use super::args::size;
use super::command::At;
use super::completion::types;
use crate::analysis::{Condition, Selection};
use crate::base::Addr;
use crate::model::{
    DiffSort, ExceptionSort, FinalizerSort, Generation, HandleSort, RefSort, RootSort, SegmentSort, StatSort, StaticSort, StringSort,
    ThreadSort, TimerSort,
};
use crate::session::TypePattern;

/// Selects types: the same option of every command that lists what has a type.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct TypesArg {
    /// Only this type (repeatable): full or simple name, part of one, glob (* and ?), or method table; see gcdump help patterns.
    #[arg(long = "type", value_name = "TYPE", value_parser = type_pattern, add = ArgValueCompleter::new(types))]
    types: Vec<TypePattern>,
}

impl TypesArg {
    /// The patterns; none stands for every type.
    pub(super) fn patterns(&self) -> Vec<TypePattern> {
        self.types.clone()
    }

    /// Whether none is given.
    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}

/// Limits rows: the same option of every command whose rows have an order of importance or no end.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct TopArg {
    /// Number of rows to list, 0 for all; totals always cover everything [default: what fits a terminal; all in pipes, files and other
    /// formats].
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    top: Option<usize>,
}

impl TopArg {
    /// Maximum rows, 0 for all.
    pub(super) fn rows(self, at: &At<'_>) -> usize {
        at.rows(self.top)
    }

    /// Maximum rows, 0 for all; `few` by default on a terminal.
    pub(super) fn rows_or(self, at: &At<'_>, few: usize) -> usize {
        at.rows_or(self.top, few)
    }
}

/// Parses a number of rows.
pub(super) fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number, 0 for all".to_string())
}

/// Columns of a list that it can be sorted by.
pub(super) trait Columns: ValueEnum + Send + Sync + 'static {
    /// The order without `--sort`.
    const USUAL: &'static str;
}

/// The orders without `--sort`.
macro_rules! usual {
    ($($Columns:ident: $usual:literal,)+) => {
        $(impl Columns for $Columns {
            const USUAL: &'static str = $usual;
        })+
    };
}

usual! {
    DiffSort: "bytes",
    ExceptionSort: "as on the heap; with --stat, count",
    FinalizerSort: "the most objects first; with --objects, as in the queues",
    HandleSort: "as in the handle tables; with --by, count",
    RefSort: "as in the heap; by type, references",
    RootSort: "as found; with --stat, count",
    SegmentSort: "as on the GC's lists",
    StatSort: "bytes; generations, heaps, segments and sizes keep their own",
    StaticSort: "as in the modules",
    StringSort: "waste; with a size, bytes",
    ThreadSort: "as on the runtime's list",
    TimerSort: "due",
}

/// The order of rows: the same option of every command whose rows have several worth choosing.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct SortArg<C: Columns> {
    #[arg(long, value_name = "COLUMN", value_enum, ignore_case = true, help = sort_help::<C>())]
    sort: Option<C>,
}

impl<C: Columns + Copy> SortArg<C> {
    /// As given.
    pub(super) fn given(&self) -> Option<C> {
        self.sort
    }
}

fn sort_help<C: Columns>() -> String {
    format!("Sort by this column: amounts descending, all else ascending [default: {}]", C::USUAL)
}

/// Selects objects.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Object selection")]
pub struct Select {
    #[command(flatten)]
    types: TypesArg,

    /// Only objects in this generation (repeatable).
    #[arg(long, value_name = "GEN", value_enum, ignore_case = true)]
    generation: Vec<Generation>,

    /// Only objects in the GC heap with this index (repeatable).
    #[arg(long, value_name = "N")]
    heap: Vec<u64>,

    /// Only objects in this segment, given by its address or any address inside (repeatable).
    #[arg(long, value_name = "ADDR", value_parser = address)]
    segment: Vec<Addr>,

    /// Only objects of at least this size (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", default_value = "0", hide_default_value = true, value_parser = size)]
    min_size: u64,

    /// Only objects of at most this size (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", value_parser = size)]
    max_size: Option<u64>,

    /// Only objects for which this holds, such as 'size > 1K and field("_state") = 3'; see gcdump help conditions.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
}

impl Select {
    /// The equivalent [`Selection`].
    pub(super) fn selection(&self) -> Selection {
        Selection {
            types: self.types.patterns(),
            generations: self.generation.clone(),
            heaps: self.heap.clone(),
            segments: self.segment.clone(),
            min_size: self.min_size,
            max_size: self.max_size,
            condition: self.condition.clone(),
        }
    }
}

/// Parses a type name, pattern, or method table address: `0x…`, or as debuggers print it, eight or more hexadecimal digits.
pub(super) fn type_pattern(text: &str) -> Result<TypePattern, String> {
    const BARE: usize = 8;
    let bare = || text.len() >= BARE && text.bytes().any(|b| b.is_ascii_digit()) && address(text).is_ok();
    if text.starts_with("0x") || text.starts_with("0X") || bare() {
        return address(text).map(TypePattern::MethodTable);
    }
    if text.is_empty() { Err("expected a type name".into()) } else { Ok(TypePattern::Name(text.into())) }
}

/// Parses a hexadecimal address; the `0x` prefix and WinDbg's backtick separator are optional.
pub(super) fn address(text: &str) -> Result<Addr, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).replace('`', "");
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let value = if plain { u64::from_str_radix(&digits, 16).ok() } else { None };
    value.map(Addr).ok_or_else(|| format!("'{text}' is not an address (expected hex, such as 0x7f31535a25f8)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_types() {
        assert_eq!((address("0x1F"), address("7f31`535a25f8")), (Ok(Addr(31)), Ok(Addr(0x7f31_535a_25f8))));
        assert!(address("").is_err() && address("0x").is_err() && address("+1").is_err() && address("xyz").is_err());
        assert_eq!(type_pattern("0x10"), Ok(TypePattern::MethodTable(Addr(16))));
        assert_eq!(type_pattern("00007f31`535a25f8"), Ok(TypePattern::MethodTable(Addr(0x7f31_535a_25f8))));
        assert_eq!(type_pattern("Deadbeef"), Ok(TypePattern::Name("Deadbeef".into())));
        assert_eq!(type_pattern("Lab.*"), Ok(TypePattern::Name("Lab.*".into())));
    }
}
