//! `.heapsnapshot`: heap snapshots of Chrome's DevTools.
//!
//! The format was derived from snapshots of Chromium 156 and from the source of its reader (`docs/internals/exports.md`). The root has only
//! synthetic nodes as children, because otherwise the reader adds the sizes of arrays to their owners. Every object has the node type `object`,
//! and the name of its class as its name. A weak edge does not keep its target alive.

use std::collections::hash_map::Entry;
use std::io::{self, Write};

use super::subgraph::{Edge, GroupKind, Subgraph, Via};
use super::{Ids, Written};
use crate::base::hash::Map;
use crate::base::{IndexVec, len64};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::RootKind;
use crate::session::{FieldNames, FieldPlace};

/// Numbers per node in the list of nodes. Edges refer to a node by its index in that list.
const NODE_FIELDS: u64 = 6;

/// Types of nodes, by their index in the list of the header.
mod node {
    pub(super) const STRING: u64 = 2;
    pub(super) const OBJECT: u64 = 3;
    pub(super) const SYNTHETIC: u64 = 9;
}

/// Types of edges, by their index in the list of the header.
mod edge {
    pub(super) const ELEMENT: u64 = 1;
    pub(super) const PROPERTY: u64 = 2;
    pub(super) const INTERNAL: u64 = 3;
    pub(super) const WEAK: u64 = 6;
}

const META: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"]},"#;

/// Number of elements at the start of an array of structures whose edges have a name with the field, such as `[3].key`. Edges from further
/// elements have only the index, because each name is a string in the file.
const NAMED_ELEMENTS: u64 = 1000;
/// Maximum number of characters of a string's contents.
const CONTENT_CHARS: u32 = 1000;

/// Node ids below this number belong to the root and the groups. Objects have odd ids above this number, as in V8's snapshots, and the sum of
/// the objects omitted below an object has the next even id.
const FIRST_ID: u64 = 1 << 12;

/// Options of the format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether the file contains the contents of strings, up to 1,000 characters each.
    pub contents: bool,
}

/// The strings of the file, without duplicates.
#[derive(Default)]
struct Strings {
    known: Map<String, u64>,
    list: Vec<String>,
}

impl Strings {
    fn index(&mut self, text: String) -> u64 {
        let next = len64(self.list.len());
        match self.known.entry(text) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.list.push(new.key().clone());
                *new.insert(next)
            }
        }
    }
}

/// Writes lists of numbers, separated by commas, with one line per record.
struct Numbers<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    first: bool,
}

impl<'o> Numbers<'o> {
    const FULL: usize = 1 << 16;

    fn new(out: &'o mut dyn Write) -> Numbers<'o> {
        Numbers { out, buffer: Vec::with_capacity(Self::FULL.saturating_add(256)), first: true }
    }

    fn record<const N: usize>(&mut self, numbers: [u64; N]) -> io::Result<()> {
        for (i, n) in numbers.into_iter().enumerate() {
            if !std::mem::take(&mut self.first) {
                self.buffer.extend_from_slice(if i == 0 { b"\n," } else { b"," });
            }
            self.buffer.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
        }
        if self.buffer.len() >= Self::FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes `part` to `out`.
///
/// # Errors
/// Errors of `out`; [`io::ErrorKind::InvalidInput`] if the heap has more objects than the format can number.
pub fn write(part: &Subgraph<'_>, ids: &Ids, options: Options, out: &mut dyn Write) -> io::Result<Written> {
    Snapshot { part, ids, options, strings: Strings::default(), first: 2u64.saturating_add(len64(part.groups.len())), clipped: 0 }
        .write(out)
}

struct Snapshot<'p, 'h> {
    part: &'p Subgraph<'h>,
    ids: &'p Ids,
    options: Options,
    strings: Strings,
    /// Index of the first object's node, after the root, `(GC roots)` and the groups.
    first: u64,
    clipped: u64,
}

impl Snapshot<'_, '_> {
    fn write(&mut self, out: &mut dyn Write) -> io::Result<Written> {
        let part = self.part;
        let nodes = self.first.saturating_add(part.sum.count).saturating_add(len64(part.rests.len()));
        let edges = self.count_edges();
        // DevTools reads ids and node offsets as 32-bit numbers.
        let largest = self.ids.largest(part.graph.len()).saturating_mul(2).saturating_add(FIRST_ID).max(nodes.saturating_mul(NODE_FIELDS));
        if largest > u64::from(u32::MAX) || edges > u64::from(u32::MAX) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a heap snapshot numbers at most 715,827,882 objects; export a part of them",
            ));
        }
        write!(out, "{META}\"node_count\":{nodes},\"edge_count\":{edges},\"trace_function_count\":0}},\n\"nodes\":[")?;
        self.nodes(out)?;
        write!(out, "],\n\"edges\":[")?;
        self.edges(out)?;
        write!(out, "],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n\"strings\":[")?;
        for (i, text) in self.strings.list.iter().enumerate() {
            if i > 0 {
                out.write_all(b",\n")?;
            }
            serde_json::to_writer(&mut *out, text)?;
        }
        out.write_all(b"]}\n")?;
        Ok(Written { nodes, edges, clipped: self.clipped })
    }

