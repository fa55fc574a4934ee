//! Saturating counters and sums: a damaged dump may contain any number, which must neither wrap nor panic.

/// A saturating counter.
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

/// The sum of `numbers`, saturating.
pub(crate) fn total(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

/// A length as a `u64`, the type of counts in reports and JSON.
#[inline]
pub(crate) fn len64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The maximum number of rows that `top` requests; 0 requests all rows.
pub(crate) fn top_or_all(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// Truncates `rows` to the first `top`; 0 keeps all. Returns the number of rows kept if any were dropped: `shown` of a report.
pub(crate) fn cut<T>(rows: &mut Vec<T>, top: usize) -> Option<u64> {
    let most = top_or_all(top);
    let more = rows.len() > most;
    rows.truncate(most);
    more.then(|| len64(most))
}
