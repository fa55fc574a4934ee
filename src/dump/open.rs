//! The way in: a path becomes a [`DumpFile`].

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::sniff::SNIFF_BYTES;
use super::{Bytes, Compression, DumpError, DumpFile, FileKind, compressed, elf_core, minidump, sniff};
use crate::base::{Limits, Progress};

/// Oddities that are listed one by one.
const MOST_ODDITIES: usize = 50;

/// How to open a dump.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Caps on what is read.
    pub limits: Limits,
    /// Whom to tell about work that takes long: decompression, and all walks through the heap later on.
    pub progress: Option<Arc<dyn Progress>>,
    /// Read the file into memory instead of mapping it: for file systems that cannot map.
    pub no_mmap: bool,
}

/// Opens the dump at `path`. What it is, also whether it is compressed, is told from its content.
///
/// # Errors
/// Where the file cannot be read, is no dump, or is damaged so early that nothing of it can be read. Damage further on
/// is no error: what can be had is had, and [`DumpFacts::oddities`](super::DumpFacts::oddities) and
/// [`DumpFacts::truncated_bytes`](super::DumpFacts::truncated_bytes) tell.
pub fn open(path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    // Before opening: opening a pipe that nobody writes to would wait for ever.
    let kind = fs::metadata(path).map_err(io)?;
    if kind.is_dir() {
        return Err(DumpError::NotADump { path: path.to_owned(), kind: FileKind::Directory });
    }
    if !kind.is_file() {
        return Err(DumpError::NotADump { path: path.to_owned(), kind: FileKind::NotRegular });
    }
    let bytes = if options.no_mmap { fs::read(path).map(Bytes::Owned) } else { Bytes::map_path(path) };
    open_bytes(bytes.map_err(io)?, path, options)
}

/// Opens a dump whose bytes are at hand. `path` is for messages and for [`DumpFacts::path`](super::DumpFacts::path).
///
/// # Errors
/// As [`open`].
pub fn open_bytes(bytes: Bytes, path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    let compression = match kind_of(&bytes) {
        FileKind::Zstd => Compression::Zstd,
        FileKind::Gzip => Compression::Gzip,
        kind => return parse(kind, bytes, path, options),
    };
    let plain = compressed::decompress(&bytes, compression, path, options)?;
    drop(bytes);
    let result = match kind_of(&plain.bytes) {
        inner @ (FileKind::Zstd | FileKind::Gzip) => Err(DumpError::CompressedTwice {
            path: path.to_owned(),
            outer: compression.name(),
            inner: if inner == FileKind::Zstd { Compression::Zstd.name() } else { Compression::Gzip.name() },
        }),
        kind => parse(kind, plain.bytes, path, options),
    };
    match (result, plain.damage) {
        (Ok(mut dump), damage) => {
            dump.facts.compression = Some(compression);
            if let Some(damage) = damage {
                dump.facts.oddities.push(format!(
                    "the {} data is damaged or cut off ({damage}); read what came out of it, {} bytes",
                    compression.name(),
                    dump.facts.file_bytes
                ));
            }
            Ok(dump)
        }
        // Whatever came out is not enough to read: the damage is the reason, not what it left behind.
        (Err(_), Some(source)) => Err(DumpError::Decompress { path: path.to_owned(), source }),
        (Err(DumpError::NotADump { path, kind }), None) => Err(DumpError::CompressedNotADump { path, kind }),
        (Err(e), None) => Err(e),
    }
}

fn kind_of(bytes: &Bytes) -> FileKind {
    let first = bytes.get(..SNIFF_BYTES).unwrap_or(bytes);
    sniff(first, u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

fn parse(kind: FileKind, bytes: Bytes, path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    let mut dump = match kind {
        FileKind::ElfCore => elf_core::read(Arc::new(bytes), path, &options.limits),
        FileKind::Minidump => minidump::read(Arc::new(bytes), path, &options.limits),
        kind => Err(DumpError::NotADump { path: path.to_owned(), kind }),
    }?;
    // One broken note or segment gives one sentence; a hostile file has millions of them.
    let oddities = &mut dump.facts.oddities;
    let more = oddities.len().saturating_sub(MOST_ODDITIES);
    if more > 0 {
        oddities.truncate(MOST_ODDITIES);
        oddities.push(format!("{more} more of this kind"));
    }
    Ok(dump)
}
