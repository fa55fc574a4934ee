use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{ExceptionGroup, ExceptionModel, ExceptionsReport, FrameModel, HeapExceptionModel};
use crate::output::{Cell, Column, Grid, Page, Report, record};

/// Frames of one exception that a page shows: those of a runaway recursion say nothing new.
const MOST_FRAMES: usize = 64;

/// `0x80131600`, as everybody writes it.
fn hresult(n: i32) -> String {
    format!("{:#010x}", n.cast_unsigned())
}

fn title(type_name: Option<&str>, message: Option<&str>) -> String {
    let name = type_name.unwrap_or("<unknown type>");
    message.map_or_else(|| name.into(), |m| format!("{name}: {m}"))
}

/// As `Exception.ToString` prints it, with HResult and address behind the first line.
pub(super) fn trace(page: &mut Page<'_>, exception: &ExceptionModel) -> io::Result<()> {
    let mut stack = vec![("", exception)];
    while let Some((arrow, e)) = stack.pop() {
        let code = e.hresult.map(|n| format!(", HResult {}", hresult(n))).unwrap_or_default();
        page.line(&format!("{arrow}{} ({}{code})", title(e.type_name.as_deref(), e.message.as_deref()), e.address))?;
        if let Some(text) = &e.remote_stack_text {
            text.lines().try_for_each(|l| page.line(l))?;
        }
        frames(page, &e.stack)?;
        // The first inner one comes next, so it goes on the stack last.
        stack.extend(e.inners.iter().rev().map(|i| ("---> ", i)));
        stack.extend(e.inner.as_deref().map(|i| ("---> ", i)));
    }
    Ok(())
}

fn frames(page: &mut Page<'_>, frames: &[FrameModel]) -> io::Result<()> {
    for f in frames.iter().take(MOST_FRAMES) {
        let method = f.method.clone().unwrap_or_else(|| format!("<method {}>", f.method_desc));
        page.line(&format!("   at {method}"))?;
        if f.last_of_foreign {
            page.line("   --- thrown again: the frames above are of the place where it was thrown first ---")?;
        }
    }
    match frames.len().saturating_sub(MOST_FRAMES) {
        0 => Ok(()),
        more => page.line(&format!("   … and {more} frames more (see --json)")),
    }
}

fn row(e: &HeapExceptionModel) -> Vec<Cell> {
    vec![
        Cell::Addr(e.address),
        Cell::some(e.type_name.clone(), Cell::Text),
        Cell::some(e.hresult, |n| Cell::Text(hresult(n))),
        Cell::Count(u64::try_from(e.stack.len()).unwrap_or(u64::MAX)),
        Cell::some(e.thread, |n| Cell::Text(n.to_string())),
        Cell::some(e.thread_role.clone(), Cell::Text),
        Cell::some(e.inner, Cell::Addr),
        Cell::some(e.message.clone(), Cell::Text),
    ]
}

fn group_row(g: &ExceptionGroup) -> Vec<Cell> {
    vec![
        Cell::Count(g.count),
        Cell::Count(g.thrown),
        Cell::Addr(g.example),
        Cell::some(g.type_name.clone(), Cell::Text),
        Cell::some(g.message.clone(), Cell::Text),
    ]
}

impl ExceptionsReport {
    fn group_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("count"),
            Column::number("thrown"),
            Column::address("example"),
            Column::text("type", 40),
            Column::text("message", 40),
        ];
        Grid::new(columns, || self.groups.iter().map(group_row))
    }
}

impl Report for ExceptionsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let Some(list) = &self.exceptions else { return self.group_grid() };
        let columns = vec![
            Column::address("address"),
            Column::text("type", 40),
            Column::text("hresult", 10),
            Column::number("frames"),
            Column::number("thread"),
            Column::text("role", 12),
            Column::address("inner"),
            Column::text("message", 40),
        ];
        Grid::new(columns, || list.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let groups = self.groups.iter().map(|g| record("exception-group", g));
        Box::new(groups.chain(self.exceptions.iter().flatten().map(|e| record("exception", e))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.total == 0 {
            return page.line("No exception object was found.");
        }
        page.grid(&self.grid(), None)?;
        page.gap()?;
        for e in self.exceptions.iter().flatten().filter(|e| e.thread_role.as_deref() == Some("in-flight")) {
            page.line(&format!("{} ({})", title(e.type_name.as_deref(), e.message.as_deref()), e.address))?;
            frames(page, &e.stack)?;
            page.gap()?;
        }
        let word = if self.total == 1 { "exception object" } else { "exception objects" };
        page.line(&format!("{} {word}, {} by type and message", self.total, self.groups.len()))
    }
}
