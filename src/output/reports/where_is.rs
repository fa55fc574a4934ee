use super::name_of;
use crate::model::WhereReport;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};

fn place_columns<'r>() -> Columns<'r, WhereReport> {
    columns::<WhereReport>()
        .address("address", |p| p.address)
        .made("kind", 18, |p| name_of(p.kind))
        .whole()
        .address("object", |p| p.object.as_ref().map(|o| o.address))
        .count("offset", |p| p.offset)
        .address("segment", |p| p.segment.as_ref().map(|s| s.address))
        .count("heap", |p| p.segment.as_ref().map(|s| s.heap))
        .text_or_none("generation", 10, |p| p.segment.as_ref().map(|s| s.generation.name()))
        .whole()
        .text("text", 60, |p| &p.text)
        .lines(2)
        .text_or_none("name", 60, |p| p.name.as_deref())
        .address("target", |p| p.target)
        .names("target_type", 60, |p| p.target_type.as_ref())
}

impl Report for WhereReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("place", self);
        to.table(Table::new([self], place_columns()).csv(true).shown(false));
        to.line(format!("{}  {}", self.address, self.text));
        if let Some(range) = self.range {
            to.line(format!("range {} to {}", range.start, range.end));
        }
        let code = self.code.as_ref();
        // An exception handler has another code range than its method, so the start of the method's code is shown too.
        let start = code.filter(|c| self.range.is_none_or(|range| range.start != c.start)).map(|c| c.start);
        let method = code.map(|c| c.method_desc);
        let more = [("module", self.module), ("EEClass", self.class), ("MethodDesc", method), ("code starts at", start)];
        to.lines(more.into_iter().filter_map(|(what, at)| Some(format!("{what} {}", at?))));
        if !self.captured {
            to.line("The byte at this address is not in the dump.");
        }
    }
}
