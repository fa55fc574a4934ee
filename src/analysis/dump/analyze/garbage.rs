//! A heap that is mostly garbage.
//!
//! Rule: garbage outside of gen0 makes up at least the share [`Thresholds::garbage`] of the objects' bytes, and at least [`BYTES_FACTOR`]
//! times [`Thresholds::bytes`]. Garbage in gen0 is normal between two collections. The title shows when the generation with most of the
//! garbage was last collected, and its allocation budget: the GC normally collects a generation only when that budget is used up.
//! Where roots are unknown, every object looks like garbage, so the rule is not applied.
//!
//! Source: the heap graph, as for `unreachable`; the GC's records of its collections.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{counted, in_units, listed, percent};
use crate::analysis::holders::liveness::Dead;
use crate::analysis::{Problem, ProblemId, ProblemSeverity};
use crate::base::{share, thousands, total};
use crate::model::{Generation, Sum};

/// Minimum size of the garbage, in multiples of [`Thresholds::bytes`].
const BYTES_FACTOR: u64 = 8;

/// Number of types that the title names.
const TYPES: usize = 2;

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    let totals = &answers.with_roots()?.totals;
    // A failed allocation has its own finding, which includes the share of garbage.
    let only = &answers.query.only;
    let failed = || answers.oom().is_ok_and(|oom| oom.any == Some(true));
    if (only.is_empty() || only.contains(&ProblemId::Oom)) && failed() {
        return Ok(Vec::new());
    }
    let enough = |garbage: u64, all: u64| {
        let part = share(garbage, all).unwrap_or(0.0);
        (garbage >= least.bytes.saturating_mul(BYTES_FACTOR) && part >= least.garbage).then_some(part)
    };
    if enough(totals.bytes.saturating_sub(totals.reachable_bytes), totals.bytes).is_none() {
        return Ok(Vec::new());
    }
    let dead = answers.dead()?;
    let is_old = |generation: &Generation| !matches!(generation, Generation::Gen0 | Generation::Ephemeral);
    let old: Vec<(Generation, Sum)> = dead.generations.iter().filter(|(g, _)| is_old(g)).map(|(g, sum)| (*g, *sum)).collect();
    let bytes = total(old.iter().map(|(_, sum)| sum.bytes));
    let (Some(part), Some((most, _))) = (enough(bytes, dead.all.bytes), old.iter().max_by_key(|(_, sum)| sum.bytes)) else {
        return Ok(Vec::new());
    };
    let types = dead.types.iter().take(TYPES).map(|t| format!("{} × {} ({})", thousands(t.count), t.type_name, in_units(t.bytes)));
    let title = format!(
        "{} of the objects' bytes are garbage ({}), most in {most}: {}{}{}",
        percent(part),
        in_units(bytes),
        listed(types),
        delayed(dead, least.bytes),
        last_collection(answers, *most)
    );
    Ok(vec![Problem {
        count: Some(total(old.iter().map(|(_, sum)| sum.count))),
        bytes: Some(bytes),
        share: Some(part),
        type_name: dead.types.first().map(|t| t.type_name.clone()),
        ..answers.finding(ProblemId::Garbage, ProblemSeverity::Warning, title, &["unreachable"])
    }])
}

/// Describes the objects that the next collection does not free: one clause for each reason that applies to at least `least` bytes.
fn delayed(dead: &Dead, least: u64) -> String {
    [
        (dead.unfinalized, "of it, ", "survive the next collection, because their finalizers have to run first"),
        (dead.ready, "besides, ", "are held only by objects whose finalizers are about to run"),
        (dead.pinned, "besides, ", "are held only by pinned handles"),
    ]
    .into_iter()
    .filter(|(sum, ..)| sum.bytes >= least)
    .map(|(sum, of, what)| format!("; {of}{} in {} {what}", in_units(sum.bytes), counted(sum.count, "object")))
    .collect()
}

/// Describes when gen2 was last collected and its allocation budget, the same for gen1 if it is `generation`, and the last collection.
fn last_collection(answers: &Answers<'_>, generation: Generation) -> String {
    let Ok(gc) = answers.runtime.gc() else { return String::new() };
    let Some(known) = answers.notes.with(gc).collections().as_ref() else { return String::new() };
    let records_of = |wanted: Generation| known.heaps.iter().flat_map(|(_, list)| list).filter(move |b| b.generation == wanted);
    // LOH and POH are collected with gen2, also when their own budget is used up; the GC has no separate records of their collections.
    let wanted = if generation == Generation::Gen1 { vec![Generation::Gen1, Generation::Gen2] } else { vec![Generation::Gen2] };
    let clauses = wanted.into_iter().filter_map(|g| {
        let budget = in_units(total(records_of(g).map(|b| b.budget)));
        let last = match records_of(g).filter_map(|b| b.last_collection).max()? {
            0 => format!("{g} was never collected"),
            index => format!("{g} was last collected by GC #{index}"),
        };
        Some(format!("; {last}, and its allocation budget is {budget}"))
    });
    let of_own = || in_units(total(records_of(generation).map(|b| b.budget)));
    let own = (matches!(generation, Generation::Loh | Generation::Poh) && records_of(generation).next().is_some())
        .then(|| format!("; the budget of the {generation} is {}", of_own()));
    let latest = known.process.last.as_ref().map(|last| format!("; the last collection was GC #{}", last.index));
    clauses.chain(own).chain(latest).collect()
}
