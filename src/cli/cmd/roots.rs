use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::{Exit, UsageError};
use super::super::select::{FilterArg, SortArg, TopArg, TypesArg};
use crate::analysis::RootsReport;
use crate::analysis::{RootsQuery, roots};
use crate::base::Answer;
use crate::model::{RootKind, RootSort, Stacks};
use crate::output::Paging;
use crate::session::roots::RootOptions;

/// GC roots: handles, statics, stacks, registers, the finalization queues.
///
/// Stacks and registers count for what frames hold. Where frames are not known, and with --stacks conservative, every word that points to
/// an object counts, even if stale.
#[derive(Debug, Args)]
pub(in crate::cli) struct Roots {
    /// Only roots of this kind (repeatable).
    #[arg(long = "kind", value_name = "KIND", value_enum, ignore_case = true)]
    kinds: Vec<RootKind>,

    /// Also list weak handles, which keep nothing alive.
    #[arg(long)]
    weak: bool,

    #[command(flatten)]
    types: TypesArg,

    /// Only count roots by object type.
    #[arg(long)]
    stat: bool,

    #[command(flatten)]
    sort: SortArg<RootSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Roots {
    const NAME: &'static str = "roots";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] =
        &[example("roots --stat DUMP", "roots by object type"), example("roots --kind static DUMP", "objects held by static fields")];
    type Report = RootsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.filter.of(self.top.page(at))))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RootsReport>> {
        let stacks = self.stacks.stacks;
        if stacks == Stacks::None && self.kinds.iter().any(|k| k.is_of_stacks()) {
            return Err(UsageError("--stacks none leaves out the kinds stack and register".into()).into());
        }
        let options = RootOptions { kinds: self.kinds.clone(), weak: self.weak, stacks, any_stacks: false };
        let (types, sort, top) = (
            self.types.patterns(),
            self.sort.given(),
            self.sort.before(self.filter.before(if self.stat { self.top.counted(at) } else { self.top.rows(at) })),
        );
        Ok(roots(&at.heap()?, &RootsQuery { options, types, stat: self.stat, sort, top })?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.total == 0 && !self.types.is_empty())
    }
}
