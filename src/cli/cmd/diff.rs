//! `diff`: arguments, the earlier dumps, and the rules of a budget file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::{Exit, UsageError};
use super::super::open::read_small;
use super::super::select::{FilterArg, SortArg, TopArg, TypesArg};
use crate::analysis::{DiffBy, DiffReport, DiffRule, DiffSort};
use crate::analysis::{DiffQuery, Rule, diff};
use crate::base::Answer;
use crate::output::Paging;

/// Number of lines around the table: holders and the summary.
const AROUND: usize = 16;

/// Changes between dumps, of one process or of several runs: objects and bytes by type, what holds the growth, handles,
/// threads, committed and free bytes.
#[derive(Debug, Args)]
pub(in crate::cli) struct Diff {
    /// Grouping key.
    #[arg(long, value_enum, ignore_case = true, default_value_t = DiffBy::Type)]
    by: DiffBy,

    #[command(flatten)]
    types: TypesArg,

    #[command(flatten)]
    sort: SortArg<DiffSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,

    /// Also list what did not change.
    #[arg(long)]
    all: bool,

    /// List every holder of growth, in heaps of any size. Without it, the three largest, in heaps of up to 2 million objects.
    #[arg(long)]
    holders: bool,

    /// Exit with code 1 if this is so in the last dump, or became so since the first (repeatable).
    ///
    /// SUBJECT is bytes, objects, handles, handles:KIND, threads, finalizable, ready, committed, fragmented, oom, native, tasks, or
    /// type:NAME:count|bytes|retained. A comparison (>, >=, <, <=) follows, and a number: 10MB for the number in the last dump, +10MB
    /// for its growth, 10% for its growth in percent.
    #[arg(long, value_name = "RULE")]
    fail_on: Vec<Rule>,

    /// Read such rules from a file, one a line; # begins a comment.
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,

    /// The earlier dump.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The later dump; several, in order, show the trend.
    #[arg(value_name = "AFTER", required = true, num_args = 1..)]
    after: Vec<PathBuf>,
}

impl Command for Diff {
    const NAME: &'static str = "diff";
    const GROUP: Group = Group::Compare;
    const EXAMPLES: &'static [Example] = &[
        example("diff BEFORE AFTER", "what holds the growth, and what changed by type"),
        example("diff --by root BEFORE AFTER", "the same by static field and other roots"),
        example("diff BEFORE AFTER AFTER", "the trend over several dumps"),
        example("diff --fail-on 'bytes>10%' --fail-on 'type:Lab.*:count>+1000' BEFORE AFTER", "a check for CI: exit code 1 on growth"),
    ];
    type Report = DiffReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(Some(self.before.clone()))
    }

    fn further(&self) -> &[PathBuf] {
        &self.after
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.filter.of(self.top.page_or(at, few(at)))))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<DiffReport>> {
        let rules = self.rules()?;
        let sources = (0..=self.after.len()).map(|i| at.source_at(i)).collect::<Result<Vec<_>>>()?;
        let heaps: Vec<_> = sources.iter().map(AsRef::as_ref).collect();
        let top = self.sort.before(self.filter.before(self.top.counted_or(at, few(at))));
        let sort = self.sort.given().unwrap_or_default();
        let types = self.types.patterns();
        let query = DiffQuery { by: self.by, types, sort, top, all: self.all, holders: self.holders, rules };
        Ok(diff(&heaps, &query)?)
    }

    fn exit(&self, report: &DiffReport, exit: Exit) -> Exit {
        let failed = || report.rules.iter().filter(|rule| rule.failed == Some(true));
        exit.negative_if(failed().next().is_some()).negative_for_certain_if(failed().any(|rule| rule.certain))
    }

    /// Returns lines about the rules that failed or could not be checked.
    fn remarks(&self, report: &DiffReport) -> Vec<String> {
        let remark = |rule: &DiffRule| {
            let word = if rule.failed == Some(true) { "failed" } else { "not checked" };
            rule.reason.as_ref().map(|reason| format!("{word}: {}: {reason}", rule.rule))
        };
        report.rules.iter().filter_map(remark).collect()
    }
}

impl Diff {
    fn rules(&self) -> Result<Vec<Rule>> {
        let mut rules = self.fail_on.clone();
        if let Some(path) = &self.budget {
            rules.extend(budget(path)?);
        }
        Ok(rules)
    }
}

/// Returns the number of rows on a terminal without `--top`.
fn few(at: &At<'_>) -> usize {
    at.screen().saturating_sub(AROUND).max(10)
}

fn budget(path: &Path) -> Result<Vec<Rule>> {
    let text = read_small(path, "budget")?;
    let text = String::from_utf8(text).with_context(|| UsageError(format!("{} is not a text file", path.display())))?;
    let rules = Rule::parse_all(&text);
    rules.map_err(|(line, e)| UsageError(format!("{}:{line}: {e}", path.display())).into())
}
