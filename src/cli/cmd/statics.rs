use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis::{Namer, StaticsOptions, StaticsReader, object_limits};
use crate::base::NoteKind;
use crate::clr::statics::Statics;
use crate::clr::threads::Threads;
use crate::clr::values::Values;

/// `gcdump statics`.
pub(super) fn run(config: &Config, dump: &DumpArg, options: &StaticsOptions<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    runtime.require("RuntimeTypeSystem")?;
    let (memory, d) = (&process.memory, &runtime.descriptor);
    let namer = Namer::new(&process, runtime);
    let types = namer.layouts()?;
    let values = Values::new(memory, d, types, object_limits());
    let statics = Statics::new(memory, d, types);
    let threads = if options.thread_statics {
        runtime.require("Thread")?;
        Threads::bind(memory, d, &process.notes, &process.limits)?.list()
    } else {
        Vec::new()
    };
    let report = StaticsReader::new(types, &values, &statics, &threads).all(&[], options);
    namer.note(&process.notes);
    if types.modules().len() < 2 {
        process.notes.add(NoteKind::Missing, None, "the list of loaded modules is not in the dump: types of most modules are missing");
    }
    finish(config, "statics", &process, Some(runtime), report, streams)
}
