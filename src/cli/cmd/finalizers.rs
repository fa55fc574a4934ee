use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{FilterArg, SortArg, TopArg, TypesArg};
use crate::analysis::FinalizersReport;
use crate::analysis::{FinalizersQuery, finalizers};
use crate::base::Answer;
use crate::model::FinalizerSort;
use crate::output::Paging;

/// The finalization queues: objects registered for finalization and ready for finalization.
#[derive(Debug, Args)]
pub(in crate::cli) struct Finalizers {
    /// Also list the objects.
    #[arg(long)]
    objects: bool,

    #[command(flatten)]
    types: TypesArg,

    #[command(flatten)]
    sort: SortArg<FinalizerSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Finalizers {
    const NAME: &'static str = "finalizers";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[example("finalizers DUMP", "objects registered for finalization and ready for finalization")];
    type Report = FinalizersReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.filter.of(self.top.page(at))))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<FinalizersReport>> {
        let query = FinalizersQuery {
            types: self.types.patterns(),
            objects: self.objects,
            sort: self.sort.given(),
            top: self.sort.before(self.filter.before(self.top.counted(at))),
        };
        Ok(finalizers(&at.runtime()?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.types.is_empty() && !self.types.is_empty())
    }
}
