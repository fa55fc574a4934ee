//! A garbage collection that was running.
//!
//! Rule: the GC was in a collection ([`GcPhase`]). While it moves objects, no answer about the heap can be trusted. A process that crashed within a
//! blocking collection most likely had a damaged heap, or the collector has a bug.
//!
//! A suspension that waits for a thread stops the process until that thread reaches a safepoint.
//!
//! Source: the GC's globals and records, in `docs/internals/gc-structures.md`.

use super::answers::{Answers, Skip};
use crate::analysis::{Problem, ProblemId, ProblemSeverity};
use crate::model::{GcPhase, LastCollection};

/// The reason why findings about objects are left out.
pub(super) const DOUBTED: &str = "a collection was moving objects";

/// Whether a collection was moving objects.
pub(super) fn moving(answers: &Answers<'_>) -> bool {
    answers.runtime.gc().is_ok_and(|gc| gc.data.facts().phase == Some(GcPhase::Moving))
}

/// Whether a finding depends on objects. A collection that moves objects makes such a finding unreliable.
pub(super) fn doubts(id: ProblemId) -> bool {
    !matches!(
        id,
        ProblemId::Crash
            | ProblemId::Oom
            | ProblemId::GcInProgress
            | ProblemId::FreeRegions
            | ProblemId::NativeMemory
            | ProblemId::DynamicAssemblies
            | ProblemId::Handles
            | ProblemId::MissingParts
    )
}

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let gc = answers.runtime.gc().map_err(|e| answers.lacks("the state of the GC is not inspected", &e.into()))?;
    let facts = answers.notes.with(gc).facts();
    let finding = |severity, title: &str| vec![answers.finding(ProblemId::GcInProgress, severity, title.into(), &["info"])];
    let current = gc.collections().as_ref().and_then(|c| c.process.last.as_ref());
    let which = |last: &LastCollection| format!(" (GC #{} of gen{}, {})", last.index, last.generation, last.reason);
    let which = current.map_or_else(String::new, which);
    let crashed = answers.runtime.file().crash.is_some();
    if let Some(suspension) = answers.threads().ok().and_then(|t| t.suspension.as_ref()).filter(|s| !s.waits_for.is_empty()) {
        let title = format!("A suspension of all threads is under way: {}", suspension.words());
        return Ok(vec![Problem {
            threads: suspension.waits_for.iter().filter_map(|t| t.managed_id).collect(),
            method: suspension.waits_for.first().and_then(|t| t.method.clone()),
            ..answers.finding(ProblemId::GcInProgress, ProblemSeverity::Warning, title, &["threads"])
        }]);
    }
    Ok(match facts.phase {
        Some(GcPhase::Moving) if crashed => finding(
            ProblemSeverity::Critical,
            &format!(
                "The process ended while a collection{which} was moving objects: answers about the heap cannot be trusted, and it was most likely corrupt before"
            ),
        ),
        Some(GcPhase::Moving) => finding(
            ProblemSeverity::Critical,
            "A collection was moving objects: answers about the heap cannot be trusted; take another dump",
        ),
        Some(GcPhase::Marking) if crashed => finding(
            ProblemSeverity::Critical,
            &format!("The process ended in a blocking collection{which} that had not moved objects: the usual cause is a corrupt heap"),
        ),
        Some(GcPhase::Marking) => {
            finding(ProblemSeverity::Info, &format!("A blocking collection{which} was running, and was not moving objects"))
        }
        Some(GcPhase::Background) => {
            finding(ProblemSeverity::Info, "A background collection was running: some garbage may not be swept yet")
        }
        Some(GcPhase::Suspending | GcPhase::None) | None => Vec::new(),
    })
}
