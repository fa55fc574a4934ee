use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, gc, open};

/// `gcdump oom`.
pub(super) fn run(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let report = gc(&process, runtime)?.oom();
    finish(config, "oom", &process, Some(runtime), report, streams)
}
