//! Reads the garbage-collected heap of a dumped .NET process.
//!
//! Floors, each using only those below it: [`base`], [`model`] → [`dump`] → [`memory`] → [`contract`] → [`clr`] → [`gc`] → [`analysis`]
//! → [`output`] → [`cli`]. `tests/it/floors.rs` fails on an upward import.

pub mod analysis;
pub mod base;
pub mod cli;
pub mod clr;
pub mod contract;
pub mod dump;
pub mod gc;
pub mod graph;
pub mod memory;
pub mod model;
pub mod output;
pub mod session;

pub use base::{Addr, AddrRange, Answer, Limits, Note, NoteKind, Notes};
pub use session::{Dump, Error, FromValue, Heap, Object, Objects, OpenOptions, Reference, Runtime, Type, Value, ValueError};

/// Opens the dump at `path` with the default [`OpenOptions`]: an ELF core or a Windows minidump, also compressed with zstd or
/// gzip.
///
/// # Errors
/// [`Error::Dump`] where the file is no dump or cannot be read.
pub fn open(path: impl AsRef<std::path::Path>) -> Result<Dump, Error> {
    Dump::open(path, &OpenOptions::default())
}
