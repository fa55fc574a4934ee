use serde::Serialize;

use crate::model::{PoolGroup, PoolItem, PoolKind, PoolReport, PoolWorker};
use crate::output::Paging;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};
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
    columns::<Row<'r>>()
        .text("queue", 24, |r| r.queue)
        .address("object", |r| r.item.object)
        .text("kind", 14, |r| r.item.kind.name())
        .whole()
        .names("description", 60, |r| Some(&r.item.description))
        .name_lines(2)
        .names("type", 60, |r| r.item.type_name.as_ref())
}

/// Columns by which the items of a queue can be sorted.
fn item_columns<'r>() -> Columns<'r, PoolItem> {
    columns::<PoolItem>()
        .address("object", |i| i.object)
        .text("kind", 14, |i| i.kind.name())
        .names("description", 60, |i| Some(&i.description))
        .names("type", 60, |i| i.type_name.as_ref())
}

fn group_columns<'r>() -> Columns<'r, PoolGroup> {
    columns::<PoolGroup>()
        .count("count", |g| g.count)
        .text("queue", 24, |g| &g.queue)
        .text("kind", 14, |g| g.kind.name())
        .whole()
        .names("description", 80, |g| Some(&g.description))
        .name_lines(2)
}

/// Describes the object that a thread waits for. The waiting method is in another column, which is dropped first on a narrow screen.
fn awaited(w: &PoolWorker) -> Option<String> {
    let object = w.object.map_or_else(String::new, |object| format!(" {object}"));
    let of = w.type_name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    Some(format!("{}{object}{of}", w.wait?))
}

fn worker_columns<'r>() -> Columns<'r, PoolWorker> {
    columns::<PoolWorker>()
        .id("managed_id", |w| w.managed_id.map(u64::from))
        .keep(8)
        .id("os_id", |w| w.os_id)
        .text_or_none("blocked_by", 100, |w| w.blocked_by.as_deref())
        .only(Readers::Machines)
        .made("blocked_by", 60, awaited)
        .name()
        .least(40)
        .keep(9)
        .only(Readers::People)
        .text_or_none("wait", 16, |w| w.wait.map(|kind| kind.name()))
        .only(Readers::Machines)
        .address("object", |w| w.object)
        .only(Readers::Machines)
        .names("type", 60, |w| w.type_name.as_ref())
        .only(Readers::Machines)
        .names("method", 60, |w| w.method.as_ref())
}

impl PoolReport {
    fn verdict(&self) -> Option<String> {
        let blocked = crate::base::len64(self.workers.iter().filter(|w| w.blocked_by.is_some()).count());
        let (existing, max) = (self.existing?, self.max?);
        let waiting = plural(self.pending, "item");
        self.starved.then(|| {
            format!(
                "STARVED: {waiting} in the queues; {existing} of at most {max} threads exist, all at work, {} of them blocked",
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
