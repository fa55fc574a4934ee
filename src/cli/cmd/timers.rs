//! `timers`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{FitArg, SortArg};
use crate::analysis::TimersReport;
use crate::analysis::timers;
use crate::base::Answer;
use crate::model::TimerSort;
use crate::output::Paging;

/// Timers with due time and callback, registered waits, callbacks of cancellation.
#[derive(Debug, Args)]
pub(in crate::cli) struct Timers {
    #[command(flatten)]
    sort: SortArg<TimerSort>,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Timers {
    const NAME: &'static str = "timers";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[example("timers DUMP", "what will be called, and when")];
    type Report = TimersReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TimersReport>> {
        Ok(timers(&at.heap()?, self.sort.given())?)
    }
}
