//! Objects and types that retain much of the heap.
//!
//! Rule: an object without a dominator, or all objects of a type together, retain at least `bytes` and at least the share `share` of the reachable
//! bytes. A cache that is meant to be large looks the same, so the finding names its holder. Types are sorted last, since their objects may be many
//! small unrelated things.
//!
//! Source: the dominator tree, as `retained --suspects` reads it.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{in_units, percent};
use crate::analysis::retained::held_by;
use crate::base::thousands;
use crate::model::{Problem, ProblemId, ProblemSeverity, RootKind, Suspect, SuspectKind};

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    let report = if least.share < answers.thresholds().share { answers.retained_listed()? } else { answers.retained()? };
    let large = report.suspects.iter().flatten().filter(|s| s.retained >= least.bytes);
    Ok(large.map(|s| finding(answers, s)).collect())
}

/// The multiple of the threshold for a cache of a framework. Caches of fixed size, as in Roslyn and Entity Framework, are smaller.
const OF_FRAMEWORK: u64 = 8;
/// Prefixes of the names of types that frameworks define.
const FRAMEWORKS: [&str; 2] = ["System.", "Microsoft."];

/// Lowers the severity of small caches that a static field of a framework holds.
fn severity(answers: &Answers<'_>, s: &Suspect) -> ProblemSeverity {
    let of_framework = |name: &str| FRAMEWORKS.iter().any(|begin| name.starts_with(begin));
    let held = s.roots.first().is_some_and(|root| root.kind == RootKind::Static && of_framework(&root.label));
    let small = s.retained < answers.thresholds().bytes.saturating_mul(OF_FRAMEWORK);
    if held && small && of_framework(&s.type_name) { ProblemSeverity::Info } else { ProblemSeverity::Warning }
}

fn finding(answers: &Answers<'_>, s: &Suspect) -> Problem {
    let retained = format!("{} ({} of what is reachable)", in_units(s.retained), percent(s.share));
    let nodes = || s.below.first().map(|b| format!(": {} × {}", thousands(b.count), b.type_name));
    let below = s.elements.as_ref().map(|e| format!(": {}", e.words())).or_else(nodes).unwrap_or_default();
    let found = match (s.kind, s.address) {
        (SuspectKind::Object, Some(object)) => {
            let by = s.roots.first().map_or_else(|| held_by(&s.type_name, &s.holders), |r| r.label.clone());
            let title = format!("{} {object}, held by {by}, retains {retained}{below}", s.type_name);
            let command = ["retained", "--object", &object.to_string()];
            answers.finding(ProblemId::Suspects, severity(answers, s), title, &command)
        }
        _ => {
            let within: Vec<String> = s.below.iter().map(|b| format!("{} × {}", thousands(b.count), b.type_name)).collect();
            let within = if within.is_empty() { String::new() } else { format!("; in them {}", within.join(", ")) };
            let title = format!("{} objects of {} retain {retained} together{within}", thousands(s.count), s.type_name);
            let command = ["path", "--type", &s.method_table.to_string()];
            answers.finding(ProblemId::Suspects, ProblemSeverity::Info, title, &command)
        }
    };
    Problem {
        count: Some(s.count),
        bytes: Some(s.retained),
        share: Some(s.share),
        object: s.address,
        type_name: Some(s.type_name.clone()),
        ..found
    }
}
