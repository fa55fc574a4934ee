//! Events that keep their subscribers.
//!
//! Rule: at least `handlers` handlers of one event have targets that nothing else holds: whoever subscribed them has forgotten them.
//!
//! Source: the delegates of the heap, as `inspect --only event-leaks` reads them.

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::model::{InspectionId, Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let rows = &answers.inspection(InspectionId::EventLeaks)?.rows;
    let leaks = rows.iter().filter_map(|r| Some((r, r.held_here.filter(|n| *n >= answers.thresholds().handlers)?)));
    let found = leaks.map(|(row, held)| {
        let detail = row.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
        let title = format!("An event keeps {} alive{detail}", counted(held, "object"));
        Problem {
            count: Some(held),
            object: row.object,
            type_name: row.type_name.clone(),
            ..answers.finding(ProblemId::EventLeaks, ProblemSeverity::Warning, title, &["inspect", "--only", "event-leaks"])
        }
    });
    Ok(found.collect())
}
