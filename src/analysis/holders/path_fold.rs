//! Folds long chains in a path, such as the nodes of a linked list: they become one step instead of one step per node.

/// Maximum length of a repeated sequence of steps.
const MAX_PERIOD: usize = 8;
/// Minimum number of repetitions for which a sequence is folded.
const LEAST: usize = 3;
/// Minimum number of steps that folding must save.
const WORTH: usize = 3;

/// A sequence of steps that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Run {
    /// Index of the first step.
    pub(in crate::analysis) start: usize,
    /// Number of steps in the sequence.
    pub(in crate::analysis) period: usize,
    /// Number of repetitions.
    pub(in crate::analysis) count: usize,
}

/// Splits a path of `steps` steps into runs of repeated sequences. `same` says whether two steps are equal.
pub(in crate::analysis) fn runs(steps: usize, same: impl Fn(usize, usize) -> bool) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = 0usize;
    while start < steps {
        let times = |period: usize| {
            let equal = (start..steps.saturating_sub(period)).take_while(|at| same(*at, at.saturating_add(period))).count();
            equal.checked_div(period).unwrap_or(0).saturating_add(1)
        };
        let saved = |run: &Run| run.count.saturating_sub(1).saturating_mul(run.period);
        let found = (1..=MAX_PERIOD).map(|period| Run { start, period, count: times(period) });
        let worth = found.filter(|run| run.count >= LEAST && saved(run) >= WORTH);
        // If several sequences save the same number of steps, the shortest is used.
        let run = worth.max_by_key(|run| (saved(run), std::cmp::Reverse(run.period))).unwrap_or(Run { start, period: 1, count: 1 });
        start = start.saturating_add(run.period.saturating_mul(run.count));
        runs.push(run);
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<(usize, usize, usize)> {
        let steps = text.as_bytes();
        runs(steps.len(), |a, b| steps[a] == steps[b] && steps[a] != b'k').into_iter().map(|r| (r.start, r.period, r.count)).collect()
    }

    #[test]
    fn chains_and_cycles_are_folded() {
        assert_eq!(of(""), []);
        assert_eq!(of("abc"), [(0, 1, 1), (1, 1, 1), (2, 1, 1)]);
        // Too short to be folded.
        assert_eq!(of("aaa").len(), 3);
        assert_eq!(of("aaaa"), [(0, 1, 4)]);
        assert_eq!(of("xaaaaay"), [(0, 1, 1), (1, 1, 5), (6, 1, 1)]);
        assert_eq!(of("xabcabcabcy"), [(0, 1, 1), (1, 3, 3), (10, 1, 1)]);
        // The rest after the last repetition stays.
        assert_eq!(of("abababab"), [(0, 2, 4)]);
        assert_eq!(of("ababababa"), [(0, 2, 4), (8, 1, 1)]);
        // Keys of dictionaries may differ although types and fields are equal.
        assert_eq!(of("kkkkkk").len(), 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn runs_are_the_path(text in "[abc]{0,60}") {
            let steps = text.as_bytes();
            let mut whole = Vec::new();
            for (start, period, count) in of(&text) {
                prop_assert_eq!(start, whole.len());
                (0..count).for_each(|_| whole.extend_from_slice(&steps[start..start + period]));
            }
            prop_assert_eq!(whole, steps);
        }
    }
}
