//! `fragmentation`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::PageArgs;
use crate::analysis::FragmentationReport;
use crate::analysis::{FragmentationQuery, fragmentation};
use crate::base::Answer;
use crate::output::Paging;

/// Number of rows on a terminal without `--top`.
const FEW: usize = 10;

/// Free space: by generation and segment, by size, the largest blocks, and the pinned objects that block compaction.
#[derive(Debug, Args)]
pub(in crate::cli) struct Fragmentation {
    /// Also list each segment.
    #[arg(long)]
    segments: bool,

    /// List each heap separately.
    #[arg(long)]
    heaps: bool,

    /// Number of free blocks to list, largest first; 0 for all [default: 10 on a terminal; all in pipes, files and other formats].
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

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

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.page.of(at.rows_or(self.top, FEW)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<FragmentationReport>> {
        let query = FragmentationQuery { heaps: self.heaps, segments: self.segments, top: self.page.counted(at.rows_or(self.top, FEW)) };
        Ok(fragmentation(&at.heap()?, &query))
    }
}
