//! `async`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, FrameworkArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::{RowsArgs, TypesArg};
use super::super::values::address;
use crate::analysis::{AsyncQuery, async_chains};
use crate::analysis::{AsyncReport, AsyncRootKind};
use crate::base::{Addr, Answer};
use crate::output::{Paging, View};

/// Asynchronous methods and what they wait for: chains of awaiting methods from what everything hangs on; tasks by status.
///
/// Each chain goes from its root, such as a timer, a socket or a TaskCompletionSource, over the method that awaits it to the
/// outermost one. Tables merge equal chains into trees, with the number of objects in each place; other formats list each one.
#[derive(Debug, Args)]
pub(in crate::cli) struct Async {
    /// Merge equal chains in all formats.
    #[arg(long, conflicts_with = "all")]
    merge: bool,

    /// List each chain, in tables too.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    types: TypesArg,

    /// Only chains with a method that matches, as shown or as the compiler named it; without * or ?, whose name has this in it (repeatable).
    #[arg(long = "method", value_name = "GLOB")]
    methods: Vec<String>,

    /// Only chains that hang on this kind of root (repeatable).
    #[arg(long = "root", value_name = "KIND", value_enum, ignore_case = true)]
    roots: Vec<AsyncRootKind>,

    /// Only chains with the object at this address.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    object: Option<Addr>,

    #[command(flatten)]
    framework: FrameworkArg,

    /// List all tasks with their status, too; in tables, instead of chains.
    #[arg(long)]
    tasks: bool,

    /// List completed tasks.
    #[arg(long)]
    completed: bool,

    /// List faulted tasks with their exceptions, and whether those were observed.
    #[arg(long)]
    faulted: bool,

    #[command(flatten)]
    rows: RowsArgs,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Async {
    const NAME: &'static str = "async";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("async DUMP", "what asynchronous methods wait for, merged into trees"),
        example("async --all --root timer DUMP", "each chain that hangs on a timer"),
        example("async --method 'Lab.*' DUMP", "only chains with these methods"),
        example("async --faulted DUMP", "faulted tasks with their exceptions"),
    ];
    type Report = AsyncReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<AsyncReport>> {
        let query = AsyncQuery {
            merge: self.merge || at.is_table() && !self.all,
            types: self.types.patterns(),
            methods: self.methods.clone(),
            roots: self.roots.clone(),
            object: self.object,
            tasks: self.tasks,
            completed: self.completed,
            faulted: self.faulted,
            top: self.rows.counted(at),
        };
        Ok(async_chains(&at.heap()?, &query)?)
    }

    fn view(&self, _at: &At<'_>, _report: &AsyncReport) -> Result<View> {
        Ok(View { framework: self.framework.framework, ..View::default() })
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        let picks = !(self.types.is_empty() && self.methods.is_empty() && self.roots.is_empty() && self.object.is_none());
        let none = report.chains.is_empty() && report.tasks.as_ref().is_none_or(Vec::is_empty);
        exit.negative_if(picks && none)
    }
}
