//! `pool`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{ColumnArg, FitArg};
use crate::analysis::PoolReport;
use crate::analysis::pool;
use crate::base::Answer;
use crate::output::Paging;

/// The thread pool: its threads and what blocks them, its queues and what waits in them.
#[derive(Debug, Args)]
pub(in crate::cli) struct Pool {
    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Pool {
    const NAME: &'static str = "pool";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[example("pool DUMP", "is the pool starved, and by what")];
    type Report = PoolReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<PoolReport>> {
        Ok(pool(&at.heap()?)?)
    }
}
