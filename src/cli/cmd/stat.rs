//! `stat`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{Select, SortArg, TopArg};
use crate::analysis::{StatBy, StatReport, StatRows, StatSort};
use crate::analysis::{StatQuery, stat};
use crate::base::Answer;
use crate::output::Paging;

/// Heap statistics: object count and bytes by type, or by another key.
#[derive(Debug, Args)]
pub(in crate::cli) struct Stat {
    /// Grouping key.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StatBy::Type)]
    by: StatBy,

    #[command(flatten)]
    sort: SortArg<StatSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Stat {
    const NAME: &'static str = "stat";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("stat DUMP", "object count and bytes by type"),
        example("stat --by generation DUMP", "object count and bytes by generation"),
        example("stat --type 'System.*' --top 10 DUMP", "the ten largest framework types"),
    ];
    type Report = StatReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.top.page(at)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StatReport>> {
        let selection = self.select.selection();
        Ok(stat(
            &*at.source_at(0)?,
            &StatQuery { selection, by: self.by, sort: self.sort.given().unwrap_or_default(), top: self.sort.before(self.top.rows(at)) },
        )?)
    }

    fn next(&self, report: &StatReport, _at: &At<'_>) -> Option<&'static str> {
        matches!(&report.rows, StatRows::Types { types } if !types.is_empty()).then_some("retained --suspects")
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.totals.count == 0 && report.totals.free_count == 0 && !self.select.selection().is_everything())
    }
}
