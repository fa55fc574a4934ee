//! JUnit XML: a test suite with one test case per check.

use std::io;

use super::{CheckWriter, Out};
use crate::base::Notes;
use crate::output::checks::{Check, Outcome};
use crate::output::sanitize;

pub(super) struct Junit;

/// Escapes `text` for an attribute or element. XML forbids control characters even as character references, so `sanitize` replaces them.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push_str("&#10;");
        }
        for c in sanitize(line).chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                // XML also forbids these two noncharacters.
                '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
    }
    out
}

impl CheckWriter for Junit {
    fn print(&self, out: &mut Out<'_>, checks: &[Check], _notes: &Notes) -> io::Result<()> {
        let failures = checks.iter().filter(|c| c.outcome.failed()).count();
        let skipped = checks.iter().filter(|c| c.outcome == Outcome::Skipped).count();
        let suite = escaped(&format!("gcdump {}", out.head.command));
        writeln!(out.to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", checks.len());
        writeln!(out.to, "<testsuites {counts}>")?;
        writeln!(out.to, "  <testsuite name=\"{suite}\" {counts} skipped=\"{skipped}\">")?;
        writeln!(out.to, "    <properties>")?;
        let dump = checks.iter().find_map(|check| check.dump.as_ref()).unwrap_or(&out.head.dump.path);
        writeln!(out.to, "      <property name=\"dump\" value=\"{}\"/>", escaped(dump))?;
        writeln!(out.to, "    </properties>")?;
        for check in checks {
            write!(out.to, "    <testcase classname=\"{suite}\" name=\"{}\"", escaped(&check.id))?;
            let message = escaped(&check.text);
            let more = escaped(check.command.as_deref().unwrap_or_default());
            match check.outcome {
                Outcome::Passed => writeln!(out.to, "/>")?,
                Outcome::Error | Outcome::Warning => {
                    let kind = if check.outcome == Outcome::Error { "critical" } else { "warning" };
                    writeln!(out.to, "><failure type=\"{kind}\" message=\"{message}\">{more}</failure></testcase>")?;
                }
                Outcome::Note => writeln!(out.to, "><system-out>{message}&#10;{more}</system-out></testcase>")?,
                Outcome::Skipped => writeln!(out.to, "><skipped message=\"{message}\"/></testcase>")?,
            }
        }
        writeln!(out.to, "  </testsuite>")?;
        writeln!(out.to, "</testsuites>")
    }
}
