use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::super::exit::NothingThere;
use super::{Exit, Streams, finish, gc, open, threads_of};
use crate::analysis::{self, Namer, Places};
use crate::base::Addr;
use crate::model::PlaceKind;

/// `gcdump where`.
pub(super) fn run(config: &Config, dump: &DumpArg, address: Addr, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let heap = analysis::open_heap(&process, runtime, &gc)?;
    let namer = Namer::new(&process, runtime);
    let threads = threads_of(&process, runtime);
    let report = Places::new(&process, &gc, &heap, &namer, &threads).find(address);
    let unknown = report.kind == PlaceKind::Unknown;
    namer.note(&process.notes);
    let exit = finish(config, "where", &process, Some(runtime), report, streams)?;
    Ok(if unknown && exit == Exit::Ok { Exit::Negative } else { exit })
}

/// `gcdump near`.
pub(super) fn near(config: &Config, dump: &DumpArg, address: Addr, around: (usize, usize), streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let heap = analysis::open_heap(&process, runtime, &gc)?;
    let namer = Namer::new(&process, runtime);
    let threads = threads_of(&process, runtime);
    let report = analysis::near(&gc, &heap, &namer, &threads, address, around);
    let report =
        report.ok_or_else(|| NothingThere(format!("{address} is not in the heap; `gcdump where {address}` says what is there")))?;
    namer.note(&process.notes);
    finish(config, "near", &process, Some(runtime), report, streams)
}
