//! Where objects hold references: the CGCDesc that lies before a method table whose type contains pointers.
//!
//! Source: `gcdesc.h` of the runtime; reference §5, verified on 100 658 references.

use crate::base::{Addr, Endian};
use crate::memory::Memory;

/// Series of one type. A class has one per run of reference fields; a thousand is far beyond any compiler's output.
const MAX_SERIES: u64 = 1 << 16;

/// Where the objects of a type hold references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// Nowhere.
    #[default]
    None,
    /// In runs.
    Runs(Vec<Run>),
    /// Arrays of structures: the same pattern in each element.
    Pattern {
        /// Offset of the first run, from the object's start.
        start: u64,
        /// Runs of references and the bytes behind each.
        items: Vec<Item>,
    },
    /// The type has references, but what says where is damaged or not in the dump.
    Unknown,
}

/// A run of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first, from the object's start.
    pub start: u64,
    /// Bytes of the run less the object's size: arrays of references have one run that grows with the array.
    pub less: i64,
}

/// A run of references inside of an array's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// References.
    pub references: u64,
    /// Bytes to skip behind them.
    pub skip: u64,
}

impl References {
    /// Reads the CGCDesc before the method table at `mt`.
    pub fn read(memory: &Memory, mt: Addr, base_size: u64) -> References {
        read(memory, mt, base_size).unwrap_or(References::Unknown)
    }

    /// Calls `visit` with the offset of every place in an object of `size` bytes (not rounded) that holds a reference.
    #[inline]
    pub fn places(&self, size: u64, word: u64, mut visit: impl FnMut(u64)) {
        match self {
            References::None | References::Unknown => {}
            References::Runs(runs) => {
                for run in runs {
                    // Both bounded by the object: a run beyond it is damage.
                    let bytes = size.checked_add_signed(run.less).unwrap_or(0);
                    let end = run.start.saturating_add(bytes).min(size);
                    let mut at = run.start;
                    while at < end {
                        visit(at);
                        at = at.saturating_add(word);
                    }
                }
            }
            References::Pattern { start, items } => {
                // The header word counts for the size but lies before the object.
                let end = size.saturating_sub(word);
                let mut at = *start;
                while at < end {
                    let before = at;
                    for item in items {
                        for _ in 0..item.references {
                            if at >= end {
                                return;
                            }
                            visit(at);
                            at = at.saturating_add(word);
                        }
                        at = at.saturating_add(item.skip);
                    }
                    if at == before {
                        return;
                    }
                }
            }
        }
    }
}

fn read(memory: &Memory, mt: Addr, base_size: u64) -> Option<References> {
    let word = memory.ptr_bytes();
    let before = |words: u64| mt.minus(word.checked_mul(words)?);
    let count = signed(memory, before(1)?)?;
    if count.unsigned_abs() > MAX_SERIES || count == 0 {
        return None;
    }
    if count > 0 {
        let mut runs = Vec::new();
        for k in 0..count.unsigned_abs() {
            // Series grow downwards: size, then start, two words each.
            let at = before(k.checked_mul(2)?.checked_add(3)?)?;
            let start = memory.word(at.plus(word)).ok()?;
            runs.push(Run { start, less: signed(memory, at)? });
        }
        // No field lies before the object or behind its fixed part, and elements begin at its end.
        let sane = runs.iter().all(|r| r.start >= word && r.start <= base_size);
        return sane.then_some(References::Runs(runs));
    }
    let start = memory.word(before(2)?).ok()?;
    let mut items = Vec::new();
    for k in 0..count.unsigned_abs() {
        let packed = memory.word(before(k.checked_add(3)?)?).ok()?;
        // Half a word each: number of references, bytes to skip.
        let half = word.checked_mul(4)?;
        let mask = 1u64.checked_shl(u32::try_from(half).ok()?)?.wrapping_sub(1);
        let (low, high) = (packed & mask, packed >> half & mask);
        // In memory the count comes first: on big-endian targets that is the high half.
        let (references, skip) = if memory.shape().endian == Endian::Little { (low, high) } else { (high, low) };
        items.push(Item { references, skip });
    }
    (start >= word).then_some(References::Pattern { start, items })
}

fn signed(memory: &Memory, at: Addr) -> Option<i64> {
    let value = memory.word(at).ok()?;
    if memory.ptr_bytes() == 4 { u32::try_from(value).ok().map(|v| i64::from(v.cast_signed())) } else { Some(value.cast_signed()) }
}
