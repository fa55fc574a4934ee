//! Tables of a heap for databases. One thread builds rows in blocks and one thread per table encodes them, so that neither the heap nor a
//! table is ever entirely in memory. A format is a [`Sink`], one file of this folder.

mod answers;
mod block;
mod context;
mod csv;
mod dumps;
mod feed;
mod fields;
mod ndjson;
mod objects;
mod parquet;
mod process;
mod schema;
mod signature;
mod write;

pub use block::{Block, Column};
pub use context::Tables;
pub use dumps::{About, failed, seconds};
pub use schema::columns;
pub use signature::signature;
pub use write::{TablesError, written};

use std::fs::File;
use std::io;

use crate::model::{ExportFormat, ExportTable};

/// Rows per block, and per Parquet row group: DuckDB's row group size.
pub const BLOCK_ROWS: usize = 122_880;

/// Consumes the rows of a table.
pub trait Sink: Send {
    /// Writes a block of at most [`BLOCK_ROWS`] rows.
    ///
    /// # Errors
    /// Errors of the file.
    fn block(&mut self, block: &Block) -> io::Result<()>;

    /// Finishes the file.
    ///
    /// # Errors
    /// Errors of the file.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Creates a writer of `table`, which has `columns`, to `file`. Returns `None` for formats without tables.
///
/// # Errors
/// Errors of the file.
pub fn sink(format: ExportFormat, table: ExportTable, columns: &[Column], file: File) -> io::Result<Option<Box<dyn Sink>>> {
    Ok(match format {
        ExportFormat::Parquet => Some(Box::new(parquet::Parquet::new(file, table, columns)?)),
        ExportFormat::Csv => Some(Box::new(csv::Csv::new(file, columns)?)),
        ExportFormat::Ndjson => Some(Box::new(ndjson::Ndjson::new(file, columns)?)),
        ExportFormat::HeapSnapshot | ExportFormat::Gcdump => None,
    })
}

#[cfg(test)]
mod tests {
    use super::block::Value;
    use super::*;

    /// Every format reports a full disk, at the latest when the file is finished.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported() {
        for format in ExportFormat::ALL.into_iter().filter(|f| f.is_tables()) {
            let file = File::options().write(true).open("/dev/full").unwrap();
            let mut to = sink(format, ExportTable::Strings, columns(ExportTable::Strings), file).unwrap().unwrap();
            let mut block = Block::new(columns(ExportTable::Strings));
            block.row([Value::Null, 1u64.into(), 2u64.into(), 3u64.into(), 4u64.into(), Value::Null, "text".into()]);
            let ended = to.block(&block).and_then(|()| to.finish());
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::StorageFull, "{format}");
        }
    }

    /// Words reserved in DuckDB or PostgreSQL: a column with such a name would have to be quoted in every query.
    const RESERVED: [&str; 36] = [
        "all",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "case",
        "cast",
        "check",
        "column",
        "default",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "false",
        "for",
        "from",
        "group",
        "having",
        "in",
        "into",
        "limit",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "references",
        "table",
        "to",
        "user",
        "using",
        "where",
    ];

    #[test]
    fn every_table_has_columns_of_different_names() {
        for table in ExportTable::ALL {
            let mut names: Vec<&str> = columns(table).iter().map(|c| &*c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert!(!names.is_empty() && names.len() == columns(table).len() && !names.contains(&"dump"), "{table}");
            assert!(!names.iter().any(|name| RESERVED.contains(name)), "{table}: {names:?}");
        }
    }
}
