//! Load contexts that are not unloaded.
//!
//! Rule: a collectible context was asked to unload and is still on the heap. A reference to one object of its types keeps all of its code in memory.
//!
//! Source: `AssemblyLoadContext`, as `inspect --only load-contexts` reads it.

use super::answers::{Answers, Skip};
use crate::analysis::{InspectionId, Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let found = answers.inspection(InspectionId::LoadContexts)?.rows.iter().map(|row| {
        let detail = row.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let title = format!("A load context was asked to unload, but is still there{detail}");
        Problem {
            count: Some(row.count),
            object: row.object,
            type_name: row.type_name.clone(),
            ..answers.finding(ProblemId::LoadContexts, ProblemSeverity::Warning, title, &["inspect", "--only", "load-contexts"])
        }
    });
    Ok(found.collect())
}
