//! The answer of `verify`: findings, and what was checked.

use super::number;
use super::stat::covered;
use crate::analysis::{FindingCount, FindingId, FindingModel, Severity, VerifyReport};
use crate::base::Notes;
use crate::output::Paging;
use crate::output::checks::{Check, Outcome};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

fn finding_columns<'r>() -> Columns<'r, FindingModel> {
    columns![
        FindingModel,
        word(severity, 10),
        word("finding" = id, 24),
        address(address),
        address(object),
        address(related),
        count(also),
        names(type_name, 30),
        text(message, 60).lines(2)
    ]
}

fn count_columns<'r>() -> Columns<'r, FindingCount> {
    columns![FindingCount, count(count), word(severity, 10), word("finding" = id, 24)]
}

/// Describes what was checked.
fn checked(report: &VerifyReport) -> String {
    let t = &report.totals;
    let parts = [
        (t.objects, "object"),
        (t.references, "reference"),
        (t.headers, "header"),
        (t.sync_blocks, "sync block"),
        (t.handles, "handle"),
        (t.finalizers, "finalizable object"),
        (t.segments, "segment"),
        (t.contexts, "allocation context"),
        (t.cards, "card"),
    ];
    parts.map(|(n, what)| plural(n, what)).join(", ")
}

impl Report for VerifyReport {
    fn page(&mut self, to: &mut Paging) {
        let all = self.totals.errors.saturating_add(self.totals.suspicious);
        to.list("findings", &mut self.findings, all, &finding_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let t = &self.totals;
        to.table(Table::records("finding", &self.findings, finding_columns()).csv(true).shown(false));
        to.lines(self.findings.iter().map(|f| format!("{}  {}: {}", f.address, f.id, f.message)));
        let all = t.errors.saturating_add(t.suspicious);
        let more = all.saturating_sub(number(&self.findings));
        if more > 0 && !to.paged {
            to.line(format!("… {} more (--top 0 lists all)", count(more)));
        }
        to.gap_if(all > 0);
        to.table(Table::records("count", &self.summary, count_columns()).shown(all > 0));
        if all > 0 {
            to.line("See docs/findings.md for the meaning of each finding");
        } else if let Some(object) = self.object {
            to.line(format!("No heap corruption found at {object}"));
        } else if !to.complete {
            to.line("No heap corruption found in the parts that could be checked");
        } else {
            to.line("No heap corruption found");
        }
        to.gap();
        let mut facts = vec![("checked", checked(self))];
        if t.dead_objects > 0 {
            facts.push(("dead", format!("{} not yet swept by the background collection", plural(t.dead_objects, "object"))));
        }
        if t.unknown_references > 0 {
            facts.push(("unknown", format!("{} to memory that could not be read", plural(t.unknown_references, "reference"))));
        }
        facts.extend(self.unavailable.iter().map(|u| ("not checked", format!("{}: {}", u.check, u.reason))));
        facts.push(("walked", covered(&self.coverage)));
        to.facts(facts);
        to.records("unavailable", &self.unavailable);
        to.record("totals", t);
        to.record("coverage", &self.coverage);
    }

    fn checks(&self, notes: &Notes) -> Option<Vec<Check>> {
        let found = self.findings.iter().map(|f| {
            let outcome = match f.severity {
                Severity::Error => Outcome::Error,
                Severity::Suspicious => Outcome::Warning,
            };
            Check::new(f.id.name(), outcome, format!("{}: {}", f.address, f.message))
        });
        let unavailable = self.unavailable.iter().map(|u| Check::new(u.check.name(), Outcome::Skipped, &u.reason));
        let mut all: Vec<Check> = found.chain(unavailable).collect();
        let sound = FindingId::ALL.iter().filter(|id| !self.summary.iter().any(|s| s.id == **id));
        if self.unavailable.is_empty() {
            all.extend(sound.map(|id| Check::without_finding(id.name(), notes)));
        }
        Some(all)
    }
}
