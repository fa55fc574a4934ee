//! `exceptions`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{FitArg, SortArg, TypesArg};
use super::super::values::address;
use crate::analysis::{ExceptionsQuery, exceptions};
use crate::analysis::{ExceptionsReport, ExceptionsRows};
use crate::base::{Addr, Answer};
use crate::model::ExceptionSort;
use crate::output::Paging;

/// Exception objects on the heap: type, message, stack trace, and the thread it is in flight on.
#[derive(Debug, Args)]
pub(in crate::cli) struct Exceptions {
    /// Only count exceptions by type and by the method that has thrown them.
    #[arg(long)]
    stat: bool,

    /// Only the exception object at or around this address, with its inner exceptions.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    object: Option<Addr>,

    #[command(flatten)]
    types: TypesArg,

    #[command(flatten)]
    sort: SortArg<ExceptionSort>,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Exceptions {
    const NAME: &'static str = "exceptions";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("exceptions DUMP", "all exception objects with stack traces"),
        example("exceptions --stat DUMP", "counts by type and by the method that has thrown them"),
    ];
    type Report = ExceptionsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ExceptionsReport>> {
        let query = ExceptionsQuery { stat: self.stat, types: self.types.patterns(), object: self.object, sort: self.sort.given() };
        let mut answer = exceptions(&at.heap()?, &query)?;
        // The exceptions in flight are among the rows that a terminal shows.
        if let ExceptionsRows::Exceptions { exceptions } = &mut answer.data.rows
            && self.rows.on_screen(at).is_some()
            && !self.sort.is_given()
        {
            exceptions.sort_by_key(|e| e.thread.is_none());
        }
        Ok(answer)
    }

    fn next(&self, report: &ExceptionsReport, at: &At<'_>) -> Option<&'static str> {
        (report.total > Some(0) && at.has_managed_stacks()).then_some("stacks")
    }

    fn exit(&self, report: &ExceptionsReport, exit: Exit) -> Exit {
        exit.negative_if(report.total == Some(0) && (self.object.is_some() || !self.types.is_empty()))
    }
}
