//! Determines which objects between two neighbors survived. Assumes that no object came from elsewhere.

/// The possible ways in which the survivors are a subsequence of the earlier objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// For each survivor, the first and the last earlier object that it may be.
    pub(super) bounds: Vec<(usize, usize)>,
}

/// Fits `news` later objects into `olds` earlier ones in order: once as early as possible, and once as late as possible. `None` if they do not fit,
/// because some of them came from elsewhere.
pub(super) fn fit(olds: usize, news: usize, can_be: impl Fn(usize, usize) -> bool) -> Option<Fit> {
    if news > olds {
        return None;
    }
    let mut first = Vec::with_capacity(news);
    let mut old = 0;
    for new in 0..news {
        while old < olds && !can_be(old, new) {
            old = old.saturating_add(1);
        }
        if old == olds {
            return None;
        }
        first.push(old);
        old = old.saturating_add(1);
    }
    // A sequence that fits from the left also fits from the right.
    let mut last = Vec::with_capacity(news);
    let mut end = olds;
    for new in (0..news).rev() {
        loop {
            end = end.checked_sub(1)?;
            if can_be(end, new) {
                break;
            }
        }
        last.push(end);
    }
    last.reverse();
    Some(Fit { bounds: first.into_iter().zip(last).collect() })
}

impl Fit {
    /// Returns *(old, new)* for each survivor with only one possible earlier object.
    pub(super) fn forced(&self) -> impl Iterator<Item = (usize, usize)> {
        self.bounds.iter().enumerate().filter(|(_, (first, last))| first == last).map(|(new, (old, _))| (*old, new))
    }

    /// Returns the earlier objects that cannot be any of the survivors.
    pub(super) fn dead(&self, olds: usize) -> Vec<usize> {
        let mut out = Vec::new();
        let mut free = 0;
        for (first, last) in &self.bounds {
            out.extend(free..*first);
            free = free.max(last.saturating_add(1));
        }
        out.extend(free..olds);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forced matches, and dead objects.
    type Outcome = (Vec<(usize, usize)>, Vec<usize>);

    fn of(olds: &str, news: &str) -> Option<Outcome> {
        let (o, n): (Vec<char>, Vec<char>) = (olds.chars().collect(), news.chars().collect());
        let fit = fit(o.len(), n.len(), |i, j| o[i] == n[j])?;
        Some((fit.forced().collect(), fit.dead(o.len())))
    }

    #[test]
    fn only_forced_matches_are_reported() {
        assert_eq!(of("abc", "abc"), Some((vec![(0, 0), (1, 1), (2, 2)], vec![])));
        assert_eq!(of("abcd", "bd"), Some((vec![(1, 0), (3, 1)], vec![0, 2])));
        // One of the two died, but it cannot be determined which.
        assert_eq!(of("xaay", "xay"), Some((vec![(0, 0), (3, 2)], vec![])));
        assert_eq!(of("ab", "ba"), None);
        assert_eq!(of("a", "aa"), None);
        assert_eq!(of("aba", ""), Some((vec![], vec![0, 1, 2])));
    }
}
