//! Requests of a shell for completion, and the candidates offered.

use std::ffi::OsString;

/// A candidate, and its description.
pub(super) struct Offer {
    pub(super) value: String,
    pub(super) help: Option<String>,
}

/// Formats candidates for a shell.
pub(super) type Printer = Box<dyn Fn(&[Offer]) -> String>;

/// A request to complete a word.
pub(super) struct Asked {
    /// Words of the line up to and including the word to complete.
    pub(super) words: Vec<OsString>,
    /// Words after the word to complete.
    pub(super) after: Vec<OsString>,
    /// Formats the candidates for the requesting shell.
    pub(super) print: Printer,
}
