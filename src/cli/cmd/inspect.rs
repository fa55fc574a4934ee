//! `inspect`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::PageArgs;
use crate::analysis::{InspectQuery, inspect};
use crate::analysis::{InspectReport, InspectionId};
use crate::base::Answer;
use crate::output::Paging;

/// Number of rows on a terminal without `--top`.
const FEW: usize = 10;

/// Memory that the heap wastes, and objects held by mistake.
///
/// Equal strings and arrays, zeros, sparse arrays, empty and oversized collections, boxed values, event leaks, undisposed objects, open
/// handles, unobserved exceptions, load contexts that stay, registrations.
#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// Only this inspection (repeatable).
    #[arg(long, value_enum, ignore_case = true, value_name = "ID")]
    only: Vec<InspectionId>,

    /// Number of rows of each inspection, 0 for all [default: 10 on a terminal; all in pipes, files and other formats].
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Inspect {
    const NAME: &'static str = "inspect";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("inspect DUMP", "everything that is often wasted or held by mistake"),
        example("inspect --only event-leaks --only undisposed DUMP", "some inspections"),
    ];
    type Report = InspectReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.page.of(at.rows_or(self.top, FEW)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<InspectReport>> {
        Ok(inspect(&at.heap()?, &InspectQuery { only: self.only.clone(), top: self.page.counted(at.rows_or(self.top, FEW)), graph: true })?)
    }
}
