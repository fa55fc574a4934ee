//! Human-readable numbers.

use crate::base::thousands;
pub use crate::base::{in_units as bytes, plural};

/// Formats `n` with thousands separators.
pub fn count(n: u64) -> String {
    thousands(n)
}

/// Formats a byte count in the largest binary unit, and exactly.
pub fn bytes_exactly(n: u64) -> String {
    if n < 1024 { bytes(n) } else { format!("{} ({} bytes)", bytes(n), count(n)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_units() {
        assert_eq!((count(0), count(999), count(1000), count(1_234_567)), ("0".into(), "999".into(), "1,000".into(), "1,234,567".into()));
        assert_eq!((bytes(1), bytes(1023)), ("1 byte".into(), "1,023 bytes".into()));
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1_396_736), "1.3 MiB");
        assert_eq!(bytes(u64::MAX), "15.9 EiB");
    }
}
