//! The answer of `analyze`: findings with their values, and the numbers that change from dump to dump.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::analysis::{
    AnalyzeReport, BelowThreshold, DiffMeasure, Problem, ProblemId, ProblemSeverity, RuleNeed, SkippedProblem, Trend, Triage,
};
use crate::base::{Notes, len64};
use crate::output::advice;
use crate::output::checks::{Check, Outcome};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count};

fn finding_columns<'r>() -> Columns<'r, Problem> {
    columns![
        Problem,
        word(severity, 8),
        word(id, 21),
        count(count),
        bytes(bytes),
        text("share", 8, |f| f.share.map(|s| s.to_string())),
        address(object),
        names(type_name, 40),
        names(method, 40),
        text(title, 80),
        text(command, 60)
    ]
}

impl Report for AnalyzeReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("finding", &self.findings, finding_columns()).csv(true).shown(false));
        to.records("below", &self.below);
        to.records("uncertain", &self.uncertain);
        to.records("skipped", &self.skipped);
        to.records("trend", &self.trends);
        to.records("triage", &self.triage);
        for f in &self.findings {
            to.finding(f.severity.name(), &f.title, &f.command);
        }
        to.gap_if(!self.findings.is_empty());
        let found: BTreeSet<ProblemId> = self.findings.iter().map(|f| f.id).chain(self.uncertain.iter().map(|u| u.id)).collect();
        let sound = len64(self.inspected.iter().filter(|id| !found.contains(id)).count());
        if sound > 0 {
            let other = if found.is_empty() { "" } else { "other " };
            let kinds = if sound == 1 { "kind of problem" } else { "kinds of problems" };
            let kinds = format!("{} {other}{kinds} (gcdump help analyze lists them)", count(sound));
            to.line(match (self.findings.is_empty(), self.below.is_empty()) {
                (true, true) => format!("Nothing found. Looked for {kinds}."),
                (true, false) => format!("Nothing found above the thresholds. Looked for {kinds}."),
                (false, _) => format!("Nothing else found. Looked for {kinds}."),
            });
        }
        to.lines(self.below.iter().take(FEW_BELOW).map(|b| format!("Below the threshold of {}: {}", threshold(b), b.problem.title)));
        if let Some(more) = self.below.len().checked_sub(FEW_BELOW).filter(|n| *n > 0) {
            to.line(format!("… {more} more below a threshold (--json lists them)"));
        }
        if let Some(first) = self.since.first() {
            let sound = self.inspected.contains(&ProblemId::Growth) && !found.contains(&ProblemId::Growth);
            let name = first.file_name().unwrap_or(first.as_os_str()).to_string_lossy();
            to.lines(sound.then(|| format!("No growth since {name} above the thresholds.")).into_iter());
        } else if self.findings.is_empty() && !self.below.is_empty() {
            to.line("One dump cannot show growth; gcdump analyze --since EARLIER LATER compares two.");
        }
        // The line has no reasons, because the reasons are notes, which follow the answer.
        let partly: Vec<&str> = self.uncertain.iter().map(|u| u.id.name()).collect();
        if !partly.is_empty() {
            to.line(format!("Checked only in part, because something is missing (see the warnings): {}.", partly.join(", ")));
        }
        to.lines(by_reason(&self.skipped).map(|(reason, ids)| format!("Not checked: {ids}: {reason}")));
        let course = |trend: Trend| {
            let of: Vec<String> = self.trends.iter().filter(|m| m.trend == Some(trend)).map(series).collect();
            (!of.is_empty()).then(|| format!("{}: {}", course(trend), of.join("; ")))
        };
        to.lines([Trend::Grows, Trend::Shrinks, Trend::Varies].into_iter().filter_map(course).collect::<Vec<_>>().into_iter());
        to.gap();
        for row in &self.triage {
            to.fitting(triage(row, &row.command), triage(row, &row.short_command));
        }
    }

    fn checks(&self, _notes: &Notes) -> Option<Vec<Check>> {
        let found = self.findings.iter().map(|f| {
            let outcome = match f.severity {
                ProblemSeverity::Critical => Outcome::Error,
                ProblemSeverity::Warning => Outcome::Warning,
                ProblemSeverity::Info => Outcome::Note,
            };
            Check::new(f.id.name(), outcome, &f.title).command(&f.command)
        });
        let unsure = self.uncertain.iter().chain(&self.skipped);
        let other =
            self.inspected.iter().filter(|id| !self.findings.iter().any(|f| f.id == **id) && !self.uncertain.iter().any(|u| u.id == **id));
        let skipped = unsure.map(|s| Check::new(s.id.name(), Outcome::Skipped, reason(&s.reason, s.needs)));
        Some(found.chain(skipped).chain(other.map(|id| Check::passed(id.name()))).collect())
    }
}

/// Describes the trend of a number.
fn course(trend: Trend) -> &'static str {
    match trend {
        Trend::Grows => "Grows from dump to dump",
        Trend::Shrinks => "Shrinks from dump to dump",
        Trend::Steady => "Stays",
        Trend::Varies => "Goes up and down",
    }
}

/// Formats a series of values: `threads 12, 40, 30`.
fn series(m: &DiffMeasure) -> String {
    let shown = |n: &Option<u64>| n.map_or_else(|| "?".into(), |n| if m.is_bytes { bytes(n) } else { count(n) });
    format!("{} {}", m.name, m.series.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// Formats the line about a complaint, which has at most 80 columns with the short command.
fn triage(row: &Triage, command: &str) -> String {
    let command = if row.found.is_some() { String::new() } else { format!(" → {command}") };
    format!("{:<8}{}{command}", row.complaint.name(), row.text)
}

/// Maximum number of results below a threshold to show.
const FEW_BELOW: usize = 3;

/// Describes the threshold that was not reached.
fn threshold(b: &BelowThreshold) -> String {
    let share = b.least_share.map(|share| format!("{:.0} %", share * 100.0));
    b.least_bytes.map(bytes).or(share).unwrap_or_default()
}

/// Returns the reason, with the option that decides whether the rule has what it needs.
pub(super) fn reason(reason: &str, needs: Option<RuleNeed>) -> String {
    needs.map_or_else(|| reason.into(), |need| format!("{reason} ({})", advice::of_need(need)))
}

/// Groups the skipped problems by reason.
fn by_reason(skipped: &[SkippedProblem]) -> impl Iterator<Item = (String, String)> {
    let mut reasons: IndexMap<String, Vec<&str>> = IndexMap::new();
    for s in skipped {
        reasons.entry(reason(&s.reason, s.needs)).or_default().push(s.id.name());
    }
    reasons.into_iter().map(|(reason, ids)| (reason, ids.join(", ")))
}
