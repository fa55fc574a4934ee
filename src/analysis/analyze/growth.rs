//! What holds more than in an earlier dump.
//!
//! Rule: a container retains at least `gain` bytes more, and at least `growth` of what the heap held before. One dump cannot tell a
//! leak that is small yet from a cache; two can. Caches that fill up look the same until they are full.
//!
//! Source: both dominator trees, as `diff` follows them.

use super::answers::{Answers, Skip};
use super::line::percent;
use crate::base::growth;
use crate::model::{GrowingHolder, Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    answers.needs_graph()?;
    let diff = answers.diff()?;
    let holders = diff.holders.as_deref().unwrap_or_default();
    let bytes_before = diff.summary.iter().find(|m| m.name == "bytes").and_then(|m| m.before);
    let thresholds = answers.thresholds();
    let found = holders.iter().filter_map(|holder| {
        let gained = u64::try_from(holder.change).ok().filter(|gained| *gained >= thresholds.gain)?;
        let share = bytes_before.and_then(|bytes| growth(bytes, bytes.saturating_add(gained)));
        share.is_none_or(|share| share >= thresholds.growth).then(|| finding(answers, holder, gained, share))
    });
    Ok(found.collect())
}

fn finding(answers: &Answers<'_>, holder: &GrowingHolder, gained: u64, share: Option<f64>) -> Problem {
    let share_text = share.map(|share| format!(" ({} of what the heap held before)", percent(share))).unwrap_or_default();
    let title = format!("{}{share_text}", holder.text);
    let container = holder.path.last();
    let object = container.and_then(|step| step.address);
    let before = || answers.before.map(|before| before.facts().path.display().to_string()).unwrap_or_default();
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
        ..answers.finding(ProblemId::Growth, ProblemSeverity::Warning, title, &command)
    }
}
