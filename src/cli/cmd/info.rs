use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use crate::analysis::{self, InfoQuery};
use crate::base::Answer;
use crate::model::InfoReport;

/// Summary of the dump: its kind, runtime and GC, what it can answer, and what to run next.
#[derive(Debug, Args)]
pub(in crate::cli) struct Info {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Info {
    const NAME: &'static str = "info";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[example("info DUMP", "kind of dump, runtime, GC, and what it can answer")];
    type Report = InfoReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<InfoReport>> {
        Ok(analysis::info(at.dump()?, &InfoQuery { runtime: at.config.runtime, options: at.config.repeated() }))
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        if report.runtime_error.is_some() { Exit::NoRuntime } else { exit }
    }
}
