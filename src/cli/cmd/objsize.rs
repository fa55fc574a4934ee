//! `objsize`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::object_name::{ObjectName, ObjectNames, object_names};
use crate::analysis::ObjSizeReport;
use crate::analysis::objsize;
use crate::base::Answer;

/// Size of an object's closure, and how much of it the object retains.
#[derive(Debug, Args)]
pub(in crate::cli) struct Objsize {
    /// Address of the object, or an interior address; or the name of a static field that refers to it: Lab.Program.Keep,
    /// Lab.Program.Keep[3].Name. Several have an answer
    /// each; `-` takes them from standard input, one on each line.
    #[arg(value_parser = object_names)]
    address: ObjectNames,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Objsize {
    const NAME: &'static str = "objsize";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[example("objsize ADDR DUMP", "closure and retained size of an object")];
    type Report = ObjSizeReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(self.address.0.clone())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjSizeReport>> {
        Ok(objsize(&*at.source_at(0)?, at.address()?, self.stacks.stacks)?)
    }
}
