//! Writes tables as Parquet: one row group per block, compressed with zstd, with an encoding for each column.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::Sink;
use super::block::{Block, Column, Kind, Packing, Values};
use crate::model::ExportTable;

/// Compression level of zstd. Level 1 compresses almost as well as level 3 in half the time.
const LEVEL: i32 = 1;

/// A Parquet file.
pub(super) struct Parquet {
    out: SerializedFileWriter<BufWriter<File>>,
}

fn failed(e: ParquetError) -> io::Error {
    match e {
        // The writer wraps errors of the file; the inner error is returned.
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(e) => io::Error::other(e),
        },
        other => io::Error::other(other),
    }
}

impl Parquet {
    pub(super) fn new(file: File, table: ExportTable, columns: &[Column]) -> io::Result<Parquet> {
        let schema = schema(table, columns).map_err(failed)?;
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("gcdump ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).map_err(failed)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_write_batch_size(8192);
        for column in columns {
            let path = ColumnPath::from(&*column.name);
            properties = match column.packing {
                Packing::Dictionary => properties.set_column_dictionary_enabled(path, true),
                Packing::Plain => properties.set_column_dictionary_enabled(path, false),
                Packing::Delta => {
                    // For increasing numbers, page bounds let a reader find the page that contains an address.
                    let properties = properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::Page);
                    let properties = properties.set_column_dictionary_enabled(path.clone(), false);
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
            };
        }
        let out = BufWriter::with_capacity(1 << 16, file);
        Ok(Parquet { out: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build())).map_err(failed)? })
    }
}

fn schema(table: ExportTable, columns: &[Column]) -> Result<Type, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Int => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.name()).with_fields(fields).build()
}

impl Sink for Parquet {
    fn block(&mut self, block: &Block) -> io::Result<()> {
        self.group(block).map_err(failed)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.into_inner().map_err(failed)?.flush()
    }
}

impl Parquet {
    fn group(&mut self, block: &Block) -> Result<(), ParquetError> {
        let mut group = self.out.next_row_group()?;
        for cells in &block.cells {
            let Some(mut column) = group.next_column()? else { break };
            let levels = Some(cells.levels.as_slice());
            match &cells.values {
                Values::Int(values) => column.typed::<Int64Type>().write_batch(values, levels, None)?,
                Values::Real(values) => column.typed::<DoubleType>().write_batch(values, levels, None)?,
                Values::Flag(values) => column.typed::<BoolType>().write_batch(values, levels, None)?,
                Values::Text(texts) => {
                    let words: Vec<ByteArray> = texts.words.iter().map(|word| ByteArray::from(&**word)).collect();
                    let values: Vec<ByteArray> = texts.rows.iter().filter_map(|word| words.get(*word as usize).cloned()).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, levels, None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}
