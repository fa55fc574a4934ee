//! Detects that the runtime was suspending all threads, for a collection that had not begun or for another purpose.
//!
//! Rule: the phase is [`GcPhase::Suspending`], or it is a background collection and a thread is suspending the others. The suspension waits for the
//! threads in cooperative mode, because a suspended thread is in preemptive mode.
//!
//! Source: `ThreadSuspend::SuspendAllThreads` in `threadsuspend.cpp`; `docs/internals/gc-structures.md#heaps-in-motion`.

use crate::analysis::StacksQuery;
use crate::analysis::each_stack;
use crate::analysis::{SuspendedThread, SuspensionModel, ThreadStackModel};
use crate::base::missed::tried;
use crate::base::{Collector, Name};
use crate::clr::threads::Thread;
use crate::dump::ThreadStacks;
use crate::model::{GcPhase, StackFrameKind};
use crate::session::Runtime;

/// Returns the suspension that was in progress, if any. Adds notes if the methods of threads that it waits for are unknown because of missing data. Other
/// notes and failed reads are dropped, because other parts of an answer report them.
pub(in crate::analysis) fn suspension(runtime: &Runtime, notes: &Collector) -> Option<SuspensionModel> {
    tried(|| under_way(runtime, notes))
}

fn under_way(runtime: &Runtime, notes: &Collector) -> Option<SuspensionModel> {
    if runtime.descriptor().is_native_aot() {
        return None;
    }
    let facts = runtime.gc().ok()?.data.facts();
    let by = facts.suspended_by.filter(|thread| !thread.is_null());
    let threads = runtime.thread_list().ok()?.data.as_slice();
    let suspends = match facts.phase {
        Some(GcPhase::Suspending) => true,
        Some(GcPhase::Background) => by.is_some(),
        _ => false,
    };
    if !suspends {
        return None;
    }
    let running = |t: &&Thread| t.cooperative == Some(true) && t.has_stack() && Some(t.address) != by;
    let waits_for: Vec<&Thread> = threads.iter().filter(running).collect();
    let collections = runtime.collections(&Collector::new());
    let suspending = by.and_then(|by| threads.iter().find(|t| t.address == by));
    Some(SuspensionModel {
        by: suspending.and_then(|t| t.id),
        by_os_id: suspending.and_then(|t| t.os_id),
        after_collection: collections.and_then(|c| c.process.last.as_ref().map(|last| last.index)),
        waits_for: named(runtime, &waits_for, notes),
    })
}

/// Describes the threads with their names and innermost methods.
fn named(runtime: &Runtime, threads: &[&Thread], notes: &Collector) -> Vec<SuspendedThread> {
    if threads.is_empty() {
        return Vec::new();
    }
    let namer = runtime.namer();
    let stacks = ThreadStacks::new(runtime.file());
    let mut methods: Vec<(u64, Name)> = Vec::new();
    let mut add = |stack: ThreadStackModel| {
        let method =
            |f: &crate::analysis::StackFrameModel| Some(Name::shown_as(f.method.as_deref()?, f.display.as_deref().map(String::from)));
        let innermost = stack.frames.iter().find(|f| f.kind == StackFrameKind::Managed).and_then(method);
        methods.extend(stack.os_id.zip(innermost));
    };
    let query = StacksQuery { threads: threads.iter().filter_map(|t| t.os_id).collect(), ..StacksQuery::default() };
    // If the stacks cannot be walked, the threads are listed without methods.
    let walked = each_stack(runtime, &query, &mut add);
    if let Ok(walked) = walked
        && methods.len() < threads.len()
    {
        notes.extend(&walked.notes);
    }
    let name = |t: &Thread| {
        let native = t.os_id.and_then(|id| stacks.thread(id));
        namer.thread_name(t.exposed, native)
    };
    let model = |t: &&Thread| SuspendedThread {
        managed_id: t.id,
        os_id: t.os_id,
        name: name(t),
        method: methods.iter().find(|(id, _)| Some(*id) == t.os_id).map(|(_, method)| method.clone()),
    };
    threads.iter().map(model).collect()
}
