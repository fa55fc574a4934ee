//! SARIF 2.1.0, the log format of static analysis tools, which code scanning services read.

use std::collections::BTreeSet;
use std::io;

use serde_json::json;

use super::{CheckWriter, Out, fingerprints};
use crate::base::Notes;
use crate::output::checks::{Check, Outcome};

pub(super) struct Sarif;

impl CheckWriter for Sarif {
    fn print(&self, out: &mut Out<'_>, checks: &[Check], notes: &Notes) -> io::Result<()> {
        let rules: BTreeSet<&str> = checks.iter().map(|c| c.id.as_str()).collect();
        let results = checks.iter().zip(fingerprints(&out.head.command, checks)).filter_map(|(check, fingerprint)| {
            // Services that read SARIF show every result as an alert, so checks that passed are only listed as rules.
            let level = match check.outcome {
                Outcome::Error => "error",
                Outcome::Warning => "warning",
                Outcome::Note => "note",
                Outcome::Passed | Outcome::Skipped => return None,
            };
            Some(json!({
                "ruleId": check.id,
                "level": level,
                "message": { "text": check.message() },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(check.dump.as_ref().unwrap_or(&out.head.dump.path)) } } }],
                "partialFingerprints": { "gcdump/v1": fingerprint },
            }))
        });
        let notifications = notes.iter().map(|note| json!({ "level": "warning", "message": { "text": note.message } }));
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "gcdump",
                    "version": out.head.gcdump,
                    "rules": rules.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>(),
                } },
                "invocations": [{
                    "executionSuccessful": true,
                    "toolExecutionNotifications": notifications.collect::<Vec<_>>(),
                }],
                "results": results.collect::<Vec<_>>(),
            }],
        });
        serde_json::to_writer_pretty(&mut *out.to, &log)?;
        writeln!(out.to)
    }

    fn carries_notes(&self) -> bool {
        true
    }
}

/// Converts a path to the URI reference that SARIF requires: everything except unreserved characters and slashes is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            b'\\' => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
