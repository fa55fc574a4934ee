//! Answers as lists of checks, which the formats of continuous integration systems report.

use crate::base::Notes;

/// One problem that a command looked for, and the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Identifier, which does not depend on the dump: `suspects`, or a rule as given.
    pub id: String,
    /// The outcome.
    pub outcome: Outcome,
    /// One line of text: the finding, or the reason for a missing outcome. Empty for checks that passed.
    pub text: String,
    /// The command line that shows more.
    pub command: Option<String>,
    /// Path of the dump that was checked, if that is not the dump in the header of the answer.
    pub dump: Option<String>,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A critical finding.
    Error,
    /// A finding that should be looked at.
    Warning,
    /// A finding for information.
    Note,
    /// No finding.
    Passed,
    /// The dump does not allow the check, or it was not requested.
    Skipped,
}

impl Outcome {
    /// Whether a build may fail because of the check.
    pub fn failed(self) -> bool {
        matches!(self, Outcome::Error | Outcome::Warning)
    }
}

impl Check {
    /// Creates a check with a finding, or a check that was skipped for the reason in `text`.
    pub fn new(id: impl Into<String>, outcome: Outcome, text: impl Into<String>) -> Check {
        Check { id: id.into(), outcome, text: text.into(), command: None, dump: None }
    }

    /// Creates a check without a finding.
    pub fn passed(id: impl Into<String>) -> Check {
        Check::new(id, Outcome::Passed, "")
    }

    /// Creates a check that found nothing in an answer with these notes. If the answer is partial, nothing is known.
    pub fn without_finding(id: impl Into<String>, notes: &Notes) -> Check {
        match notes.first_loss() {
            Some(loss) => Check::new(id, Outcome::Skipped, &loss.message),
            None => Check::passed(id),
        }
    }

    /// Adds the command line that shows more.
    #[must_use]
    pub fn command(self, command: &str) -> Check {
        Check { command: Some(command.into()), ..self }
    }

    /// Returns the text and the command that shows more, on separate lines.
    pub fn message(&self) -> String {
        match &self.command {
            Some(command) => format!("{}\n{command}", self.text),
            None => self.text.clone(),
        }
    }
}
