use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::on_heap::OnHeap;
use super::{Exit, Streams, open};
use crate::analysis::{self, FragmentationQuery};

/// What `fragmentation` is asked.
#[derive(Clone, Debug, Args)]
pub struct FragmentationArgs {
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
    pub(super) dump: DumpArg,
}

/// `gcdump fragmentation`.
pub(super) fn run(config: &Config, args: &FragmentationArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let query = FragmentationQuery { heaps: args.heaps, segments: args.segments, top: args.top };
    let report = analysis::fragmentation(&process, &on.gc, &on.heap, &on.namer, query);
    on.finish(config, "fragmentation", report, streams)
}
