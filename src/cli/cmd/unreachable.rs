//! `unreachable`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{RowsArgs, TypesArg};
use crate::analysis::UnreachableReport;
use crate::analysis::{UnreachableQuery, unreachable};
use crate::base::Answer;
use crate::output::Paging;

/// Uncollected garbage: objects not reachable from any root, by type, and why they are still there.
#[derive(Debug, Args)]
pub(in crate::cli) struct Unreachable {
    /// List objects in heap order instead of types.
    #[arg(long)]
    objects: bool,

    #[command(flatten)]
    types: TypesArg,

    #[command(flatten)]
    rows: RowsArgs,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Unreachable {
    const NAME: &'static str = "unreachable";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("unreachable DUMP", "garbage by type, and why it is still there"),
        example("unreachable --stacks none DUMP", "including objects held only by stack values"),
    ];
    type Report = UnreachableReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<UnreachableReport>> {
        let query = UnreachableQuery {
            types: self.types.patterns(),
            objects: self.objects,
            top: self.rows.counted(at),
            stacks: self.stacks.stacks,
        };
        Ok(unreachable(&at.heap()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.unreachable.count == 0 && !self.types.is_empty())
    }
}
