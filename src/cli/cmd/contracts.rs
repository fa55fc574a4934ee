use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis;
use crate::model::{CheckModel, CheckOutcome};

/// `gcdump contracts`.
pub(super) fn run(config: &Config, dump: &DumpArg, check: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let mut report = analysis::contracts(&process, runtime);
    // An overlay that was given and refused is what a user who runs --check wants to hear about.
    for refused in &runtime.refused {
        report.checks.push(CheckModel { name: "overlay".into(), outcome: CheckOutcome::Failed, facts: refused.clone() });
    }
    let failed = report.checks.iter().any(|c| c.outcome == CheckOutcome::Failed);
    if check {
        report.types.clear();
        report.globals.clear();
    }
    let exit = finish(config, "contracts", &process, Some(runtime), report, streams)?;
    Ok(if check && failed { Exit::Negative } else { exit })
}
