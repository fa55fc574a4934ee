use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use crate::analysis;
use crate::base::Answer;
use crate::model::{AnswerKind, InfoReport};

/// What this dump is, what it can and cannot answer, and what to run next.
#[derive(Debug, Args)]
pub(in crate::cli) struct Info {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Info {
    const NAME: &'static str = "info";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[example("info DUMP", "what is this dump, which runtime, what can it answer")];
    type Report = InfoReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<InfoReport>> {
        Ok(analysis::info(at.dump()?, at.config.runtime))
    }

    /// A dump that cannot answer everything is a partial dump: scripts that sort dumps look at the exit code.
    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        let whole = report.answers.iter().all(|a| a.answer == AnswerKind::Full);
        match exit {
            _ if report.runtime_error.is_some() => Exit::NoRuntime,
            Exit::Ok if !whole => Exit::Partial,
            other => other,
        }
    }
}
