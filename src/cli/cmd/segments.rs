use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, gc, open};
use crate::analysis;
use crate::model::SegmentsReport;

/// `gcdump segments`.
pub(super) fn run(config: &Config, dump: &DumpArg, free: bool, walk: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let segments = if walk { analysis::walked_segments(&process, &analysis::open_heap(&process, runtime, &gc)?) } else { gc.segments() };
    let report = SegmentsReport { segments, regions: free.then(|| gc.regions()) };
    finish(config, "segments", &process, Some(runtime), report, streams)
}
