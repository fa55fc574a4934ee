use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::super::exit::NothingThere;
use super::on_heap::OnHeap;
use super::{Exit, Streams, open, threads_of};
use crate::analysis::{self, Places};
use crate::base::Addr;
use crate::model::PlaceKind;

/// `gcdump where`.
pub(super) fn run(config: &Config, dump: &DumpArg, address: Addr, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let threads = threads_of(&process, on.runtime);
    let report = Places::new(&process, &on.gc, &on.heap, &on.namer, &threads).find(address);
    let unknown = report.kind == PlaceKind::Unknown;
    let exit = on.finish(config, "where", report, streams)?;
    Ok(exit.negative_if(unknown))
}

/// `gcdump near`.
pub(super) fn near(config: &Config, dump: &DumpArg, address: Addr, around: (usize, usize), streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let threads = threads_of(&process, on.runtime);
    let report = analysis::near(&on.gc, &on.heap, &on.namer, &threads, address, around);
    let report =
        report.ok_or_else(|| NothingThere(format!("{address} is not in the heap; `gcdump where {address}` says what is there")))?;
    on.finish(config, "near", report, streams)
}
