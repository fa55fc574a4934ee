use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{CollectQuery, collect};
use crate::base::Answer;
use crate::model::CollectReport;

/// What would happen if the garbage collector ran now.
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
        let What::Collect { generation, top, .. } = &self.what;
        Ok(collect(&at.heap()?, &CollectQuery { generation: *generation, top: at.rows(*top) })?)
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// A garbage collection: what it would free, what would survive.
    Collect {
        /// The oldest generation to collect; 2 also collects large and pinned objects.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
        generation: u8,
        /// Types to list, 0 for all; the sums are always over everything [default: what fits the screen in a table, all in
        /// other formats].
        #[arg(long, value_name = "N")]
        top: Option<usize>,
        #[command(flatten)]
        dump: DumpArg,
    },
}
