use std::io;

use serde_json::Value;

use super::completeness;
use super::exceptions::trace;
use crate::model::{ThreadModel, ThreadsReport};
use crate::output::{Cell, Column, Grid, Page, Report, record};

fn row(t: &ThreadModel) -> Vec<Cell> {
    let mut marks = Vec::new();
    marks.extend(t.crashed.then(|| "CRASHED".to_string()));
    marks.extend(t.finalizer.then(|| "finalizer".to_string()));
    marks.extend(t.state.iter().cloned());
    vec![
        Cell::some(t.managed_id, |n| Cell::Text(n.to_string())),
        Cell::some(t.os_id, |n| Cell::Text(n.to_string())),
        Cell::some(t.name.clone(), Cell::Text),
        Cell::Addr(t.address),
        Cell::some(t.gc_mode, |m| Cell::Text(m.name().into())),
        Cell::some(t.alloc_pointer, Cell::Addr),
        Cell::some(t.alloc_limit, Cell::Addr),
        Cell::some(t.exception.as_ref().map(|e| e.address), Cell::Addr),
        Cell::some(t.exception.as_ref().and_then(|e| e.type_name.clone()), Cell::Text),
        Cell::Text(marks.join(" ")),
    ]
}

impl Report for ThreadsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("managed_id"),
            Column::number("os_id"),
            Column::text("name", 16),
            Column::address("address"),
            Column::text("gc_mode", 12),
            Column::address("alloc_pointer"),
            Column::address("alloc_limit"),
            Column::address("exception"),
            Column::text("exception_type", 30),
            Column::text("state", 40),
        ];
        Grid::new(columns, || self.threads.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.threads.iter().map(|t| record("thread", t)))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if !self.threads.is_empty() {
            page.grid(&self.grid(), None)?;
            page.gap()?;
        }
        page.line(&format!("{} managed threads, {} threads of the operating system", self.threads.len(), self.os_threads))?;
        for t in self.threads.iter().filter(|t| t.crashed) {
            let id = t.managed_id.map_or_else(|| "?".into(), |n| n.to_string());
            let os = t.os_id.map_or_else(|| "?".into(), |n| n.to_string());
            let Some(exception) = &t.exception else {
                page.line(&format!("Thread {id} (os {os}) crashed; it has no managed exception"))?;
                continue;
            };
            page.line(&format!("Thread {id} (os {os}) crashed; its exception object is {}", exception.address))?;
            page.gap()?;
            trace(page, exception)?;
        }
        if let Some(os) = self.crashed_unmanaged {
            page.line(&format!("The thread that crashed (os {os}) is not a managed one."))?;
        }
        Ok(())
    }
}
