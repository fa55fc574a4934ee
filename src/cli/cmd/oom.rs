//! `oom`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::oom;
use crate::base::Answer;
use crate::model::OomReport;

/// The last out-of-memory failure of each heap.
#[derive(Debug, Args)]
pub(in crate::cli) struct Oom {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Oom {
    const NAME: &'static str = "oom";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[example("oom DUMP", "which allocation failed, and why")];
    type Report = OomReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<OomReport>> {
        Ok(oom(&at.runtime()?)?)
    }

    fn next(&self, report: &OomReport, _at: &At<'_>) -> Option<&'static str> {
        (report.any == Some(true)).then_some("heap --detail")
    }
}