    /// Whether the parent of a group is the root itself rather than `(GC roots)`.
    fn at_root(kind: GroupKind) -> bool {
        kind == GroupKind::Unreachable
    }

    fn root_rest(&self) -> u64 {
        u64::from(self.part.rests.first().is_some_and(|r| r.under.is_none()))
    }

    fn count_edges(&self) -> u64 {
        let groups = self.part.groups.iter().map(|g| len64(g.links.len()).saturating_add(1)).fold(1, u64::saturating_add);
        let through: u64 = self.part.objects().map(|id| len64(self.part.through(id).count())).fold(0, u64::saturating_add);
        groups.saturating_add(self.part.references).saturating_add(through).saturating_add(len64(self.part.rests.len()))
    }

    fn nodes(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let part = self.part;
        let mut to = Numbers::new(out);
        let apart = len64(part.groups.iter().filter(|g| Self::at_root(g.kind)).count());
        let below = len64(part.groups.len()).saturating_sub(apart).saturating_add(self.root_rest());
        to.record([node::SYNTHETIC, self.strings.index(String::new()), 1, 0, apart.saturating_add(1), 0])?;
        to.record([node::SYNTHETIC, self.strings.index("(GC roots)".into()), 3, 0, below, 0])?;
        for group in &part.groups {
            let name = self.strings.index(format!("({})", group.kind.name()));
            to.record([node::SYNTHETIC, name, group_id(group.kind), 0, len64(group.links.len()), 0])?;
        }
        let mut types: IndexVec<TypeIndex, Option<u64>> = IndexVec::new();
        let mut rests = part.rests.iter().filter_map(|r| r.under).peekable();
        for id in part.objects() {
            let name = self.class(id, &mut types);
            let (kind, name) = self.content(id).map_or((node::OBJECT, name), |text| (node::STRING, self.strings.index(text)));
            let size = self.clip(part.graph.size(id));
            let rest = u64::from(rests.next_if_eq(&id).is_some());
            to.record([kind, name, self.id(id), size, part.edge_count(id).saturating_add(rest), 0])?;
        }
        for rest in &part.rests {
            let name = self.strings.index(format!("({} objects left out)", rest.sum.count));
            let id = rest.under.map_or(2, |under| self.id(under).saturating_add(1));
            let size = self.clip(rest.sum.bytes);
            to.record([node::SYNTHETIC, name, id, size, 0, 0])?;
        }
        to.flush()
    }

    fn clip(&mut self, size: u64) -> u64 {
        self.clipped = self.clipped.saturating_add(u64::from(size > u64::from(u32::MAX)));
        size.min(u64::from(u32::MAX))
    }

    fn id(&self, id: ObjectId) -> u64 {
        FIRST_ID.saturating_add(1).saturating_add(self.ids.number(id).saturating_mul(2))
    }

    /// Returns the string index of an object's type name.
    fn class(&mut self, id: ObjectId, types: &mut IndexVec<TypeIndex, Option<u64>>) -> u64 {
        let Some(slot) = self.part.graph.type_index(id).and_then(|t| types.slot(t)) else { return self.strings.index("?".into()) };
        *slot.get_or_insert_with(|| self.strings.index(class_name(&self.part.graph.type_name(&self.part.namer, id))))
    }

    /// Returns the text of a string, if contents are requested.
    fn content(&self, id: ObjectId) -> Option<String> {
        if !self.options.contents || !self.part.graph.kind(id)?.is_string {
            return None;
        }
        let types = self.part.namer.types().ok()?;
        types.strings().text(self.part.graph.address(id), CONTENT_CHARS).map(|(text, _)| text)
    }

