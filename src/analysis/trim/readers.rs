//! Asks everything that the commands ask, so that what they read is recorded.

use rustc_hash::FxHashMap;

use crate::analysis::fields::{layout, loaded_types};
use crate::analysis::roots::{RootOptions, RootsQuery, collect_roots, finalizers, roots_report};
use crate::analysis::{self, ExceptionReader, Namer, ObjectOptions, StaticsOptions, StaticsReader, VerifyQuery, object_limits};
use crate::base::Addr;
use crate::clr::header::Headers;
use crate::clr::statics::Statics;
use crate::clr::threads::Threads;
use crate::clr::values::Values;
use crate::contract::{Process, Runtime};
use crate::gc::{Gc, HandleFilter, Heap};

/// Objects of one type that are read field by field: the parts of a type that values lead to are met with the first ones.
const OBJECTS_OF_A_TYPE: u32 = 256;

/// Reads everything that any command would read of `process`.
pub(super) fn read_everything(process: &Process) {
    let count = process.runtimes.as_ref().map_or(0, Vec::len);
    for index in 0..count.max(1) {
        analysis::info(process, index, &process.notes);
        if let Ok(runtime) = process.runtime(index) {
            read_runtime(process, runtime);
        }
    }
}

fn read_runtime(process: &Process, runtime: &Runtime) {
    let (memory, d) = (&process.memory, &runtime.descriptor);
    analysis::contracts(process, runtime);
    // What cannot be read now cannot be read from the copy either, and the commands will say so.
    let _ = analysis::threads(process, runtime, &process.notes);
    let namer = Namer::new(process, runtime);
    let threads = Threads::bind(memory, d, &process.notes, &process.limits).map(|t| t.list()).unwrap_or_default();
    if let Ok(types) = namer.layouts() {
        for mt in loaded_types(types) {
            layout(types, mt);
        }
        let values = Values::new(memory, d, types, object_limits());
        let statics = Statics::new(memory, d, types);
        let reader = StaticsReader::new(types, &values, &statics, &threads);
        for thread_statics in [false, true] {
            reader.all(&[], &StaticsOptions { pattern: None, thread_statics, everything: true });
        }
    }
    let headers = Headers::bind(memory, d, &process.limits).ok();
    headers.as_ref().and_then(Headers::sync_blocks);
    let Ok(gc) = Gc::bind(memory, d, &process.notes, &process.limits) else { return };
    gc.heap_report(&threads, true);
    gc.regions();
    gc.oom();
    gc.walk_handles(&HandleFilter::default(), |handle| {
        for mt in [handle.method_table, handle.secondary.and_then(|s| gc.method_table(s))].into_iter().flatten() {
            namer.name(mt);
        }
    });
    finalizers(process, runtime, &gc, &namer, &[], true, 0);
    let Ok(heap) = analysis::open_heap(process, runtime, &gc) else { return };
    // The header of a segment's first object lies in front of the segment.
    for segment in heap.segments() {
        headers.as_ref().and_then(|h| h.read(segment.start));
    }
    let index = analysis::index(process, &heap);
    let options = RootOptions { kinds: Vec::new(), weak: true };
    let roots = collect_roots(process, runtime, &gc, &heap, &namer, Some(&index), &options);
    roots_report(&roots, &gc, &namer, &options, &RootsQuery { types: Vec::new(), stat: false, top: 0 });
    let exceptions = ExceptionReader::new(process, runtime, &namer, &process.notes);
    let objects = analysis::objects_of(process, &heap, |mt| exceptions.is_exception(mt));
    exceptions.report(objects.into_iter(), &threads, false);
    read_objects(process, runtime, &heap, &namer);
    let _ = analysis::verify(process, runtime, &gc, &namer, VerifyQuery::default());
}

/// Objects of every type with their fields, and everything about their types.
fn read_objects<'p>(process: &'p Process, runtime: &'p Runtime, heap: &Heap, namer: &Namer) {
    let mut objects: Vec<Addr> = Vec::new();
    let mut met: FxHashMap<u32, u32> = FxHashMap::default();
    heap.visit(
        &*process.progress,
        |_| true,
        |object| {
            let met = met.entry(object.kind.index).or_default();
            if *met < OBJECTS_OF_A_TYPE && !object.kind.is_free {
                *met = met.saturating_add(1);
                objects.push(object.address);
            }
            std::ops::ControlFlow::Continue(())
        },
    );
    for kind in heap.types().list() {
        namer.module(kind.method_table);
        if let Ok(types) = namer.layouts() {
            layout(types, kind.method_table);
            if kind.is_collectible {
                heap.tables().loader_module(kind.method_table).and_then(|m| types.loader().allocator_object(m));
            }
        }
    }
    let Ok(types) = namer.layouts() else { return };
    let values = Values::new(&process.memory, &runtime.descriptor, types, object_limits());
    for address in objects {
        analysis::object(&values, address, &ObjectOptions::default());
    }
}
