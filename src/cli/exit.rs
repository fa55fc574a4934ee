//! Exit codes. Documented in `docs/cli.md`.

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Complete answer.
    Ok,
    /// The answer is "bad" or "none": a check failed, a threshold was exceeded, nothing matched.
    Negative,
    /// Invalid command line.
    Usage,
    /// The file is not a dump, or cannot be read.
    BadDump,
    /// The dump contains no supported .NET runtime.
    NoRuntime,
    /// Partial answer: required data is missing from the dump.
    Partial,
    /// Timed out (`--timeout`).
    Timeout,
    /// The answer or a file could not be written.
    NotWritten,
}

impl Exit {
    /// The process exit code.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Negative => 1,
            Exit::Usage => 2,
            Exit::BadDump => 3,
            Exit::NoRuntime => 4,
            Exit::Partial => 5,
            Exit::Timeout => 6,
            Exit::NotWritten => 7,
        }
    }

    /// Returns the worse of two exit codes: the first code that is an error or partial. Without such a code: negative if either code is negative,
    /// otherwise success.
    pub(super) const fn worse(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Ok, other) => other,
            (Exit::Negative, other) if !matches!(other, Exit::Ok) => other,
            (exit, _) => exit,
        }
    }

    /// Returns [`Exit::Negative`] if `bad` and the answer is complete.
    pub(super) const fn negative_if(self, bad: bool) -> Exit {
        if bad && matches!(self, Exit::Ok) { Exit::Negative } else { self }
    }

    /// Returns [`Exit::Negative`] if `bad`, even if the answer is partial: what is missing cannot change that result.
    pub(super) const fn negative_for_certain_if(self, bad: bool) -> Exit {
        if bad && matches!(self, Exit::Ok | Exit::Partial) { Exit::Negative } else { self }
    }
}

/// A command line that parses but is invalid: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);
