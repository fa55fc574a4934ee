//! The answer of `refs`: references of an object in both directions, or by type and field.

use super::retained::{root_coverage, root_line};
use crate::analysis::{RefList, RefObject, RefRow, RefType, RefsReport};
use crate::base::in_units;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, plural};

/// A row and its direction.
struct Directed<'r, T> {
    direction: &'static str,
    row: &'r T,
}

/// Columns of references for people: the object at the other end.
fn row_columns<'r>(incoming: bool, deep: bool, retained: bool) -> Columns<'r, RefRow> {
    columns![
        RefRow,
        count(depth).keep(7).when(deep),
        address(from).keep(8).when(incoming),
        names(from_type, 40).keep(9).when(incoming),
        address(from).keep(3).when(!incoming && deep),
        text("field", 28, |r| r.field.as_deref().or_else(|| r.via.words())).name().keep(9),
        address(to).keep(3).when(incoming && deep),
        address(to).keep(8).when(!incoming),
        names(to_type, 40).keep(9).when(!incoming),
        bytes(size).keep(5),
        bytes(retained).keep(8).when(retained)
    ]
}

/// All columns of a reference, for CSV.
fn all_of_row<'r>() -> Columns<'r, Directed<'r, RefRow>> {
    columns![
        Directed<'r, RefRow>,
        text(direction, 8),
        count(row.depth),
        address(row.from),
        names(row.from_type, 40),
        text(row.field, 24),
        word(row.via, 16),
        address(row.to),
        names(row.to_type, 40),
        bytes(row.size),
        bytes(row.retained)
    ]
}

fn type_columns<'r>(retained: bool) -> Columns<'r, RefType> {
    columns![
        RefType,
        count(references).keep(8),
        count(objects).keep(6),
        bytes(bytes).keep(4),
        bytes(retained).when(retained).keep(8),
        names(from_type, 40).keep(9),
        text("field", 28, |r| r.field.as_deref().or_else(|| r.via.words())).name().keep(9),
        names(to_type, 40).keep(8)
    ]
}

/// All columns of a group, for CSV.
fn all_of_type<'r>() -> Columns<'r, Directed<'r, RefType>> {
    columns![
        Directed<'r, RefType>,
        text(direction, 8),
        count(row.references),
        count(row.objects),
        bytes(row.bytes),
        bytes(row.retained),
        names(row.from_type, 40),
        text(row.field, 24),
        word(row.via, 16),
        names(row.to_type, 40),
        address(row.from_method_table),
        address(row.to_method_table)
    ]
}

fn object_line(object: &RefObject) -> String {
    let retained = object.retained.map_or_else(String::new, |retained| format!(", retains {}", bytes(retained)));
    format!("{} {} ({}{retained})", object.address, object.type_name, plural(object.size, "byte"))
}

/// Adds a list with its title and total.
fn list<'r>(to: &mut Sections<'r>, list: &'r RefList, incoming: bool) {
    let title = if incoming { "Referenced by" } else { "Refers to" };
    if list.references == 0 {
        to.line(format!("{title}: nothing"));
        to.gap();
        return;
    }
    to.title(title);
    let rows = list.list.iter().flatten();
    let deep = rows.clone().any(|r| r.depth > 1);
    let has_retained = rows.clone().any(|r| r.retained.is_some());
    to.table(Table::new(rows, row_columns(incoming, deep, has_retained)).csv(false).shown(list.list.is_some()));
    let types = list.types.iter().flatten();
    let has_retained = types.clone().any(|r| r.retained.is_some());
    to.table(Table::new(types, type_columns(has_retained)).csv(false).shown(list.types.is_some()));
    to.more_rows(list.shown, "rows");
    let end = if incoming { "from" } else { "to" };
    to.line(format!("{} {end} {} of {}", plural(list.references, "reference"), plural(list.objects, "object"), plural(list.bytes, "byte")));
    to.gap();
}

impl Report for RefsReport {
    fn page(&mut self, to: &mut Paging) {
        for (list, incoming) in [(&mut self.incoming, true), (&mut self.outgoing, false)] {
            let Some(list) = list else { continue };
            let name = if incoming { "incoming" } else { "outgoing" };
            if let Some(rows) = &mut list.list {
                list.shown = to.list(name, rows, 0, &row_columns(incoming, true, true)).or(list.shown);
            }
            if let Some(types) = &mut list.types {
                list.shown = to.list(name, types, 0, &type_columns(true)).or(list.shown);
            }
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let lists = || [("incoming", &self.incoming), ("outgoing", &self.outgoing)].into_iter().filter_map(|(d, l)| Some((d, l.as_ref()?)));
        let by_type = lists().any(|(_, list)| list.types.is_some());
        let rows = move || lists().flat_map(|(direction, list)| list.list.iter().flatten().map(move |row| Directed { direction, row }));
        let types = move || lists().flat_map(|(direction, list)| list.types.iter().flatten().map(move |row| Directed { direction, row }));
        to.table(Table::new(rows(), all_of_row()).csv(!by_type).shown(false));
        to.table(Table::new(types(), all_of_type()).csv(by_type).shown(false));
        to.records("object", &self.object);
        to.records("incoming", self.incoming.iter().flat_map(|list| list.list.iter().flatten()));
        to.records("outgoing", self.outgoing.iter().flat_map(|list| list.list.iter().flatten()));
        to.records("incoming-type", self.incoming.iter().flat_map(|list| list.types.iter().flatten()));
        to.records("outgoing-type", self.outgoing.iter().flat_map(|list| list.types.iter().flatten()));
        to.records("root", self.roots.iter().flatten());
        to.records("coverage", &self.coverage);
        match &self.object {
            Some(object) => to.line(object_line(object)),
            None if self.cards.is_some() => to.line(plural(self.targets, "young object")),
            None => to.line(plural(self.targets, "object")),
        }
        to.gap();
        if let Some(roots) = self.roots.as_ref().filter(|roots| !roots.is_empty()) {
            to.title("Roots");
            to.lines(roots.iter().map(root_line));
            to.gap();
        }
        self.incoming.iter().for_each(|of| list(to, of, true));
        if let Some(cards) = &self.cards {
            to.line(format!(
                "{} set in older generations, covering {}; {} to younger objects on set cards, {} on clear cards",
                plural(cards.set, "card"),
                in_units(cards.set_bytes),
                plural(cards.references_on_set, "reference"),
                cards.references_on_clear,
            ));
            to.gap();
        }
        self.outgoing.iter().for_each(|of| list(to, of, false));
        if self.roots.is_some() {
            root_coverage(to, &self.coverage);
        }
    }
}
