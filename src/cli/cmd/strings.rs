use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::Select;
use crate::analysis::{StringsQuery, strings};
use crate::base::Answer;
use crate::model::{StringSort, StringsReport};

/// Strings by content: which are duplicated, and what that costs.
#[derive(Debug, Args)]
pub(in crate::cli) struct Strings {
    /// The longest contents instead, also those that only one string has.
    #[arg(long, conflicts_with = "sort")]
    longest: bool,

    /// Only contents that match (`*` any characters, `?` one), also those that only one string has.
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
    dump: DumpArg,
}

impl Command for Strings {
    const NAME: &'static str = "strings";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("strings DUMP", "duplicated strings, and what they waste"),
        example("strings --like '*Exception*' DUMP", "strings that match a pattern"),
    ];
    type Report = StringsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StringsReport>> {
        let query = StringsQuery {
            selection: self.select.selection(),
            like: self.like.clone(),
            min_count: self.min_count.unwrap_or(if self.longest || self.like.is_some() { 1 } else { 2 }),
            sort: if self.longest { StringSort::Length } else { self.sort },
            top: at.rows(self.top),
            max_chars: self.max_chars.unwrap_or(if at.is_table() { 100 } else { 1024 }),
        };
        Ok(strings(&at.heap()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.totals.strings == 0 && !(self.select.selection().is_everything() && self.like.is_none()))
    }
}
