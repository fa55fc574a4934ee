use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::super::exit::NothingThere;
use super::{Exit, Streams, finish, gc, open};
use crate::analysis::{self, Namer, ObjectOptions, containing, heap_place, object_limits};
use crate::base::{Addr, NoteKind};
use crate::clr::header::Headers;
use crate::clr::values::Values;
use crate::model::ObjectReport;

/// `gcdump object`.
pub(super) fn run(config: &Config, dump: &DumpArg, address: Addr, options: &ObjectOptions, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let heap = analysis::open_heap(&process, runtime, &gc)?;
    let namer = Namer::new(&process, runtime);
    let types = namer.layouts()?;
    let values = Values::new(&process.memory, &runtime.descriptor, types, object_limits());
    let report = match containing(&heap, &namer, address) {
        Some(object) => analysis::object(&values, object.address, options),
        // In no segment, or in a part that could not be walked: the address itself may still hold an object.
        None => analysis::object(&values, address, options),
    };
    let Some(report) = report else {
        let what = format!("there is no object at {address}; `gcdump where {address}` says what is there");
        return Err(NothingThere(what).into());
    };
    let headers = Headers::bind(&process.memory, &runtime.descriptor, &process.limits).ok();
    let report = ObjectReport {
        interior: (report.address != address).then_some(address),
        segment: heap_place(&heap, report.address),
        header: headers.and_then(|h| h.read(report.address)),
        ..report
    };
    if !report.complete {
        process.notes.add(NoteKind::Missing, report.address, "a part of the object, or of what describes its type, is not in the dump");
    }
    namer.note(&process.notes);
    finish(config, "object", &process, Some(runtime), report, streams)
}
