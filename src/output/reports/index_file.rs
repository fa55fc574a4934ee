use crate::model::IndexReport;
use crate::output::report::{Report, Sections};
use crate::output::{bytes, count};

impl Report for IndexReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let size = format!("{} for a dump of {}", bytes(self.file_bytes), bytes(self.dump_bytes));
        let mut facts = vec![(if self.written { "written" } else { "index" }, self.path.clone()), ("size", size)];
        match &self.problem {
            Some(problem) => facts.push(("not used", problem.clone())),
            None => facts.push(("holds", format!("{} objects, {} references", count(self.objects), count(self.references)))),
        }
        to.facts(facts);
    }
}
