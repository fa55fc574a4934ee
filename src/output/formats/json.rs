//! A single JSON document, serialized from the model.

use std::io;

use super::{Out, Whole, Writer};
use crate::output::layout::Layout;
use crate::output::columns::Row;
use crate::output::table::Heading;

pub(super) struct Json;

/// Returns the fields of a serialized object.
fn fields(object: &str) -> &str {
    object.strip_prefix('{').and_then(|o| o.strip_suffix('}')).unwrap_or(object)
}

impl Writer for Json {
    fn has_sections(&self) -> bool {
        false
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let head = serde_json::to_string(out.head)?;
        // One row per line, so that readers of the first lines get them immediately.
        writeln!(out.to, "{{{},\"data\":{{\"{}\":[", fields(&head), heading.list)
    }

    fn row(&self, _heading: &Heading, row: &dyn Row, number: u64, _layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        if number > 0 {
            to.extend_from_slice(b",\n");
        }
        row.json(to)
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        if !out.streamed {
            answer.document(out.to, out.screen.terminal)?;
            return writeln!(out.to);
        }
        let warnings = serde_json::to_string(&answer.notes().iter().collect::<Vec<_>>())?;
        writeln!(out.to, "\n],{}}},\"warnings\":{warnings}}}", fields(&answer.data()?))
    }

    fn carries_notes(&self) -> bool {
        true
    }
}
