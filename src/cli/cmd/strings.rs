use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::Select;
use super::on_heap::OnHeap;
use super::{Exit, Streams, open, rows};
use crate::analysis::{self, StringsQuery};
use crate::model::StringSort;
use crate::output::Format;

/// What `strings` is asked.
#[derive(Clone, Debug, Args)]
pub struct StringsArgs {
    /// The longest contents instead, also those that only one string has.
    #[arg(long, conflicts_with = "sort")]
    longest: bool,

    /// Only contents that fit (`*` any characters, `?` one), also those that only one string has.
    #[arg(long, value_name = "GLOB")]
    like: Option<String>,

    /// Only contents that at least so many strings have [default: 2; 1 with --like and --longest].
    #[arg(long, value_name = "N")]
    min_count: Option<u64>,

    /// Order of the rows, the largest first.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StringSort::Waste)]
    sort: StringSort,

    /// Most characters to print of each [default: 100 in a table, 1024 in other formats].
    #[arg(long, value_name = "N")]
    max_chars: Option<u32>,

    /// Rows to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump strings`.
pub(super) fn run(config: &Config, args: &StringsArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let table = config.format() == Format::Table;
    let query = StringsQuery {
        like: args.like.clone(),
        min_count: args.min_count.unwrap_or(if args.longest || args.like.is_some() { 1 } else { 2 }),
        sort: if args.longest { StringSort::Length } else { args.sort },
        top: rows(config, args.top, streams),
        max_chars: args.max_chars.unwrap_or(if table { 100 } else { 1024 }),
    };
    let selection = args.select.selection();
    let report = analysis::strings(&process, &on.heap, &on.namer, &selection, &query)?;
    let nothing = report.totals.strings == 0 && !(selection.is_everything() && args.like.is_none());
    let exit = on.finish(config, "strings", report, streams)?;
    Ok(exit.negative_if(nothing))
}
