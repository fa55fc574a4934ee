//! `near`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::object_name::{ObjectName, ObjectNames, object_names};
use crate::analysis::NearReport;
use crate::analysis::{NearQuery, near};
use crate::base::Answer;

/// The objects before and after a heap address, including gaps.
#[derive(Debug, Args)]
pub(in crate::cli) struct Near {
    /// The address, or the name of a static field that refers to the object: Lab.Program.Keep, Lab.Program.Keep[3].Name. Several have an answer
    /// each; `-` takes them from standard input, one on each line.
    #[arg(value_parser = object_names)]
    address: ObjectNames,

    /// Number of objects to show before it.
    #[arg(long, value_name = "N", default_value_t = 5)]
    before: usize,

    /// Number of objects to show after it.
    #[arg(long, value_name = "N", default_value_t = 5)]
    after: usize,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Near {
    const NAME: &'static str = "near";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[example("near ADDR DUMP", "the objects around an address")];
    type Report = NearReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(self.address.0.clone())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<NearReport>> {
        Ok(near(&at.heap()?, &NearQuery { address: at.address()?, before: self.before, after: self.after })?)
    }
}
