//! `contracts`: arguments and query, and the exit code of failed checks.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use crate::analysis::{CheckOutcome, ContractsReport};
use crate::analysis::{ContractsQuery, contracts};
use crate::base::Answer;

/// Data contracts of the runtime: contracts, types, fields and globals, with their origins.
#[derive(Debug, Args)]
pub(in crate::cli) struct Contracts {
    /// Only check the descriptor or overlay against the dump; exit code 1 if a check fails.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Contracts {
    const NAME: &'static str = "contracts";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[
        example("contracts DUMP", "all contracts, types, fields and globals, with origins"),
        example("contracts --check DUMP", "check the layouts in use against the dump"),
    ];
    type Report = ContractsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ContractsReport>> {
        Ok(contracts(&at.runtime()?, &ContractsQuery { checks_only: self.check }))
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        let failed = report.checks.iter().any(|c| c.outcome == CheckOutcome::Failed);
        exit.negative_if(self.check && failed)
    }
}
