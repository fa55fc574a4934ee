//! Tables about the process: static fields, threads, frames, exceptions, tasks, requests, locks, modules. Their rows come from the answers of
//! commands. Except for frames, a whole answer is kept in memory.

use std::ops::ControlFlow;

use super::block::Value;
use super::context::Context;
use super::dumps::or_noted;
use super::feed::Feed;
use crate::analysis::ThreadStackModel;
use crate::analysis::{
    AsyncQuery, LocksQuery, ModulesQuery, RequestsQuery, StacksQuery, StaticsQuery, ThreadsQuery, async_chains, each_stack, locks, modules,
    requests, statics, threads,
};
use crate::base::{Addr, len64};
use crate::model::ExportTable;
use crate::session::Dump;

/// Writes a table to `feed`. Data missing from the dump adds a note and no row.
pub(super) fn table(context: &Context<'_>, dump: &Dump, table: ExportTable, feed: &mut Feed) {
    // A break means that writing has failed. The writer thread reports the error.
    let _ = match table {
        ExportTable::Statics => statics_of(context, feed),
        ExportTable::Threads => threads_of(context, feed),
        ExportTable::Frames => frames_of(context, feed),
        ExportTable::Exceptions => exceptions_of(context, feed),
        ExportTable::Tasks => tasks_of(context, feed),
        ExportTable::Requests => requests_of(context, feed),
        ExportTable::Locks => locks_of(context, feed),
        ExportTable::Modules => modules_of(context, dump, feed),
        _ => ControlFlow::Continue(()),
    };
}

/// Converts a signed number, such as an HRESULT.
fn signed<'v>(n: impl Into<i64>) -> Value<'v> {
    Value::Int(n.into())
}

/// Returns the number of the object at an address; null for `None`, and if no object is there.
fn object(context: &Context<'_>, at: Option<Addr>) -> Value<'static> {
    at.map_or(Value::Null, |at| context.object(at))
}

fn statics_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let runtime = context.heap.runtime();
    for thread_statics in [false, true] {
        let query = StaticsQuery { thread_statics, ..StaticsQuery::default() };
        let Some(report) = or_noted(statics(runtime, &query), "statics", context.notes) else { continue };
        report.statics.iter().try_for_each(|s| {
            let field = &s.field;
            feed.row([
                field.declaring_type.as_ref().into(),
                (&field.name).into(),
                (&field.type_name).into(),
                s.module.as_ref().into(),
                s.storage.name().into(),
                s.thread.and_then(|t| t.managed_id).into(),
                field.address.into(),
                field.kind.name().into(),
                field.unquoted().into(),
                object(context, field.object),
                field.object.into(),
                field.object_type.as_ref().into(),
            ])
        })?;
    }
    ControlFlow::Continue(())
}

fn threads_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let answer = threads(context.heap.runtime(), &ThreadsQuery { waits: true, ..ThreadsQuery::default() });
    let Some(report) = or_noted(answer, "threads", context.notes) else { return ControlFlow::Continue(()) };
    report.threads.iter().try_for_each(|t| {
        let (exception, wait) = (t.exception.as_deref(), t.waits_for.as_deref());
        let state = t.state.join(",");
        feed.row([
            t.managed_id.into(),
            t.os_id.into(),
            t.address.into(),
            t.name.as_ref().into(),
            state.as_str().into(),
            t.gc_mode.map(|mode| mode.name()).into(),
            t.crashed.into(),
            t.finalizer.into(),
            exception.map(|e| e.address).into(),
            exception.and_then(|e| e.type_name.as_ref()).into(),
            wait.map(|w| w.kind.name()).into(),
            wait.and_then(|w| w.object).into(),
            wait.and_then(|w| w.type_name.as_ref()).into(),
            t.locks_held.into(),
        ])
    })
}

fn frames_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let mut flow = ControlFlow::Continue(());
    let mut add = |t: ThreadStackModel| {
        for (f, index) in t.frames.iter().zip(0u64..) {
            if flow.is_break() {
                return;
            }
            flow = feed.row([
                t.managed_id.into(),
                t.os_id.into(),
                index.into(),
                f.kind.name().into(),
                f.display.as_ref().or(f.method.as_ref()).into(),
                f.method_desc.into(),
                f.module.as_ref().into(),
                f.offset.into(),
                f.file.as_ref().into(),
                f.line.into(),
                f.ip.into(),
                f.sp.into(),
                f.frame_type.as_ref().into(),
            ]);
        }
    };
    let _ = or_noted(each_stack(context.heap.runtime(), &StacksQuery::default(), &mut add), "frames", context.notes);
    flow
}

