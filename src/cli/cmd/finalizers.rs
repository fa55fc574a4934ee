use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::type_pattern;
use crate::analysis::{FinalizersQuery, finalizers};
use crate::base::Answer;
use crate::model::FinalizersReport;
use crate::session::TypePattern;

/// The finalization queue: objects with a finalizer, and those ready for finalization.
#[derive(Debug, Args)]
pub(in crate::cli) struct Finalizers {
    /// Also list every object.
    #[arg(long)]
    objects: bool,

    /// Only objects of this type: its full name, in which * and ? may stand for something else, or its method table as 0x…
    /// (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Types to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Finalizers {
    const NAME: &'static str = "finalizers";
    const GROUP: Group = Group::Heap;
    const SOS: &'static [&'static str] = &["finalizequeue"];
    const EXAMPLES: &'static [Example] = &[example("finalizers DUMP", "objects with a finalizer, and those ready for finalization")];
    type Report = FinalizersReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<FinalizersReport>> {
        let query = FinalizersQuery { types: self.types.clone(), objects: self.objects, top: at.rows(self.top) };
        Ok(finalizers(&at.runtime()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.types.is_empty() && !self.types.is_empty())
    }
}
