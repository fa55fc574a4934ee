//! Tables in CSV: a header line, then one line per row. Missing values are empty.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::Sink;
use super::block::{Block, Cell, Column};

/// A CSV file.
pub(super) struct Csv(csv::Writer<BufWriter<File>>);

impl Csv {
    pub(super) fn new(file: File, columns: &[Column]) -> io::Result<Csv> {
        let mut out = csv::Writer::from_writer(BufWriter::with_capacity(1 << 16, file));
        out.write_record(columns.iter().map(|c| &*c.name))?;
        Ok(Csv(out))
    }
}

impl Sink for Csv {
    fn block(&mut self, block: &Block) -> io::Result<()> {
        let mut number = itoa::Buffer::new();
        block.each(|row| {
            for cell in row {
                match cell {
                    Cell::Null => self.0.write_field("")?,
                    Cell::Int(n) => self.0.write_field(number.format(*n))?,
                    Cell::Real(n) => self.0.write_field(n.to_string())?,
                    Cell::Flag(is) => self.0.write_field(if *is { "true" } else { "false" })?,
                    Cell::Text(text) => self.0.write_field(text)?,
                }
            }
            self.0.write_record(None::<&[u8]>)
        })?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.into_inner().map_err(|e| io::Error::from(e.error().kind()))?.flush()
    }
}
