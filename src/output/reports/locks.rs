//! The answer of `locks`: locks, the waits of the threads, and deadlocks.

use super::folds::{self, Part};
use crate::analysis::{DeadlockModel, LockModel, LockOwner, LocksReport, WaitChain, WaitEdgeKind, WaitKind, WaitModel};
use crate::base::{Name, file_name};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn id(managed: Option<u32>) -> String {
    managed.map_or_else(|| "?".into(), |id| id.to_string())
}

fn id_of(owner: &LockOwner) -> String {
    match (owner.managed_id, owner.os_id) {
        (None, Some(os_id)) => format!("OS {os_id}"),
        (managed, _) => id(managed),
    }
}

fn owner(owner: &LockOwner) -> String {
    let id = id_of(owner);
    match owner.orphaned {
        Some(true) => format!("{id} (no such thread)"),
        None => format!("{id} (not found)"),
        Some(false) => id,
    }
}

/// The owner of a lock; empty if no thread holds it, or if locks of its kind have no owner.
fn owner_of(lock: &LockModel) -> String {
    match &lock.owner {
        Some(by) => owner(by),
        None if lock.has_unknown_owner() => "unknown".into(),
        None => String::new(),
    }
}

/// The readers of a lock: living threads by id, then the number of the others.
fn readers(lock: &LockModel) -> String {
    let mut out: Vec<String> = lock.readers.iter().map(owner).collect();
    let others = lock.reader_count.unwrap_or(0).saturating_sub(crate::base::len64(lock.readers.len()));
    match lock.ended_readers {
        _ if others == 0 => {}
        Some(ended) => out.push(format!("{} (ended)", plural(ended, "thread"))),
        None => out.push(format!("{} (not found)", plural(others, "thread"))),
    }
    out.join(" ")
}

fn lock_columns<'r>(named: bool) -> Columns<'r, LockModel> {
    columns![
        LockModel,
        word(kind, 14).keep(9),
        address(object).keep(9),
        text("owner", 24, owner_of).keep(8),
        id(recursion).keep(3),
        text("readers", 24, readers).keep(3),
        text("waiters", 40, |l| l.waiters.iter().map(|w| id(w.managed_id)).collect::<Vec<_>>().join(" ")).keep(8),
        id(waiting).keep(6),
        text("count", 8, |l| l.count.map(|n| n.to_string()).unwrap_or_default()).keep(3),
        id(sync_block).extra(),
        names(type_name, 50),
        text("name", 24, |l| l.name.clone().unwrap_or_default()).keep(5).only(if named { Readers::All } else { Readers::Machines })
    ]
}

fn wait_columns<'r>(lines: bool) -> Columns<'r, WaitModel> {
    columns![
        WaitModel,
        id(managed_id).keep(9),
        id(os_id),
        text(name, 16).keep(6),
        word(kind, 18).keep(8),
        address(object).keep(8),
        names(type_name, 40).least(18).keep(9),
        word(evidence, 8).keep(4),
        id(timeout_ms).keep(4),
        names(method, 60).least(18).keep(9),
        address(method_desc).only(Readers::Machines),
        text("source", 24, |w| w.file.as_deref().zip(w.line).map(|(file, line)| format!("{}:{line}", file_name(file))))
            .keep(7)
            .only(if lines { Readers::People } else { Readers::Links }),
        text(file, 40).only(Readers::Machines),
        id(line).only(Readers::Machines)
    ]
}

