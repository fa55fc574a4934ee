//! The answer of `refs`: references of an object in both directions, or by type and field.

use super::retained::{root_coverage, root_line};
use crate::analysis::{RefList, RefListRows, RefObject, RefRow, RefType, RefsReport};
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
    let all = list.rows.fields();
    let rows = all.list.into_iter().flatten();
    let deep = rows.clone().any(|r| r.depth > 1);
    let has_retained = rows.clone().any(|r| r.retained.is_some());
    to.table(Table::new(rows, row_columns(incoming, deep, has_retained)).csv(false).shown(all.list.is_some()));
    let types = all.types.into_iter().flatten();
    let has_retained = types.clone().any(|r| r.retained.is_some());
    to.table(Table::new(types, type_columns(has_retained)).csv(false).shown(all.types.is_some()));
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
            let shown = match &mut list.rows {
                RefListRows::Each { list } => to.list(name, list, 0, &row_columns(incoming, true, true)),
                RefListRows::Types { types } => to.list(name, types, 0, &type_columns(true)),
            };
            list.shown = shown.or(list.shown);
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let lists = || [("incoming", &self.incoming), ("outgoing", &self.outgoing)].into_iter().filter_map(|(d, l)| Some((d, l.as_ref()?)));
        let by_type = lists().any(|(_, list)| matches!(list.rows, RefListRows::Types { .. }));
        let rows = |list: &'r RefList| list.rows.fields().list.into_iter().flatten();
        let types = |list: &'r RefList| list.rows.fields().types.into_iter().flatten();
        let all = lists().flat_map(move |(direction, list)| rows(list).map(move |row| Directed { direction, row }));
        to.table(Table::new(all, all_of_row()).csv(!by_type).shown(false));
        let all = lists().flat_map(move |(direction, list)| types(list).map(move |row| Directed { direction, row }));
        to.table(Table::new(all, all_of_type()).csv(by_type).shown(false));
        to.records("object", &self.object);
        to.records("incoming", self.incoming.iter().flat_map(rows));
        to.records("outgoing", self.outgoing.iter().flat_map(rows));
        to.records("incoming-type", self.incoming.iter().flat_map(types));
        to.records("outgoing-type", self.outgoing.iter().flat_map(types));
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
