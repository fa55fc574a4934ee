//! `threads`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{FitArg, SortArg};
use crate::analysis::ThreadsReport;
use crate::analysis::{ThreadsQuery, threads};
use crate::base::Answer;
use crate::model::ThreadSort;
use crate::output::Paging;

/// Managed threads: ids, state, allocation context, exception, and the crashed thread.
#[derive(Debug, Args)]
pub(in crate::cli) struct Threads {
    /// Also what each thread waits for, who holds it, and how many monitors each thread holds (thin locks and sync blocks, each once
    /// however often it was entered).
    #[arg(long)]
    waits: bool,

    #[command(flatten)]
    sort: SortArg<ThreadSort>,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Threads {
    const NAME: &'static str = "threads";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("threads DUMP", "managed threads, and the crashed thread"),
        example("threads --waits DUMP", "what each thread waits for, and how many locks it holds"),
    ];
    type Report = ThreadsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ThreadsReport>> {
        Ok(threads(&at.runtime()?, &ThreadsQuery { waits: self.waits, sort: self.sort.given() })?)
    }

    fn next(&self, _report: &ThreadsReport, at: &At<'_>) -> Option<&'static str> {
        at.has_managed_stacks().then_some("stacks")
    }
}
