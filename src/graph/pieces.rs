//! Splits ranges of numbers into pieces for threads.

use std::ops::Range;

/// Minimum size of a piece. Handing a smaller piece to a thread would take longer than the work. The minimum is small in tests, whose graphs are
/// small.
const LEAST: u32 = if cfg!(test) { 3 } else { 1 << 16 };

/// Splits `0..total` into pieces, about two per thread, because pieces take unequal time. The trees are stored in preorder, so the pass over a
/// piece needs little from earlier pieces: only the path from the root to the first node of the piece.
pub(super) fn pieces(total: u32) -> Vec<Range<u32>> {
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let size = (total / threads.saturating_mul(2).max(1)).max(LEAST);
    let starts = (0..total).step_by(size as usize);
    starts.map(|start| start..start.saturating_add(size).min(total)).collect()
}
