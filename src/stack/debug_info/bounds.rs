//! Bounds: pairs of a native offset in a method and the IL offset whose code begins there.

use crate::base::len64;

/// Special values of entries without an IL offset.
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;
/// Bias of stored IL offsets, so that the special values are stored as small numbers.
const BIAS: u32 = EPILOG;
/// Maximum number of bounds of a method.
const MAX_BOUNDS: u32 = 1 << 20;

/// The encoding of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Numbers in nibbles: .NET 8 and 9.
    Nibbles,
    /// Entries of equal width in bits.
    Packed {
        /// Number of bits of an entry's source flags: 2 in .NET 10, 3 in later releases.
        source: u32,
    },
}

/// Reads numbers in nibbles, low nibble of a byte first. Each nibble has three bits of the number, highest first, and a bit that is set if
/// more nibbles follow.
#[derive(Debug)]
pub(super) struct Nibbles<F> {
    byte_at: F,
    nibbles: u64,
}

impl<F: FnMut(u64) -> Option<u8>> Nibbles<F> {
    /// Reads through `byte_at`, which returns the byte at an offset.
    pub(super) fn new(byte_at: F) -> Nibbles<F> {
        Nibbles { byte_at, nibbles: 0 }
    }

    /// The next number.
    pub(super) fn u32(&mut self) -> Option<u32> {
        let mut value = 0u32;
        // Eleven nibbles have 33 bits.
        for _ in 0..11 {
            let byte = (self.byte_at)(self.nibbles / 2)?;
            let nibble = if self.nibbles & 1 == 0 { byte & 15 } else { byte >> 4 };
            self.nibbles = self.nibbles.checked_add(1)?;
            value = value.checked_mul(8)? | u32::from(nibble & 7);
            if nibble & 8 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The next signed number, whose sign is the lowest bit.
    pub(super) fn i32(&mut self) -> Option<i32> {
        let number = self.u32()?;
        let size = i32::try_from(number >> 1).ok()?;
        if number & 1 == 0 { Some(size) } else { size.checked_neg() }
    }

    /// Offset of the next whole byte.
    pub(super) fn next_byte(&self) -> u64 {
        self.nibbles.div_ceil(2)
    }
}

/// An entry of the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// Offset in the method's code.
    native: u32,
    /// IL offset, or one of the special values.
    il: u32,
    /// Whether the entry marks a call rather than a statement boundary.
    call: bool,
}

/// Bits of an entry's source flags that mark a call, in [`Form::Nibbles`] and in [`Form::Packed`].
const CALL_IN_NIBBLES: u32 = 0x10;
const CALL_IN_BITS: u64 = 1;

/// The bounds of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    list: Vec<Bound>,
}

impl Bounds {
    /// Decodes bounds; `None` if `bytes` are not bounds of this form.
    pub(super) fn decode(bytes: &[u8], form: Form) -> Option<Bounds> {
        let byte_at = |at: u64| usize::try_from(at).ok().and_then(|i| bytes.get(i)).copied();
        let mut nibbles = Nibbles::new(byte_at);
        let count = nibbles.u32().filter(|n| *n <= MAX_BOUNDS)?;
        let mut list = Vec::new();
        let mut native = 0u32;
        match form {
            Form::Nibbles => {
                for _ in 0..count {
                    native = native.checked_add(nibbles.u32()?)?;
                    let il = nibbles.u32()?.wrapping_add(BIAS);
                    list.push(Bound { native, il, call: nibbles.u32()? & CALL_IN_NIBBLES != 0 });
                }
            }
            Form::Packed { source } => {
                let width = |n: u32| n.checked_add(1).filter(|n| *n <= 32);
                let (native_bits, il_bits) = (width(nibbles.u32()?)?, width(nibbles.u32()?)?);
                let mut bits = Bits { bytes: bytes.get(usize::try_from(nibbles.next_byte()).ok()?..)?, at: 0 };
                for _ in 0..count {
                    let call = bits.take(source)? & CALL_IN_BITS != 0;
                    native = native.checked_add(u32::try_from(bits.take(native_bits)?).ok()?)?;
                    let il = u32::try_from(bits.take(il_bits)?).ok()?.wrapping_add(BIAS);
                    list.push(Bound { native, il, call });
                }
            }
        }
        Some(Bounds { list })
    }

