use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, gc, open, threads_of};
use crate::analysis::{self, ExceptionReader, Namer};

/// `gcdump exceptions`.
pub(super) fn run(config: &Config, dump: &DumpArg, stat: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let namer = Namer::new(&process, runtime);
    let reader = ExceptionReader::new(&process, runtime, &namer, &process.notes);
    let heap = analysis::open_heap(&process, runtime, &gc)?;
    let objects = analysis::objects_of(&process, &heap, |mt| reader.is_exception(mt));
    // Without the thread list the exceptions are still there: only who has them in flight is unknown.
    let threads = threads_of(&process, runtime);
    let report = reader.report(objects.into_iter(), &threads, stat);
    namer.note(&process.notes);
    finish(config, "exceptions", &process, Some(runtime), report, streams)
}
