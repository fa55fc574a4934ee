//! Progress reporting.

use std::fmt::Debug;

/// Receives the progress of long operations.
pub trait Progress: Send + Sync + Debug {
    /// An operation begins: its name, in a word or two, and its size in bytes, if known.
    fn start(&self, what: &str, total: Option<u64>);
    /// Bytes processed so far, from the start of the operation.
    fn advance(&self, done: u64);
    /// The operation ended, successfully or not.
    fn finish(&self);
}

/// Discards progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn finish(&self) {}
}
