use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, gc, open, threads_of};

/// `gcdump heap`.
pub(super) fn run(config: &Config, dump: &DumpArg, detail: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    // Without the thread list the heap is still the heap: only the allocation contexts of the threads are unknown.
    let report = gc.heap_report(&threads_of(&process, runtime), detail);
    finish(config, "heap", &process, Some(runtime), report, streams)
}
