use crate::model::ExportReport;
use crate::output::report::{Report, Sections};
use crate::output::{bytes, count};

impl Report for ExportReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("export", self.clone());
        let sum = |sum: crate::model::Sum| format!("{} objects, {}", count(sum.count), bytes(sum.bytes));
        let mut facts = vec![
            ("written", self.output.clone()),
            ("size", bytes(self.file_bytes)),
            ("objects", format!("{}, {} references", sum(self.objects), count(self.references))),
            ("nodes", format!("{}, {} edges", count(self.nodes), count(self.edges))),
        ];
        facts.extend(self.left_out.map(|s| ("left out", format!("{} (summed up in nodes)", sum(s)))));
        facts.extend(self.unreachable.filter(|s| s.count > 0).map(|s| ("unreachable", format!("{} (--unreachable adds them)", sum(s)))));
        facts.extend(self.survivors.map(|n| ("survivors", format!("{} objects have the ids of the dump before", count(n)))));
        to.facts(facts);
    }
}
