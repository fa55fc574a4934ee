use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::type_pattern;
use crate::analysis::{RootsQuery, roots};
use crate::base::Answer;
use crate::model::{RootKind, RootsReport};
use crate::session::TypePattern;
use crate::session::roots::RootOptions;

/// What keeps objects alive from outside of the heap: handles, stacks, registers, the finalization queue.
///
/// Stacks and registers are read conservatively: every word that leads to an object counts, stale ones too.
#[derive(Debug, Args)]
pub(in crate::cli) struct Roots {
    /// Only roots of this kind (repeatable).
    #[arg(long = "kind", value_name = "KIND", value_enum, ignore_case = true)]
    kinds: Vec<RootKind>,

    /// Also weak handles, which keep nothing alive.
    #[arg(long)]
    weak: bool,

    /// Only roots that lead to objects of this type: its full name, in which * and ? may stand for something else, or its method table as 0x…
    /// (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Types of the objects that roots lead to, instead of the roots.
    #[arg(long)]
    stat: bool,

    /// Rows to list, 0 for all; counts are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Roots {
    const NAME: &'static str = "roots";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("roots --stat DUMP", "roots by the type they lead to"),
        example("roots --kind static DUMP", "objects that static fields hold"),
    ];
    type Report = RootsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RootsReport>> {
        let options = RootOptions { kinds: self.kinds.clone(), weak: self.weak };
        Ok(roots(&at.heap()?, &RootsQuery { options, types: self.types.clone(), stat: self.stat, top: at.rows(self.top) })?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.total == 0 && !self.types.is_empty())
    }
}
