//! Tables as NDJSON: one JSON object per line. Missing values are `null`.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::Sink;
use super::block::{Block, Cell, Column};

/// An NDJSON file.
pub(super) struct Ndjson {
    out: BufWriter<File>,
    /// The names of the columns, quoted.
    keys: Vec<String>,
}

impl Ndjson {
    pub(super) fn new(file: File, columns: &[Column]) -> io::Result<Ndjson> {
        let keys = columns.iter().map(|c| serde_json::to_string(&c.name)).collect::<Result<_, _>>()?;
        Ok(Ndjson { out: BufWriter::with_capacity(1 << 16, file), keys })
    }
}

impl Sink for Ndjson {
    fn block(&mut self, block: &Block) -> io::Result<()> {
        let (out, keys) = (&mut self.out, &self.keys);
        let mut number = itoa::Buffer::new();
        block.each(|row| {
            for (place, (cell, key)) in row.iter().zip(keys).enumerate() {
                out.write_all(if place == 0 { b"{" } else { b"," })?;
                out.write_all(key.as_bytes())?;
                out.write_all(b":")?;
                match cell {
                    Cell::Null => out.write_all(b"null")?,
                    Cell::Int(n) => out.write_all(number.format(*n).as_bytes())?,
                    Cell::Real(n) => serde_json::to_writer(&mut *out, n)?,
                    Cell::Flag(is) => out.write_all(if *is { b"true" } else { b"false" })?,
                    Cell::Text(text) => serde_json::to_writer(&mut *out, text)?,
                }
            }
            out.write_all(b"}\n")
        })
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
