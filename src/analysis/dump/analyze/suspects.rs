//! Objects and types that retain much of the heap.
//!
//! Rule: an object without a dominator, or all objects of a type together, retain at least `bytes` and at least the share `share` of the reachable
//! bytes. A cache that is meant to be large looks the same, so the finding names its holder. Findings about types are informational, because the
//! objects of a type may be unrelated.
//!
//! Source: the dominator tree, as `retained --suspects` reads it.

use indexmap::IndexMap;

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{in_units, percent};
use super::triage::MAX_TEXT;
use crate::analysis::holders::retained::held_by;
use crate::analysis::{Problem, ProblemId, ProblemSeverity, Suspect, SuspectKind};
use crate::base::{Name, len64, thousands, total};
use crate::model::{RootKind, RootModel};

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    let report = if least.share < answers.thresholds().share { answers.retained_listed()? } else { answers.retained()? };
    let mut alike: IndexMap<Alike<'_>, Vec<&Suspect>> = IndexMap::new();
    for (n, suspect) in report.rows.fields().suspects.into_iter().flatten().filter(|s| s.retained >= least.bytes).enumerate() {
        alike.entry(Alike::of(suspect, n)).or_default().push(suspect);
    }
    let found = alike.values().filter_map(|suspects| match suspects.as_slice() {
        [] => None,
        [suspect] => Some(finding(answers, suspect)),
        [first, ..] => Some(merged(answers, first, suspects)),
    });
    Ok(found.collect())
}

/// The key by which suspects are merged into one finding. Objects of one type that frames of one method hold, as in threads that do the same work,
/// have equal keys.
#[derive(PartialEq, Eq, Hash)]
enum Alike<'s> {
    /// Type and method.
    OnStacks(&'s str, &'s str),
    /// A suspect that is not merged, by its number.
    Single(usize),
}

impl<'s> Alike<'s> {
    fn of(suspect: &'s Suspect, number: usize) -> Alike<'s> {
        match (suspect.kind, suspect.roots.first().and_then(RootModel::method)) {
            (SuspectKind::Object, Some(method)) => Alike::OnStacks(&suspect.type_name, method),
            _ => Alike::Single(number),
        }
    }
}

/// Maximum number of objects in the title of a merged finding.
const OBJECTS: usize = 3;

/// Returns the finding about suspects that are alike.
fn merged(answers: &Answers<'_>, first: &Suspect, all: &[&Suspect]) -> Problem {
    // None of them dominates another, so nothing is counted twice.
    let retained = total(all.iter().map(|s| s.retained));
    let share = all.iter().map(|s| s.share).sum::<f64>();
    let method = first.roots.first().and_then(RootModel::method).unwrap_or("a method");
    let objects: Vec<String> = all.iter().filter_map(|s| s.address).take(OBJECTS).map(|object| object.to_string()).collect();
    let more = if all.len() > objects.len() { ", …" } else { "" };
    let below = content(first).map(|content| format!(", the first holds {content}")).unwrap_or_default();
    let title = format!(
        "{} objects of {}, each held by a frame of {method} ({}{more}), retain {} ({} of the reachable heap){below}",
        thousands(len64(all.len())),
        first.type_name,
        objects.join(", "),
        in_units(retained),
        percent(share)
    );
    let found = answers.finding(ProblemId::Suspects, ProblemSeverity::Warning, title, &["retained", "--suspects"]);
    let type_name = Some(first.type_name.clone());
    Problem { count: Some(len64(all.len())), bytes: Some(retained), share: Some(share), type_name, ..found }
}

/// A framework's cache with fewer bytes than this multiple of `bytes` is informational. Caches of fixed size, as in Roslyn and Entity Framework, are
/// smaller.
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

/// Lists the objects that accumulate: `30,000 × Lab.Node, 30,000 × System.Byte[]`.
fn content(s: &Suspect) -> Option<String> {
    let line = |name: &Name, count| format!("{} × {name}", thousands(count));
    let linked: Vec<String> = s.linked_types().into_iter().map(|t| line(&t.type_name, t.count)).collect();
    if linked.is_empty() { s.content().map(|(name, count, _)| line(name, count)) } else { Some(linked.join(", ")) }
}

/// Names the object, for a line of the triage: it has several holders, or one without a name.
fn brief(s: &Suspect) -> String {
    let of = |name: &str| format!("{name} retains {} ({})", in_units(s.retained), percent(s.share));
    let whole = of(s.type_name.shown());
    if whole.chars().count() > MAX_TEXT { of(&s.type_name.without_namespaces()) } else { whole }
}

fn finding(answers: &Answers<'_>, s: &Suspect) -> Problem {
    let retained = format!("{} ({} of the reachable heap)", in_units(s.retained), percent(s.share));
    let below = s.elements.as_ref().map(|e| e.words()).or_else(|| content(s)).map(|content| format!(": {content}")).unwrap_or_default();
    let found = match (s.kind, s.address) {
        (SuspectKind::Object, Some(object)) => {
            let by = s.roots.first().map_or_else(|| held_by(&s.type_name, &s.holders), |r| r.label.clone());
            let title = format!("{} {object}, held by {by}, retains {retained}{below}", s.type_name);
            let command = ["retained", "--object", &object.to_string()];
            let brief = Some(if s.roots.first().is_some_and(RootModel::has_name) { format!("{by} retains {retained}") } else { brief(s) });
            Problem { brief, ..answers.finding(ProblemId::Suspects, severity(answers, s), title, &command) }
        }
        _ => {
            let within: Vec<String> = s.below.iter().map(|b| format!("{} × {}", thousands(b.count), b.type_name)).collect();
            let within = if within.is_empty() { String::new() } else { format!("; they hold {}", within.join(", ")) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{BelowType, TypeBytes};
    use crate::base::Addr;

    fn suspect(type_name: &str) -> Suspect {
        Suspect {
            kind: SuspectKind::Object,
            address: Some(Addr(0x1000)),
            type_name: type_name.into(),
            method_table: Addr(0x20),
            count: 1,
            retained: 8 << 20,
            share: 0.995,
            roots: Vec::new(),
            accumulation: None,
            below: vec![BelowType { type_name: "Lab.Node".into(), count: 1, retained: 8 << 20 }],
            by_type: Vec::new(),
            elements: None,
            holders: Vec::new(),
            text: String::new(),
        }
    }

    #[test]
    fn a_line_about_an_object_has_its_bytes() {
        assert_eq!(brief(&suspect("System.Threading.TimerQueue")), "System.Threading.TimerQueue retains 8.0 MiB (99.5 %)");
        let long = "System.Collections.Concurrent.ConcurrentQueue<System.Object>";
        assert_eq!(brief(&suspect(long)), "ConcurrentQueue<Object> retains 8.0 MiB (99.5 %)");
    }

    #[test]
    fn linked_structures_are_described_by_all_of_their_types() {
        let mut list = suspect("Lab.Node");
        assert_eq!(content(&list).as_deref(), Some("1 × Lab.Node"));
        let of = |name: &str, count, bytes| TypeBytes { type_name: name.into(), method_table: Addr(0x20), count, bytes };
        list.by_type = vec![of("Lab.Node", 30_000, 1 << 20), of("System.Byte[]", 30_000, 7 << 20), of("System.String", 7, 700)];
        assert_eq!(content(&list).as_deref(), Some("30,000 × Lab.Node, 30,000 × System.Byte[]"));
    }
}
