//! Workflow commands of GitHub Actions: one annotation per finding.

use std::io;

use super::{CheckWriter, Out};
use crate::base::Notes;
use crate::output::checks::{Check, Outcome};
use crate::output::sanitize;

pub(super) struct Github;

/// Escapes `text` for a property of a workflow command, or for its message if `data`.
fn escaped(text: &str, data: bool) -> String {
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push_str("%0A");
        }
        for c in sanitize(line).chars() {
            match c {
                '%' => out.push_str("%25"),
                ':' if !data => out.push_str("%3A"),
                ',' if !data => out.push_str("%2C"),
                c => out.push(c),
            }
        }
    }
    out
}

impl CheckWriter for Github {
    fn print(&self, out: &mut Out<'_>, checks: &[Check], _notes: &Notes) -> io::Result<()> {
        for check in checks {
            let level = match check.outcome {
                Outcome::Error => "error",
                Outcome::Warning => "warning",
                Outcome::Note => "notice",
                Outcome::Passed | Outcome::Skipped => continue,
            };
            let title = escaped(&format!("gcdump {}: {}", out.head.command, check.id), false);
            writeln!(out.to, "::{level} title={title}::{}", escaped(&check.message(), true))?;
        }
        Ok(())
    }
}
