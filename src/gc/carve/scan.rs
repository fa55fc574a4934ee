//! Finds runs of objects. Each object begins where the previous one ends.
//!
//! Threads take chunks in turn, and the result for a chunk does not depend on other chunks. Afterwards, each run that reaches the end of
//! its chunk is [joined](join) to the next one.

use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};

use super::areas::{Area, Areas, Chunk, Run};
use super::reader::{Kinds, Reader};
use crate::base::cancel::tick;
use crate::base::missed::{Carried, tried};
use crate::base::{Addr, Count};

/// Size in bytes from which a free block is large. A collection merges adjacent dead objects into a free block without clearing them.
const LARGE: u64 = 1 << 10;

/// Maximum number of short runs of a chunk that are kept for the decision by the following chunks. They end in an object across the end of
/// the chunk; a genuine heap has one such run.
const MOST_OPEN: u64 = 256;

/// Bytes per tick.
const TICK: usize = 1 << 11;

/// Searches all chunks.
pub(super) fn scan(kinds: &Kinds<'_>, areas: &mut Areas<'_>) {
    let carried = Carried::here();
    let Areas { list, chunks, .. } = areas;
    chunks.par_iter_mut().for_each_init(
        || Reader::new(kinds),
        |reader, chunk| {
            carried.run(|| {
                tried(|| {
                    if let Some(area) = list.get(chunk.area) {
                        scan_chunk(reader, area, chunk);
                    }
                });
            });
        },
    );
}

fn scan_chunk(reader: &mut Reader<'_>, area: &Area<'_>, chunk: &mut Chunk) {
    let word = reader.kinds.memory.ptr_bytes();
    let step = usize::try_from(word).unwrap_or(8);
    let all = chunk.range.len().div_ceil(word);
    let place = |at: Addr| at.since(chunk.range.start).unwrap_or(0) / word;
    let (Some(mut at), Some(end)) = (area.offset(chunk.range.start), usize::try_from(chunk.range.end.since(area.start).unwrap_or(0)).ok())
    else {
        return;
    };
    let (mut affordable, mut open, mut next_tick) = (true, 0u64, at);
    while at < end {
        if at >= next_tick {
            next_tick = at.saturating_add(TICK);
            tick();
        }
        let Some(first) = reader.word(area, at) else { return };
        if first == 0 {
            at = area.skip_zeros(at.saturating_add(step), end.min(next_tick));
            continue;
        }
        if !reader.may_start(area, at, first) || !reader.looks_whole(area, at, first) {
            at = at.saturating_add(step);
            continue;
        }
        let run = follow(reader, area, at, chunk.range.end, u64::MAX);
        let start = area.at(at);
        if chunk.starts.is_empty() && chunk.likely.is_empty() {
            affordable = reader.kinds.afford(all.div_ceil(4));
        }
        if !affordable {
            return;
        }
        if !run.is_long() {
            chunk.likely.set(place(start), all);
            // The following chunks decide whether the run has objects.
            if run.open && open < MOST_OPEN {
                open.bump();
                chunk.runs.push(run);
            }
            at = at.saturating_add(step);
            continue;
        }
        let mut here = at;
        for _ in 0..run.objects {
            chunk.starts.set(place(area.at(here)), all);
            let next = reader.word(area, here).and_then(|first| reader.object(area, here, first)).and_then(|o| area.offset(o.end));
            let Some(next) = next else { break };
            here = next;
        }
        chunk.runs.push(run);
        at = match area.offset(run.end) {
            Some(next) => next,
            None => return,
        };
    }
}

/// The run of at most `most` objects from `offset` of `area` to `until`.
pub(super) fn follow(reader: &mut Reader<'_>, area: &Area<'_>, offset: usize, until: Addr, most: u64) -> Run {
    let start = area.at(offset);
    let mut run = Run { start, end: start, last: start, objects: 0, open: false, gap: false, bridged: false };
    let mut here = offset;
    while run.objects < most {
        if run.end >= until {
            run.open = true;
            break;
        }
        let Some(object) = reader.word(area, here).and_then(|first| reader.object(area, here, first)) else { break };
        run.objects.bump();
        tick();
        run.bridged |= run.gap && !object.is_free;
        run.gap = object.is_free && object.size >= LARGE;
        (run.last, run.end) = (run.end, object.end);
        match area.offset(object.end) {
            Some(next) => here = next,
            None => {
                // Another area may follow.
                run.open = run.end >= until;
                break;
            }
        }
    }
    run
}

