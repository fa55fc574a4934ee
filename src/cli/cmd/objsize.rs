use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::object_name::{ObjectName, object_name};
use crate::analysis::objsize;
use crate::base::Answer;
use crate::model::ObjSizeReport;

/// Size of an object's closure, and how much of it the object retains.
#[derive(Debug, Args)]
pub(in crate::cli) struct Objsize {
    /// Address of the object, or an interior address; or the name of a static field that refers to it: Lab.Program.Keep,
    /// Lab.Program.Keep[3].Name.
    #[arg(value_parser = object_name)]
    address: ObjectName,

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

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjSizeReport>> {
        Ok(objsize(&*at.source_at(0)?, at.address_of(0, &self.address)?, self.stacks.stacks)?)
    }
}
