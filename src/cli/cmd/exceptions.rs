use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{ExceptionsQuery, exceptions};
use crate::base::Answer;
use crate::model::ExceptionsReport;

/// Every exception object of the heap: type, message, stack trace, and the thread that has it in flight.
#[derive(Debug, Args)]
pub(in crate::cli) struct Exceptions {
    /// Only how many there are by type and message.
    #[arg(long)]
    stat: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Exceptions {
    const NAME: &'static str = "exceptions";
    const GROUP: Group = Group::Threads;
    const SOS: &'static [&'static str] = &["dumpexceptions"];
    const EXAMPLES: &'static [Example] = &[
        example("exceptions DUMP", "every exception object with its stack trace"),
        example("exceptions --stat DUMP", "how many by type and message"),
    ];
    type Report = ExceptionsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ExceptionsReport>> {
        Ok(exceptions(&at.heap()?, &ExceptionsQuery { stat: self.stat })?)
    }
}