    fn edges(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let part = self.part;
        let mut to = Numbers::new(out);
        let place = |node: u64| node.saturating_mul(NODE_FIELDS);
        let groups = || part.groups.iter().zip(2u64..);
        to.record([edge::ELEMENT, 1, place(1)])?;
        for (i, (_, node)) in groups().filter(|(g, _)| Self::at_root(g.kind)).enumerate() {
            to.record([edge::ELEMENT, len64(i).saturating_add(2), place(node)])?;
        }
        let mut rest = self.first.saturating_add(part.sum.count);
        for (i, (_, node)) in groups().filter(|(g, _)| !Self::at_root(g.kind)).enumerate() {
            to.record([edge::ELEMENT, len64(i).saturating_add(1), place(node)])?;
        }
        let left_out = self.strings.index("objects left out".into());
        if self.root_rest() > 0 {
            to.record([edge::INTERNAL, left_out, place(rest)])?;
            rest = rest.saturating_add(1);
        }
        for group in &part.groups {
            for (i, link) in group.links.iter().enumerate() {
                let label = link.root.and_then(|r| part.root(r)).map(|root| self.strings.index(part.graph.roots.label(root)));
                let (kind, name) = match (label, link.holds) {
                    (Some(label), true) => (edge::PROPERTY, label),
                    (Some(label), false) => (edge::WEAK, label),
                    (None, _) => (edge::ELEMENT, len64(i)),
                };
                to.record([kind, name, place(self.node(link.to))])?;
            }
        }
        let mut names = FieldNames::new(&part.namer, part.heap.memory().ptr_bytes());
        let mut rests = part.rests.iter().filter_map(|r| r.under).peekable();
        let mut list: Vec<Edge> = Vec::new();
        for id in part.objects() {
            part.edges(id, &mut names, |edge| list.push(edge));
            for edge in list.drain(..) {
                let target = place(self.node(edge.to));
                let (kind, name) = self.name(edge);
                to.record([kind, name, target])?;
            }
            if rests.next_if_eq(&id).is_some() {
                to.record([edge::INTERNAL, left_out, place(rest)])?;
                rest = rest.saturating_add(1);
            }
        }
        to.flush()
    }

    /// Returns the node index of an exported object.
    fn node(&self, id: ObjectId) -> u64 {
        self.first.saturating_add(self.part.number_of(id).map_or(0, u64::from))
    }

    /// Returns the type of an edge, and its array index or the string index of its name.
    fn name(&mut self, edge: Edge) -> (u64, u64) {
        let (kind, text) = match edge.via {
            Via::Reference(Some(FieldPlace::Element(index, behind)))
                if edge.holds && index <= u64::from(u32::MAX) && (behind.is_empty() || index >= NAMED_ELEMENTS) =>
            {
                return (edge::ELEMENT, index);
            }
            Via::Reference(Some(place)) => (edge::PROPERTY, place.to_string()),
            Via::Reference(None) => (edge::PROPERTY, "?".into()),
            Via::Dependent => (edge::INTERNAL, "dependent handle".into()),
            Via::Allocator => (edge::INTERNAL, "loader allocator".into()),
            Via::Through => (edge::INTERNAL, "through objects left out".into()),
        };
        (if edge.holds { kind } else { edge::WEAK }, self.strings.index(text))
    }
}

/// Returns the node id of a group. A group has the same id in every file, so that DevTools can compare snapshots.
fn group_id(kind: GroupKind) -> u64 {
    let place = match kind {
        GroupKind::Roots(kind) => RootKind::ALL.iter().position(|k| *k == kind).map_or(0, len64).saturating_add(8),
        GroupKind::Frozen => 1,
        GroupKind::Through => 2,
        GroupKind::Unreachable => 3,
    };
    place.saturating_mul(2).saturating_add(5)
}

/// Adapts a type name for DevTools. DevTools truncates a name that begins with `<` at its first space, and replaces the class name `Object` by the
/// names of the object's fields.
fn class_name(name: &str) -> String {
    match name {
        "Object" => "Object ".into(),
        _ if name.starts_with('<') => name.replace(", ", ","),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devtools_keeps_class_names() {
        assert_eq!(class_name("<>f__AnonymousType0<A, B>"), "<>f__AnonymousType0<A,B>");
        assert_eq!(class_name("Object"), "Object ");
        assert_eq!(class_name("Lab.Pair<A, B>"), "Lab.Pair<A, B>");
    }

    #[test]
    fn groups_have_ids_of_their_own() {
        let mut ids: Vec<u64> = RootKind::ALL.into_iter().map(|k| group_id(GroupKind::Roots(k))).collect();
        ids.extend([GroupKind::Frozen, GroupKind::Through, GroupKind::Unreachable].map(group_id));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RootKind::ALL.len() + 3);
        assert!(ids.iter().all(|id| *id > 3 && *id < FIRST_ID));
    }
}
