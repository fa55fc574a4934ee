//! Contents of an object: everything except the method table and the references.
//!
//! References are excluded because a collection rewrites them. The data of an object ends one word before the next object, because that word is the
//! header of the next object.

use crate::gc::{GcDesc, Object, ObjectType};

/// Minimum number of different byte values in distinctive contents, which two objects are unlikely to have independently. Small numbers, flags and
/// filled buffers have fewer; GUIDs, texts, hashes and time stamps have more.
const DISTINCTIVE: u32 = 8;
/// Like [`DISTINCTIVE`], for strings. The number is lower, because half of the bytes of most texts are zero, and programs seldom create the same text
/// twice at one place.
const DISTINCTIVE_TEXT: u32 = 6;
/// Minimum number of different byte values in contents that distinguish an object from its neighbors.
const DISTINCTIVE_NEARBY: u32 = 4;

/// Summary of the contents of an object, and their strength as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    /// Hash of the type, the size and all bytes.
    pub(super) key: u64,
    /// Whether another object with equal contents must be the same object or a copy.
    pub(super) distinctive: bool,
    /// Whether it would be a coincidence if an object near this one had equal contents.
    pub(super) distinctive_nearby: bool,
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
        // Repeated words add no byte values; filled buffers consist of them.
        if word == self.last {
            return;
        }
        self.last = word;
        if self.distinct() < DISTINCTIVE {
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

/// Returns the GCDesc of a type with its series in the order of offsets, because the order in the runtime is not fixed.
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

/// Reads the contents of an object; `None` if a part of them is not in the dump. `desc` is from [`in_order`].
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
        distinctive: distinct >= if object.ty.is_string { DISTINCTIVE_TEXT } else { DISTINCTIVE },
        distinctive_nearby: distinct >= DISTINCTIVE_NEARBY,
    })
}

/// Calls `visit` for the start and end of each range without references in an object of `size` bytes, in order.
fn plain(desc: &GcDesc, size: u64, word: u64, end: u64, mut visit: impl FnMut(u64, u64)) {
    let mut at = word;
    let mut run = |from: u64, to: u64| {
        if from < to.min(end) {
            visit(from, to.min(end));
        }
    };
    match desc {
        GcDesc::None => run(at, end),
        // Any word may be a reference, so no word is content.
        GcDesc::Unknown => {}
        GcDesc::Series(list) => {
            for series in list {
                run(at, series.start);
                at = at.max(series.start.saturating_add(size.checked_add_signed(series.size).unwrap_or(0)));
            }
            run(at, end);
        }
        GcDesc::ValueSeries { start, items, .. } => {
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
    fn references_are_excluded() {
        assert_eq!(runs(&GcDesc::None, 40), [(8, 32)]);
        // One reference at offset 16, two at 32. A series has the size of its references in bytes minus the size of the object.
        let two = GcDesc::Series(vec![Series { start: 16, size: 8 - 64 }, Series { start: 32, size: 16 - 64 }]);
        assert_eq!(runs(&two, 64), [(8, 16), (24, 32), (48, 56)]);
        // An array of references: only its length remains.
        assert_eq!(runs(&GcDesc::Series(vec![Series { start: 16, size: -24 }]), 80), [(8, 16)]);
        // Each element has a reference and eight other bytes.
        let pairs = GcDesc::ValueSeries { start: 16, tail: 8, items: vec![ValueSeries { pointers: 1, skip: 8 }] };
        assert_eq!(runs(&pairs, 16 + 8 + 32), [(8, 16), (24, 32), (40, 48)]);
        assert_eq!(runs(&GcDesc::Unknown, 40), []);
    }

    #[test]
    fn repeated_values_are_no_evidence() {
        let read = |bytes: &[u8]| {
            let mut r = Reader { hash: 0, seen: [0; 4], last: 0 };
            r.bytes(bytes);
            (r.hash, r.distinct())
        };
        assert!(read(&[7; 800]).1 < DISTINCTIVE_NEARBY);
        assert!(read(b"key number 150").1 >= DISTINCTIVE);
        assert!(read(&42u64.to_le_bytes()).1 < DISTINCTIVE_NEARBY);
        assert_ne!(read(&[1, 2]).0, read(&[2, 1]).0);
    }
}
