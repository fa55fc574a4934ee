use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{FragmentationQuery, fragmentation};
use crate::base::Answer;
use crate::model::FragmentationReport;

/// Free space: by generation and segment, by size, the largest blocks, and the pinned objects that block compaction.
#[derive(Debug, Args)]
pub(in crate::cli) struct Fragmentation {
    /// Also rows for every segment.
    #[arg(long)]
    segments: bool,

    /// Rows for every heap, not for all heaps together.
    #[arg(long)]
    heaps: bool,

    /// Largest free blocks to list, 0 for all blocks.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Fragmentation {
    const NAME: &'static str = "fragmentation";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[example("fragmentation DUMP", "free space, and the pinned objects that block compaction")];
    type Report = FragmentationReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<FragmentationReport>> {
        let query = FragmentationQuery { heaps: self.heaps, segments: self.segments, top: self.top };
        Ok(fragmentation(&at.heap()?, &query)?)
    }
}
