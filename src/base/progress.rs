//! Progress reporting.

use std::fmt::Debug;

/// Receives the progress of long operations.
pub trait Progress: Send + Sync + Debug {
    /// Begins an operation: its name, in a word or two, and its size in bytes, if known.
    fn start(&self, what: &str, total: Option<u64>);
    /// Reports the number of bytes processed since the start of the operation.
    fn advance(&self, done: u64);
    /// Ends the operation, whether successful or not.
    fn finish(&self);
}

/// Discards progress reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn finish(&self) {}
}
