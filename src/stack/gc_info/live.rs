//! The tracked slots that are live at an offset.

use super::bits::Bits;
use super::{GcInfo, GcInfoError};
use crate::base::len64;
use crate::stack::CodeBytes;

/// Number of units in a chunk. The units inside all ranges are divided into chunks, and the live slots of a chunk are described together.
const CHUNK: u32 = 64;
/// Maximum number of changes within a chunk. It suffices for a thousand slots that change with every byte.
const MAX_CHANGES: u32 = 1 << 16;
/// Maximum number of consecutive chunks without a change: 2^18 units of code, 256 KiB on x64.
const MAX_UNCHANGED: u64 = 1 << 12;

/// A point for which GC info has the live slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// The safe point with this index.
    Safe(u64),
    /// A point inside a range. The number counts the units inside ranges that precede the point.
    Range(u32),
}

impl GcInfo {
    /// The safe point whose stored value is `offset`.
    pub(super) fn safe_point(&self, offset: Option<u32>) -> Option<Point> {
        let index = self.safe_points.binary_search(&offset?).ok()?;
        Some(Point::Safe(len64(index)))
    }

    /// The point inside ranges at `offset`, in units; `None` if no range contains it.
    pub(super) fn range(&self, offset: Option<u32>) -> Option<Point> {
        let offset = offset?;
        let range = self.ranges.get(self.ranges.partition_point(|r| r.end <= offset))?;
        offset.checked_sub(range.start).map(|skip| Point::Range(range.before.saturating_add(skip)))
    }

    /// Whether the method has interruptible ranges.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The indices of the tracked slots that are live at `point`, ascending.
    pub(super) fn live(&self, bytes: &CodeBytes, point: Point) -> Result<Vec<usize>, GcInfoError> {
        let mut bits = Bits::new(bytes, self.start);
        bits.seek(self.live);
        let (points, tracked) = (len64(self.safe_points.len()), len64(self.slots.tracked().len()));
        // Width of the offsets in the safe-point table, if there is one.
        let width = match points {
            0 => None,
            _ if bits.bit()? => Some(bits.unsigned(3)?.saturating_add(1)),
            _ => None,
        };
        match (point, width) {
            (Point::Safe(index), None) => {
                skip(&mut bits, index, tracked);
                one_each(&mut bits, tracked)
            }
            (Point::Safe(index), Some(width)) => {
                let (table, width) = (bits.position(), pointer_width(&bits, width)?);
                skip(&mut bits, index, u64::from(width));
                let offset = bits.read(width)?;
                bits.seek(table);
                skip(&mut bits, points, u64::from(width));
                skip_from_byte(&mut bits, offset);
                either(&mut bits, tracked)
            }
            (Point::Range(at), None) => {
                skip(&mut bits, points, tracked);
                self.live_in_chunks(&mut bits, at, tracked)
            }
            // The length of the part for safe points is not stored, so no decoder can find the part for ranges. No compiler writes this combination.
            (Point::Range(_), Some(_)) => Err(bits.bad("interruptible ranges together with a safe-point table")),
        }
    }

    /// The slots that are live at the point that follows `at` units inside ranges.
    fn live_in_chunks(&self, bits: &mut Bits<'_>, at: u32, tracked: u64) -> Result<Vec<usize>, GcInfoError> {
        let total = self.ranges.last().map_or(0, |r| r.before.saturating_add(r.end.saturating_sub(r.start)));
        let width = bits.unsigned(3)?;
        if width == 0 {
            return Ok(Vec::new());
        }
        let (table, width) = (bits.position(), pointer_width(bits, width)?);
        let wanted = u64::from(at / CHUNK);
        let Some((chunk, pointer)) = last_described(bits, table, width, wanted)? else { return Ok(Vec::new()) };
        bits.seek(table);
        skip(bits, u64::from(total.div_ceil(CHUNK)), u64::from(width));
        skip_from_byte(bits, pointer.saturating_sub(1));
        let candidates = either(bits, tracked)?;
        let mut ends = Vec::with_capacity(candidates.len());
        for _ in &candidates {
            ends.push(bits.bit()?);
        }
        let mut live = Vec::new();
        let mut changes = 0u32;
        for (slot, mut lives) in candidates.into_iter().zip(ends) {
            // If the description belongs to an earlier chunk, only the state at the end of that chunk matters.
            while chunk == wanted && bits.bit()? {
                lives ^= bits.read(6)? > at % CHUNK;
                changes = changes.saturating_add(1);
                if changes > MAX_CHANGES {
                    return Err(bits.bad("more changes than a chunk of code can have"));
                }
            }
            if lives {
                live.push(slot);
            }
        }
        Ok(live)
    }
}