fn exceptions_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let Some(report) = or_noted(context.heap.exceptions(), "exceptions", context.notes) else { return ControlFlow::Continue(()) };
    report.exceptions.iter().try_for_each(|e| {
        feed.row([
            context.object(e.address),
            e.address.into(),
            e.type_name.as_ref().into(),
            e.message.as_ref().into(),
            e.hresult.map_or(Value::Null, signed),
            e.inner.into(),
            e.thread.into(),
            e.thread_role.as_ref().into(),
            e.stack.first().and_then(|f| f.method.as_ref()).into(),
            len64(e.stack.len()).into(),
        ])
    })
}

fn tasks_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let answer = async_chains(context.heap, &AsyncQuery { merge: true, tasks: true, ..AsyncQuery::default() });
    let Some(report) = or_noted(answer, "tasks", context.notes) else { return ControlFlow::Continue(()) };
    report.tasks.iter().flatten().try_for_each(|t| {
        let exception = t.exceptions.first();
        feed.row([
            context.object(t.object),
            t.object.into(),
            t.type_name.as_ref().into(),
            t.status.name().into(),
            t.display.as_ref().or(t.method.as_ref()).into(),
            exception.map(|e| e.object).into(),
            exception.and_then(|e| e.type_name.as_ref()).into(),
            t.unobserved.into(),
        ])
    })
}

fn requests_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let answer = requests(context.heap, &RequestsQuery { direction: None, graph: false });
    let Some(report) = or_noted(answer, "requests", context.notes) else { return ControlFlow::Continue(()) };
    report.requests.iter().try_for_each(|r| {
        feed.row([
            r.direction.name().into(),
            context.object(r.object),
            r.object.into(),
            r.state.name().into(),
            r.method.as_ref().into(),
            r.uri.as_ref().into(),
            r.protocol.as_ref().into(),
            r.start_utc.as_ref().into(),
            r.age_ms.into(),
            r.connection_id.as_ref().into(),
            r.remote.as_ref().into(),
            r.endpoint.as_ref().into(),
            r.thread.into(),
            r.waits_for.as_ref().map(|root| &root.label).into(),
            r.waits_for.as_ref().and_then(|root| root.object).into(),
        ])
    })
}

fn locks_of(context: &Context<'_>, feed: &mut Feed) -> ControlFlow<()> {
    let answer = locks(context.heap, &LocksQuery { all: true });
    let Some(report) = or_noted(answer, "locks", context.notes) else { return ControlFlow::Continue(()) };
    report.locks.iter().try_for_each(|l| {
        let owner = l.owner.as_ref();
        feed.row([
            l.kind.name().into(),
            context.object(l.object),
            l.object.into(),
            l.type_name.as_ref().into(),
            owner.and_then(|o| o.managed_id).into(),
            owner.and_then(|o| o.os_id).into(),
            owner.and_then(|o| o.orphaned).into(),
            l.recursion.into(),
            len64(l.readers.len()).into(),
            len64(l.waiters.len()).into(),
            l.waiting.into(),
            l.count.map_or(Value::Null, signed),
            l.sync_block.into(),
        ])
    })
}

fn modules_of(context: &Context<'_>, dump: &Dump, feed: &mut Feed) -> ControlFlow<()> {
    let query = ModulesQuery { runtime: context.heap.runtime().index(), ..ModulesQuery::default() };
    let Some(report) = or_noted(modules(dump, &query), "modules", context.notes) else { return ControlFlow::Continue(()) };
    report.modules.iter().try_for_each(|m| {
        feed.row([
            m.name.as_ref().into(),
            m.kind.name().into(),
            m.path.as_ref().into(),
            m.version.as_ref().into(),
            m.base.into(),
            m.size.into(),
            m.mvid.as_ref().into(),
            m.build_id.as_ref().into(),
            m.collectible.into(),
            m.needed.into(),
        ])
    })
}
