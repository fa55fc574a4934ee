//! Counters and sums that stop at their maximum: a damaged dump may claim anything, and must not wrap or panic.

/// A counter.
pub(crate) trait Count: Sized {
    /// Adds 1.
    fn bump(&mut self);

    /// Adds `n`.
    fn grow(&mut self, n: Self);
}

macro_rules! counters {
    ($($int:ty)*) => {$(
        impl Count for $int {
            #[inline]
            fn bump(&mut self) {
                *self = self.saturating_add(1);
            }

            #[inline]
            fn grow(&mut self, n: $int) {
                *self = self.saturating_add(n);
            }
        }
    )*};
}
counters!(u32 u64 usize);

/// The sum of `numbers`.
pub(crate) fn total(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

/// A length, as JSON and reports have it.
#[inline]
pub(crate) fn len64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The number of rows that `top` asks for, where 0 asks for all.
pub(crate) fn top_or_all(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// Keeps the first `top` rows, or all for 0. Returns how many are left, if some were dropped: `shown` of a report.
pub(crate) fn cut<T>(rows: &mut Vec<T>, top: usize) -> Option<u64> {
    let most = top_or_all(top);
    let more = rows.len() > most;
    rows.truncate(most);
    more.then(|| len64(most))
}
