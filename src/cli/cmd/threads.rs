use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::threads;
use crate::base::Answer;
use crate::model::ThreadsReport;

/// Managed threads: ids, state, allocation context, exception, and which one crashed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Threads {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Threads {
    const NAME: &'static str = "threads";
    const GROUP: Group = Group::Threads;
    const SOS: &'static [&'static str] = &["clrthreads"];
    const EXAMPLES: &'static [Example] = &[example("threads DUMP", "managed threads, and which one crashed")];
    type Report = ThreadsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ThreadsReport>> {
        Ok(threads(&at.runtime()?)?)
    }
}
