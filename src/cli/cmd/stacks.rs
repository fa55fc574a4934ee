//! `stacks`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, FrameworkArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{ColumnArg, MostArg};
use crate::analysis::StacksReport;
use crate::analysis::{StacksQuery, stacks};
use crate::base::Answer;
use crate::output::{Paging, View};

/// Stacks of managed threads: methods, offsets, frames of the runtime, and what each frame holds.
#[derive(Debug, Args)]
pub(in crate::cli) struct Stacks {
    /// Only the thread with this managed or OS id (repeatable).
    #[arg(long, value_name = "ID", value_parser = id)]
    thread: Vec<u64>,

    /// Only threads that are in such a method: a part of its name, as shown or as the compiler made it, or a glob pattern (* and ?) (repeatable).
    #[arg(long, value_name = "GLOB")]
    method: Vec<String>,

    /// Also list the references that each frame holds.
    #[arg(long)]
    roots: bool,

    /// Also list the arguments of each method, where debug info and stack have them.
    #[arg(long)]
    arguments: bool,

    /// Also list the local variables of each method, with the values that debug info and stack have: by the names in its portable PDB, else by number.
    #[arg(long)]
    locals: bool,

    /// Also what each thread waits for, and who holds it.
    #[arg(long)]
    waits: bool,

    /// Fold threads with equal stacks into a tree with counts.
    #[arg(long, conflicts_with_all = ["roots", "arguments", "locals", "top"])]
    merge: bool,

    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    framework: FrameworkArg,

    #[command(flatten)]
    most: MostArg,

    #[command(flatten)]
    dump: DumpArg,
}

/// Parses a thread id: decimal, or hexadecimal with `0x`.
fn id(text: &str) -> Result<u64, String> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.map_err(|_| "expected a managed or OS thread id".to_string())
}

impl Command for Stacks {
    const NAME: &'static str = "stacks";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("stacks DUMP", "every managed thread with its methods"),
        example("stacks --merge DUMP", "threads with equal stacks, folded: the first look at a hang"),
        example("stacks --roots --thread 1 DUMP", "what each frame of thread 1 holds"),
        example("stacks --arguments --method Program.Main DUMP", "what the methods of these threads were called with"),
        example("stacks --arguments --locals DUMP", "arguments and local variables; --symbols DIR supplies PDBs with their names"),
        example("stacks --format folded DUMP", "folded stacks for speedscope and flame graphs"),
    ];
    type Report = StacksReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, _at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.most.page()))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<StacksReport>> {
        let query = StacksQuery {
            threads: self.thread.clone(),
            methods: self.method.clone(),
            roots: self.roots,
            arguments: self.arguments,
            locals: self.locals,
            waits: self.waits,
            merge: self.merge,
        };
        Ok(stacks(&at.runtime()?, &query)?)
    }

    fn view(&self, _at: &At<'_>, report: &StacksReport) -> Result<View> {
        Ok(View { framework: self.framework.framework || report.selected_framework(&self.method), ..View::default() })
    }
}
