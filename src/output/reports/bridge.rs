//! The answer of `bridge`: components, their objects, and their cross references.

use super::number;
use super::retained::root_coverage;
use crate::analysis::{BridgeClass, BridgeHandle, BridgeObject, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Cluster, Graph, Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// A component, one of its objects, and one of the object's handles.
struct Row<'r> {
    scc: &'r BridgeScc,
    object: &'r BridgeObject,
    handle: Option<BridgeHandle>,
}

fn state(scc: &BridgeScc) -> &'static str {
    if scc.alive { "alive" } else { "dead" }
}

fn object_columns<'r>() -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        count("scc" = scc.index),
        word("state", 5, |r| state(r.scc)),
        address(object.address),
        address(object.method_table).extra(),
        names(object.type_name, 50),
        address("handle", |r| r.handle.map(|h| h.handle)),
        address("context", |r| r.handle.and_then(|h| h.context)).extra(),
        word(object.registered, 10)
    ]
}

fn link_columns<'r>() -> Columns<'r, BridgeWeakLink> {
    columns![
        BridgeWeakLink,
        address(handle),
        word(kind, 21),
        address(object),
        count(scc),
        word("then", 6, |l| if l.nulled { "nulled" } else { "stays" }),
        names(type_name, 50)
    ]
}

fn xref_columns<'r>() -> Columns<'r, BridgeXref> {
    columns![BridgeXref, count(src), count(dst)]
}

fn class_columns<'r>() -> Columns<'r, BridgeClass> {
    columns![BridgeClass, word(kind, 18), count(bridged), address(method_table).extra(), names(type_name, 60)]
}

impl Report for BridgeReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.records("scc", &self.sccs);
        let objects = self.sccs.iter().flat_map(|scc| scc.objects.iter().map(move |object| (scc, object)));
        let objects = objects.flat_map(|(scc, object)| {
            let first = object.handle.map(|handle| BridgeHandle { handle, context: object.context });
            std::iter::once(first).chain(object.further_handles.iter().map(|h| Some(*h))).map(move |handle| Row { scc, object, handle })
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
