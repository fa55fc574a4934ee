//! Finds recursion: cycles of frames that are repeated many times.

use crate::analysis::{StackFrameModel, StackRepeat};
use crate::base::hash::Map;
use crate::base::{Name, len64};
use crate::model::StackFrameKind;

use super::merge::{Key, key};

/// Maximum number of frames in a cycle.
const MOST_FRAMES: usize = 64;
/// Minimum number of repetitions for which a cycle is folded.
const FEWEST_TIMES: usize = 10;
/// Maximum number of methods named in the text of a cycle.
const MOST_NAMES: usize = 8;

/// Returns the cycles of `frames`, which are ordered innermost first. Cycles do not overlap.
pub(super) fn cycles(frames: &[StackFrameModel]) -> Vec<StackRepeat> {
    let mut numbers: Map<Key, u32> = Map::default();
    // The search starts at the outermost frame, so that a cycle begins with the method that was called first.
    let ids: Vec<u32> = frames
        .iter()
        .rev()
        .map(|frame| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(key(frame)).or_insert(next)
        })
        .collect();
    let repeat = |run: Run| {
        let first = frames.len().checked_sub(run.end())?;
        let cycle = frames.get(first..first.saturating_add(run.period))?;
        Some(StackRepeat { first: len64(first), frames: len64(run.period), times: len64(run.times), cycle: text(cycle) })
    };
    let mut out: Vec<StackRepeat> = runs(&ids).into_iter().filter_map(repeat).collect();
    out.reverse();
    out
}

/// A cycle in a list of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    period: usize,
    times: usize,
}

impl Run {
    fn len(self) -> usize {
        self.period.saturating_mul(self.times)
    }

    fn end(self) -> usize {
        self.start.saturating_add(self.len())
    }
}

/// Finds the cycles of `ids` from start to end. At each position, takes the cycle that covers the most ids.
fn runs(ids: &[u32]) -> Vec<Run> {
    let mut out = Vec::new();
    let mut start = 0usize;
    while start < ids.len() {
        match longest(ids, start) {
            Some(run) => {
                out.push(run);
                start = run.end();
            }
            None => start = start.saturating_add(1),
        }
    }
    out
}

/// Returns the cycle at `start` that covers the most ids. If several cover the same number, returns the one with the shortest period.
fn longest(ids: &[u32], start: usize) -> Option<Run> {
    let ids = ids.get(start..)?;
    let mut best: Option<Run> = None;
    for period in 1..=MOST_FRAMES.min(ids.len() / FEWEST_TIMES) {
        // Within a cycle, an id equals the id one period later.
        let equal = ids.iter().zip(ids.get(period..)?).take_while(|(a, b)| a == b).count();
        let run = Run { start, period, times: equal.checked_div(period)?.saturating_add(1) };
        if run.times >= FEWEST_TIMES && best.is_none_or(|best| run.len() > best.len()) {
            best = Some(run);
        }
    }
    best
}

/// Returns the methods of a cycle, callers first; or the runtime frames if it has no methods.
fn text(cycle: &[StackFrameModel]) -> Name {
    let of = |kind: Option<StackFrameKind>| -> Vec<String> {
        let frames = cycle.iter().rev().filter(|f| kind.is_none_or(|kind| f.kind == kind));
        frames.map(|f| super::merge::label(f).split('(').next().unwrap_or_default().trim_end().to_string()).collect()
    };
    let methods = of(Some(StackFrameKind::Managed));
    let names = if methods.is_empty() { of(None) } else { methods };
    let more = names.len().saturating_sub(MOST_NAMES);
    let mut out = names.into_iter().take(MOST_NAMES).collect::<Vec<_>>().join(" → ");
    if more > 0 {
        out.push_str(&format!(" → … {more} more"));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, usize, usize)> {
        let ids: Vec<u32> = text.chars().map(u32::from).collect();
        runs(&ids).into_iter().map(|r| (r.start, r.period, r.times)).collect()
    }

    #[test]
    fn cycles_are_found_where_they_begin_and_end() {
        assert_eq!(found(""), []);
        assert_eq!(found("abcdef"), []);
        assert_eq!(found(&format!("mg{}x", "r".repeat(9))), []);
        assert_eq!(found(&format!("mg{}x", "r".repeat(10))), [(2, 1, 10)]);
        // A part of the last repetition is left over.
        assert_eq!(found(&format!("mg{}rx", "ro".repeat(12_400))), [(2, 2, 12_400)]);
        // A cycle that contains shorter cycles, and two adjacent cycles.
        assert_eq!(found(&"aaab".repeat(20)), [(0, 4, 20)]);
        assert_eq!(found(&format!("{}{}z", "ab".repeat(10), "c".repeat(30))), [(0, 2, 10), (20, 1, 30)]);
        let long: String = ('0'..).take(MOST_FRAMES).collect();
        assert_eq!(found(&long.repeat(11)), [(0, MOST_FRAMES, 11)]);
        let longer: String = ('0'..).take(MOST_FRAMES + 1).collect();
        assert_eq!(found(&longer.repeat(11)), []);
    }

    #[test]
    fn the_search_is_bounded() {
        // Almost a cycle at each index.
        let ids: Vec<u32> = (0..200_000u32).map(|i| if i % 9 == 8 { i } else { 0 }).collect();
        assert_eq!(runs(&ids), []);
        assert_eq!(runs(&vec![0; 500_000]), [Run { start: 0, period: 1, times: 500_000 }]);
    }
}
