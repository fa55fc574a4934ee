//! `type`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{ColumnArg, MostArg};
use super::super::values::type_pattern;
use crate::analysis::TypesReport;
use crate::analysis::types;
use crate::base::Answer;
use crate::output::Paging;
use crate::session::TypePattern;

/// Layout of a type: base types, size, field offsets, statics.
#[derive(Debug, Args)]
pub(in crate::cli) struct Type {
    /// Full or simple name, part of one, glob (* and ?), or method table; see gcdump help patterns.
    #[arg(value_name = "TYPE", value_parser = type_pattern)]
    name: TypePattern,

    /// Also list the methods that the type declares: slot, MethodDesc, whether the JIT or the AOT compiler made their code, and where it is.
    #[arg(long)]
    methods: bool,

    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    most: MostArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Type {
    const NAME: &'static str = "type";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("type System.String DUMP", "layout and statics of a type"),
        example("type --methods System.String DUMP", "its methods, and which of them have code"),
        example("type 'System.Collections.Generic.*' DUMP", "the loaded types that match"),
    ];
    type Report = TypesReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, _at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.most.page()))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TypesReport>> {
        Ok(types(&at.runtime()?, &self.name, self.methods)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.types.is_empty())
    }
}
