//! The contents of an object: all of it but the method table and the references.
//!
//! References are left out because a collection rewrites them. An object's data ends one word before the next object: that word
//! is the header of the next one.

use crate::gc::{GcDesc, Object, ObjectType};

/// Different byte values from which on contents are telling: two objects that were not copied from one another hardly have the
/// same. Small numbers, flags and filled buffers stay below; GUIDs, texts, hashes and time stamps do not.
const TELLING: u32 = 8;
/// The same for strings, whose bytes are letters: half of them are zero, and few programs make a text twice at one place.
const TELLING_TEXT: u32 = 6;
/// Different byte values from which on contents tell neighbors apart.
const SPEAKING: u32 = 4;

/// What the contents of an object are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    /// Hash of the type, the size and all bytes.
    pub(super) key: u64,
    /// Whether equal contents elsewhere would be a copy.
    pub(super) telling: bool,
    /// Whether equal contents in the neighborhood would be a coincidence.
    pub(super) speaking: bool,
}

/// Hashes words and counts byte values.
struct Reader {
    hash: u64,
    seen: [u64; 4],
    last: u64,
}

fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

impl Reader {
    fn word(&mut self, word: u64) {
        self.hash = mix(self.hash, word).rotate_left(5);
        // Filled buffers repeat themselves.
        if word == self.last {
            return;
        }
        self.last = word;
        if self.distinct() < TELLING {
            for byte in word.to_le_bytes() {
                if let Some(part) = self.seen.get_mut(usize::from(byte >> 6)) {
                    *part |= 1u64 << (byte & 63);
                }
            }
        }
    }

    fn distinct(&self) -> u32 {
        self.seen.iter().fold(0, |n, part| n.saturating_add(part.count_ones()))
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.word(u64::from_le_bytes(last));
        }
    }
}

/// The references of a type's objects, series in the order of the object: the runtime's order is not fixed.
pub(super) fn in_order(ty: &ObjectType) -> GcDesc {
    match &ty.gc_desc {
        GcDesc::Series(list) => {
            let mut list = list.clone();
            list.sort_by_key(|s| s.start);
            GcDesc::Series(list)
        }
        other => other.clone(),
    }
}

/// Reads the contents of an object; `desc` is [`in_order`]. `None` where a part of them is not in the dump.
pub(super) fn contents(object: &Object<'_>, desc: &GcDesc, word: u64) -> Option<Contents> {
    let end = object.size.saturating_sub(word).max(word);
    let data = object.part(0, end)?;
    let at = |offset: u64| usize::try_from(offset).ok();
    let mut reader = Reader { hash: mix(object.ty.method_table.0, object.size), seen: [0; 4], last: 0 };
    plain(desc, object.size, word, end, |from, to| {
        if let Some(bytes) = at(from).zip(at(to)).and_then(|(from, to)| data.get(from..to)) {
            reader.bytes(bytes);
        }
    });
    let distinct = reader.distinct();
    Some(Contents {
        key: mix(reader.hash, 1).max(1),
        telling: distinct >= if object.ty.is_string { TELLING_TEXT } else { TELLING },
        speaking: distinct >= SPEAKING,
    })
}

/// Calls `visit` for each run of bytes of an object of `size` bytes that holds no reference, in order.
fn plain(desc: &GcDesc, size: u64, word: u64, end: u64, mut visit: impl FnMut(u64, u64)) {
    let mut at = word;
    let mut run = |from: u64, to: u64| {
        if from < to.min(end) {
            visit(from, to.min(end));
        }
    };
    match desc {
        GcDesc::None => run(at, end),
        // Which words are references is not known.
        GcDesc::Unknown => {}
        GcDesc::Series(list) => {
            for series in list {
                run(at, series.start);
                at = at.max(series.start.saturating_add(size.checked_add_signed(series.size).unwrap_or(0)));
            }
            run(at, end);
        }
        GcDesc::ValueSeries { start, items } => {
            run(at, *start);
            at = *start;
            while at < end {
                let before = at;
                for item in items {
                    at = at.saturating_add(item.pointers.saturating_mul(word));
                    let to = at.saturating_add(item.skip);
                    run(at, to);
                    at = to;
                }
                if at == before {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gc::{Series, ValueSeries};

    fn runs(desc: &GcDesc, size: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        plain(desc, size, 8, size - 8, |from, to| out.push((from, to)));
        out
    }

    #[test]
    fn references_are_left_out() {
        assert_eq!(runs(&GcDesc::None, 40), [(8, 32)]);
        // One reference at 16, two at 32: `start`, and the bytes less the size of the object.
        let two = GcDesc::Series(vec![Series { start: 16, size: 8 - 64 }, Series { start: 32, size: 16 - 64 }]);
        assert_eq!(runs(&two, 64), [(8, 16), (24, 32), (48, 56)]);
        // An array of references: its length only.
        assert_eq!(runs(&GcDesc::Series(vec![Series { start: 16, size: -24 }]), 80), [(8, 16)]);
        // Elements of a reference and eight bytes.
        let pairs = GcDesc::ValueSeries { start: 16, items: vec![ValueSeries { pointers: 1, skip: 8 }] };
        assert_eq!(runs(&pairs, 16 + 8 + 32), [(8, 16), (24, 32), (40, 48)]);
        assert_eq!(runs(&GcDesc::Unknown, 40), []);
    }

    #[test]
    fn what_repeats_tells_nothing() {
        let read = |bytes: &[u8]| {
            let mut r = Reader { hash: 0, seen: [0; 4], last: 0 };
            r.bytes(bytes);
            (r.hash, r.distinct())
        };
        assert!(read(&[7; 800]).1 < SPEAKING);
        assert!(read(b"key number 150").1 >= TELLING);
        assert!(read(&42u64.to_le_bytes()).1 < SPEAKING);
        assert_ne!(read(&[1, 2]).0, read(&[2, 1]).0);
    }
}