    /// Whether the code at `offset` belongs to a prologue or epilogue. Code before the first boundary belongs to the prologue.
    pub(crate) fn is_prologue_or_epilogue(&self, offset: u32) -> bool {
        let before = self.list.iter().filter(|b| !b.call).take_while(|b| b.native <= offset);
        // Several entries may have the same native offset.
        let last = before.clone().map(|b| b.native).max();
        last.is_none() || before.filter(|b| Some(b.native) == last).any(|b| matches!(b.il, PROLOG | EPILOG))
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> u64 {
        len64(self.list.len())
    }

    /// The IL offset of the code at `offset`, determined as in stack traces of the runtime: the IL offset of the last boundary at or before
    /// `offset`. If several boundaries have that native offset, the lowest IL offset is returned. `None` for code that does not belong to IL.
    pub(crate) fn il_offset(&self, offset: u32) -> Option<u32> {
        // The runtime orders the special values first.
        let rank = |il: u32| il.cast_signed();
        let mut found: Option<Bound> = None;
        for bound in self.list.iter().filter(|b| !b.call).take_while(|b| b.native <= offset) {
            found = match found {
                Some(last) if last.native == bound.native && (bound.il == NO_MAPPING || rank(bound.il) >= rank(last.il)) => Some(last),
                _ => Some(*bound),
            };
        }
        match found.map(|b| b.il) {
            Some(NO_MAPPING) => None,
            // Code before the first boundary belongs to the prologue too.
            Some(PROLOG) | None => (!self.list.is_empty()).then_some(0),
            Some(EPILOG) => self.list.iter().filter(|b| !b.call && b.il < EPILOG).map(|b| b.il).max(),
            Some(il) => Some(il),
        }
    }
}

/// Reads bits, lowest bits first.
struct Bits<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0u64;
        let mut have = 0u32;
        while have < count {
            let byte = u64::from(*self.bytes.get(self.at / 8)?);
            let skip = u32::try_from(self.at % 8).ok()?;
            let now = 8u32.saturating_sub(skip).min(count.saturating_sub(have));
            let mask = 1u64.checked_shl(now)?.checked_sub(1)?;
            value |= (byte >> skip & mask).checked_shl(have)?;
            have = have.checked_add(now)?;
            self.at = self.at.checked_add(usize::try_from(now).ok()?)?;
        }
        Some(value)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes numbers in nibbles, padded to a whole byte.
    pub(in crate::stack::debug_info) fn nibbles(numbers: &[u32]) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        for n in numbers {
            let digits = (1..).find(|d| *d == 11 || n >> (3 * d) == 0).unwrap();
            out.extend((0..digits).rev().map(|d| ((u64::from(*n) >> (3 * d)) & 7) as u8 | if d > 0 { 8 } else { 0 }));
        }
        out.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(0) << 4).collect()
    }

    fn bound(native: u32, il: u32, call: bool) -> Bound {
        Bound { native, il, call }
    }

    fn encode(list: &[Bound], form: Form) -> Vec<u8> {
        let deltas = list.iter().scan(0, |last, b| {
            let delta = b.native - *last;
            *last = b.native;
            Some(delta)
        });
        let rows: Vec<(u32, u32, bool)> = deltas.zip(list).map(|(d, b)| (d, b.il.wrapping_sub(BIAS), b.call)).collect();
        let count = list.len() as u32;
        match form {
            Form::Nibbles => {
                let numbers = rows.iter().flat_map(|(d, il, call)| [*d, *il, if *call { 0x10 } else { 2 }]);
                nibbles(&[count].into_iter().chain(numbers).collect::<Vec<_>>())
            }
            Form::Packed { source } => {
                let bits = |n: u32| (32 - n.leading_zeros()).max(1);
                let native = rows.iter().map(|r| bits(r.0)).max().unwrap_or(1);
                let il = rows.iter().map(|r| bits(r.1)).max().unwrap_or(1);
                let mut all: Vec<bool> = Vec::new();
                let mut put = |n: u64, width: u32| all.extend((0..width).map(|i| n >> i & 1 == 1));
                for (d, i, call) in &rows {
                    put(if *call { 1 } else { 2 }, source);
                    put(u64::from(*d), native);
                    put(u64::from(*i), il);
                }
                let mut out = nibbles(&[count, native - 1, il - 1]);
                out.extend(all.chunks(8).map(|c| c.iter().enumerate().fold(0u8, |n, (i, b)| n | u8::from(*b) << i)));
                out
            }
        }
    }

    const FORMS: [Form; 3] = [Form::Nibbles, Form::Packed { source: 2 }, Form::Packed { source: 3 }];

    /// The examples of the runtime's documentation.
    #[test]
    fn numbers_in_nibbles() {
        let examples: [(u32, &[u8]); 8] = [
            (0, &[0x00]),
            (7, &[0x07]),
            (8, &[0x09]),
            (9, &[0x19]),
            (63, &[0x7f]),
            (64, &[0x89, 0x00]),
            (511, &[0xff, 0x07]),
            (513, &[0x89, 0x18]),
        ];
        for (number, bytes) in examples {
            let mut reader = Nibbles::new(|at| bytes.get(at as usize).copied());
            assert_eq!(reader.u32(), Some(number), "{bytes:02x?}");
        }
        let signed = |n: u32| Nibbles::new(|at| nibbles(&[n]).get(at as usize).copied()).i32();
        assert_eq!([signed(0), signed(16), signed(17), signed(u32::MAX)], [Some(0), Some(8), Some(-8), Some(-i32::MAX)]);
        let endless = [0x88u8; 20];
        assert_eq!(Nibbles::new(|at| endless.get(at as usize).copied()).u32(), None);
        let most = nibbles(&[u32::MAX]);
        assert_eq!(Nibbles::new(|at| most.get(at as usize).copied()).u32(), Some(u32::MAX));
    }

    #[test]
    fn code_belongs_to_the_last_boundary_before_it() {
        let list = [
            bound(0, PROLOG, false),
            bound(10, 0, false),
            bound(14, 3, true),
            bound(20, 7, false),
            bound(20, 6, false),
            bound(30, 9, false),
            bound(36, NO_MAPPING, false),
            bound(40, 2, false),
            bound(50, EPILOG, false),
        ];
        for form in FORMS {
            let bounds = Bounds::decode(&encode(&list, form), form).unwrap();
            assert_eq!(bounds.list, list);
            let at = |offset| bounds.il_offset(offset);
            assert_eq!((at(0), at(9), at(10), at(19)), (Some(0), Some(0), Some(0), Some(0)), "calls are not boundaries");
            assert_eq!((at(20), at(29), at(30), at(39)), (Some(6), Some(6), Some(9), None));
            assert_eq!((at(40), at(50), at(u32::MAX)), (Some(2), Some(9), Some(9)));
        }
        let late = Bounds { list: vec![bound(5, 4, false)] };
        assert_eq!((late.il_offset(4), late.il_offset(5), Bounds::default().il_offset(4)), (Some(0), Some(4), None));
        let makes = |offset| Bounds { list: list.to_vec() }.is_prologue_or_epilogue(offset);
        assert_eq!([0, 9, 10, 20, 36, 49, 50, u32::MAX].map(makes), [true, true, false, false, false, false, true, true]);
        assert!(late.is_prologue_or_epilogue(4) && !late.is_prologue_or_epilogue(5) && Bounds::default().is_prologue_or_epilogue(0));
        let none = Bounds { list: vec![bound(5, 4, false), bound(5, NO_MAPPING, false)] };
        assert_eq!(none.il_offset(6), Some(4));
    }

    proptest! {
        #[test]
        fn encoded_bounds_are_decoded(rows in prop::collection::vec((0u32..5000, 0u32..70_000, any::<bool>()), 0..80)) {
            let list: Vec<Bound> = rows.iter().scan(0, |native, (delta, il, call)| {
                *native += delta;
                Some(bound(*native, il.wrapping_add(BIAS), *call))
            }).collect();
            for form in FORMS {
                let bytes = encode(&list, form);
                prop_assert_eq!(Bounds::decode(&bytes, form), Some(Bounds { list: list.clone() }));
                if !list.is_empty() {
                    prop_assert_eq!(Bounds::decode(&bytes[..bytes.len() - 1], form), None);
                }
            }
        }

        #[test]
        fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..200), offset: u32) {
            for form in FORMS {
                if let Some(bounds) = Bounds::decode(&bytes, form) {
                    prop_assert!(bounds.list.len() <= bytes.len() * 2);
                    bounds.il_offset(offset);
                }
            }
        }
    }
}
