use super::number;
use super::retained::root_coverage;
use crate::model::{BridgeClass, BridgeHandle, BridgeObject, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref};
use crate::output::report::{Cluster, Graph, Report, Sections};
use crate::output::table::{Columns, Table, columns};
use crate::output::{count, plural};

/// A component, one of its objects, and one of the object's handles.
type Row<'r> = (&'r BridgeScc, &'r BridgeObject, Option<BridgeHandle>);

fn state(scc: &BridgeScc) -> &'static str {
    if scc.alive { "alive" } else { "dead" }
}

fn object_columns<'r>() -> Columns<'r, Row<'r>> {
    columns::<Row<'r>>()
        .count("scc", |(scc, ..)| u64::from(scc.index))
        .text("state", 5, |(scc, ..)| state(scc))
        .whole()
        .address("address", |(_, o, _)| o.address)
        .address("method_table", |(_, o, _)| o.method_table)
        .extra()
        .names("type", 50, |(_, o, _)| Some(&o.type_name))
        .address("handle", |(.., h)| h.map(|h| h.handle))
        .address("context", |(.., h)| h.and_then(|h| h.context))
        .extra()
        .text("registered", 10, |(_, o, _)| if o.registered { "true" } else { "false" })
        .whole()
}

fn link_columns<'r>() -> Columns<'r, BridgeWeakLink> {
    columns::<BridgeWeakLink>()
        .address("handle", |l| l.handle)
        .text("kind", 21, |l| l.kind.name())
        .whole()
        .address("object", |l| l.object)
        .count("scc", |l| l.scc.map(u64::from))
        .text("then", 6, |l| if l.nulled { "nulled" } else { "stays" })
        .whole()
        .names("type", 50, |l| Some(&l.type_name))
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
        let objects = objects.flat_map(|(scc, o)| {
            let first = o.handle.map(|handle| BridgeHandle { handle, context: o.context });
            std::iter::once(first).chain(o.further_handles.iter().map(|h| Some(*h))).map(move |handle| (scc, o, handle))
        });
        to.table(Table::new(objects, object_columns()).csv(true).shown(!self.sccs.is_empty()));
        to.gap_if(!self.sccs.is_empty());
        to.table(Table::records("xref", &self.xrefs, xref_columns()).shown(!self.xrefs.is_empty()));
        to.gap_if(!self.xrefs.is_empty());
        let links = Table::records("weak_link", &self.weak_links, link_columns());
        if !self.weak_links.is_empty() {
            to.title("Weak handles, if the other collector does not keep their objects alive:");
        }
        to.table(links.shown(!self.weak_links.is_empty()));
        to.gap_if(!self.weak_links.is_empty());
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
        let cluster = |scc: &'_ BridgeScc| -> (u32, String) { (scc.index, format!("component {} {}", scc.index, state(scc))) };
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
