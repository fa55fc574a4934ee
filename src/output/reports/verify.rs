use std::io;

use serde_json::Value;

use super::completeness;
use super::stat::covered;
use crate::model::VerifyReport;
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

impl VerifyReport {
    fn summary_grid(&self) -> Grid<'_> {
        let columns = vec![Column::number("count"), Column::text("severity", 10), Column::text("finding", 24)];
        Grid::new(columns, move || {
            self.summary.iter().map(|s| vec![Cell::Count(s.count), Cell::Text(s.severity.name().into()), Cell::Text(s.id.name().into())])
        })
    }

    /// What was looked at, in words.
    fn checked(&self) -> String {
        let t = &self.totals;
        let parts = [
            (t.objects, "objects"),
            (t.references, "references"),
            (t.headers, "headers"),
            (t.sync_blocks, "sync blocks"),
            (t.handles, "handles"),
            (t.finalizers, "finalizers"),
            (t.segments, "segments"),
            (t.contexts, "contexts"),
            (t.cards, "cards"),
        ];
        parts.map(|(n, what)| format!("{} {what}", count(n))).join(", ")
    }
}

impl Report for VerifyReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let mut columns = vec![Column::text("severity", 10), Column::text("finding", 24)];
        columns.extend(["address", "object", "related"].map(Column::address));
        columns.extend([Column::number("also"), Column::text("type", 30), Column::text("message", 60)]);
        Grid::new(columns, move || {
            self.findings.iter().map(|f| {
                vec![
                    Cell::Text(f.severity.name().into()),
                    Cell::Text(f.id.name().into()),
                    Cell::Addr(f.address),
                    Cell::some(f.object, Cell::Addr),
                    Cell::some(f.related, Cell::Addr),
                    Cell::Count(f.also),
                    Cell::some(f.type_name.clone(), Cell::Text),
                    Cell::Text(f.message.clone()),
                ]
            })
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let findings = self.findings.iter().map(|f| record("finding", f));
        let summary = self.summary.iter().map(|s| record("count", s));
        let unavailable = self.unavailable.iter().map(|u| record("unavailable", u));
        let last = [record("totals", &self.totals), record("coverage", &self.coverage)];
        Box::new(findings.chain(summary).chain(unavailable).chain(last))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        for f in &self.findings {
            page.line(&format!("{}  {}: {}", f.address, f.id, f.message))?;
        }
        let all = self.totals.errors.saturating_add(self.totals.suspicious);
        let more = all.saturating_sub(u64::try_from(self.findings.len()).unwrap_or(u64::MAX));
        if more > 0 {
            page.line(&format!("… and {} more (--top 0 lists all)", count(more)))?;
        }
        if all > 0 {
            page.gap()?;
            page.grid(&self.summary_grid(), None)?;
            page.line("What each means: docs/findings.md")?;
        } else if let Some(object) = self.object {
            page.line(&format!("Nothing found that concerns the object at {object}."))?;
        } else if !self.complete {
            page.line("Nothing found in what could be checked.")?;
        } else {
            page.line("Nothing found.")?;
        }
        page.gap()?;
        let mut facts = vec![("checked", self.checked())];
        if self.totals.dead_objects > 0 {
            facts.push(("dead", format!("{} objects that the background collection has yet to sweep", count(self.totals.dead_objects))));
        }
        if self.totals.unknown_references > 0 {
            facts.push(("unknown", format!("{} references lead to what is not known", count(self.totals.unknown_references))));
        }
        facts.extend(self.unavailable.iter().map(|u| ("not checked", format!("{}: {}", u.check, u.reason))));
        facts.push(("walked", covered(&self.coverage)));
        page.facts(&facts)
    }
}
