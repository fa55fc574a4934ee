use std::collections::BTreeSet;

use crate::model::{AnalyzeReport, Problem, ProblemId};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};

fn finding_columns<'r>() -> Columns<'r, Problem> {
    columns::<Problem>()
        .text("severity", 8, |f| f.severity.name())
        .text("id", 21, |f| f.id.name())
        .count("count", |f| f.count)
        .bytes("bytes", |f| f.bytes)
        .made("share", 8, |f| f.share.map(|s| s.to_string()))
        .address("object", |f| f.object)
        .text_or_none("type", 40, |f| f.type_name.as_deref())
        .text_or_none("method", 40, |f| f.method.as_deref())
        .text("title", 80, |f| &f.title)
        .text("command", 60, |f| &f.command)
}

impl Report for AnalyzeReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("finding", &self.findings, finding_columns()).csv(true).shown(false));
        to.records("skipped", &self.skipped);
        for f in &self.findings {
            to.finding(f.severity.name(), &f.title, &f.command);
        }
        to.gap_if(!self.findings.is_empty());
        let found: BTreeSet<ProblemId> = self.findings.iter().map(|f| f.id).collect();
        let sound: Vec<&str> = self.inspected.iter().filter(|id| !found.contains(id)).map(|id| id.name()).collect();
        if !sound.is_empty() {
            let begin = match self.findings.is_empty() {
                true => "Nothing found. Looked for",
                false if found.contains(&ProblemId::MissingParts) => "Nothing else found in what the dump has. Looked for",
                false => "Nothing else found. Looked for",
            };
            to.line(format!("{begin} {}.", sound.join(", ")));
        }
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for s in &self.skipped {
            match reasons.iter_mut().find(|(reason, _)| *reason == s.reason) {
                Some((_, ids)) => ids.push(s.id.name()),
                None => reasons.push((&s.reason, vec![s.id.name()])),
            }
        }
        to.lines(reasons.into_iter().map(|(reason, ids)| format!("Not inspected: {}: {reason}", ids.join(", "))));
    }
}
