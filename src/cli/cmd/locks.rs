//! `locks`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, FrameworkArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{ColumnArg, FitArg};
use crate::analysis::LocksReport;
use crate::analysis::{LocksQuery, locks};
use crate::base::Answer;
use crate::output::{Paging, View};

/// Locks, what each thread waits for, and deadlocks.
///
/// Monitors (thin locks and sync blocks), Lock, ReaderWriterLockSlim, SemaphoreSlim, events, countdowns, barriers, wait handles,
/// joined threads and tasks.
#[derive(Debug, Args)]
pub(in crate::cli) struct Locks {
    /// Also list locks that no thread holds or waits for.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    framework: FrameworkArg,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Locks {
    const NAME: &'static str = "locks";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("locks DUMP", "locks with holders and waiting threads, and deadlocks"),
        example("locks --all DUMP", "free locks as well"),
    ];
    type Report = LocksReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<LocksReport>> {
        Ok(locks(&at.heap()?, &LocksQuery { all: self.all })?)
    }

    fn view(&self, _at: &At<'_>, _report: &LocksReport) -> Result<View> {
        Ok(View { framework: self.framework.framework, ..View::default() })
    }
}
