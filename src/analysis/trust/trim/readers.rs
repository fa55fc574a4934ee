//! Runs every reader of the commands to record the memory that it reads.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Surveys;
use crate::analysis::objects::layout::layout;
use crate::analysis::objects::object::report as report_object;
use crate::analysis::threads::locks::touch as touch_locks;
use crate::analysis::trust::verify::touch as touch_verify;
use crate::analysis::{
    AsyncQuery, ContractsQuery, FinalizersQuery, HandlesQuery, HeapQuery, InfoQuery, InspectQuery, MemoryQuery, ModulesQuery, ObjectQuery,
    RequestsQuery, RootsQuery, SegmentsQuery, StacksQuery, ThreadsQuery, app, async_chains, contracts, each_handle, each_root, each_stack,
    each_static, finalizers, heap, info, inspect, memory_map, modules, oom, pool, requests, segments, threads, timers,
};
use crate::analysis::{InspectionId, ThreadStackModel};
use crate::base::hash::Set;
use crate::base::{Addr, AddrRange, Collector, IndexVec};
use crate::bcl::{Library, Texts};
use crate::clr::header::Headers;
use crate::clr::values::{ValueLimits, Values};
use crate::dump::ThreadStacks;
use crate::gc::{ObjectType, TypeIndex};
use crate::session::roots::RootOptions;
use crate::session::{Dump, Heap, Runtime, SourceLines, StaticsQuery, Survey, loaded_types};

/// Maximum number of objects per type that are read field by field. The first objects already read the type data that later ones need.
const OBJECTS_OF_A_TYPE: u32 = 256;

/// Maximum number of elements read of each collection.
const ELEMENTS: u64 = 100;

/// Inspections that need not run. They read only objects and types: objects are all kept, and other readers read the types.
const CONTENTS: [InspectionId; 8] = [
    InspectionId::EqualStrings,
    InspectionId::EqualArrays,
    InspectionId::ZeroArrays,
    InspectionId::ZeroTails,
    InspectionId::SparseArrays,
    InspectionId::BoxedValues,
    InspectionId::EmptyCollections,
    InspectionId::OversizedCollections,
];

/// Reads everything that any command would read from `dump`. `before`: surveys of the same dump that was opened with other module files.
pub(super) fn read_everything(dump: &Dump, before: &Surveys) {
    let runtimes = dump.runtimes().unwrap_or_default();
    for index in 0..runtimes.len().max(1) {
        let _ = info(dump, &InfoQuery { runtime: index, ..InfoQuery::default() });
        let _ = modules(dump, &ModulesQuery { runtime: index, ..ModulesQuery::default() });
        let _ = memory_map(dump, &MemoryQuery { ranges: false, top: 1, runtime: index, contents: false });
    }
    for (index, runtime) in runtimes.iter().enumerate() {
        read_runtime(runtime, before.0.get(index).and_then(Option::as_ref));
    }
}

/// Runs the readers of one runtime. Errors are ignored: the same data is missing from the copy, where the commands report it. `before`: an existing
/// survey of the heap.
fn read_runtime(runtime: &Runtime, before: Option<&Survey>) {
    if let Ok(heap) = runtime.heap() {
        match before {
            Some(before) => heap.survey_like(before),
            None => heap.survey(),
        }
    }
    keep_stacks(runtime);
    let _ = contracts(runtime, &ContractsQuery::default());
    let _ = threads(runtime, &ThreadsQuery::default());
    let _ = app(runtime, &runtime.namer());
    let mut code: BTreeSet<Addr> = BTreeSet::new();
    // A return address may be past the end of its method, so the byte before it is looked up too.
    let mut add = |thread: ThreadStackModel| {
        code.extend(thread.frames.iter().filter_map(|f| f.ip).flat_map(|ip| [Some(ip), ip.minus(1)]).flatten());
    };
    let _ = each_stack(runtime, &StacksQuery { roots: true, arguments: true, locals: true, ..StacksQuery::default() }, &mut add);
    read_lines(runtime, code.into_iter());
    if let Ok(types) = runtime.types() {
        for mt in loaded_types(types) {
            layout(types, mt);
        }
    }
    for thread_statics in [false, true] {
        let _ = each_static(runtime, &StaticsQuery { thread_statics, everything: true, ..StaticsQuery::default() }, &mut drop);
    }
    let headers = Headers::bind(runtime.memory(), runtime.descriptor(), runtime.limits()).ok();
    headers.as_ref().and_then(|h| h.sync_blocks(&Collector::new()));
    let _ = heap(runtime, &HeapQuery { detail: true, ..HeapQuery::default() });
    let _ = segments(runtime, &SegmentsQuery { free: true, ..SegmentsQuery::default() });
    let _ = oom(runtime);
    let _ = each_handle(runtime, &HandlesQuery::default(), &mut drop);
    let _ = finalizers(runtime, &FinalizersQuery { objects: true, ..FinalizersQuery::default() });
    let Ok(heap) = runtime.heap() else { return };
    // The header of the first object is before the start of the segment.
    for segment in heap.segments() {
        headers.as_ref().and_then(|h| h.read(segment.range().start));
    }
    let options = RootOptions { weak: true, any_stacks: true, ..RootOptions::default() };
    let _ = each_root(&heap, &RootsQuery { options, ..RootsQuery::default() }, &mut drop);
    let _ = async_chains(&heap, &AsyncQuery { tasks: true, ..AsyncQuery::default() });
    if let Ok(answer) = heap.exceptions() {
        read_lines(runtime, answer.data.exceptions.iter().flat_map(|e| &e.stack).map(|f| f.ip));
    }
    touch_locks(&heap);
    let only = InspectionId::ALL.into_iter().filter(|id| !CONTENTS.contains(id)).collect();
    let _ = inspect(&heap, &InspectQuery { only, ..InspectQuery::default() });
    let _ = (pool(&heap), timers(&heap, None), requests(&heap, &RequestsQuery::default()));
    read_objects(&heap);
    touch_verify(runtime);
}

