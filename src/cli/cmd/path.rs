//! `path`: arguments and query, for one object or for the objects of a type.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{FrameworkArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::object_name::{ObjectName, object_and_dump};
use super::super::select::TypesArg;

use crate::analysis::PathsReport;
use crate::analysis::{PathsQuery, paths};
use crate::base::Answer;
use crate::output::View;

/// Maximum number of roots with --all-roots.
const MAX_ROOTS: usize = 10_000;

/// Shortest paths from roots to an object: what keeps it alive. With --type, merged paths to all objects of the type.
#[derive(Debug, Args)]
pub(in crate::cli) struct Path {
    /// Address of the object, or an interior address, or the name of a static field that refers to it (Lab.Program.Keep,
    /// Lab.Program.Keep[3].Name; not with --type), then the dump [default: $GCDUMP_DUMP, else the only
    /// dump in the current folder]. Several objects have an answer each; `-` takes them from standard input, one on each line.
    #[arg(value_names = ["ADDR", "DUMP"], num_args = 0..=2)]
    what: Vec<OsString>,

    #[command(flatten)]
    types: TypesArg,

    /// Maximum number of paths per object, each from a different root.
    #[arg(long, value_name = "N", default_value_t = 3)]
    paths: usize,

    /// Show one path from every root that holds the object.
    #[arg(long)]
    all_roots: bool,

    /// Also show paths from weak handles, which keep nothing alive.
    #[arg(long)]
    weak: bool,

    /// Show every step of long chains such as linked lists, and with --type every level, which are folded otherwise.
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    framework: FrameworkArg,

    #[command(flatten)]
    stacks: StacksArg,
}

impl Command for Path {
    const NAME: &'static str = "path";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("path ADDR DUMP", "what keeps this object alive"),
        example("path --stacks none ADDR DUMP", "without stack values, which may be stale"),
        example("path --type 'Lab.*' DUMP", "what keeps objects of these types alive, merged"),
    ];
    type Report = PathsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(object_and_dump("path", &self.what, !self.types.is_empty())?.1)
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(object_and_dump("path", &self.what, !self.types.is_empty())?.0)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<PathsReport>> {
        let (object, types) = match at.object() {
            Some(name) => at.object_or_type(name)?,
            None => (None, self.types.patterns()),
        };
        let query = PathsQuery {
            object,
            types,
            paths: if self.all_roots { MAX_ROOTS } else { self.paths },
            weak: self.weak,
            stacks: self.stacks.stacks,
            depth: 12,
            full: self.full,
            lines: at.rows_or(None, at.screen().saturating_mul(2)),
        };
        Ok(paths(&*at.source_at(0)?, &query)?)
    }

    fn view(&self, _at: &At<'_>, _report: &PathsReport) -> Result<View> {
        Ok(View { framework: self.full || self.framework.framework, ..View::default() })
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.reachable == 0)
    }
}
