//! Decimal numbers with thousands separators, counts with their nouns, and sizes in binary units.
//!
//! The `bytesize` crate is not used, because sizes are rounded down here, so that a total never looks larger than it is.

/// `n` in decimal, with a comma every three digits.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && digits.len().saturating_sub(i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A count with its noun: `1 object`, `2 objects`.
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// A byte count in the largest binary unit that is at least 1.
pub fn in_units(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return plural(n, "byte");
    }
    let mut shift = 10u32;
    let mut unit = "KiB";
    for (i, name) in (1u32..).zip(UNITS) {
        if n >> (10 * i) > 0 {
            (shift, unit) = (10 * i, name);
        }
    }
    // One decimal, rounded down.
    let tenths = (u128::from(n) * 10) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// The verb `is` or `are` for a count of `n`.
pub(crate) fn be(n: u64) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// The form of a regular verb for a count of `n`: `waits` for 1, else `wait`.
pub(crate) fn verb(n: u64, verb: &str) -> String {
    format!("{verb}{}", if n == 1 { "s" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([verb(1, "wait"), verb(0, "wait"), verb(2, "wait")], ["waits", "wait", "wait"]);
        assert_eq!([plural(1, "byte"), plural(0, "byte"), plural(1000, "byte")], ["1 byte", "0 bytes", "1,000 bytes"]);
        assert_eq!([be(1), be(0), be(2)], ["is", "are", "are"]);
    }
}
