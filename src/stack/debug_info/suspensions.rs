//! Suspension points of runtime async (.NET 11). Each point lists the variables that the continuation captures, with their offsets in it.
//!
//! Source: contract `DebugInfo` c1, `AsyncInfo`.

use super::bounds::Nibbles;
use crate::base::len64;

/// Bias of stored variable numbers. It makes the negative numbers of hidden arguments unsigned.
const BIAS: u32 = 6;
/// Minimum number of nibbles of a suspension point, and of a variable.
const SMALLEST: u64 = 2;

/// A variable that a continuation captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Number of the variable in IL, arguments before locals; `None` for hidden arguments.
    pub(crate) number: Option<u32>,
    /// Offset of the variable in the continuation.
    pub(crate) offset: u32,
}

/// The variables captured by the continuation of a method that is suspended at offset `point` of its code; `None` if the debug info in
/// `bytes` does not have that suspension point.
pub(super) fn captured(bytes: &[u8], point: u32) -> Option<Vec<Captured>> {
    let byte_at = |at: u64| usize::try_from(at).ok().and_then(|i| bytes.get(i)).copied();
    let mut nibbles = Nibbles::new(byte_at);
    let most = len64(bytes.len()).saturating_mul(2) / SMALLEST;
    let points = nibbles.u32().filter(|n| u64::from(*n) <= most)?;
    let all = nibbles.u32().filter(|n| u64::from(*n) <= most)?;
    let (mut at, mut before, mut own) = (0u32, 0u32, None);
    for _ in 0..points {
        at = at.checked_add_signed(nibbles.i32()?)?;
        let count = nibbles.u32()?;
        let end = before.checked_add(count).filter(|end| *end <= all)?;
        if at == point {
            own = own.or(Some(before..end));
        }
        before = end;
    }
    let own = own?;
    let mut out = Vec::new();
    for index in 0..all {
        let (number, offset) = (nibbles.u32()?, nibbles.u32()?);
        if own.contains(&index) {
            out.push(Captured { number: number.checked_sub(BIAS), offset });
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::bounds::tests::nibbles;
    use super::*;

    /// Two suspension points, at 0x40 and 0x10, with one and two variables: the type context, then `this` and the first local of a method with
    /// one argument.
    #[test]
    fn each_suspension_point_has_separate_variables() {
        let signed = |n: i32| n.unsigned_abs() << 1 | u32::from(n < 0);
        let bytes = nibbles(&[2, 3, signed(0x40), 1, signed(-0x30), 2, 2, 8, 6, 0, 8, 16]);
        let variable = |number, offset| Captured { number, offset };
        assert_eq!(captured(&bytes, 0x40), Some(vec![variable(None, 8)]));
        assert_eq!(captured(&bytes, 0x10), Some(vec![variable(Some(0), 0), variable(Some(2), 16)]));
        assert_eq!(captured(&bytes, 0x11), None);
        assert_eq!(captured(&nibbles(&[2, 1, signed(0x40), 2, 0, 0]), 0x40), None);
        assert_eq!(captured(&[0xff; 64], 0), None);
    }
}