/// The last chunk up to `wanted` that has a description, and the pointer to the description.
fn last_described(bits: &mut Bits<'_>, table: u64, width: u32, wanted: u64) -> Result<Option<(u64, u32)>, GcInfoError> {
    let last = wanted.saturating_sub(MAX_UNCHANGED);
    for chunk in (last..=wanted).rev() {
        bits.seek(table);
        skip(bits, chunk, u64::from(width));
        match bits.read(width)? {
            0 => {}
            pointer => return Ok(Some((chunk, pointer))),
        }
    }
    if last > 0 { Err(bits.bad("no chunk of the last 256 kB of code is described")) } else { Ok(None) }
}

/// Skips `count` elements of `size` bits.
fn skip(bits: &mut Bits<'_>, count: u64, size: u64) {
    bits.seek(bits.position().saturating_add(count.saturating_mul(size)));
}

/// Moves to `offset` bits after the next byte boundary.
fn skip_from_byte(bits: &mut Bits<'_>, offset: u32) {
    bits.seek(bits.position().saturating_add(7) & !7);
    skip(bits, u64::from(offset), 1);
}

/// Checks the width of pointers.
fn pointer_width(bits: &Bits<'_>, width: u32) -> Result<u32, GcInfoError> {
    if width > u32::BITS { Err(bits.bad("pointers of more than 32 bits")) } else { Ok(width) }
}

/// Reads slots as one bit each or as runs, depending on the first bit.
fn either(bits: &mut Bits<'_>, tracked: u64) -> Result<Vec<usize>, GcInfoError> {
    if bits.bit()? { runs(bits, tracked) } else { one_each(bits, tracked) }
}

/// Reads slots as one bit each.
fn one_each(bits: &mut Bits<'_>, tracked: u64) -> Result<Vec<usize>, GcInfoError> {
    let mut live = Vec::new();
    let (mut slot, mut left) = (0usize, tracked);
    while left > 0 {
        let count = left.min(32);
        let group = bits.read(u32::try_from(count).unwrap_or(32))?;
        live.extend((0..32).filter(|bit| group >> bit & 1 == 1).map(|bit| slot.saturating_add(bit)));
        slot = slot.saturating_add(32);
        left = left.saturating_sub(count);
    }
    Ok(live)
}

/// Reads slots as alternating lengths of runs of dead and live slots.
fn runs(bits: &mut Bits<'_>, tracked: u64) -> Result<Vec<usize>, GcInfoError> {
    let (dead_base, live_base) = if bits.bit()? { (2, 4) } else { (4, 2) };
    let mut live = Vec::new();
    // Only the first run may be empty.
    let mut slot = u64::from(bits.unsigned(dead_base)?);
    let mut lives = true;
    while slot < tracked {
        let run = u64::from(bits.unsigned(if lives { live_base } else { dead_base })?).saturating_add(1);
        let end = slot.saturating_add(run);
        if end > tracked {
            break;
        }
        if lives {
            live.extend((slot..end).filter_map(|slot| usize::try_from(slot).ok()));
        }
        (slot, lives) = (end, !lives);
    }
    if slot == tracked { Ok(live) } else { Err(bits.bad("runs of more slots than there are")) }
}
