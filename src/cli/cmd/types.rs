use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use crate::analysis::types;
use crate::base::Answer;
use crate::model::TypesReport;

/// A type: its base types, size, fields with their offsets, and its statics.
#[derive(Debug, Args)]
pub(in crate::cli) struct Type {
    /// Full name, as other answers print it, pattern (`*` any characters, `?` one), or method table (0x…).
    #[arg(value_name = "NAME|MT")]
    name: String,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Type {
    const NAME: &'static str = "type";
    const GROUP: Group = Group::Objects;
    const SOS: &'static [&'static str] = &["dumpmt"];
    const EXAMPLES: &'static [Example] = &[
        example("type System.String DUMP", "layout of a type, and its statics"),
        example("type 'System.Collections.Generic.*' DUMP", "the loaded types that match"),
    ];
    type Report = TypesReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TypesReport>> {
        Ok(types(&at.runtime()?, &self.name)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.types.is_empty())
    }
}
