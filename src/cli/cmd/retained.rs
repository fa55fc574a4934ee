use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{address, type_pattern};
use crate::analysis::{RetainedQuery, RetainedView, retained};
use crate::base::{Addr, Answer};
use crate::model::{RetainedReport, Stacks};
use crate::session::TypePattern;

/// What would be freed without an object: exact retained sizes by object and type, tree, suspects.
#[derive(Debug, Args)]
pub(in crate::cli) struct Retained {
    /// Only this object: what it dominates, and what dominates it.
    #[arg(long, value_name = "ADDR", value_parser = address, conflicts_with_all = ["tree", "suspects"])]
    object: Option<Addr>,

    /// The dominator tree.
    #[arg(long, conflicts_with = "suspects")]
    tree: bool,

    /// Depth of the tree.
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    depth: u32,

    /// Likely leaks: single objects or types that retain more than their share, who holds them, where they accumulate.
    #[arg(long)]
    suspects: bool,

    /// Share of all bytes below which the tree hides objects, and suspects are none: 1 of the tree, 10 of suspects.
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<f64>,

    /// Only objects of this type (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Whether stack values and registers count as roots.
    #[arg(long, value_enum, ignore_case = true, default_value_t = Stacks::Fallback)]
    stacks: Stacks,

    /// Rows to list, 0 for all [default: 20 of each].
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Retained {
    const NAME: &'static str = "retained";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("retained DUMP", "the objects and types that retain most"),
        example("retained --suspects DUMP", "likely leaks: who holds them, where they accumulate"),
        example("retained --tree --depth 3 DUMP", "the dominator tree"),
    ];
    type Report = RetainedReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RetainedReport>> {
        let view = match (self.object, self.tree, self.suspects) {
            (Some(at), ..) => RetainedView::Object(at),
            (_, true, _) => RetainedView::Tree { depth: self.depth, threshold: self.threshold.unwrap_or(1.0) / 100.0 },
            (_, _, true) => RetainedView::Suspects(self.threshold.unwrap_or(10.0) / 100.0),
            _ => RetainedView::Top,
        };
        let query = RetainedQuery { view, types: self.types.clone(), stacks: self.stacks, top: self.top };
        Ok(retained(&at.heap()?, &query)?)
    }
}