/// Records the whole original stack of each thread that runs on its signal stack, for example after a stack overflow. The bounds are from the
/// runtime's `Thread`, or else from the thread-local storage at the top of the stack. Other stacks are recorded by the stack walk, from the stack
/// pointer upward.
fn keep_stacks(runtime: &Runtime) {
    let index = ThreadStacks::new(runtime.file());
    for thread in runtime.thread_list().map(|threads| threads.data.as_slice()).unwrap_or_default() {
        let Some(native) = thread.os_id.and_then(|id| index.thread(id)) else { continue };
        let bounds = thread.stack_limit.zip(thread.stack_base).filter(|(limit, base)| limit < base);
        let own = match bounds {
            Some((limit, base)) => Some(AddrRange::new(limit, base)).filter(|own| native.stack_pointer.is_some_and(|sp| !own.contains(sp))),
            None => index.left(runtime.file(), native),
        };
        if let Some(own) = own {
            runtime.memory().scan(own);
        }
    }
}

/// Reads the data that map code at `addresses` to source lines, because a PDB may be available when the copy is read.
fn read_lines(runtime: &Runtime, addresses: impl Iterator<Item = Addr>) {
    let namer = runtime.namer();
    let lines = SourceLines::new(runtime, &namer);
    addresses.for_each(|at| lines.touch(at));
}

/// Reads objects of every type with their fields, and all type data.
fn read_objects(heap: &Heap) {
    let namer = heap.namer();
    let mut objects: Vec<Addr> = Vec::new();
    let texts = namer.types().ok().map(|types| Arc::new(Texts::bind(heap.runtime(), types, &Collector::new())));
    let is_delegate = |mt: Addr| texts.as_ref().is_some_and(|t| t.delegates().is_delegate(mt));
    let counted = &heap.type_sums().data;
    // Number of objects of each type that are still to be read. Delegates are all read, because each may call a different method.
    let wanted = |ty: &ObjectType| {
        if ty.is_free {
            0
        } else if is_delegate(ty.method_table) {
            u32::MAX
        } else {
            OBJECTS_OF_A_TYPE
        }
    };
    let mut left: IndexVec<TypeIndex, u32> = heap.walker().types().list().iter().map(|ty| wanted(ty)).collect();
    for segment in heap.walker().segment_indices() {
        if !counted.types_in(segment).any(|ty| left.get(ty).is_some_and(|left| *left > 0)) {
            continue;
        }
        heap.walker().visit_from(segment, None, |object| {
            if let Some(left) = left.get_mut(object.ty.index).filter(|left| **left > 0) {
                *left = left.saturating_sub(1);
                objects.push(object.address);
            }
            ControlFlow::Continue(())
        });
    }
    let types = namer.types();
    for kind in heap.walker().types().list() {
        namer.module(kind.method_table);
        if let Ok(types) = types {
            layout(types, kind.method_table);
            if kind.is_collectible {
                heap.walker().tables().loader_module(kind.method_table).and_then(|m| types.loader().allocator_object(m));
            }
        }
    }
    let Some((types, texts)) = types.ok().zip(texts) else { return };
    let values = Values::new(types, ValueLimits::default()).with_texts(texts.clone());
    let library = Library::of(heap.runtime(), types, &Collector::new());
    let collections = library.collections();
    // Many multicast delegates may share one list of parts, so each list is read once.
    let mut lists = Set::default();
    for address in objects {
        report_object(&values, &ObjectQuery::at(address));
        let _ = collections.read(address, ELEMENTS);
        let delegates = texts.delegates();
        if delegates.is(address) && delegates.list_of(address).is_none_or(|list| lists.insert(list)) {
            let _ = delegates.model(address, u64::MAX, &Collector::new());
        }
    }
}
