//! Opens a dump: format detection, decompression, dispatch to the container's reader.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::compressed::{Cache, DamageKind};
use super::files::regular;
use super::sniff::SNIFF_BYTES;
use super::{Bytes, Compression, DumpError, DumpFile, FileKind, compressed, elf_core, sniff};
use crate::base::{Limits, Progress};

/// How to open a dump.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Limits on what is read from the dump.
    pub limits: Limits,
    /// Progress reporting for decompression and heap walks.
    pub progress: Option<Arc<dyn Progress>>,
    /// Cache for decompressed dumps.
    pub cache: Option<Arc<dyn Cache>>,
    /// Read the file into memory instead of mapping it, for file systems that do not support mapping.
    pub no_mmap: bool,
}

/// Opens the dump at `path`. Format and compression are detected from the contents, never from the name.
///
/// # Errors
/// Fails if the file cannot be read, is not a dump, or does not have essential structures. Other damage is not an error: everything readable
/// is kept, and [`DumpFacts::oddities`](super::DumpFacts::oddities) and [`DumpFacts::truncated_bytes`](super::DumpFacts::truncated_bytes)
/// report the rest.
pub fn open(path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    let kind = fs::metadata(path).map_err(io)?;
    if kind.is_dir() {
        return Err(DumpError::NotADump { path: path.to_owned(), kind: FileKind::Directory });
    }
    if !kind.is_file() {
        return Err(DumpError::NotADump { path: path.to_owned(), kind: FileKind::NotRegular });
    }
    open_file(&regular(path).map_err(io)?, path, options)
}

/// Opens a dump from an open file. `path` is the path of the file: see [`open_bytes`].
///
/// # Errors
/// See [`open`].
pub fn open_file(file: &File, path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    if !file.metadata().map_err(io)?.is_file() {
        return Err(DumpError::NotADump { path: path.to_owned(), kind: FileKind::NotRegular });
    }
    let read = |mut file: &File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| Bytes::Owned(bytes))
    };
    let bytes = if options.no_mmap { read(file) } else { Bytes::map_file(file) };
    open_bytes(bytes.map_err(io)?, path, options)
}

/// Opens a dump from its bytes. `path` is used in messages and as [`DumpFacts::path`](super::DumpFacts::path).
///
/// # Errors
/// See [`open`].
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
            let facts = &mut dump.facts;
            facts.compression = Some(compression);
            if let Some(damage) = damage {
                // Data after the compressed dump does not matter if the dump is complete.
                let is_wrong = match damage.kind {
                    DamageKind::Wrong => true,
                    DamageKind::Trailing => facts.truncated_bytes > facts.trimmed.map_or(0, |trimmed| trimmed.truncated_bytes),
                    DamageKind::Cut => false,
                };
                let what = damage.consequence(facts.file_bytes);
                if is_wrong {
                    let before = facts.damage.replace(what);
                    facts.oddities.extend(before);
                } else {
                    facts.oddities.push(what);
                }
            }
            Ok(dump)
        }
        // Too little was decompressed to parse. Report the damage, not the parse error that it caused.
        (Err(_), Some(damage)) => Err(DumpError::Decompress { path: path.to_owned(), source: damage.into_error() }),
        (Err(DumpError::NotADump { path, kind }), None) => Err(DumpError::CompressedNotADump { path, kind }),
        (Err(e), None) => Err(e),
    }
}

fn kind_of(bytes: &Bytes) -> FileKind {
    let first = bytes.get(..SNIFF_BYTES).unwrap_or(bytes);
    sniff(first, u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

fn parse(kind: FileKind, bytes: Bytes, path: &Path, options: &OpenOptions) -> Result<DumpFile, DumpError> {
    match kind {
        FileKind::ElfCore => elf_core::read(Arc::new(bytes), path, &options.limits),
        #[cfg(feature = "minidump")]
        FileKind::Minidump => super::minidump::read(Arc::new(bytes), path, &options.limits),
        FileKind::GcdumpTrace => super::snapshot::read(Arc::new(bytes), path),
        kind => Err(DumpError::NotADump { path: path.to_owned(), kind }),
    }
}