/// Joins runs that continue in the following chunks. Returns the runs by address, without the short ones.
pub(super) fn join(reader: &mut Reader<'_>, areas: &mut Areas<'_>) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for chunk in 0..areas.chunks.len() {
        let found = areas.chunks.get_mut(chunk).map(|c| std::mem::take(&mut c.runs)).unwrap_or_default();
        let mut covered = Addr::NULL;
        for (i, run) in found.iter().enumerate().map(|(i, run)| (i, *run)) {
            if run.start < covered {
                continue;
            }
            let mut run = run;
            if is_short(&run) {
                let rest = || found.iter().skip(i.saturating_add(1)).filter(|r| !is_short(r) && r.start < run.end);
                if !run.gap && rest().any(|r| run.last < r.start) || !is_long(reader, areas, run) {
                    continue;
                }
                // The other runs start later and have the same objects.
                rest().for_each(|r| unmark(reader, areas, *r));
                mark(reader, areas, run);
            }
            while run.open {
                run.open = false;
                if !run.gap && covers_runs(reader, areas, chunk, run.end) {
                    // Only a free block contains other objects, so the last object is not one.
                    areas.mark(run.last, false);
                    (run.end, run.objects) = (run.last, run.objects.saturating_sub(1));
                } else if let Some(more) = further(reader, areas, chunk, run.end) {
                    run.append(&more);
                }
            }
            if !run.is_long() {
                unmark(reader, areas, run);
            } else {
                covered = run.end;
                out.push(run);
            }
        }
    }
    out
}

/// Whether the following chunks decide if the run has objects. The objects of such a run are not yet marked.
fn is_short(run: &Run) -> bool {
    run.open && !run.is_long()
}

/// Whether a run is long together with the objects that follow it.
fn is_long(reader: &mut Reader<'_>, areas: &Areas<'_>, mut run: Run) -> bool {
    while !run.is_long() {
        let Some(more) = areas.locate(run.end).map(|(area, offset)| follow(reader, &area, offset, Addr(u64::MAX), 1)) else { return false };
        if more.objects == 0 {
            return false;
        }
        run.append(&more);
    }
    true
}

/// Marks the objects of `run`.
fn mark(reader: &mut Reader<'_>, areas: &mut Areas<'_>, run: Run) {
    let mut here = run.start;
    for _ in 0..run.objects {
        areas.mark(here, true);
        match end_of(reader, areas, here) {
            Some(next) => here = next,
            None => return,
        }
    }
}

/// Whether there are long runs between the chunk at `index` and `to`.
fn covers_runs(reader: &Reader<'_>, areas: &Areas<'_>, index: usize, to: Addr) -> bool {
    let behind = areas.chunks.iter().skip(index.saturating_add(1)).take_while(|c| c.range.start < to && reader.kinds.step(1));
    behind.flat_map(|c| &c.runs).any(|r| r.end <= to && !is_short(r))
}

/// The run of objects from `at` to the end of its chunk. A run of the chunk `before` ends at `at`.
fn further(reader: &mut Reader<'_>, areas: &mut Areas<'_>, before: usize, at: Addr) -> Option<Run> {
    let index = areas.chunk_of(at).filter(|index| *index > before)?;
    let chunk = areas.chunks.get(index)?;
    let run = match chunk.runs.iter().find(|r| r.start == at) {
        Some(run) => *run,
        None => {
            let (area, offset) = areas.locate(at)?;
            follow(reader, &area, offset, chunk.range.end, u64::MAX)
        }
    };
    // Runs that begin earlier are within an object, or start later in the same sequence of objects.
    for other in before.saturating_add(1)..=index {
        let runs = areas.chunks.get_mut(other).map(|c| std::mem::take(&mut c.runs)).unwrap_or_default();
        let (wrong, right): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|r| r.start < run.end || other < index);
        wrong.into_iter().filter(|r| *r != run && !is_short(r)).for_each(|r| unmark(reader, areas, r));
        if let Some(chunk) = areas.chunks.get_mut(other) {
            chunk.runs = right;
        }
    }
    mark(reader, areas, run);
    (run.objects > 0).then_some(run)
}

/// End of the object at `at`.
pub(super) fn end_of(reader: &mut Reader<'_>, areas: &Areas<'_>, at: Addr) -> Option<Addr> {
    let (area, offset) = areas.locate(at)?;
    let first = reader.word(&area, offset)?;
    reader.object(&area, offset, first).map(|o| o.end)
}

/// Unmarks the objects of `run`.
pub(super) fn unmark(reader: &mut Reader<'_>, areas: &mut Areas<'_>, run: Run) {
    let mut here = run.start;
    for _ in 0..run.objects {
        let next = end_of(reader, areas, here);
        areas.mark(here, false);
        match next {
            Some(next) => here = next,
            None => return,
        }
    }
}
