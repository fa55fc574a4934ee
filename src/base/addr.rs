//! Addresses in the dumped process.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Page size to which layouts are rounded: 4 KiB, the smallest page size of the supported targets.
pub(crate) const PAGE: u64 = 4096;

/// An address in the dumped process (never an offset in the dump file).
///
/// An address prints and serializes as `0x…` in lower-case hexadecimal, because most JSON readers convert numbers to doubles and so lose the
/// low bits of 64-bit addresses.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u64);

impl Addr {
    /// The null pointer.
    pub const NULL: Addr = Addr(0);

    /// Whether this is the null pointer.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address `bytes` above this one. A sum that overflows saturates instead of wrapping to a plausible address. Reads at
    /// the saturated address fail, because the last byte of a 64-bit address space is never captured.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Addr {
        Addr(self.0.saturating_add(bytes))
    }

    /// The address `bytes` below this one, or `None` on underflow.
    pub const fn minus(self, bytes: u64) -> Option<Addr> {
        match self.0.checked_sub(bytes) {
            Some(a) => Some(Addr(a)),
            None => None,
        }
    }

    /// The address of element `index` of an array of `stride`-byte elements that starts here. Saturates like [`Addr::plus`].
    #[must_use]
    pub const fn element(self, index: u64, stride: u64) -> Addr {
        self.plus(index.saturating_mul(stride))
    }

    /// Number of bytes from `start` to this address; `None` if it lies below `start`.
    pub const fn since(self, start: Addr) -> Option<u64> {
        self.0.checked_sub(start.0)
    }

    /// This address rounded down to a multiple of `alignment`, which must be a power of two.
    #[must_use]
    pub const fn align_down(self, alignment: u64) -> Addr {
        Addr(self.0 & !alignment.saturating_sub(1))
    }

    /// Whether this is a multiple of `alignment`, which must be a power of two.
    pub const fn is_aligned(self, alignment: u64) -> bool {
        self.0 & alignment.saturating_sub(1) == 0
    }

    /// The hexadecimal text of the address. It is made without `std::fmt`, which would be slow for lists of millions of objects.
    #[doc(hidden)]
    pub fn hex(self) -> Hex {
        let digits = u64::BITS.saturating_sub(self.0.leading_zeros()).div_ceil(4).max(1);
        let start = u8::try_from(16_u32.saturating_sub(digits)).unwrap_or(0);
        let [a, b, c, d, e, f, g, h] = self.0.to_be_bytes();
        let (upper, lower) = (hex_digits([a, b, c, d]), hex_digits([e, f, g, h]));
        let mut text = [0; 18];
        text[2..10].copy_from_slice(&upper);
        text[10..].copy_from_slice(&lower);
        if let Some(prefix) = text.get_mut(usize::from(start)..).and_then(|rest| rest.first_chunk_mut()) {
            *prefix = *b"0x";
        }
        Hex { text, start }
    }
}

/// Returns the hexadecimal digits of `bytes`. Computes all of them at once, because lists of objects have many addresses.
const fn hex_digits([a, b, c, d]: [u8; 4]) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 255;
    const FROM_9_TO_A: u64 = (b'a' - b'9' - 1) as u64;
    let mut each = u64::from_be_bytes([0, a, 0, b, 0, c, 0, d]);
    each = (each | each << 4) & (ONES * 15);
    // Bit 0 of each byte: whether the digit is a letter.
    let letters = (each.wrapping_add(ONES * 6) >> 4) & ONES;
    each.wrapping_add(ONES * b'0' as u64).wrapping_add(letters.wrapping_mul(FROM_9_TO_A)).to_be_bytes()
}

/// The text of an address, as [`Addr::hex`] returns it.
#[derive(Clone, Copy)]
pub struct Hex {
    text: [u8; 18],
    start: u8,
}

impl Hex {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The text in ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.get(usize::from(self.start)..).unwrap_or_default()
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

impl Serialize for Addr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.hex().as_str())
    }
}

impl<'d> Deserialize<'d> for Addr {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Addr, D::Error> {
        let text = <std::borrow::Cow<'d, str>>::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.map(Addr).ok_or_else(|| serde::de::Error::custom("expected an address: 0x and hexadecimal digits"))
    }
}

#[cfg(feature = "cli")]
impl schemars::JsonSchema for Addr {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An address in the dumped process, hexadecimal.",
            "type": "string",
            "pattern": "^0x[0-9a-f]{1,16}$"
        })
    }
}

/// A half-open range of addresses: it contains `start` but not `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AddrRange {
    /// First address of the range.
    pub start: Addr,
    /// First address past the range.
    pub end: Addr,
}

impl AddrRange {
    /// The range `[start, end)`; empty if `end` lies below `start`.
    pub fn new(start: Addr, end: Addr) -> AddrRange {
        AddrRange { start, end: end.max(start) }
    }

    /// The `len` bytes from `start`, up to the end of the address space.
    pub fn of(start: Addr, len: u64) -> AddrRange {
        AddrRange { start, end: start.plus(len) }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `address` lies inside the range.
    pub fn contains(&self, address: Addr) -> bool {
        self.start <= address && address < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_differences_are_checked() {
        assert_eq!(Addr(u64::MAX - 1).plus(8), Addr(u64::MAX));
        assert_eq!(Addr(4).minus(8), None);
        assert_eq!(Addr(0x10).element(u64::MAX, 8), Addr(u64::MAX));
        assert_eq!(Addr(0x1fff).align_down(0x1000), Addr(0x1000));
        assert_eq!(AddrRange::of(Addr(0x10), 8), AddrRange::new(Addr(0x10), Addr(0x18)));
        assert_eq!(AddrRange::of(Addr(u64::MAX - 1), 8).len(), 1);
    }

    #[test]
    fn prints_as_hex() {
        assert_eq!(Addr(0x7f00_12ab).to_string(), "0x7f0012ab");
        assert_eq!(serde_json::to_string(&Addr(0)).unwrap(), "\"0x0\"");
        for n in [0x9876_5432_1fed_cba0, 1, 9, 10, 15, 16, 0x7f00_12ab_cdef, u64::MAX, 1 << 63] {
            assert_eq!(Addr(n).to_string(), format!("{n:#x}"));
        }
    }
}
