//! Walks the segments and says what did not add up.

use crate::base::{Addr, NoteKind, Notes};
use crate::clr::method_table::MethodTables;
use crate::clr::threads::Threads;
use crate::contract::{ContractError, Process, Runtime};
use crate::gc::Gc;
use crate::model::SegmentModel;

/// Walks the objects of `segments` and stores what it met in each.
///
/// # Errors
/// [`ContractError`] where the descriptor lacks what sizes objects.
pub fn walk(process: &Process, runtime: &Runtime, gc: &Gc<'_>, segments: &mut [SegmentModel]) -> Result<(), ContractError> {
    let tables = MethodTables::new(&process.memory, &runtime.descriptor)?;
    let quiet = Notes::new();
    let threads = Threads::bind(&process.memory, &runtime.descriptor, &quiet, &process.limits);
    let threads = threads.map(|t| t.list()).unwrap_or_default();
    let walks = gc.walk(&tables, segments, &gc.contexts(&threads));
    for (segment, walk) in segments.iter_mut().zip(walks) {
        let name = format!("{} segment {} of heap {}", segment.generation, segment.address, segment.heap);
        if let (Some(at), Some(why)) = (walk.stopped_at, &walk.stopped_because) {
            process.notes.add(NoteKind::Missing, at, format!("{name}: the walk stops at {at}: {why}"));
        }
        for gap in &walk.gaps {
            let (kind, what) = match gap.kind.as_str() {
                "in-allocation" => (NoteKind::InAllocation, "are an object in allocation"),
                _ => (NoteKind::Invalid, "hold no object and were skipped"),
            };
            process.notes.add(kind, gap.range.start, format!("{name}: {} bytes at {} {what}", gap.bytes, gap.range.start));
        }
        segment.walk = Some(walk);
    }
    Ok(())
}

/// Address and method table of each object of `segments` that `wanted` accepts by its method table, free space left out.
///
/// # Errors
/// [`ContractError`] where the descriptor lacks what sizes objects.
pub fn objects(
    process: &Process,
    runtime: &Runtime,
    gc: &Gc<'_>,
    segments: &mut [SegmentModel],
    wanted: impl Fn(Addr) -> bool + Sync,
) -> Result<Vec<(Addr, Addr)>, ContractError> {
    walk(process, runtime, gc, segments)?;
    let tables = MethodTables::new(&process.memory, &runtime.descriptor)?;
    let threads = Threads::bind(&process.memory, &runtime.descriptor, &Notes::new(), &process.limits).map(|t| t.list()).unwrap_or_default();
    let mut out = Vec::new();
    gc.visit(&tables, segments, &gc.contexts(&threads), |o| {
        if !o.free && wanted(o.method_table) {
            out.push((o.address, o.method_table));
        }
    });
    Ok(out)
}
