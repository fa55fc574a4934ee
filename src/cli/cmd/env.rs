//! `env`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis;
use crate::analysis::EnvReport;
use crate::base::Answer;

/// Arguments and environment of the process, and properties of the runtime.
///
/// Linux puts arguments and environment on the first stack: what the program was started with, without its own changes. Windows keeps them in the
/// parameters of the process. Properties are those of `runtimeconfig.json` and the host, as `AppContext` has them.
///
/// The environment of a process often has passwords.
#[derive(Debug, Args)]
pub(in crate::cli) struct Env {
    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Env {
    const NAME: &'static str = "env";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[example("env DUMP", "how the process was started, and with which settings")];
    type Report = EnvReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<EnvReport>> {
        if at.dump()?.snapshot().is_some() {
            // A snapshot does not have process memory. Asking for its runtime returns the error about this.
            at.runtime()?;
        }
        Ok(analysis::env(at.dump()?, at.config.runtime))
    }
}
