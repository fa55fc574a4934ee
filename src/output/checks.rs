//! Answers as lists of checks, which the formats of continuous integration systems report.

/// One thing that a command looked for, and the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its identifier, the same for every dump: `suspects`, or a rule as given.
    pub id: String,
    /// The outcome.
    pub outcome: Outcome,
    /// One line of text: the finding, or the reason why there is no outcome. Empty for checks that passed.
    pub text: String,
    /// The command line that shows more.
    pub command: Option<String>,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It found something that is critical.
    Error,
    /// It found something to look at.
    Warning,
    /// It found something worth knowing.
    Note,
    /// It found nothing.
    Passed,
    /// The dump does not allow it, or it was not asked for.
    Skipped,
}

impl Outcome {
    /// Whether the check found something that a build may fail for.
    pub fn failed(self) -> bool {
        matches!(self, Outcome::Error | Outcome::Warning)
    }
}

impl Check {
    /// A check that found something, or that was skipped for the reason in `text`.
    pub fn new(id: impl Into<String>, outcome: Outcome, text: impl Into<String>) -> Check {
        Check { id: id.into(), outcome, text: text.into(), command: None }
    }

    /// A check that found nothing.
    pub fn passed(id: impl Into<String>) -> Check {
        Check::new(id, Outcome::Passed, "")
    }

    /// Adds the command line that shows more.
    #[must_use]
    pub fn command(self, command: &str) -> Check {
        Check { command: Some(command.into()), ..self }
    }

    /// Its text and the command that shows more, in two lines.
    pub fn message(&self) -> String {
        match &self.command {
            Some(command) => format!("{}\n{command}", self.text),
            None => self.text.clone(),
        }
    }
}
