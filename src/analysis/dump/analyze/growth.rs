//! Holders that retain more than in an earlier dump.
//!
//! Rule: the growth of a container's retained size is at least `gain` bytes, and at least the share `growth` of the earlier heap. One dump cannot
//! distinguish a small leak from a cache, but two dumps can. A cache that is filling up looks like a leak until it is full.
//!
//! Holders are unknown if objects or roots of a dump are: what only the later dump has would look like growth.
//!
//! A large growth of native memory, threads, tasks or handles is a finding as well. With more than two dumps, the number must grow from each dump to
//! the next.
//!
//! Source: the holders and the summary of `diff`.

use super::answers::{Answers, Skip};
use super::line::{in_units, listed, percent};
use crate::analysis::compare::track::in_wrong_order;
use crate::analysis::{DiffMeasure, GrowingHolder, Problem, ProblemId, ProblemSeverity, Trend};
use crate::base::missed::tried;
use crate::base::{Missing, growth, thousands};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    answers.needs_graph()?;
    in_order(answers)?;
    let diff = answers.diff()?;
    let holders = diff.holders.as_deref().unwrap_or_default();
    let bytes_before = diff.summary.iter().find(|m| m.name == "bytes").and_then(|m| m.before);
    let thresholds = answers.thresholds();
    let found = holders.iter().filter_map(|holder| {
        let gained = u64::try_from(holder.change).ok().filter(|gained| *gained >= thresholds.gain)?;
        let share = bytes_before.and_then(|bytes| growth(bytes, bytes.saturating_add(gained)));
        // A trend is known only with more than two dumps. Trends other than growth are ignored: garbage of the type varies from dump to dump.
        let element = diff.rows.iter().find(|row| holder.element.as_ref() == Some(&row.key));
        let steady = element.is_some_and(|row| row.trend == Some(Trend::Grows));
        share.is_none_or(|share| share >= thresholds.growth).then(|| finding(answers, holder, gained, (share, steady)))
    });
    let holders: Vec<Problem> = found.collect();
    let measures = diff.summary.iter().filter_map(|m| measured(answers, m));
    let found: Vec<Problem> = measures.chain(holders).collect();
    match &diff.holders_unknown {
        Some(why) if found.is_empty() => Err(Skip::because(format!("the holders of the growth are unknown: {why}"))),
        _ => Ok(found),
    }
}

/// Checks that the first of the earlier dumps was not taken after the dump: what has shrunk would look like growth, and growth would not be seen.
fn in_order(answers: &Answers<'_>) -> Result<(), Skip> {
    let Some(before) = answers.before.first().and_then(|before| before.heap()) else { return Ok(()) };
    let after = answers.heap()?;
    let Some(what) = tried(|| in_wrong_order(before, after)) else { return Ok(()) };
    let why = format!("{what}: the earlier dump was taken last; swap the dumps");
    answers.notes.add(Missing::Answer, None, format!("growth is not inspected: {why}"));
    Err(Skip::because(why))
}

/// Measures of the process whose growth is a finding: name, smallest gain and command. An idle process gains less.
const MEASURES: [(&str, u64, &str); 4] =
    [("native", 16 << 20, "memory"), ("threads", 50, "threads"), ("tasks", 1_000, "async"), ("handles", 1_000, "handles")];
/// Smallest growth, as a share of the earlier value.
const MUCH: f64 = 0.2;

