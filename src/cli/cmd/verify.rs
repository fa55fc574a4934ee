use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::address;
use crate::analysis::{VerifyQuery, verify};
use crate::base::{Addr, Answer};
use crate::model::VerifyReport;

/// What is wrong with the heap: objects, references, locks, handles, segments. Exit code 1 if something is broken.
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    /// Only what concerns the object at this address, or around it.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    object: Option<Addr>,

    /// Findings to list, 0 for all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    top: usize,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Verify {
    const NAME: &'static str = "verify";
    const GROUP: Group = Group::Trust;
    const SOS: &'static [&'static str] = &["verifyheap"];
    const EXAMPLES: &'static [Example] = &[
        example("verify DUMP", "heap corruption, if there is any"),
        example("verify --object ADDR DUMP", "what is wrong with one object"),
    ];
    type Report = VerifyReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<VerifyReport>> {
        Ok(verify(&at.runtime()?, &VerifyQuery { object: self.object, top: self.top })?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        if report.totals.errors > 0 { Exit::Negative } else { exit }
    }
}
