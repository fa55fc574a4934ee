//! Sequence points, which map IL offsets to lines (portable PDB specification, "Sequence Points Blob").

use crate::clr::metadata::signature::compressed;

/// Reader of consecutive compressed numbers.
struct Numbers<'b> {
    rest: &'b [u8],
}

impl Numbers<'_> {
    fn unsigned(&mut self) -> Option<u32> {
        self.take().map(|(n, _)| n)
    }

    /// Reads a compressed signed number (ECMA-335 II.23.2), which has the sign in the lowest bit. The length in bytes determines the number
    /// of magnitude bits.
    fn signed(&mut self) -> Option<i32> {
        let (n, len) = self.take()?;
        let magnitude = (n >> 1).cast_signed();
        let bits = match len {
            1 => 6u32,
            2 => 13,
            _ => 28,
        };
        if n & 1 == 0 { Some(magnitude) } else { magnitude.checked_sub(1i32.checked_shl(bits)?) }
    }

    fn take(&mut self) -> Option<(u32, usize)> {
        let (n, len) = compressed(self.rest)?;
        self.rest = self.rest.get(len..)?;
        Some((n, len))
    }
}

/// Adds `delta` to `from`; `None` if the result is negative.
fn moved(from: u32, delta: i32) -> Option<u32> {
    from.checked_add_signed(delta)
}

/// The document (row of Document) and line of the last sequence point at or before `il` that is not hidden. `blob` contains the sequence
/// points of the method. `document` is the document in the method's row of MethodDebugInformation; 0 if the method spans several documents.
/// `None` if such a point does not exist, or the points up to `il` cannot be decoded.
pub(super) fn line_at(blob: &[u8], document: u32, il: u32) -> Option<(u32, u32)> {
    let mut numbers = Numbers { rest: blob };
    // Row of StandAloneSig with the signature of the locals.
    numbers.unsigned()?;
    let mut document = if document == 0 { numbers.unsigned()? } else { document };
    let mut found = None;
    let mut offset = 0u32;
    // Line and column at which the last point that is not hidden starts.
    let mut last: Option<(u32, u32)> = None;
    let mut first = true;
    while !numbers.rest.is_empty() {
        let delta = numbers.unsigned()?;
        if delta == 0 && !first {
            document = numbers.unsigned()?;
            continue;
        }
        first = false;
        offset = offset.checked_add(delta)?;
        if offset > il {
            break;
        }
        let lines = numbers.unsigned()?;
        let columns = if lines == 0 { numbers.unsigned()?.cast_signed() } else { numbers.signed()? };
        if lines == 0 && columns == 0 {
            continue;
        }
        let start = match last {
            None => (numbers.unsigned()?, numbers.unsigned()?),
            Some((line, column)) => (moved(line, numbers.signed()?)?, moved(column, numbers.signed()?)?),
        };
        last = Some(start);
        found = Some((document, start.0));
    }
    found
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sequence point for tests: IL offset, document, line. A hidden point has no line.
    pub(in crate::clr::pdb) type Point = (u32, u32, Option<u32>);

    fn unsigned(n: u32) -> Vec<u8> {
        match n {
            0..0x80 => vec![n as u8],
            0x80..0x4000 => (n | 0x8000).to_be_bytes()[2..].to_vec(),
            _ => (n | 0xc000_0000).to_be_bytes().to_vec(),
        }
    }

    fn signed(n: i32) -> Vec<u8> {
        let bits = match n {
            -0x40..0x40 => 7,
            -0x2000..0x2000 => 14,
            _ => 29,
        };
        let rotated = (n.cast_unsigned() << 1 | u32::from(n < 0)) & ((1 << bits) - 1);
        match bits {
            7 => vec![rotated as u8],
            14 => (rotated | 0x8000).to_be_bytes()[2..].to_vec(),
            _ => (rotated | 0xc000_0000).to_be_bytes().to_vec(),
        }
    }

    /// Encodes `points`. If `single`, the document is omitted, because the method's row contains the document.
    pub(in crate::clr::pdb) fn encode(points: &[Point], single: bool) -> Vec<u8> {
        let mut out = unsigned(0);
        let mut document = points.first().map_or(1, |p| p.1);
        if !single {
            out.extend(unsigned(document));
        }
        let (mut offset, mut last) = (0, None);
        for (i, (il, of, line)) in points.iter().enumerate() {
            if *of != document {
                out.extend([unsigned(0), unsigned(*of)].concat());
                document = *of;
            }
            out.extend(unsigned(if i == 0 { *il } else { il - offset }));
            offset = *il;
            let Some(line) = line else {
                out.extend([0, 0]);
                continue;
            };
            // The point spans one line, or several lines with a smaller end column.
            out.extend(if line % 2 == 0 { [unsigned(0), unsigned(9)] } else { [unsigned(2), signed(-3)] }.concat());
            match last {
                None => out.extend([unsigned(*line), unsigned(13)].concat()),
                Some(before) => out.extend([signed((*line).cast_signed() - before), signed(0)].concat()),
            }
            last = Some((*line).cast_signed());
        }
        out
    }

    #[test]
    fn signed_numbers_of_every_length() {
        // The examples in ECMA-335 II.23.2.
        let examples: [(i32, &[u8]); 8] = [
            (3, &[0x06]),
            (-3, &[0x7b]),
            (64, &[0x80, 0x80]),
            (-64, &[0x01]),
            (8192, &[0xc0, 0x00, 0x40, 0x00]),
            (-8192, &[0x80, 0x01]),
            (268_435_455, &[0xdf, 0xff, 0xff, 0xfe]),
            (-268_435_456, &[0xc0, 0x00, 0x00, 0x01]),
        ];
        for (n, bytes) in examples {
            assert_eq!((Numbers { rest: bytes }.signed(), signed(n)), (Some(n), bytes.to_vec()), "{n}");
        }
    }

    #[test]
    fn hidden_points_and_other_documents() {
        let points = [(0, 1, Some(10)), (4, 1, None), (9, 2, Some(300)), (12, 2, Some(290)), (20, 1, Some(11))];
        let blob = encode(&points, false);
        let at = |il| line_at(&blob, 0, il);
        assert_eq!((at(0), at(3), at(4), at(8)), (Some((1, 10)), Some((1, 10)), Some((1, 10)), Some((1, 10))));
        assert_eq!((at(9), at(19), at(20), at(u32::MAX)), (Some((2, 300)), Some((2, 290)), Some((1, 11)), Some((1, 11))));
        let hidden = encode(&[(0, 3, None), (7, 3, Some(5))], true);
        assert_eq!((line_at(&hidden, 3, 6), line_at(&hidden, 3, 7)), (None, Some((3, 5))));
        assert_eq!((line_at(&[], 1, 0), line_at(&[0], 1, 0), line_at(&blob[..blob.len() - 1], 0, 20)), (None, None, None));
    }

    proptest! {
        #[test]
        fn points_are_found(steps in prop::collection::vec((1u32..300, 1u32..4, prop::option::of(1u32..70_000)), 1..40), il in 0u32..9000) {
            let mut offset = 0;
            let points: Vec<Point> = steps.iter().map(|(d, doc, line)| { offset += d; (offset, *doc, *line) }).collect();
            let wanted = points.iter().rev().find(|p| p.0 <= il && p.2.is_some()).map(|p| (p.1, p.2.unwrap()));
            prop_assert_eq!(line_at(&encode(&points, false), 0, il), wanted);
        }

        #[test]
        fn any_bytes_end(blob in prop::collection::vec(any::<u8>(), 0..200), document in 0u32..2, il: u32) {
            line_at(&blob, document, il);
        }
    }
}
