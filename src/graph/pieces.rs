//! Splits ranges of numbers into pieces for threads.

use std::ops::Range;

/// Minimum size of a piece: fewer numbers do not justify a thread. It is small in tests, whose graphs are small.
const LEAST: u32 = if cfg!(test) { 3 } else { 1 << 16 };

/// Splits `0..total` into pieces, several per thread because they take unequal time. The path from the first number of a piece up to
/// the root has all that is needed of earlier pieces.
pub(super) fn pieces(total: u32) -> Vec<Range<u32>> {
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let size = (total / threads.saturating_mul(2).max(1)).max(LEAST);
    let starts = (0..total).step_by(size as usize);
    starts.map(|start| start..start.saturating_add(size).min(total)).collect()
}
