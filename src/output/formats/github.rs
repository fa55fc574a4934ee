//! Workflow commands of GitHub Actions: one annotation per finding.

use std::io;

use super::{Out, Whole, Writer, checks_of, refuse_rows};
use crate::output::checks::Outcome;
use crate::output::sanitize;
use crate::output::table::Heading;

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

impl Writer for Github {
    fn has_sections(&self) -> bool {
        false
    }

    fn list(&self, out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Err(refuse_rows(out))
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        for check in checks_of(out, answer)? {
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
