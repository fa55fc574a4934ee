//! The answer of `threads`: managed threads, and what they wait for.

use super::exceptions::trace;
use super::number;
use crate::analysis::{ThreadModel, ThreadWait, ThreadsReport, WaitKind};
use crate::base::{Name, in_units};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn marks(t: &ThreadModel) -> String {
    let flags = [(t.crashed, "CRASHED"), (t.finalizer, "finalizer")];
    let flags = flags.into_iter().filter(|f| f.0).map(|f| f.1);
    flags.chain(t.state.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Describes a wait: `monitor 0x7f… (Lab.Account), held by 5`.
pub(super) fn wait(w: &ThreadWait) -> String {
    let name = w.type_name.as_ref().map_or("?", Name::shown);
    let object = w.object.map_or_else(String::new, |object| format!(" {object} ({name})"));
    let owners: Vec<String> = w.owners.iter().filter_map(|o| Some(o.managed_id?.to_string())).collect();
    let by = if w.kind == WaitKind::ClassConstructor { "run" } else { "held" };
    let held = if owners.is_empty() { String::new() } else { format!(", {by} by {}", owners.join(", ")) };
    format!("{}{object}{held}", w.kind)
}

/// Columns of threads. Tables omit the columns that only `--waits` fills.
fn thread_columns<'r>(waits: bool, allocated: bool, heaps: bool) -> Columns<'r, ThreadModel> {
    let readers = |shown| if shown { Readers::All } else { Readers::Machines };
    columns![
        ThreadModel,
        id(managed_id).keep(9),
        id(os_id).keep(8),
        text(name, 16).keep(7),
        address(address).keep(3),
        word(gc_mode, 12),
        address(alloc_pointer).extra(),
        address(alloc_limit).extra(),
        address("exception", |t| t.exception.as_ref().map(|e| e.address)).keep(6),
        names("exception_type", 30, |t| t.exception.as_ref().and_then(|e| e.type_name.as_ref())),
        bytes(allocated_bytes).keep(10).only(readers(allocated)),
        bytes(allocated_bytes_uoh).keep(10).only(readers(allocated)),
        id(home_heap).keep(9).only(readers(allocated && heaps)),
        id(locks_held).keep(6).only(readers(waits)),
        text("waits_for", 60, |t| t.waits_for.as_deref().map(wait).unwrap_or_default()).name_lines(3).only(readers(waits)),
        text("state", 40, marks).lines(3).least(24).keep(8)
    ]
}

impl Report for ThreadsReport {
    fn page(&mut self, to: &mut Paging) {
        let crashed = self.threads.iter().find(|t| t.crashed).cloned();
        self.not_listed = to.whole_list("threads", &mut self.threads, &thread_columns(false, false, false));
        self.crashed_not_listed = crashed.filter(|_| self.threads.iter().all(|t| !t.crashed)).map(Box::new);
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let waits = self.threads.iter().any(|t| t.locks_held.is_some() || t.waits_for.is_some());
        let heaps = self.threads.iter().any(|t| t.home_heap.is_some());
        let columns = thread_columns(waits, self.by_allocated, heaps);
        to.table(Table::records("thread", &self.threads, columns).csv(true).shown(!self.threads.is_empty()));
        to.not_listed(self.not_listed, "thread");
        to.gap_if(!self.threads.is_empty());
        let all = number(&self.threads).saturating_add(self.not_listed.unwrap_or(0));
        to.line(format!("{}, {}", plural(all, "managed thread"), plural(self.os_threads, "OS thread")));
        if self.by_allocated {
            let counted = self.threads.iter().filter_map(ThreadModel::allocated).fold(0, u64::saturating_add);
            to.line(format!(
                "These threads have allocated {} since they began, not counting the unused rest of their allocation contexts",
                in_units(counted)
            ));
        }
        if let Some(suspension) = &self.suspension {
            to.line(format!("A suspension of all threads is under way: {}", suspension.words()));
        }
        for t in self.threads.iter().filter(|t| t.crashed).chain(self.crashed_not_listed.as_deref()) {
            let id = t.managed_id.map_or_else(|| "?".into(), |n| n.to_string());
            let os = t.os_id.map_or_else(|| "?".into(), |n| n.to_string());
            let Some(exception) = &t.exception else {
                to.alarm(format!("Thread {id} (OS {os}) crashed without a managed exception"));
                continue;
            };
            to.alarm(format!("Thread {id} (OS {os}) crashed with exception object {}", exception.address));
            to.gap();
            trace(to, exception);
        }
        if let Some(os) = self.crashed_unmanaged {
            to.line(format!("The crashed thread (OS {os}) is not a managed thread"));
        }
        if let Some(fault) = self.fault.as_ref().filter(|fault| fault.native || fault.stack_overflow) {
            to.line(fault.words());
        }
    }
}
