//! `report`: arguments, and the query of the page.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::UsageError;
use super::super::open::Opening;
use crate::analysis::PageReport;
use crate::analysis::{self, AnalyzeQuery, PageQuery, command_line};
use crate::base::Answer;
use crate::output::Format;

/// One HTML page to attach to a ticket: findings, the heap, retained sizes, stacks, locks and more.
///
/// Write it with -o crash.html. The page needs no network, can be read without JavaScript, and is smaller than 1.5 MB: long tables are
/// shortened, with a note. With two dumps, the page describes the later one and what changed. It omits what the process stored (texts
/// of strings, elements of arrays, messages, its command line), so that you can send it to others; --contents includes that, too.
#[derive(Debug, Args)]
pub(in crate::cli) struct Report {
    /// Include contents: strings, elements of arrays of numbers, messages of exceptions, names of threads, the command line.
    #[arg(long)]
    contents: bool,

    /// Without contents, as without it: once they were shown unless it was given.
    #[arg(long, hide = true, conflicts_with = "contents")]
    share: bool,

    /// Do not build the graph of the heap. The page has no retained sizes and no suspects.
    #[arg(long)]
    no_graph: bool,

    /// The dump; of two, the earlier one [default: $GCDUMP_DUMP, else the only dump in the current folder].
    #[arg(value_name = "DUMP")]
    dump: Option<PathBuf>,

    /// The later dump.
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
}

impl Command for Report {
    const NAME: &'static str = "report";
    const GROUP: Group = Group::Tools;
    const EXAMPLES: &'static [Example] = &[
        example("report DUMP", "one page about the process: -o crash.html, or > crash.html"),
        example("report --contents DUMP", "one with contents as well, which may be secrets"),
        example("report BEFORE AFTER", "what changed, and the later dump"),
    ];
    type Report = PageReport;

    /// Returns the dump that the page is about.
    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.after.clone().or_else(|| self.dump.clone()))
    }

    fn further(&self) -> &[PathBuf] {
        if self.after.is_some() { self.dump.as_slice() } else { &[] }
    }

    /// Opens the dumps with contents hidden unless `--contents` is given.
    fn prepare(&self, opening: &mut Opening) {
        opening.options.hide_contents |= !self.contents;
    }

    fn format(&self, asked: Format) -> Result<Format> {
        Ok(if asked == Format::Table { Format::Html } else { asked })
    }

    fn suggests(&self, _page: &Self::Report) -> bool {
        true
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<PageReport>> {
        if at.format() == Format::Html && at.is_terminal() {
            return Err(UsageError("a report is a web page: write it to a file with -o crash.html".into()).into());
        }
        let before = self.before().map(|_| at.source_at(1)).transpose()?;
        let analyze = AnalyzeQuery { graph: !self.no_graph, options: at.config.repeated(), ..AnalyzeQuery::default() };
        let query = PageQuery { runtime: at.config.runtime, analyze, made_by: self.made_by(at) };
        Ok(analysis::page(at.dump()?, before.as_deref(), &query)?)
    }
}

impl Report {
    /// Returns the earlier dump, if there are two.
    fn before(&self) -> Option<&PathBuf> {
        self.further().first()
    }

    /// Returns the command line that creates the page.
    fn made_by(&self, at: &At<'_>) -> String {
        let flags = [(self.contents, "--contents"), (self.no_graph, "--no-graph")].into_iter().filter_map(|(on, flag)| on.then_some(flag));
        let options = at.config.repeated();
        // In a shell, a dump may be given as `.`; the command line needs its path.
        let path = |index| at.dump_at(index).map(|dump| dump.file().facts.path_in_commands());
        let before = self.before().and_then(|_| path(1).ok());
        let words = ["report"].into_iter().chain(flags).chain(options.iter().map(String::as_str)).chain(before.as_deref());
        command_line(words, &path(0).unwrap_or_default())
    }
}
