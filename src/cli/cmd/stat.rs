use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::Select;
use crate::analysis::{StatQuery, stat};
use crate::base::Answer;
use crate::model::{StatBy, StatReport, StatSort};

/// What fills the heap: number and bytes of the objects of every type.
#[derive(Debug, Args)]
pub(in crate::cli) struct Stat {
    /// What the rows stand for.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StatBy::Type)]
    by: StatBy,

    /// Order of the rows. Generations, heaps, segments and sizes come in their own order.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StatSort::Bytes)]
    sort: StatSort,

    /// Rows to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Stat {
    const NAME: &'static str = "stat";
    const GROUP: Group = Group::Objects;
    const SOS: &'static [&'static str] = &["dumpheap"];
    const EXAMPLES: &'static [Example] = &[
        example("stat DUMP", "what fills the heap"),
        example("stat --by generation DUMP", "what has grown old"),
        example("stat --type 'System.*' --top 10 DUMP", "the ten largest types of the framework"),
    ];
    type Report = StatReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StatReport>> {
        let selection = self.select.selection();
        Ok(stat(&at.heap()?, &StatQuery { selection, by: self.by, sort: self.sort, top: at.rows(self.top) })?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.totals.count == 0 && !self.select.selection().is_everything())
    }
}
