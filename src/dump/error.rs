//! Errors of opening a dump. Every message names the file.

use std::io;
use std::path::PathBuf;

use super::FileKind;
use crate::base::{in_units, thousands};

/// Why a file could not be opened as a dump.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The file could not be opened, mapped or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The file is not a dump. The message says what it is and what to do about it.
    #[error("{} {}", path.display(), kind.describe())]
    NotADump {
        /// The file.
        path: PathBuf,
        /// Detected format.
        kind: FileKind,
    },
    /// The file is compressed, and its contents are not a dump.
    #[error("{} is compressed; the file inside {}", path.display(), kind.describe())]
    CompressedNotADump {
        /// The compressed file.
        path: PathBuf,
        /// Detected format of the contents.
        kind: FileKind,
    },
    /// The file is compressed more than once.
    #[error("{} is compressed twice ({outer} around {inner}); decompress it once with another tool first", path.display())]
    CompressedTwice {
        /// The file.
        path: PathBuf,
        /// The outer compression.
        outer: &'static str,
        /// The inner compression.
        inner: &'static str,
    },
    /// The file ends inside an essential structure.
    #[error("{} is truncated: {what} needs {} bytes, the file has {}; the dump was not completely written or copied", path.display(), thousands(*need), thousands(*have))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The truncated structure.
        what: &'static str,
        /// Minimum file size in bytes.
        need: u64,
        /// Actual file size in bytes.
        have: u64,
    },
    /// An essential structure is invalid.
    #[error("{} is damaged: {what} (at file offset {offset:#x})", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
        /// Offset in the (decompressed) file.
        offset: u64,
    },
    /// The compressed data is damaged or truncated, and too little of it could be decompressed to open the dump.
    #[error("cannot decompress {}", path.display())]
    Decompress {
        /// The compressed file.
        path: PathBuf,
        /// The decompressor's error.
        source: io::Error,
    },
    /// The disk has too little space for the contents of a compressed dump or of standard input.
    #[error("cannot write the contents of {}: no space left in {} after {}", path.display(), directory.display(), in_units(*written))]
    NoSpace {
        /// The compressed file, or `-`.
        path: PathBuf,
        /// The folder of the file that is written: the temporary folder or that of the cache.
        directory: PathBuf,
        /// Bytes written before the disk was full.
        written: u64,
        /// The underlying error.
        source: io::Error,
    },
    /// The file for the contents of a compressed dump or of standard input cannot be created, written or mapped.
    #[error("cannot write the contents of {} to a temporary file in {}", path.display(), directory.display())]
    NoTemporaryFile {
        /// The compressed file, or `-`.
        path: PathBuf,
        /// The folder of the file that is written: the temporary folder or that of the cache.
        directory: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The contents of a compressed dump or of standard input are larger than `Limits::decompressed_bytes`.
    #[error("the contents of {} are larger than {}, the limit", path.display(), in_units(*limit))]
    DecompressedTooLarge {
        /// The compressed file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The decoder would need more memory for the window than the size of the compressed dump, or `Limits::max_memory`, allows.
    #[error("{} is compressed with a window of more than {} (zstd --long)", path.display(), in_units(*limit))]
    WindowTooLarge {
        /// The compressed file.
        path: PathBuf,
        /// The memory that the window may take, in bytes.
        limit: u64,
    },
}

impl DumpError {
    /// The error for a file in `directory` that could not be written after `written` bytes of the contents of `path`.
    pub(crate) fn not_written(path: PathBuf, directory: PathBuf, written: u64, source: io::Error) -> DumpError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DumpError::NoSpace { path, directory, written, source }
            }
            _ => DumpError::NoTemporaryFile { path, directory, source },
        }
    }
}
