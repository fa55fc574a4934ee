//! The answer of `roots`: roots, and their numbers by kind and by type.

use super::number;
use crate::analysis::{RootType, RootsReport, RootsRows};
use crate::model::{RootCoverageModel, RootModel};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

/// Whether a label only repeats the kind of the root: `strong handle` for a `strong-handle`.
fn is_kind(root: &RootModel, label: &str) -> bool {
    let words = root.kind.name().split('-');
    words.eq(label.split([' ', '-']))
}

/// Columns of roots. Tables omit the last two columns, which follow from other columns. `labels` is whether any label adds to the kind.
fn root_columns<'r>(labels: bool) -> Columns<'r, RootModel> {
    columns![
        RootModel,
        word(kind, 19).keep(9),
        address(address).keep(6),
        address(object).keep(9),
        names(type_name, 40).least(if labels { 18 } else { 26 }).keep(9),
        text("flags", 21, |r| r.flags.iter().map(|f| f.name()).collect::<Vec<_>>().join(" ")).keep(4),
        // For a static root, the label is the field.
        text(label, 40).name().only(Readers::Machines),
        // A label that only repeats the kind is omitted.
        text("label", 40, |r| Some(r.label.as_str()).filter(|label| !is_kind(r, label)))
            .name()
            .least(18)
            .keep(9)
            .only(Readers::People)
            .when(labels),
        count(thread).only(Readers::Machines),
        address(method_table).only(Readers::Machines)
    ]
}

fn type_columns<'r>() -> Columns<'r, RootType> {
    columns![RootType, count(count), count(objects), address(method_table).extra(), names(type_name, 60)]
}

/// Columns of counts and coverage. The coverage shows whether roots may be missing from the dump.
fn kind_columns(report: &RootsReport) -> Columns<'_, RootCoverageModel> {
    let found = |c: &RootCoverageModel| report.counts.iter().find(|n| n.kind == c.kind);
    columns![
        RootCoverageModel,
        word(kind, 19).keep(9),
        count("count", move |c| found(c).map_or(0, |n| n.count)),
        count("objects", move |c| found(c).map_or(0, |n| n.objects)),
        word(coverage, 12).keep(8),
        text("because" = reason, 60).lines(3)
    ]
}

impl Report for RootsReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = match &mut self.rows {
            RootsRows::Roots { roots } => to.list("roots", roots, self.total, &root_columns(true)),
            RootsRows::Types { types } => to.list("types", types, 0, &type_columns()).or(self.shown),
        };
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let (roots, types, by_type): (&[_], &[_], _) = match &self.rows {
            RootsRows::Roots { roots } => (roots, &[], false),
            RootsRows::Types { types } => (&[], types, true),
        };
        let labels = roots.iter().any(|r: &RootModel| !is_kind(r, &r.label));
        let some = !roots.is_empty() || !types.is_empty();
        to.table(Table::records("root", roots, root_columns(labels)).csv(!by_type).shown(some && !by_type));
        to.table(Table::records("type", types, type_columns()).csv(by_type).shown(some && by_type));
        if some {
            to.more_rows(self.shown, "rows");
            to.gap();
        }
        to.records("dependent", self.dependents.iter().flatten());
        to.records("count", &self.counts);
        to.table(Table::records("coverage", &self.coverage, kind_columns(self)));
        to.gap();
        let dependents = match self.dependents.as_deref().map_or(0, number) {
            0 => String::new(),
            n => format!(", and {}", plural(n, "dependent handle")),
        };
        to.line(format!("{}{dependents}", plural(self.total, "root")));
    }
}
