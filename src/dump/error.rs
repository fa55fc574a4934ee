//! Why a file could not be opened as a dump. Every message names the file.

use std::io;
use std::path::PathBuf;

use super::FileKind;

/// Why a file could not be opened as a dump.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The operating system refused to open, map or read the file.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is something else. The message says what, and what to do about it.
    #[error("{} {}", path.display(), kind.describe())]
    NotADump {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// The file is compressed, and what it holds is no dump.
    #[error("{} is compressed; the file inside {}", path.display(), kind.describe())]
    CompressedNotADump {
        /// The compressed file.
        path: PathBuf,
        /// What it holds.
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
    /// The file ends within something without which nothing of it can be read.
    #[error("{} is cut off: {what} needs {need} bytes, the file has {have}; the copy or the writing of the dump did not finish", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is cut off.
        what: &'static str,
        /// Size that the file would need at least, bytes.
        need: u64,
        /// Size that it has, bytes.
        have: u64,
    },
    /// Something without which nothing can be read is impossible.
    #[error("{} is damaged: {what} (at file offset {offset:#x})", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is impossible, and how.
        what: String,
        /// Where in the (decompressed) file.
        offset: u64,
    },
    /// The compressed data is damaged so early that nothing of the dump came out.
    #[error("cannot decompress {}", path.display())]
    Decompress {
        /// The compressed file.
        path: PathBuf,
        /// What the decompressor said.
        source: io::Error,
    },
    /// The decompressed dump has no room in the directory of temporary files.
    #[error("cannot decompress {}: no room for it in {} after {written} bytes; free some space there, or set TMPDIR to a directory with more", path.display(), directory.display())]
    NoSpace {
        /// The compressed file.
        path: PathBuf,
        /// The directory of temporary files.
        directory: PathBuf,
        /// Bytes that had room.
        written: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// The decompressed dump is larger than `Limits::decompressed_bytes`.
    #[error("{} decompresses to more than {limit} bytes, the limit; decompress it with another tool first", path.display())]
    DecompressedTooLarge {
        /// The compressed file.
        path: PathBuf,
        /// The limit, bytes.
        limit: u64,
    },
}
