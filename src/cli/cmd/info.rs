use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis;

/// `gcdump info`. A dump without a readable runtime is described all the same; the exit code says it.
pub(super) fn run(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let report = analysis::info(&process, config.runtime, &process.notes);
    let runtime = process.runtime(config.runtime).ok();
    let exit = finish(config, "info", &process, runtime, report, streams)?;
    Ok(if runtime.is_none() { Exit::NoRuntime } else { exit })
}
