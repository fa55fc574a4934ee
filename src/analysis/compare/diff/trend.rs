//! Trend of a measure over several dumps.

use crate::analysis::Trend;

/// Returns the trend of a measure, if it is known in all of more than two dumps.
pub(super) fn trend(series: &[Option<u64>]) -> Option<Trend> {
    let known: Vec<u64> = series.iter().copied().collect::<Option<_>>()?;
    if known.len() < 3 {
        return None;
    }
    let each = |is: fn(&u64, &u64) -> bool| known.iter().zip(known.iter().skip(1)).all(|(a, b)| is(a, b));
    Some(match () {
        () if each(|a, b| a < b) => Trend::Grows,
        () if each(|a, b| a > b) => Trend::Shrinks,
        () if each(|a, b| a == b) => Trend::Steady,
        () => Trend::Varies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_up_each_time_is_growth() {
        let t = |list: &[u64]| trend(&list.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(t(&[1, 2]), None);
        assert_eq!([t(&[1, 2, 3]), t(&[3, 2, 1]), t(&[2, 2, 2])], [Trend::Grows, Trend::Shrinks, Trend::Steady].map(Some));
        assert_eq!([t(&[1, 2, 2]), t(&[1, 5, 3])], [Some(Trend::Varies); 2]);
        assert_eq!(trend(&[Some(1), None, Some(3)]), None);
    }
}
