//! Whom to tell about work that takes long.

use std::fmt::Debug;

/// Hears about work that takes long.
pub trait Progress: Send + Sync + Debug {
    /// Work begins: what it is, in a word or two, and how many bytes there are to do, where known.
    fn start(&self, what: &str, total: Option<u64>);
    /// So many bytes are done, counted from the start.
    fn advance(&self, done: u64);
    /// The work has ended, well or not.
    fn finish(&self);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn finish(&self) {}
}
