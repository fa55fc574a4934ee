//! Graphviz DOT.

use std::io;

use super::{Out, Whole, Writer};
use crate::output::sanitize::is_hostile;
use crate::output::table::Heading;

pub(super) struct Dot;

/// Returns a quoted DOT string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Escaped like on a terminal, with an additional backslash, so that users can search for the name.
            c if is_hostile(c) => out.extend(['\\'].into_iter().chain(c.escape_unicode())),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn refuse(out: &Out<'_>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{} has no graph to draw: this format is for async and bridge", out.head.command))
}

impl Writer for Dot {
    fn has_sections(&self) -> bool {
        false
    }

    fn list(&self, out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Err(refuse(out))
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        let Some(graph) = answer.graph() else { return Err(refuse(out)) };
        writeln!(out.to, "digraph {} {{", graph.name)?;
        writeln!(out.to, "  node [shape=box];")?;
        for c in graph.clusters {
            let Some(nodes) = c.nodes else {
                writeln!(out.to, "  s{} [label={}];", c.id, quoted(&c.label))?;
                continue;
            };
            writeln!(out.to, "  subgraph cluster_{} {{ label={};", c.id, quoted(&c.label))?;
            writeln!(out.to, "    s{} [shape=point];", c.id)?;
            for (id, label) in nodes {
                writeln!(out.to, "    {} [label={}];", quoted(&id), quoted(&label))?;
            }
            writeln!(out.to, "  }}")?;
        }
        for (from, to) in graph.edges {
            writeln!(out.to, "  s{from} -> s{to};")?;
        }
        writeln!(out.to, "}}")
    }
}
