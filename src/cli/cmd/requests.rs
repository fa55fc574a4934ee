use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::requests;
use crate::base::Answer;
use crate::model::RequestsReport;

/// Outgoing HTTP requests in flight, and sockets with both ends.
#[derive(Debug, Args)]
pub(in crate::cli) struct Requests {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Requests {
    const NAME: &'static str = "requests";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[example("requests DUMP", "which requests wait for an answer")];
    type Report = RequestsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RequestsReport>> {
        Ok(requests(&at.heap()?)?)
    }
}
