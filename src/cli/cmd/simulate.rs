//! `simulate`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::RowsArgs;
use crate::analysis::CollectReport;
use crate::analysis::{CollectQuery, collect};
use crate::base::Answer;
use crate::output::Paging;

/// Effects of a garbage collection now: what it would free, what would survive.
#[derive(Debug, Args)]
#[command(override_usage = "gcdump simulate collect [OPTIONS] [DUMP]")]
pub(in crate::cli) struct Simulate {
    /// Oldest generation to collect; 2 includes LOH and POH.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=2))]
    generation: u8,

    #[command(flatten)]
    rows: RowsArgs,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Simulate {
    const NAME: &'static str = "simulate";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("simulate collect DUMP", "what a full collection would free"),
        example("simulate collect --generation 0 DUMP", "what a collection of the youngest generation would free"),
    ];
    type Report = CollectReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<CollectReport>> {
        Ok(collect(&at.heap()?, &CollectQuery { generation: self.generation, top: self.rows.counted(at), stacks: self.stacks.stacks })?)
    }
}
