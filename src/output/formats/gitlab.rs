//! GitLab's Code Quality report: a JSON list of findings.

use std::io;

use serde_json::json;

use super::{CheckWriter, Out, fingerprints};
use crate::base::Notes;
use crate::output::checks::{Check, Outcome};

pub(super) struct Gitlab;

impl CheckWriter for Gitlab {
    fn print(&self, out: &mut Out<'_>, checks: &[Check], _notes: &Notes) -> io::Result<()> {
        let issues = checks.iter().zip(fingerprints(&out.head.command, checks)).filter_map(|(check, fingerprint)| {
            let severity = match check.outcome {
                Outcome::Error => "critical",
                Outcome::Warning => "major",
                Outcome::Note => "info",
                Outcome::Passed | Outcome::Skipped => return None,
            };
            Some(json!({
                "type": "issue",
                "check_name": format!("gcdump {} {}", out.head.command, check.id),
                "description": check.message(),
                "severity": severity,
                "fingerprint": fingerprint,
                // The report requires a line number, although a dump has no lines.
                "location": { "path": check.dump.as_ref().unwrap_or(&out.head.dump.path), "lines": { "begin": 1 } },
            }))
        });
        let issues: Vec<_> = issues.collect();
        serde_json::to_writer_pretty(&mut *out.to, &issues)?;
        writeln!(out.to)
    }
}
