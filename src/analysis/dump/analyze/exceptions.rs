//! Exceptions that are thrown again and again, and unobserved exceptions of tasks.
//!
//! Rule: the heap has at least `exceptions` exceptions of one type that one method has thrown, or as many faulted tasks with an unobserved exception.
//! Messages may differ. Garbage is included, because exceptions rarely live long.
//!
//! Source: `exceptions --stat`, `inspect --only unobserved-exceptions`.

use super::answers::{Answers, Skip};
use super::line::{counted, one_line};
use crate::analysis::{InspectionId, Problem, ProblemId, ProblemSeverity};
use crate::base::{Name, thousands};

/// Most findings.
const MAX_FOUND: usize = 3;

pub(super) fn thrown(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let least = answers.thresholds().exceptions;
    let groups = answers.exceptions()?.groups.iter().filter(|g| g.thrown >= least).take(MAX_FOUND);
    let found = groups.map(|group| {
        let name = group.type_name.as_ref().map_or("exceptions of an unknown type", Name::shown);
        let by = group.display.as_ref().map(|m| format!(", thrown by {m}")).unwrap_or_default();
        let message = group.message.as_deref().map(one_line).filter(|m| !m.is_empty());
        let message = message.map(|m| format!(", such as: {m}")).unwrap_or_default();
        let title = format!("{} × {name} are on the heap{by}{message}", thousands(group.thrown));
        Problem {
            count: Some(group.thrown),
            object: Some(group.example),
            type_name: group.type_name.clone(),
            method: group.method.clone(),
            ..answers.finding(ProblemId::Exceptions, ProblemSeverity::Info, title, &["exceptions", "--stat"])
        }
    });
    Ok(found.collect())
}

pub(super) fn unobserved(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let inspection = answers.inspection(InspectionId::UnobservedExceptions)?;
    let count = inspection.found;
    let Some(first) = inspection.rows.first().filter(|_| count >= answers.thresholds().exceptions) else { return Ok(Vec::new()) };
    let task = first.type_name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let detail = first.detail.as_ref().map(|detail| format!(" with {}", one_line(detail))).unwrap_or_default();
    let title = format!("{} with an unobserved exception, such as{task}{detail}", counted(count, "faulted task"));
    let command = ["inspect", "--only", "unobserved-exceptions"];
    let problem = answers.finding(ProblemId::UnobservedExceptions, ProblemSeverity::Warning, title, &command);
    Ok(vec![Problem { count: Some(count), object: first.object, type_name: first.type_name.clone(), ..problem }])
}
