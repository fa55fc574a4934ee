use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{SegmentsQuery, segments};
use crate::base::Answer;
use crate::model::SegmentsReport;

/// Every segment or region of the heap.
#[derive(Debug, Args)]
pub(in crate::cli) struct Segments {
    /// Also what the GC holds outside of them: free regions, bookkeeping, handle tables.
    #[arg(long)]
    free: bool,

    /// Walk through the objects of each: how many, how much is free, and whether the walk ends exactly at its end.
    #[arg(long)]
    walk: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Segments {
    const NAME: &'static str = "segments";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[
        example("segments DUMP", "every segment or region"),
        example("segments --walk --free DUMP", "with its objects counted, and free regions"),
    ];
    type Report = SegmentsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<SegmentsReport>> {
        Ok(segments(&at.runtime()?, &SegmentsQuery { free: self.free, walk: self.walk })?)
    }
}
