use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{FilterArg, SortArg, TopArg, TypesArg};
use crate::analysis::statics;
use crate::base::Answer;
use crate::model::{StaticSort, StaticsReport};
use crate::output::Paging;
use crate::session::StaticsQuery;

/// Static fields of all loaded types, with values.
#[derive(Debug, Args)]
pub(in crate::cli) struct Statics {
    #[command(flatten)]
    types: TypesArg,

    #[command(flatten)]
    sort: SortArg<StaticSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,

    /// List thread statics instead, once per managed thread.
    #[arg(long)]
    thread_statics: bool,

    /// Also list fields of uninitialized types, thread statics never accessed by a thread, and initial values in module
    /// images (RVA fields).
    #[arg(long)]
    all: bool,

    /// Show what each field retains, the most first: the caches of the process.
    #[arg(long)]
    retained: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Statics {
    const NAME: &'static str = "statics";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("statics --type 'Lab.*' DUMP", "static fields with values"),
        example("statics --retained --top 20 DUMP", "the static fields that retain most"),
        example("statics --thread-statics DUMP", "thread statics, once per thread"),
    ];
    type Report = StaticsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.filter.of(self.top.page(at))))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StaticsReport>> {
        let query = StaticsQuery {
            types: self.types.patterns(),
            thread_statics: self.thread_statics,
            everything: self.all,
            retained: self.retained,
            sort: self.sort.given(),
            top: self.sort.before(self.filter.before(self.top.rows(at))),
        };
        Ok(statics(&at.runtime()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.types == 0 && !self.types.is_empty())
    }
}
