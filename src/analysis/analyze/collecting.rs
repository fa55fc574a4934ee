//! A garbage collection that was running.
//!
//! Rule: the GC's structures are not valid, which they are not while objects are moved: nothing said of the heap can be trusted. Or a
//! background collection marks or plans, which moves nothing.
//!
//! Source: the GC's globals, in `docs/internals/gc-structures.md`.

use super::answers::{Answers, Skip};
use crate::model::{Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let gc = answers.runtime.gc().map_err(|e| answers.lacks("the state of the GC is not inspected", &e.into()))?;
    let facts = answers.notes.with(gc).facts();
    let finding = |severity, title: &str| vec![answers.finding(ProblemId::GcInProgress, severity, title.into(), &["info"])];
    Ok(match (facts.structures_valid, facts.gc_in_progress()) {
        (Some(false), _) => {
            finding(ProblemSeverity::Critical, "A collection was moving objects: the heap is not to be trusted, take another dump")
        }
        (_, Some(true)) => finding(ProblemSeverity::Info, "A background collection was running: some garbage may not be swept yet"),
        _ => Vec::new(),
    })
}
