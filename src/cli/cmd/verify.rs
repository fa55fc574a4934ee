//! `verify`: arguments and query, and the exit code of a damaged heap.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::open::Opening;
use super::super::select::PageArgs;
use super::super::values::address;
use crate::analysis::VerifyReport;
use crate::analysis::{VerifyQuery, verify};
use crate::base::{Addr, Answer};
use crate::heapgraph::IndexUse;
use crate::output::Paging;

/// Number of findings on a terminal without `--top`.
const FEW: usize = 100;

/// Check the heap for corruption: objects, references, locks, handles, segments. Exit code 1 on errors.
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    /// Check only the object at or around this address.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    object: Option<Addr>,

    /// Number of findings to list, 0 for all [default: 100 on a terminal; all in pipes, files and other formats].
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Verify {
    const NAME: &'static str = "verify";
    const GROUP: Group = Group::Trust;
    const EXAMPLES: &'static [Example] =
        &[example("verify DUMP", "check the heap for corruption"), example("verify --object ADDR DUMP", "check one object")];
    type Report = VerifyReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn prepare(&self, opening: &mut Opening) {
        // Check the dump itself rather than its index.
        opening.options.index = IndexUse::None;
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.page.of(at.rows_or(self.top, FEW)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<VerifyReport>> {
        Ok(verify(&at.runtime()?, &VerifyQuery { object: self.object, top: self.page.counted(at.rows_or(self.top, FEW)) })?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        // An error is definite even if other checks were incomplete.
        exit.negative_for_certain_if(report.totals.errors > 0)
    }
}
