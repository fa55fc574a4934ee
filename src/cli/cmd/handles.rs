//! `handles`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::SortedRowsArgs;
use super::super::values::type_pattern;
use crate::analysis::{HandleBy, HandlesReport};
use crate::analysis::{HandlesQuery, HandlesView, handles};
use crate::base::Answer;
use crate::model::{HandleKind, HandleSort};
use crate::output::{Paging, View};
use crate::session::TypePattern;

/// GC handles: type, object, method table, secondary value.
#[derive(Debug, Args)]
pub(in crate::cli) struct Handles {
    /// Only handles of these types, separated by commas, by name or by the runtime's number (repeatable).
    #[arg(short = 't', long = "type", value_name = "TYPE", value_enum, ignore_case = true, value_delimiter = ',')]
    kinds: Vec<HandleKind>,

    /// Also say which types of handles the runtime supports, whether it has such handles or not.
    #[arg(long)]
    detail: bool,

    /// Only count handles by type.
    #[arg(long)]
    stat: bool,

    /// Show what the handle tables consist of: segments, blocks by type, and slots without an object. Handles do not move, so a single one
    /// keeps its block and its segment.
    #[arg(long, conflicts_with_all = ["stat", "by", "kinds", "object_type", "sort", "top"])]
    memory: bool,

    /// Only count handles, by this key.
    #[arg(long, value_enum, ignore_case = true, conflicts_with = "stat")]
    by: Option<HandleBy>,

    /// Only handles of objects of this type (repeatable); see gcdump help patterns.
    #[arg(long, value_name = "TYPE", value_parser = type_pattern)]
    object_type: Vec<TypePattern>,

    #[command(flatten)]
    rows: SortedRowsArgs<HandleSort>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Handles {
    const NAME: &'static str = "handles";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[
        example("handles --type strong,pinned DUMP", "objects held by strong and pinned handles"),
        example("handles --by object-type DUMP", "handle counts by object type"),
        example("handles --memory DUMP", "blocks and empty slots of each type of handle"),
    ];
    type Report = HandlesReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<HandlesReport>> {
        let query = HandlesQuery {
            kinds: self.kinds.clone(),
            object_types: self.object_type.clone(),
            view: match self.by {
                Some(by) => HandlesView::By(by),
                None if self.memory => HandlesView::Memory,
                None if self.stat => HandlesView::Counts,
                None => HandlesView::Handles,
            },
            sort: self.rows.order(),
            top: self.rows.found(at),
        };
        Ok(handles(&at.runtime()?, &query)?)
    }

    fn view(&self, _at: &At<'_>, _report: &HandlesReport) -> Result<View> {
        Ok(View { detail: self.detail, ..View::default() })
    }
}
