use crate::model::{CertaintySum, GenerationFlow, MovedRange, Sum, SurvivingRange, TrackMatch, TrackReport, TrackSums, TrackType};
use crate::output::Paging;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};
use crate::output::{bytes, count, plural};

fn type_columns<'r>() -> Columns<'r, TrackType> {
    columns::<TrackType>()
        .address("method_table", |t| t.method_table)
        .only(Readers::Machines)
        .count("before", |t| t.sums.before.count)
        .count("after", |t| t.sums.after.count)
        .count("survived", |t| t.sums.survived.count)
        .count("moved", |t| t.sums.moved.count)
        .count("promoted", |t| t.sums.promoted.count)
        .count("died", |t| t.sums.died.count)
        .count("born", |t| t.sums.born.count)
        .count("unknown_before", |t| t.sums.unknown_before.count)
        .count("unknown_after", |t| t.sums.unknown_after.count)
        .bytes("bytes_before", |t| t.sums.before.bytes)
        .only(Readers::Machines)
        .bytes("bytes_after", |t| t.sums.after.bytes)
        .only(Readers::Machines)
        .bytes("survived_bytes", |t| t.sums.survived.bytes)
        .only(Readers::Machines)
        .names("type", 60, |t| Some(&t.type_name))
}

fn flow_columns<'r>() -> Columns<'r, GenerationFlow> {
    columns::<GenerationFlow>()
        .text("from", 9, |f| f.from.name())
        .whole()
        .text("to", 9, |f| f.to.name())
        .whole()
        .count("count", |f| f.sum.count)
        .bytes("bytes", |f| f.sum.bytes)
        .count("moved", |f| f.moved)
}

fn match_columns<'r>() -> Columns<'r, TrackMatch> {
    columns::<TrackMatch>()
        .address("from", |m| m.from)
        .address("to", |m| m.to)
        .text("certainty", 9, |m| m.certainty.name())
        .whole()
        .text_or_none("generation_before", 9, |m| m.generation_before.map(|g| g.name()))
        .whole()
        .text_or_none("generation_after", 9, |m| m.generation_after.map(|g| g.name()))
        .whole()
        .bytes("size", |m| m.size)
        .names("type", 60, |m| Some(&m.type_name))
}

fn moved_columns<'r>() -> Columns<'r, MovedRange> {
    columns::<MovedRange>()
        .address("from", |r| r.from)
        .address("to", |r| r.to)
        .bytes("length", |r| r.length)
        .count("objects", |r| r.objects)
        .text("certainty", 9, |r| surety(r.certain))
        .whole()
}

fn surviving_columns<'r>() -> Columns<'r, SurvivingRange> {
    columns::<SurvivingRange>()
        .address("start", |r| r.start)
        .bytes("length", |r| r.length)
        .count("objects", |r| r.objects)
        .text("certainty", 9, |r| surety(r.certain))
        .whole()
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
        if let Some(types) = &mut self.types {
            self.shown = to.list("types", types, 0, &type_columns()).or(self.shown);
        }
        if let Some(matches) = &mut self.matches {
            self.shown = to.list("matches", matches, 0, &match_columns());
        }
        if let Some(moved) = &mut self.moved {
            to.list("moved", moved, 0, &moved_columns());
        }
        if let Some(surviving) = &mut self.surviving {
            to.list("surviving", surviving, 0, &surviving_columns());
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let (by_type, by_object, by_range) = (self.types.is_some(), self.matches.is_some(), self.moved.is_some());
        to.table(Table::records("type", self.types.iter().flatten(), type_columns()).csv(by_type).shown(by_type));
        if let (Some(types), Some(_), false) = (&self.types, self.shown, to.paged) {
            to.line(format!("… more than {} types (--top 0 lists all)", count(types.len() as u64)));
        }
        to.titled("Survivors by generation:", by_type, Table::records("generation", self.generations.iter().flatten(), flow_columns()));
        to.table(Table::records("match", self.matches.iter().flatten(), match_columns()).csv(by_object).shown(by_object));
        let moved = Table::records("moved", self.moved.iter().flatten(), moved_columns());
        to.titled("Moved:", by_range, moved.csv(by_range));
        to.titled("Stayed:", by_range, Table::records("surviving", self.surviving.iter().flatten(), surviving_columns()));
        to.gap();
        totals(to, &self.totals, &self.certainty);
        to.record("totals", &self.totals);
        to.records("certainty", &self.certainty);
    }
}
