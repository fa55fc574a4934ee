//! The longest increasing subsequence.

/// Returns the positions of a longest strictly increasing subsequence, in ascending order. If there are several, the last value is the smallest
/// possible.
pub(super) fn longest_rising(values: &[u32]) -> Vec<usize> {
    // For each length, the smallest last value of an increasing subsequence of that length, and its position.
    let mut ends: Vec<(u32, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        let length = ends.partition_point(|(end, _)| end < value);
        before.push(length.checked_sub(1).and_then(|n| ends.get(n)).map(|(_, at)| *at));
        match ends.get_mut(length) {
            Some(end) => *end = (*value, at),
            None => ends.push((*value, at)),
        }
    }
    let mut out = Vec::with_capacity(ends.len());
    let mut at = ends.last().map(|(_, at)| *at);
    while let Some(here) = at {
        out.push(here);
        at = before.get(here).copied().flatten();
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_order_are_omitted() {
        assert_eq!(longest_rising(&[]), [0usize; 0]);
        assert_eq!(longest_rising(&[1, 2, 9, 3, 4]), [0, 1, 3, 4]);
        assert_eq!(longest_rising(&[5, 5, 5]), [2]);
        assert_eq!(longest_rising(&[9, 1, 8, 2, 7, 3]), [1, 3, 5]);
    }
}
