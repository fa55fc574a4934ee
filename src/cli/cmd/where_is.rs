//! `where`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::object_name::{ObjectName, ObjectNames, object_names};
use crate::analysis::where_is;
use crate::analysis::{PlaceKind, WhereReport};
use crate::base::Answer;

/// Contents of an address: object, static field, handle, thread, method, method table, structure of the GC, module and section, stack.
#[derive(Debug, Args)]
pub(in crate::cli) struct Where {
    /// The address, or the name of a static field that refers to the object: Lab.Program.Keep, Lab.Program.Keep[3].Name. Several have an answer
    /// each; `-` takes them from standard input, one on each line.
    #[arg(value_parser = object_names)]
    address: ObjectNames,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Where {
    const NAME: &'static str = "where";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] =
        &[example("where ADDR DUMP", "object, handle, static field, structure, stack or module at an address")];
    type Report = WhereReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(self.address.0.clone())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<WhereReport>> {
        Ok(where_is(&at.heap()?, at.address()?))
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        exit.negative_if(report.kind == PlaceKind::Unknown)
    }
}
