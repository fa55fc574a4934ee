//! `segments`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{MostArg, SortArg};
use super::super::values::address;
use crate::analysis::SegmentsReport;
use crate::analysis::{SegmentsQuery, segments};
use crate::base::{Addr, Answer};
use crate::model::SegmentSort;
use crate::output::{Paging, View};

/// Segments or regions of the heap.
#[derive(Debug, Args)]
pub(in crate::cli) struct Segments {
    /// Also list other GC memory: free regions, bookkeeping, handle tables.
    #[arg(long)]
    free: bool,

    /// Also show what else is known of each: where background collections and zeroed memory end, reserved memory, the raw flags.
    #[arg(long)]
    detail: bool,

    /// Walk the objects of each: count, free space, and whether the walk ends exactly at the segment end.
    #[arg(long)]
    walk: bool,

    /// Show only the segment or region around this address, or whose `heap_segment` is there.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    at: Option<Addr>,

    #[command(flatten)]
    sort: SortArg<SegmentSort>,

    #[command(flatten)]
    most: MostArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Segments {
    const NAME: &'static str = "segments";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[
        example("segments DUMP", "all segments or regions"),
        example("segments --walk --free DUMP", "with object counts, and free regions"),
        example("segments --at ADDR DUMP", "the segment around an address"),
    ];
    type Report = SegmentsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, _at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.most.page()))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<SegmentsReport>> {
        // With `--walk`, the heap is opened, because the heap may have an index that replaces the walk.
        let runtime = if self.walk { at.heap()?.runtime().clone() } else { at.runtime()? };
        let query = SegmentsQuery { free: self.free, walk: self.walk, at: self.at, sort: self.sort.given() };
        Ok(segments(&runtime, &query)?)
    }

    fn view(&self, _at: &At<'_>, _report: &SegmentsReport) -> Result<View> {
        Ok(View { detail: self.detail, ..View::default() })
    }
}
