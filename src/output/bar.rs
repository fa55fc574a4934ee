//! Bars next to the cells of a column.

use crate::base::share;

/// Widths of a bar in columns; 0 for no bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// Minimum width: other columns are dropped to make room for the bar. 0 if the bar itself is dropped when it does not fit.
    pub least: u16,
    /// Maximum width.
    pub most: u16,
}

impl Bar {
    /// A bar next to a share.
    pub const USUAL: Bar = Bar { least: 0, most: 10 };
    /// A block below the block of the parent row, within the bounds of that block.
    pub const BLOCK: Bar = Bar { least: 10, most: 48 };
}

/// The fractions that a bar shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fill {
    /// Start of the bar.
    pub from: f64,
    /// Used part.
    pub used: f64,
    /// Used or reserved part.
    pub held: f64,
}

impl Fill {
    /// Creates a bar for `used` and `held` of `whole`.
    pub fn of(used: u64, held: u64, whole: u64) -> Fill {
        Fill { from: 0.0, used: part(used, whole), held: part(held, whole) }
    }

    /// Creates a block of `length` that starts at `from`, in relation to `whole`.
    pub fn block(from: u64, length: u64, whole: u64) -> Fill {
        Fill { from: part(from, whole), used: part(length, whole), held: 0.0 }
    }
}

/// Returns `n` as a fraction of `whole`; 0 if `whole` is 0. The rounding error does not show, because bars are coarser.
fn part(n: u64, whole: u64) -> f64 {
    share(n, whole).unwrap_or(0.0)
}
