//! The answer of `pool`: worker threads, queues with their work items, and what blocks the threads.

use serde::Serialize;

use crate::analysis::{PoolGroup, PoolItem, PoolKind, PoolReport, PoolWorker};
use crate::base::verb;
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// A work item with its queue.
#[derive(Clone, Serialize)]
struct Row<'r> {
    queue: &'r str,
    managed_id: Option<u32>,
    #[serde(flatten)]
    item: &'r PoolItem,
}

fn row_columns<'r>() -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        text(queue, 24),
        address(item.object),
        word(item.kind, 14),
        names(item.description, 60).name_lines(2),
        names(item.type_name, 60)
    ]
}

/// Columns by which the items of a queue can be sorted.
fn item_columns<'r>() -> Columns<'r, PoolItem> {
    columns![PoolItem, address(object), word(kind, 14), names(description, 60), names(type_name, 60)]
}

fn group_columns<'r>() -> Columns<'r, PoolGroup> {
    columns![PoolGroup, count(count), text(queue, 24), word(kind, 14), names(description, 80).name_lines(2)]
}

/// Describes the object that a thread waits for. The waiting method is in another column, which is dropped first on a narrow screen.
fn awaited(w: &PoolWorker) -> Option<String> {
    let object = w.object.map_or_else(String::new, |object| format!(" {object}"));
    let of = w.type_name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    Some(format!("{}{object}{of}", w.wait?))
}

fn worker_columns<'r>() -> Columns<'r, PoolWorker> {
    columns![
        PoolWorker,
        id(managed_id).keep(8),
        id(os_id),
        text(blocked_by, 100).only(Readers::Machines),
        text("blocked_by", 60, awaited).name().least(40).keep(9).only(Readers::People),
        word(wait, 16).only(Readers::Machines),
        address(object).only(Readers::Machines),
        names(type_name, 60).only(Readers::Machines),
        names(method, 60)
    ]
}

impl PoolReport {
    fn verdict(&self) -> Option<String> {
        let blocked = crate::base::len64(self.workers.iter().filter(|w| w.blocked_by.is_some()).count());
        let (existing, max) = (self.existing?, self.max?);
        let waiting = plural(self.pending, "item");
        self.starved.then(|| {
            format!(
                "STARVED: {waiting} in the queues; {existing} of at most {max} threads {}, all at work, {} of them blocked",
                verb(existing.into(), "exist"),
                count(blocked)
            )
        })
    }
}

impl Report for PoolReport {
    fn page(&mut self, to: &mut Paging) {
        to.tells_cuts = true;
        to.whole_list("groups", &mut self.groups, &group_columns());
        to.whole_list("workers", &mut self.workers, &worker_columns());
        for queue in &mut self.queues {
            to.whole_list(&format!("items in {}", queue.name), &mut queue.items, &item_columns());
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let rows = || self.queues.iter().flat_map(|q| q.items.iter().map(|item| Row { queue: &q.name, managed_id: q.managed_id, item }));
        to.table(Table::records("item", rows().collect::<Vec<_>>(), row_columns()).csv(true).shown(false));
        match self.kind {
            PoolKind::Unknown => return to.line("The thread pool cannot be read."),
            PoolKind::None => return to.line("The process has not used the thread pool."),
            PoolKind::Windows => return to.line("The process uses the thread pool of Windows, whose queues are not on the heap."),
            PoolKind::Portable => {}
        }
        let number = |n: Option<u32>| n.map_or_else(|| "?".into(), |n| count(u64::from(n)));
        to.facts(vec![
            ("Threads", format!("{} at work, {} exist, goal {}", number(self.working), number(self.existing), number(self.goal))),
            ("Limits", format!("{} to {}", number(self.min), number(self.max))),
            ("Queued", plural(self.pending, "item")),
            ("Processor", self.cpu_percent.map_or_else(|| "?".into(), |n| format!("{n} %"))),
        ]);
        if let Some(verdict) = self.verdict() {
            to.alarm(verdict);
        }
        to.gap_if(!self.groups.is_empty());
        to.table(Table::new(&self.groups, group_columns()).shown(!self.groups.is_empty()));
        to.gap_if(!self.workers.is_empty());
        to.table(Table::records("worker", &self.workers, worker_columns()).shown(!self.workers.is_empty()));
    }
}
