use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::StacksArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::{Exit, UsageError};
use super::super::line::is_path;
use super::super::object_name::{ObjectName, object_name};
use super::super::select::TypesArg;

use crate::analysis::{PathsQuery, paths};
use crate::base::Answer;
use crate::model::PathsReport;

/// Limit on roots with --all-roots.
const MAX_ROOTS: usize = 10_000;

/// What keeps an object alive: shortest paths from roots. With --type, merged paths to all objects of the type.
#[derive(Debug, Args)]
pub(in crate::cli) struct Path {
    /// Address of the object, or an interior address, or the name of a static field that refers to it (Lab.Program.Keep,
    /// Lab.Program.Keep[3].Name; not with --type), then the dump [default: $GCDUMP_DUMP, else the only
    /// dump in the current folder].
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
        Ok(self.words()?.1)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<PathsReport>> {
        let (object, types) = match self.words()?.0 {
            Some(name) => at.object_or_type(&name)?,
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

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.reachable == 0)
    }
}

impl Path {
    /// Splits the arguments into object and dump; with --type there is only a dump.
    fn words(&self) -> Result<(Option<ObjectName>, Option<PathBuf>)> {
        let (at, dump) = match (self.what.as_slice(), self.types.is_empty()) {
            ([], false) => (None, None),
            ([dump], false) => (None, Some(dump)),
            ([dump], true) if is_path(dump) && matches!(object_name(&dump.to_string_lossy()), Err(_) | Ok(ObjectName::Named(_))) => {
                let dump = dump.to_string_lossy();
                let forms = format!("path ADDRESS {dump}, or path --type TYPE {dump}");
                return Err(UsageError(format!("path: the address is missing: {forms}")).into());
            }
            ([at], true) => (Some(at), None),
            ([at, dump], true) => (Some(at), Some(dump)),
            ([], true) => return Err(UsageError("path: the address is missing: path ADDRESS DUMP, or path --type TYPE DUMP".into()).into()),
            _ => return Err(UsageError("path: expected an address and a dump, or --type and a dump".into()).into()),
        };
        let at = at.map(|a| object_name(&a.to_string_lossy())).transpose().map_err(UsageError)?;
        Ok((at, dump.map(PathBuf::from)))
    }
}
