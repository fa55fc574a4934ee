//! `info`: arguments and query, for one dump or for several.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::advice::advise;
use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use crate::analysis::InfoReport;
use crate::analysis::{self, InfoQuery};
use crate::base::Answer;
use crate::model::Container;
use crate::output::View;

/// Summary of the process and the dump: what died, how it was started, runtime and GC with their settings and limits, and what to run next.
#[derive(Debug, Args)]
pub(in crate::cli) struct Info {
    /// Also the technical part: how the dump was recognized, addresses, layouts, contracts.
    #[arg(long)]
    verbose: bool,

    #[command(flatten)]
    dump: DumpArg,

    /// Further dumps: a line for each dump, or a document with --json.
    #[arg(value_name = "DUMP", conflicts_with = "verbose")]
    further: Vec<PathBuf>,
}

impl Command for Info {
    const NAME: &'static str = "info";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[
        example("info DUMP", "the process, its runtime and GC, and what the dump can answer"),
        example("info --verbose DUMP", "also layouts, contracts and addresses"),
    ];
    const EACH_DUMP: bool = true;
    type Report = InfoReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn further(&self) -> &[PathBuf] {
        &self.further
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<InfoReport>> {
        let query = InfoQuery { runtime: at.config.runtime, options: at.config.repeated() };
        let mut answer = analysis::info(at.dump()?, &query);
        advise(&mut answer.data.runtime_error, at.dump()?.runtime_at(at.config.runtime));
        Ok(answer)
    }

    fn view(&self, at: &At<'_>, _report: &InfoReport) -> Result<View> {
        let path = if at.has_several_dumps() { Some(at.dump()?.file().facts.shown_path()) } else { None };
        Ok(View { detail: self.verbose, path, ..View::default() })
    }

    fn suggests(&self, report: &InfoReport) -> bool {
        report.more_precise.is_some() || report.next.is_some()
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        // A .gcdump file has no runtime, and nothing of it is missing.
        let is_snapshot = report.format == Container::Gcdump;
        if report.runtime_error.is_some() && !is_snapshot { Exit::NoRuntime } else { exit }
    }
}
