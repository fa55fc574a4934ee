use super::number;
use crate::model::{RootCoverageModel, RootModel, RootType, RootsReport};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};

/// Tables omit the last two columns, which follow from others.
fn root_columns<'r>() -> Columns<'r, RootModel> {
    columns::<RootModel>()
        .text("kind", 19, |r| r.kind.name())
        .whole()
        .keep(9)
        .address("address", |r| r.address)
        .keep(6)
        .address("object", |r| r.object)
        .keep(8)
        .names("type", 40, |r| r.type_name.as_ref())
        .keep(9)
        .made("flags", 21, |r| r.flags.iter().map(|f| f.name()).collect::<Vec<_>>().join(" "))
        .keep(4)
        // Of a static root, the field.
        .text("label", 40, |r| &r.label)
        .name()
        .keep(9)
        .count("thread", |r| r.thread.map(u64::from))
        .only(Readers::Machines)
        .address("method_table", |r| r.method_table)
        .only(Readers::Machines)
}

fn type_columns<'r>() -> Columns<'r, RootType> {
    columns::<RootType>()
        .count("count", |t| t.count)
        .count("objects", |t| t.objects)
        .address("method_table", |t| t.method_table)
        .extra()
        .names("type", 60, |t| t.type_name.as_ref())
}

/// Counts next to coverage: roots that were not found may only be absent from the dump.
fn kind_columns(report: &RootsReport) -> Columns<'_, RootCoverageModel> {
    let found = |c: &RootCoverageModel| report.counts.iter().find(|n| n.kind == c.kind);
    columns::<RootCoverageModel>()
        .text("kind", 19, |c| c.kind.name())
        .whole()
        .keep(9)
        .count("count", move |c| found(c).map_or(0, |n| n.count))
        .count("objects", move |c| found(c).map_or(0, |n| n.objects))
        .text("coverage", 12, |c| c.coverage.name())
        .whole()
        .keep(8)
        .text_or_none("because", 60, |c| c.reason.as_deref())
        .lines(3)
}

impl Report for RootsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let by_type = self.types.is_some();
        let some = self.roots.as_ref().map(Vec::len).or(self.types.as_ref().map(Vec::len)).unwrap_or(0) > 0;
        to.table(Table::records("root", self.roots.iter().flatten(), root_columns()).csv(!by_type).shown(some && !by_type));
        to.table(Table::records("type", self.types.iter().flatten(), type_columns()).csv(by_type).shown(some && by_type));
        if some {
            if self.shown.is_some() {
                to.line("… more rows (--top 0 lists all)");
            }
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
