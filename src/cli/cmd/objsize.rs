use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::address;
use crate::analysis::objsize;
use crate::base::{Addr, Answer};
use crate::model::ObjSizeReport;

/// Everything that an object leads to, and how much of that it alone keeps alive.
#[derive(Debug, Args)]
pub(in crate::cli) struct Objsize {
    /// The object: its address, or one inside of it.
    #[arg(value_parser = address)]
    address: Addr,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Objsize {
    const NAME: &'static str = "objsize";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[example("objsize ADDR DUMP", "all that an object leads to, and its own share")];
    type Report = ObjSizeReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjSizeReport>> {
        Ok(objsize(&at.heap()?, self.address)?)
    }
}
