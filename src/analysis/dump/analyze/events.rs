//! Events that keep their subscribers.
//!
//! Rule: at least `handlers` handlers of one event have targets that nothing else holds: the subscribers were never removed.
//!
//! Source: the delegates of the heap, as `inspect --only event-leaks` reads them.

use super::answers::{Answers, Skip};
use super::line::{counted, in_units, percent};
use crate::analysis::{InspectionId, Problem, ProblemId, ProblemSeverity, RetainedReport};
use crate::base::{Addr, share};
use crate::model::Stacks;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let rows = &answers.inspection(InspectionId::EventLeaks)?.rows;
    let leaks = rows.iter().filter_map(|r| Some((r, r.held_here.filter(|n| *n >= answers.thresholds().handlers)?)));
    let found = leaks.map(|(row, held)| {
        let detail = row.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
        let retained = row.object.and_then(|object| retained(answers, object));
        // Frames may hold an older delegate, which shares the array of handlers, so that the event does not dominate it. Such references are temporary:
        // they do not count as holders of the targets.
        let of_targets = retained.filter(|(bytes, _)| *bytes < row.bytes).and_then(|_| retained_by(answers, &row.held));
        let who = if of_targets.is_some() { "they retain" } else { "it retains" };
        let retained = of_targets.or(retained);
        let (bytes, share) = retained.unzip();
        let title = format!("An event keeps {} alive{detail}{}", counted(held, "object"), retains(who, retained));
        Problem {
            count: Some(held),
            bytes,
            share,
            object: row.object,
            type_name: row.type_name.clone(),
            ..answers.finding(ProblemId::EventLeaks, ProblemSeverity::Warning, title, &["inspect", "--only", "event-leaks"])
        }
    });
    Ok(found.collect())
}

/// Returns the clause of a title about the bytes that something retains, and their share of the reachable bytes.
pub(super) fn retains(who: &str, retained: Option<(u64, f64)>) -> String {
    retained.map(|(bytes, share)| format!("; {who} {} ({} of the reachable heap)", in_units(bytes), percent(share))).unwrap_or_default()
}

/// The bytes that the delegate at `object` retains, and their share of the reachable bytes. `None` if the graph may not be built.
pub(super) fn retained(answers: &Answers<'_>, object: Addr) -> Option<(u64, f64)> {
    answers.needs_graph().ok()?;
    let heap = answers.heap().ok()?;
    let all = answers.retained().ok()?.totals.reachable_bytes;
    let (graph, tree) = (heap.graph(false).ok()?, heap.dominators(Stacks::default()).ok()?);
    let bytes = tree.retained(graph.index.id_of(object)?);
    Some((bytes, share(bytes, all)?)).filter(|(bytes, _)| *bytes > 0)
}

/// The bytes that `objects` retain together, and their share of the reachable bytes. `None` if the graph may not be built.
fn retained_by(answers: &Answers<'_>, objects: &[Addr]) -> Option<(u64, f64)> {
    answers.needs_graph().ok()?;
    retained_of(answers, objects, answers.retained().ok()?)
}

/// Like [`retained_by`], with the reachable bytes of `report`, for which the graph was built.
pub(super) fn retained_of(answers: &Answers<'_>, objects: &[Addr], report: &RetainedReport) -> Option<(u64, f64)> {
    let heap = answers.heap().ok()?;
    let (graph, tree) = (heap.graph(false).ok()?, heap.dominators(Stacks::default()).ok()?);
    let bytes = tree.retained_jointly(objects.iter().filter_map(|object| graph.index.id_of(*object)));
    Some((bytes, share(bytes, report.totals.reachable_bytes)?)).filter(|(bytes, _)| *bytes > 0)
}

/// The holder of the object: a root, or the type of the object that dominates it. `None` if there are many holders, or if the graph may not be built.
pub(super) fn holder(answers: &Answers<'_>, object: Addr) -> Option<String> {
    answers.needs_graph().ok()?;
    let heap = answers.heap().ok()?;
    let (graph, namer) = (heap.graph(false).ok()?, heap.namer());
    let id = graph.index.id_of(object)?;
    let root = graph.root_models(&namer, id, (Stacks::default(), false), 1).into_iter().next().map(|root| root.label);
    let above = || {
        let above = heap.dominators(Stacks::default()).ok()?.dominator(id)?;
        Some(graph.type_name(&namer, above).to_string())
    };
    root.or_else(above)
}

/// Whether the finding about an event or cancellation source explains a suspect: one of the two objects dominates the other, and the event retains
/// most of the suspect's bytes.
pub(super) fn explains(answers: &Answers<'_>, event: &Problem, suspect: &Problem) -> bool {
    let part = || share(event.bytes?, suspect.bytes?);
    let found = || {
        let heap = answers.heap().ok()?;
        let (graph, tree) = (heap.graph(false).ok()?, heap.dominators(Stacks::default()).ok()?);
        let (event, suspect) = (graph.index.id_of(event.object?)?, graph.index.id_of(suspect.object?)?);
        Some(tree.dominates(suspect, event) || tree.dominates(event, suspect))
    };
    part().is_some_and(|part| part >= MOST) && found() == Some(true)
}

/// Smallest share of a suspect's bytes that an event must retain to explain it.
const MOST: f64 = 0.5;
