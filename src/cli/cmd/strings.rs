//! `strings`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{Select, SortArg, TopArg};
use crate::analysis::{StringSort, StringsReport};
use crate::analysis::{StringsQuery, strings};
use crate::base::Answer;
use crate::output::Paging;

/// Strings by value: duplicates and the memory they waste.
///
/// With a size, a pattern or a condition, all strings that match.
#[derive(Debug, Args)]
pub(in crate::cli) struct Strings {
    /// List the longest values instead, including unique ones.
    #[arg(long, conflicts_with = "sort")]
    longest: bool,

    /// Only values that match (`*` any characters, `?` one), including unique ones.
    #[arg(long, value_name = "GLOB")]
    like: Option<String>,

    /// Only values that occur at least this often [default: 2; 1 with --like, --longest, --where and sizes].
    #[arg(long, value_name = "N")]
    min_count: Option<u64>,

    #[command(flatten)]
    sort: SortArg<StringSort>,

    /// Maximum characters to print per value [default: 100 in tables, 1024 in other formats].
    #[arg(long, value_name = "N")]
    max_chars: Option<u32>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Strings {
    const NAME: &'static str = "strings";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("strings DUMP", "duplicate strings and the memory they waste"),
        example("strings --like '*Exception*' DUMP", "strings that match a pattern"),
        example("strings --min-size 10K DUMP", "all strings of at least 10 KiB, largest first"),
    ];
    type Report = StringsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.top.page(at)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StringsReport>> {
        let selection = self.select.selection();
        let by_size = selection.min_size > 0 || selection.max_size.is_some();
        // Options that select individual strings also list unique strings.
        let all = self.longest || self.like.is_some() || by_size || selection.condition.is_some();
        let usual = if by_size { StringSort::Bytes } else { StringSort::Waste };
        let query = StringsQuery {
            selection,
            like: self.like.clone(),
            min_count: self.min_count.unwrap_or(if all { 1 } else { 2 }),
            sort: if self.longest { StringSort::Length.into() } else { self.sort.given().unwrap_or_else(|| usual.into()) },
            top: self.sort.before(self.top.rows(at)),
            max_chars: self.max_chars.unwrap_or(if at.is_table() { 100 } else { 1024 }),
        };
        Ok(strings(&at.heap()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.totals.strings == 0 && !(self.select.selection().is_everything() && self.like.is_none()))
    }
}
