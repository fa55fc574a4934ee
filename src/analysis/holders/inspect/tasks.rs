//! Exceptions of tasks.

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::base::Addr;
use crate::base::hash::Map;
use crate::bcl::Library;
use crate::bcl::tasks::{Tasks, status};
use crate::model::TaskStatus;
use crate::session::Error;

impl Inspector<'_> {
    pub(super) fn unobserved_exceptions(&self) -> Result<Findings<'_>, Error> {
        let library = Library::bind(self.heap.runtime(), self.namer, self.notes)?;
        let tasks = Tasks::bind(library, self.notes);
        let faulted = self.swept.of(Inspected::Task).filter(|t| tasks.flags(*t).is_some_and(|f| status(f) == TaskStatus::Faulted));
        let mut first: Map<Addr, Addr> = Map::default();
        let unobserved = |task: Addr| {
            let faults = tasks.exceptions(task).filter(|f| !f.observed)?;
            first.extend(faults.exceptions.first().map(|exception| (task, *exception)));
            Some(row(task, 1, 0))
        };
        let rows = faulted.filter_map(unobserved).collect();
        tasks.note(self.notes);
        Ok(Findings::plain(rows).with_detail(move |row| {
            let exception = first.get(&row.object?)?;
            Some(format!("{} at {exception}", self.type_of(*exception)?))
        }))
    }
}
