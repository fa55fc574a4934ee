use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis;
use crate::model::AnswerKind;

/// `gcdump info`. A dump without a readable runtime is described all the same; the exit code says it.
pub(super) fn run(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let report = analysis::info(&process, config.runtime, &process.notes);
    let runtime = process.runtime(config.runtime).ok();
    // A dump that cannot answer everything is a partial dump: scripts that sort dumps look at the exit code.
    let whole = report.answers.iter().all(|a| a.answer == AnswerKind::Full);
    let exit = finish(config, "info", &process, runtime, report, streams)?;
    Ok(match (runtime, exit) {
        (None, _) => Exit::NoRuntime,
        (Some(_), Exit::Ok) if !whole => Exit::Partial,
        (Some(_), exit) => exit,
    })
}
