//! What a shell asks for, and what it is offered.

use std::ffi::OsString;

/// A candidate, and its description.
pub(super) struct Offer {
    pub(super) value: String,
    pub(super) help: Option<String>,
}

/// Prints candidates for a shell.
pub(super) type Printer = Box<dyn Fn(&[Offer]) -> String>;

/// A word that is to be completed.
pub(super) struct Asked {
    /// The words of the line up to this one.
    pub(super) words: Vec<OsString>,
    /// The words after it.
    pub(super) after: Vec<OsString>,
    /// Prints the candidates for the shell that asks.
    pub(super) print: Printer,
}