fn deadlock<'r>(to: &mut Sections<'r>, d: &'r DeadlockModel, fold: bool) {
    let threads = d.threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let sure = if d.possible { "POSSIBLE DEADLOCK" } else { "DEADLOCK" };
    let of = if d.threads.len() == 1 { "thread" } else { "threads" };
    to.alarm(format!("{sure} of {of} {threads}"));
    for edge in &d.edges {
        let ty = edge.type_name.as_ref().map_or("?", Name::shown);
        let by = match edge.kind {
            WaitEdgeKind::Holds => "held by",
            WaitEdgeKind::Runs => "run by",
            WaitEdgeKind::Joined => "which is thread",
            WaitEdgeKind::Context => {
                let context = edge.context_type.as_ref().map_or("?", Name::shown);
                let at = edge.context.map(|at| format!("{at} ")).unwrap_or_default();
                to.line(format!("  {} waits for {} ({ty}), which waits to run on {at}({context}) of {}", edge.from, edge.object, edge.to));
                continue;
            }
            WaitEdgeKind::ClassConstructor => {
                to.line(format!("  {} waits for the class constructor of {ty}, run by {}", edge.from, edge.to));
                continue;
            }
        };
        to.line(format!("  {} waits for {} ({ty}), {by} {}", edge.from, edge.object, edge.to));
    }
    if !d.victims.is_empty() {
        let victims = d.victims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        to.line(format!("  other threads that wait for them: {victims}"));
    }
    for stack in d.stacks.iter().filter(|s| !s.frames.is_empty()) {
        to.line(format!("  thread {}", stack.managed_id));
        let names: Vec<&str> = stack.frames.iter().map(|name| &**name).collect();
        let parts = if fold { folds::of_names(&names) } else { (0..names.len()).map(Part::Item).collect() };
        to.lines(parts.into_iter().filter_map(move |part| match part {
            Part::Item(i) => names.get(i).map(|name| format!("    {name}")),
            Part::Fold(range) => names.get(range).map(|of| format!("    {}", folds::line(of.len(), of.iter().copied()))),
        }));
    }
    to.gap();
}

fn chain(c: &WaitChain) -> String {
    let threads = c.threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", which waits for thread ");
    // The first of several is the subject.
    let threads = threads.replacen(", which waits", " waits", 1);
    let what = match (&c.object, &c.type_name) {
        (Some(object), ty) => {
            let what = c.one_of.map_or_else(|| c.kind.to_string(), |n| format!("one of {n} {}:", c.kind));
            let held = match &c.owner {
                Some(LockOwner { managed_id: None, os_id: None, .. }) => "which threads that have ended hold for reading".into(),
                Some(by) if by.orphaned == Some(true) => format!("held by thread {}, which has ended", id_of(by)),
                Some(by) => format!("held by thread {}", owner(by)),
                None => "whose owner is unknown".into(),
            };
            format!("{what} {object} ({}), {held}", ty.as_ref().map_or("?", Name::shown))
        }
        (None, _) if c.kind == WaitKind::Sleep => return format!("thread {threads}, which sleeps"),
        (None, _) => format!("an unknown object (kind {})", c.kind),
    };
    let candidates = match c.candidates.as_slice() {
        [] => String::new(),
        list => format!("; on the stack of thread {}", list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    format!("thread {threads}, which waits for {what}{candidates}")
}

impl Report for LocksReport {
    fn page(&mut self, to: &mut Paging) {
        self.not_listed = to.whole_list("locks", &mut self.locks, &lock_columns(true));
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let fold = !to.view.framework;
        self.deadlocks.iter().for_each(|d| deadlock(to, d, fold));
        to.records("deadlock", &self.deadlocks);
        let lines = self.waits.iter().any(|w| w.line.is_some());
        to.table(Table::records("wait", &self.waits, wait_columns(lines)).shown(!self.waits.is_empty()));
        to.gap_if(!self.waits.is_empty());
        let named = self.locks.iter().any(|l| l.name.is_some());
        to.table(Table::records("lock", &self.locks, lock_columns(named)).csv(true).shown(!self.locks.is_empty()));
        to.not_listed(self.not_listed, "lock");
        to.gap_if(!self.locks.is_empty());
        to.records("chain", &self.chains);
        for c in &self.chains {
            to.line(chain(c));
        }
        let deadlocks = match self.deadlocks.len() {
            0 => format!("no deadlock{}", to.within()),
            n => plural(u64::try_from(n).unwrap_or(u64::MAX), "deadlock"),
        };
        to.line(format!(
            "{} held or waited for, {} blocked, {deadlocks}",
            plural(crate::base::len64(self.locks.len()).saturating_add(self.not_listed.unwrap_or(0)), "lock"),
            plural(crate::base::len64(self.waits.len()), "thread")
        ));
    }
}
