use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{CollectQuery, collect};
use crate::base::Answer;
use crate::model::CollectReport;

/// What a garbage collection would do now.
#[derive(Debug, Args)]
pub(in crate::cli) struct Simulate {
    #[command(subcommand)]
    what: What,
}

impl Command for Simulate {
    const NAME: &'static str = "simulate";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[example("simulate collect --generation 2 DUMP", "what a full collection would free")];
    type Report = CollectReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        let What::Collect { dump, .. } = &self.what;
        Ok(dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<CollectReport>> {
        let What::Collect { generation, top, stacks, .. } = &self.what;
        Ok(collect(&at.heap()?, &CollectQuery { generation: *generation, top: at.rows(*top), stacks: stacks.stacks })?)
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// Simulate a garbage collection: what it would free, what would survive.
    Collect {
        /// Oldest generation to collect; 2 includes LOH and POH.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
        generation: u8,
        /// Number of types to list, 0 for all; totals always cover everything [default: a screenful in tables, all in other
        /// formats].
        #[arg(long, value_name = "N")]
        top: Option<usize>,
        #[command(flatten)]
        stacks: StacksArg,
        #[command(flatten)]
        dump: DumpArg,
    },
}