/// Returns the finding about a measure that grew much. With more than two dumps, it must have grown from each dump to the next.
fn measured(answers: &Answers<'_>, m: &DiffMeasure) -> Option<Problem> {
    let (name, least, command) = MEASURES.into_iter().find(|(name, ..)| *name == m.name)?;
    let (before, after) = m.before.zip(m.after)?;
    let gained = after.checked_sub(before).filter(|n| *n >= least)?;
    let part = growth(before, after);
    let enough = part.is_none_or(|part| part >= MUCH) && m.trend.is_none_or(|trend| trend == Trend::Grows);
    enough.then(|| {
        let shown = |n: u64| if m.is_bytes { in_units(n) } else { thousands(n) };
        let what = if name == "native" { "Native memory".to_owned() } else { format!("The number of {name}") };
        let series = listed(m.series.iter().map(|n| n.map_or_else(|| "?".into(), shown)));
        let part = part.map(|part| format!(" ({})", percent(part))).unwrap_or_default();
        let how = if m.trend.is_some() { "grows steadily" } else { "grew" };
        let title = format!("{what} {how} by {}{part}: {series}", shown(gained));
        Problem {
            count: (!m.is_bytes).then_some(gained),
            bytes: m.is_bytes.then_some(gained),
            share: growth(before, after),
            ..answers.finding(ProblemId::Growth, ProblemSeverity::Warning, title, &[command])
        }
    })
}

/// The words of a holder's text between its path and what it gained.
const GREW: &str = " grew by ";

/// The text about a holder without the path, for a line of the triage. Names the static field, or for other roots the container.
fn brief(holder: &GrowingHolder) -> Option<String> {
    let (_, what) = holder.text.rsplit_once(GREW)?;
    let container = || holder.path.last().map(|step| step.type_name.without_namespaces());
    // Other roots have descriptions such as `strong handle` and `(several roots)`.
    let is_field = holder.root.contains('.');
    let by = if is_field { holder.root.clone() } else { container()? };
    Some(format!("{by}{GREW}{what}"))
}

fn finding(answers: &Answers<'_>, holder: &GrowingHolder, gained: u64, (share, steady): (Option<f64>, bool)) -> Problem {
    let share_text = share.map(|share| format!(" ({} of the earlier heap)", percent(share))).unwrap_or_default();
    let course = if steady { ", more in each dump" } else { "" };
    let title = format!("{}{share_text}{course}", holder.text);
    let container = holder.path.last();
    let object = container.and_then(|step| step.address);
    let before = || answers.before.first().map(|before| before.facts().path_in_commands()).unwrap_or_default();
    let command = match object {
        Some(object) => vec!["retained".into(), "--object".into(), object.to_string()],
        None => vec!["diff".into(), before()],
    };
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let element = holder.element.as_ref();
    let added = holder.gained.iter().find(|g| element.is_none_or(|element| g.type_name == *element));
    Problem {
        count: added.and_then(|g| u64::try_from(g.count).ok()),
        bytes: Some(gained),
        share,
        object,
        type_name: element.cloned().or_else(|| container.map(|step| step.type_name.clone())),
        brief: brief(holder),
        ..answers.finding(ProblemId::Growth, ProblemSeverity::Warning, title, &command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::HolderStep;

    #[test]
    fn the_line_of_the_triage_has_what_grew() {
        let step = |name: &str| HolderStep { type_name: name.into(), field: None, address: None, before: 1, after: 1 };
        let line = |root: &str, text: &str| {
            brief(&GrowingHolder {
                root: root.into(),
                path: vec![step("System.Collections.Generic.List<Lab.Owner>"), step("Lab.Owner"), step("Lab.Item[]")],
                retained_before: 0,
                retained_after: 9 << 20,
                change: 9 << 20,
                growth: None,
                root_before: 0,
                root_after: 9 << 20,
                element: Some("Lab.Item".into()),
                own: true,
                gained: Vec::new(),
                text: text.into(),
            })
        };
        let field = line("Lab.Program.owners", "Lab.Program.owners → List<Owner> → Owner → Item[] grew by 9,000 Lab.Item, 9.0 MiB");
        assert_eq!(field.as_deref(), Some("Lab.Program.owners grew by 9,000 Lab.Item, 9.0 MiB"));
        let several = line("(several roots)", "(several roots) → List<Owner> → Owner → Item[] grew by 9.0 MiB");
        assert_eq!(several.as_deref(), Some("Item[] grew by 9.0 MiB"));
    }
}
