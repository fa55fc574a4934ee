use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::statics;
use crate::base::Answer;
use crate::model::StaticsReport;
use crate::session::StaticsQuery;

/// Static fields of all loaded types, with their values.
#[derive(Debug, Args)]
pub(in crate::cli) struct Statics {
    /// Only of types whose full name matches (`*` any characters, `?` one).
    #[arg(long = "type", value_name = "GLOB")]
    pattern: Option<String>,

    /// Thread statics instead: each once for every managed thread.
    #[arg(long)]
    thread_statics: bool,

    /// Also fields of types that have not been initialised, thread statics that a thread has not touched, and initial
    /// values in module images (RVA fields).
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Statics {
    const NAME: &'static str = "statics";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("statics --type 'Lab.*' DUMP", "static fields with their values"),
        example("statics --thread-statics DUMP", "thread statics, once for every thread"),
    ];
    type Report = StaticsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StaticsReport>> {
        let query = StaticsQuery { pattern: self.pattern.clone(), thread_statics: self.thread_statics, everything: self.all };
        Ok(statics(&at.runtime()?, &query)?)
    }
}
