//! `retained`: arguments, and the view that they request.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::object_name::{ObjectName, object_name};
use super::super::select::{PageArgs, TypesArg};
use crate::analysis::{RetainedBy, RetainedReport, RetainedRows};
use crate::analysis::{RetainedQuery, RetainedView, SUSPECT_SHARE, retained};
use crate::base::Answer;
use crate::output::Paging;

/// Default number of ranked rows, in pipes too: a heap has too many objects to list by default. The answer contains the total number of rows.
const FEW: usize = 20;

/// Exact retained sizes: by object, by type, as dominator tree, and leak suspects.
#[derive(Debug, Args)]
pub(in crate::cli) struct Retained {
    /// Show one object: its dominators and what it dominates. An address, or the name of a static field: Lab.Program.Keep
    /// (repeatable; `-` takes them from standard input).
    #[arg(long, value_name = "ADDR", value_parser = object_name, conflicts_with_all = ["tree", "suspects", "types"])]
    object: Vec<ObjectName>,

    /// Show the dominator tree.
    #[arg(long, conflicts_with_all = ["suspects", "types"])]
    tree: bool,

    /// Group what is retained: by namespace or assembly of the types, or by what holds it.
    #[arg(long, value_name = "KEY", value_enum, ignore_case = true, conflicts_with_all = ["object", "tree", "suspects", "types"])]
    by: Option<RetainedBy>,

    /// Depth of the tree.
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    depth: u32,

    /// Show likely leaks: objects or types with a large retained size, who holds them, and where they accumulate.
    #[arg(long, conflicts_with = "types")]
    suspects: bool,

    /// Minimum share of the reachable bytes for tree nodes and suspects [default: 1 for --tree, 10 for --suspects].
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<f64>,

    #[command(flatten)]
    types: TypesArg,

    /// Number of rows to list per table, 0 for all [default: 20 objects; types: 20 on a terminal, all in pipes, files and other formats].
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Retained {
    const NAME: &'static str = "retained";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("retained DUMP", "objects and types with the largest retained size"),
        example("retained --suspects DUMP", "likely leaks: who holds them, where they accumulate"),
        example("retained --by static DUMP", "what each static field retains: the caches of the process"),
        example("retained --tree --depth 3 DUMP", "the dominator tree"),
    ];
    type Report = RetainedReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(self.object.clone())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        // Sorted lists have the same limit in pipes as on terminals, because a heap has too many objects.
        let top = if self.page.is_sorted() { self.top.unwrap_or(FEW) } else { at.rows_or(self.top, FEW) };
        Some(self.page.of(top))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RetainedReport>> {
        let view = match (at.object(), self.tree, self.suspects) {
            _ if self.by.is_some() => self.by.map_or(RetainedView::Top, RetainedView::By),
            (Some(_), ..) => RetainedView::Object(at.address()?),
            (_, true, _) => RetainedView::Tree { depth: self.depth, threshold: self.threshold.unwrap_or(1.0) / 100.0 },
            (_, _, true) => RetainedView::Suspects(self.threshold.map_or(SUSPECT_SHARE, |percent| percent / 100.0)),
            _ => RetainedView::Top,
        };
        let query = RetainedQuery {
            view,
            types: self.types.patterns(),
            stacks: self.stacks.stacks,
            top: self.page.found(at.rows_or(self.top, FEW)),
            objects: self.page.found(self.top.unwrap_or(FEW)),
        };
        Ok(retained(&*at.source_at(0)?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        let none = matches!(&report.rows, RetainedRows::Top { types, .. } if types.is_empty());
        exit.negative_if(none && !self.types.is_empty())
    }
}
