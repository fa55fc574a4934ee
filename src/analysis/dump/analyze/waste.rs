//! Bytes that could be saved: equal strings and arrays, sparse and zero arrays, collections with too much capacity.
//!
//! Rule: an inspection finds at least `bytes`, and at least the share `waste` of the allocated bytes. Arrays of primitive values are informational:
//! unused arrays of array pools and buffers that wait for data are zero as well. Garbage is included unless it exceeds the objects in use.
//!
//! Source: the answer of `inspect`. Its rules state the exclusions of each inspection.

use super::Thresholds;
use super::answers::{Answers, INSPECTIONS, Skip};
use super::line::{counted, in_units, one_line, percent};
use crate::analysis::{InspectionRow, Problem, ProblemId, ProblemSeverity};
use crate::base::{Name, share, thousands};

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds, id: ProblemId) -> Result<Vec<Problem>, Skip> {
    let inspection = INSPECTIONS.iter().find(|(finding, _)| *finding == id).map(|(_, inspection)| *inspection);
    let inspection = answers.inspection(inspection.ok_or_else(|| Skip::because("no inspection"))?)?;
    let Some(wasted) = inspection.wasted_bytes.filter(|n| *n >= least.bytes) else { return Ok(Vec::new()) };
    let part = share(wasted, answers.generations()?.totals.allocated).unwrap_or(0.0);
    if part < least.waste {
        return Ok(Vec::new());
    }
    if is_garbage(answers, wasted) {
        return Ok(Vec::new());
    }
    let (severity, noun, [one, many]) = kind(id);
    let what = if inspection.found == 1 { one } else { many };
    let worst = inspection.rows.first();
    let most = worst.map(|row| format!("; worst: {}", row_text(id, row))).unwrap_or_default();
    let title = format!("{} {what}: {} ({} of the heap){most}", counted(inspection.found, noun), in_units(wasted), percent(part));
    let command: &[&str] = match id {
        ProblemId::EqualStrings => &["strings"],
        _ => &["inspect", "--only", id.name()],
    };
    Ok(vec![Problem {
        count: Some(inspection.found),
        bytes: Some(wasted),
        share: Some(part),
        object: worst.and_then(|row| row.object),
        type_name: worst.and_then(|row| row.type_name.clone()),
        ..answers.finding(id, severity, title, command)
    }])
}

/// Whether `wasted` exceeds the bytes of objects in use. If so, most of the wasted bytes are garbage, which a collection frees.
fn is_garbage(answers: &Answers<'_>, wasted: u64) -> bool {
    answers.query.graph && answers.retained().is_ok_and(|r| wasted > r.totals.reachable_bytes)
}

/// The severity, the counted noun, and the problem with one and with several of them.
fn kind(id: ProblemId) -> (ProblemSeverity, &'static str, [&'static str; 2]) {
    match id {
        ProblemId::EqualStrings => (ProblemSeverity::Warning, "string", ["is a copy of another", "are copies of others"]),
        ProblemId::SparseArrays => (ProblemSeverity::Warning, "array", ["is mostly null", "are mostly null"]),
        ProblemId::OversizedCollections => {
            (ProblemSeverity::Warning, "collection", ["has much more capacity than elements", "have much more capacity than elements"])
        }
        ProblemId::EmptyCollections => (ProblemSeverity::Warning, "collection", ["is empty", "are empty"]),
        ProblemId::EqualArrays => (ProblemSeverity::Info, "array", ["is a copy of another", "are copies of others"]),
        ProblemId::ZeroTails => (ProblemSeverity::Info, "array", ["is mostly trailing zeros", "are mostly trailing zeros"]),
        _ => (ProblemSeverity::Info, "array", ["contains only zeros", "contain only zeros"]),
    }
}

fn row_text(id: ProblemId, row: &InspectionRow) -> String {
    let name = row.type_name.as_ref().map_or("?", Name::shown);
    let detail = row.detail.as_ref().map(|d| one_line(d));
    let detail = match detail {
        Some(text) if id == ProblemId::EqualStrings => format!(" \"{text}\""),
        Some(detail) => format!(" ({detail})"),
        None => String::new(),
    };
    format!("{} × {name}{detail} with {}", thousands(row.count), in_units(row.bytes))
}
