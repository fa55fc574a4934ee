//! The answer of `diff`: groups that changed, what holds the growth, and the results of the rules.

use super::number;
use crate::analysis::{DiffBy, DiffMeasure, DiffReport, DiffRow, DiffRule};
use crate::base::Notes;
use crate::output::Paging;
use crate::output::checks::{Check, Outcome};
use crate::output::columns::{Columns, Readers, columns};
use crate::output::count;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

/// Columns of the groups. For two dumps all numbers are shown. For more dumps, only the bytes in each dump and their trend are shown.
fn row_columns<'r>(by: DiffBy, dumps: usize) -> Columns<'r, DiffRow> {
    let two = dumps <= 2;
    let readers = if two { Readers::All } else { Readers::Machines };
    let mut all = columns![
        DiffRow,
        count("count_before" = before.count).keep(4).only(readers),
        count("count_after" = after.count).keep(4).only(readers),
        change(count_change).keep(7),
        bytes("bytes_before" = before.bytes).keep(4).only(readers),
        bytes("bytes_after" = after.bytes).keep(6).only(readers)
    ];
    for i in 0..if two { 0 } else { dumps } {
        all = all.and(columns![
            DiffRow,
            count("count", |r| r.series.get(i).map(|s| s.count)).only(Readers::Machines).numbered(i.saturating_add(1)),
            bytes("bytes", |r| r.series.get(i).map(|s| s.bytes)).numbered(i.saturating_add(1))
        ]);
    }
    let name = match by {
        DiffBy::Type => "type",
        DiffBy::Namespace => "namespace",
        DiffBy::Assembly => "assembly",
        DiffBy::Generation => "generation",
        DiffBy::Root => "root",
    };
    all.and(columns![
        DiffRow,
        change(bytes_change).keep(9),
        growth(growth),
        word(trend, 8).when(!two),
        word(state, 6),
        names(name, 60, |r| &r.key).keep(9),
        text(module, 30).only(Readers::Machines).when(by == DiffBy::Type),
        bytes(retained_before).only(Readers::Machines).when(by == DiffBy::Type),
        bytes(retained_after).only(Readers::Machines).when(by == DiffBy::Type)
    ])
}

fn measure_columns<'r>(dumps: usize) -> Columns<'r, DiffMeasure> {
    let mut all = columns![DiffMeasure, text("measure" = name, 24)];
    for i in 0..dumps {
        let value = move |m: &DiffMeasure| m.series.get(i).copied().flatten();
        all = match (dumps, i) {
            (2, 0) => all.count("before", value),
            (2, _) => all.count("after", value),
            _ => all.count("dump", value).numbered(i.saturating_add(1)),
        };
    }
    all.and(columns![DiffMeasure, change(change), growth(growth), word(trend, 8).when(dumps > 2)])
}

impl Report for DiffReport {
    fn page(&mut self, to: &mut Paging) {
        let columns = row_columns(self.by, self.dumps.len());
        self.shown = to.list("rows", &mut self.rows, 0, &columns).or(self.shown);
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let dumps = self.dumps.len();
        to.records("dump", &self.dumps);
        if self.live_only {
            to.line("Only objects that roots reach are counted: a .gcdump file has no others.");
            to.gap();
        }
        to.records("holder", self.holders.iter().flatten());
        match &self.holders {
            Some(holders) => to.lines(holders.iter().map(|h| h.text.clone())),
            None if self.holders_unknown.is_some() => to.line("Holders of the growth are unknown (see the warnings)."),
            None => to.line("Holders are not searched for in a heap of this size; --holders searches for them."),
        }
        to.gap_if(self.holders.as_ref().is_none_or(|h| !h.is_empty()));
        if self.rows.is_empty() {
            to.line(if self.unchanged > 0 { "Nothing changed." } else { "No objects." });
        }
        to.table(Table::records("row", &self.rows, row_columns(self.by, dumps)).csv(true).shown(!self.rows.is_empty()));
        if let Some(shown) = self.shown.filter(|_| !to.paged) {
            to.line(format!("… {} listed, those that gained most first (--top 0 lists all)", count(shown)));
        }
        if self.unchanged > 0 && !self.rows.is_empty() {
            to.line(format!("{} unchanged (--all lists them)", count(self.unchanged)));
        }
        to.gap();
        to.table(Table::records("measure", &self.summary, measure_columns(dumps)));
        to.records("rule", &self.rules);
        let failed = self.rules.iter().filter(|r| r.failed == Some(true));
        to.gap_if(!self.rules.is_empty());
        if !self.rules.is_empty() {
            to.line(format!("{} of {} rules failed", failed.clone().count(), number(&self.rules)));
        }
        to.lines(failed.filter_map(|r| Some(format!("  {}: {}", r.rule, r.reason.as_deref()?))));
    }

    fn checks(&self, _notes: &Notes) -> Option<Vec<Check>> {
        let check = |r: &DiffRule| {
            let reason = r.reason.as_deref().unwrap_or_default();
            let check = match r.failed {
                Some(true) => Check::new(&r.rule, Outcome::Error, format!("{}: {reason}", r.rule)),
                Some(false) => Check::passed(&r.rule),
                None => Check::new(&r.rule, Outcome::Skipped, reason),
            };
            // The rules are about the last dump.
            Check { dump: self.dumps.last().map(|dump| dump.path.clone()), ..check }
        };
        (!self.rules.is_empty()).then(|| self.rules.iter().map(check).collect())
    }
}
