use super::number;
use super::retained::root_coverage;
use crate::model::{BridgeClass, BridgeObject, BridgeReport, BridgeScc, BridgeXref};
use crate::output::report::{Cluster, Graph, Report, Sections};
use crate::output::table::{Columns, Table, columns};
use crate::output::{count, plural};

type Row<'r> = (&'r BridgeScc, &'r BridgeObject);

fn state(scc: &BridgeScc) -> &'static str {
    if scc.alive { "alive" } else { "dead" }
}

fn object_columns<'r>() -> Columns<'r, Row<'r>> {
    columns::<Row<'r>>()
        .count("scc", |(scc, _)| u64::from(scc.index))
        .text("state", 5, |(scc, _)| state(scc))
        .whole()
        .address("address", |(_, o)| o.address)
        .address("method_table", |(_, o)| o.method_table)
        .extra()
        .names("type", 50, |(_, o)| Some(&o.type_name))
        .address("handle", |(_, o)| o.handle)
        .address("context", |(_, o)| o.context)
        .extra()
}

fn xref_columns<'r>() -> Columns<'r, BridgeXref> {
    columns::<BridgeXref>().count("src", |x| u64::from(x.src)).count("dst", |x| u64::from(x.dst))
}

fn class_columns<'r>() -> Columns<'r, BridgeClass> {
    columns::<BridgeClass>()
        .text("kind", 18, |c| c.kind.name())
        .whole()
        .count("bridged", |c| c.bridged)
        .address("method_table", |c| c.method_table)
        .extra()
        .names("type", 60, |c| Some(&c.type_name))
}

impl Report for BridgeReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.records("scc", &self.sccs);
        let objects = self.sccs.iter().flat_map(|scc| scc.objects.iter().map(move |o| (scc, o)));
        to.table(Table::new(objects, object_columns()).csv(true).shown(!self.sccs.is_empty()));
        to.gap_if(!self.sccs.is_empty());
        to.table(Table::records("xref", &self.xrefs, xref_columns()).shown(!self.xrefs.is_empty()));
        to.gap_if(!self.xrefs.is_empty());
        to.table(Table::records("class", &self.classes, class_columns()).shown(!self.classes.is_empty()));
        to.gap_if(!self.classes.is_empty());
        to.line(format!(
            "{}, {} dead{}; {}, {}",
            plural(self.bridged, "bridged object"),
            count(self.dead),
            if self.all { "" } else { " (--all includes live ones)" },
            plural(number(&self.sccs), "component"),
            plural(number(&self.xrefs), "cross reference")
        ));
        to.gap();
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
    }

    fn graph(&self) -> Option<Graph<'_>> {
        let cluster = |scc: &'_ BridgeScc| -> (u32, String) { (scc.index, format!("scc {} {}", scc.index, state(scc))) };
        Some(Graph {
            name: "bridge",
            clusters: Box::new(self.sccs.iter().map(move |scc| {
                let (id, label) = cluster(scc);
                let nodes = scc.objects.iter().map(|o| (o.address.to_string(), format!("{} {}", o.type_name, o.address)));
                Cluster { id, label, nodes: Some(Box::new(nodes)) }
            })),
            edges: Box::new(self.xrefs.iter().map(|x| (x.src, x.dst))),
        })
    }
}
