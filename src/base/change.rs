//! Differences between two numbers.

/// `after` minus `before`, clamped to the range of `i64`.
pub(crate) fn change(before: u64, after: u64) -> i64 {
    let exact = i128::from(after).saturating_sub(i128::from(before));
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

/// The change from `before` to `after` as a fraction of `before`: 0.5 is an increase by half. `None` if `before` is 0. Rounded to four
/// decimal places, so that every machine prints the same number.
pub(crate) fn growth(before: u64, after: u64) -> Option<f64> {
    let scaled = i128::from(after).checked_sub(i128::from(before))?.checked_mul(10_000)?;
    let parts = scaled.checked_div(i128::from(before))?;
    let parts = i32::try_from(parts).unwrap_or(if parts < 0 { i32::MIN } else { i32::MAX });
    Some(f64::from(parts) / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_in_both_directions() {
        assert_eq!((change(3, 5), change(5, 3), change(0, u64::MAX), change(u64::MAX, 0)), (2, -2, i64::MAX, i64::MIN));
        assert_eq!((growth(100, 150), growth(3, 2), growth(0, 5), growth(0, 0)), (Some(0.5), Some(-0.3333), None, None));
        assert_eq!(growth(1, u64::MAX), Some(f64::from(i32::MAX) / 10_000.0));
    }
}
