use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis;

/// `gcdump threads`.
pub(super) fn run(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    runtime.require("Thread")?;
    let report = analysis::threads(&process, runtime, &process.notes)?;
    finish(config, "threads", &process, Some(runtime), report, streams)
}
