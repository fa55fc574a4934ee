//! Ranges of numbers in pieces for threads.

use std::ops::Range;

/// Fewer numbers are not worth a thread. Graphs of tests are small.
const LEAST: u32 = if cfg!(test) { 3 } else { 1 << 16 };

/// `0..total` in pieces for threads, some for each: they take unequal time. What a piece needs to know of those before it, it sees from
/// the way up from its first number.
pub(super) fn pieces(total: u32) -> Vec<Range<u32>> {
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let size = (total / threads.saturating_mul(2).max(1)).max(LEAST);
    let starts = (0..total).step_by(size as usize);
    starts.map(|start| start..start.saturating_add(size).min(total)).collect()
}
