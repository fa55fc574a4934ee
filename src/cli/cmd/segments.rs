use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, gc, open};
use crate::model::SegmentsReport;

/// `gcdump segments`.
pub(super) fn run(config: &Config, dump: &DumpArg, free: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let report = SegmentsReport { complete: true, segments: gc.segments(), regions: free.then(|| gc.regions()) };
    finish(config, "segments", &process, Some(runtime), report, streams)
}
