//! Comma-separated values (RFC 4180, with LF line ends).

use std::io::{self, Write};

use super::{Out, Writer};
use crate::output::Cell;
use crate::output::layout::Layout;
use crate::output::report::Section;
use crate::output::columns::{Readers, Row};
use crate::output::table::Heading;

pub(super) struct Csv;

/// Appends `text`, quoted if necessary.
fn field(text: &str, to: &mut Vec<u8>) {
    if !text.bytes().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        return to.extend_from_slice(text.as_bytes());
    }
    to.push(b'"');
    for b in text.bytes() {
        if b == b'"' {
            to.push(b);
        }
        to.push(b);
    }
    to.push(b'"');
}

impl Writer for Csv {
    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        let Section::Table(table) = section else { return Ok(()) };
        if !table.heading.csv {
            return Ok(());
        }
        self.list(out, &table.heading)?;
        out.rows(self, &table)
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        if out.tables == 0 {
            let names: Vec<&str> = heading.columns(Readers::Machines).map(|(_, c)| &*c.name).collect();
            writeln!(out.to, "{}", names.join(","))?;
        }
        out.tables = out.tables.saturating_add(1);
        Ok(())
    }

    fn row(&self, heading: &Heading, row: &dyn Row, _number: u64, _layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        for (position, (i, _)) in heading.columns(Readers::Machines).enumerate() {
            if position > 0 {
                to.push(b',');
            }
            match row.cell(i) {
                Cell::Addr(a) => to.extend_from_slice(a.hex().as_bytes()),
                Cell::Bytes(n) | Cell::Count(n) | Cell::Id(n) => to.extend_from_slice(itoa::Buffer::new().format(n).as_bytes()),
                Cell::Change(n) => to.extend_from_slice(itoa::Buffer::new().format(n).as_bytes()),
                Cell::Share(s) | Cell::Growth(s) => write!(to, "{s}")?,
                Cell::Name(name) => field(name, to),
                Cell::Text(text) | Cell::Map(text) => field(&text, to),
                Cell::None => {}
            }
        }
        to.push(b'\n');
        Ok(())
    }
}
