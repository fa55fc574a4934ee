use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::on_heap::{OnHeap, no_object};
use super::{Exit, Streams, open};
use crate::analysis::{self, ObjectOptions, containing, heap_place, object_limits};
use crate::base::{Addr, Answer};
use crate::clr::header::Headers;
use crate::clr::values::Values;
use crate::model::ObjectReport;

/// `gcdump object`.
pub(super) fn run(config: &Config, dump: &DumpArg, address: Addr, options: &ObjectOptions, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let types = on.namer.layouts()?;
    let values = Values::new(&process.memory, &on.runtime.descriptor, types, object_limits());
    let report = match containing(&on.heap, &on.namer, address) {
        Some(object) => analysis::object(&values, object.address, options),
        // In no segment, or in a part that could not be walked: the address itself may still hold an object.
        None => analysis::object(&values, address, options),
    };
    let Answer { data: report, notes } = report.ok_or_else(|| no_object(address))?;
    notes.iter().for_each(|n| process.notes.add(n.kind, n.address, n.message.clone()));
    let headers = Headers::bind(&process.memory, &on.runtime.descriptor, &process.limits).ok();
    let report = ObjectReport {
        interior: (report.address != address).then_some(address),
        segment: heap_place(&on.heap, report.address),
        header: headers.and_then(|h| h.read(report.address)),
        ..report
    };
    on.finish(config, "object", report, streams)
}
