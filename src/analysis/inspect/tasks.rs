//! Exceptions of tasks.

use super::sweep::Inspected;
use super::{Findings, Inspector};
use crate::base::Addr;
use crate::model::{InspectionRow, TaskStatus};
use crate::session::tasks::{Tasks, status};
use crate::session::{Error, Library};

impl Inspector<'_> {
    pub(super) fn unobserved_exceptions(&self) -> Result<Findings, Error> {
        let library = Library::bind(self.heap.runtime(), self.namer, self.notes)?;
        let tasks = Tasks::bind(library, self.notes);
        let faulted = self.swept.of(Inspected::Task).filter(|t| tasks.flags(*t).is_some_and(|f| status(f) == TaskStatus::Faulted));
        let row = |task: Addr| {
            let faults = tasks.exceptions(task).filter(|f| !f.observed)?;
            let exception = faults.exceptions.first().copied();
            let what = exception.and_then(|e| Some(format!("{} at {e}", self.type_of(e)?)));
            Some(InspectionRow { object: Some(task), type_name: self.type_of(task), count: 1, bytes: 0, detail: what, held_here: None })
        };
        let rows = faulted.filter_map(row).collect();
        tasks.note(self.notes);
        Ok(Findings::plain(rows))
    }
}
