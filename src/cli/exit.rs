//! Exit codes. Documented in `docs/cli.md`.

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The question was answered in full.
    Ok,
    /// It ran, and the answer is "bad" or "none": a check failed, a threshold was passed, nothing matched.
    Negative,
    /// The command line makes no sense.
    Usage,
    /// The file is no dump, or cannot be read.
    BadDump,
    /// The dump is fine, but there is no .NET runtime in it that gcdump reads.
    NoRuntime,
    /// The answer is partial: the dump lacks something that it needs.
    Partial,
    /// The time that `--timeout` allows is over.
    Timeout,
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Negative => 1,
            Exit::Usage => 2,
            Exit::BadDump => 3,
            Exit::NoRuntime => 4,
            Exit::Partial => 5,
            Exit::Timeout => 6,
        }
    }

    /// Of an answer in full that is "bad" or "none".
    pub(super) const fn negative_if(self, bad: bool) -> Exit {
        if bad && matches!(self, Exit::Ok) { Exit::Negative } else { self }
    }
}

/// A command line that parses but cannot be meant: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);
