//! The answer of `track`: matched objects by type and generation, matches, and ranges.

use crate::analysis::{CertaintySum, GenerationFlow, MovedRange, SurvivingRange, TrackMatch, TrackReport, TrackRows, TrackSums, TrackType};
use crate::model::Sum;
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count, plural};

fn type_columns<'r>() -> Columns<'r, TrackType> {
    columns![
        TrackType,
        address(method_table).only(Readers::Machines),
        count("before" = sums.before.count),
        count("after" = sums.after.count),
        count("survived" = sums.survived.count),
        count("moved" = sums.moved.count),
        count("promoted" = sums.promoted.count),
        count("died" = sums.died.count),
        count("born" = sums.born.count),
        count("unknown_before" = sums.unknown_before.count),
        count("unknown_after" = sums.unknown_after.count),
        bytes("bytes_before" = sums.before.bytes).only(Readers::Machines),
        bytes("bytes_after" = sums.after.bytes).only(Readers::Machines),
        bytes("survived_bytes" = sums.survived.bytes).only(Readers::Machines),
        names(type_name, 60)
    ]
}

fn flow_columns<'r>() -> Columns<'r, GenerationFlow> {
    columns![GenerationFlow, word(from, 9), word(to, 9), count(sum.count), bytes(sum.bytes), count(moved)]
}

fn match_columns<'r>() -> Columns<'r, TrackMatch> {
    columns![
        TrackMatch,
        address(from),
        address(to),
        word(certainty, 9),
        word(generation_before, 9),
        word(generation_after, 9),
        bytes(size),
        names(type_name, 60)
    ]
}

fn moved_columns<'r>() -> Columns<'r, MovedRange> {
    columns![MovedRange, address(from), address(to), bytes(length), count(objects), word("certainty", 9, |r| surety(r.certain))]
}

fn surviving_columns<'r>() -> Columns<'r, SurvivingRange> {
    columns![SurvivingRange, address(start), bytes(length), count(objects), word("certainty", 9, |r| surety(r.certain))]
}

fn surety(certain: bool) -> &'static str {
    if certain { "certain" } else { "likely" }
}

fn objects(sum: Sum) -> String {
    format!("{}, {}", plural(sum.count, "object"), bytes(sum.bytes))
}

fn totals<'r>(to: &mut Sections<'r>, t: &TrackSums, certainty: &[CertaintySum]) {
    let by = |c: &CertaintySum| format!("{} {}", count(c.sum.count), c.certainty.name());
    let split: Vec<String> = certainty.iter().map(by).collect();
    to.facts([
        ("before", objects(t.before)),
        ("after", objects(t.after)),
        ("survived", format!("{}; {} moved, {} promoted", objects(t.survived), count(t.moved.count), count(t.promoted.count))),
        ("matches", split.join(", ")),
        ("died", format!("{}; {} more may have died", objects(t.died), count(t.unknown_before.count))),
        ("born", format!("{}; {} more may be new", objects(t.born), count(t.unknown_after.count))),
    ]);
}

impl Report for TrackReport {
    fn page(&mut self, to: &mut Paging) {
        match &mut self.rows {
            TrackRows::Types { types, .. } => self.shown = to.list("types", types, 0, &type_columns()).or(self.shown),
            TrackRows::Objects { matches } => self.shown = to.list("matches", matches, 0, &match_columns()),
            TrackRows::Ranges { moved, surviving } => {
                to.list("moved", moved, 0, &moved_columns());
                to.list("surviving", surviving, 0, &surviving_columns());
            }
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let all = self.rows.fields();
        let (by_type, by_object, by_range) = (all.types.is_some(), all.matches.is_some(), all.moved.is_some());
        to.table(Table::records("type", all.types.into_iter().flatten(), type_columns()).csv(by_type).shown(by_type));
        if let (Some(types), Some(_), false) = (all.types, self.shown, to.paged) {
            to.line(format!("… more than {} types (--top 0 lists all)", count(types.len() as u64)));
        }
        let generations = Table::records("generation", all.generations.into_iter().flatten(), flow_columns());
        to.titled("Survivors by generation:", by_type, generations);
        to.table(Table::records("match", all.matches.into_iter().flatten(), match_columns()).csv(by_object).shown(by_object));
        let moved = Table::records("moved", all.moved.into_iter().flatten(), moved_columns());
        to.titled("Moved:", by_range, moved.csv(by_range));
        to.titled("Stayed:", by_range, Table::records("surviving", all.surviving.into_iter().flatten(), surviving_columns()));
        to.gap();
        totals(to, &self.totals, &self.certainty);
        to.record("totals", &self.totals);
        to.records("certainty", &self.certainty);
    }
}
