//! Rules 8 and 9: large and pinned objects, and objects at an unchanged address.
//!
//! 8. Free space of large and pinned objects is reused for the next object that fits. An unchanged address is evidence only with equal distinctive
//!    contents. For a buffer that was partly overwritten, 16 equal blocks out of 64 samples suffice. Otherwise the address may have been reused, and
//!    the match is doubtful until a good holder confirms it.
//! 9. If the only evidence is a similar object at the same address, the match is doubtful, because whole regions are reused.

use rayon::prelude::*;

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::vetoes::{Both, Space};
use crate::base::missed::Carried;
use crate::base::{Addr, Count};
use crate::gc::GcDesc;

/// Number of blocks that are compared.
const BLOCKS: u64 = 64;
/// Minimum number of equal blocks.
const SAME: u32 = 16;
/// Size of a block in bytes.
const BLOCK: u64 = 64;

/// Applies rule 8 to large and pinned objects that do not have a likely match. Grades their doubtful match, or else the match with the object at the
/// same address.
pub(super) fn large(both: &Both<'_>, pairs: &mut Pairs) {
    let parts = both.old.parts.iter().filter(|p| matches!(Space::of(p.generation), Space::Large | Space::Pinned));
    let open = parts.flat_map(|p| p.ids()).filter(|old| !pairs.stands(*old));
    let candidates: Vec<(Old, New)> = open
        .filter_map(|old| {
            let stayed = both.new.id_of(Addr(both.old.at(old))).filter(|new| pairs.from(*new).is_none());
            Some((old, pairs.to(old).or(stayed)?))
        })
        .collect();
    let carried = Carried::here();
    let graded: Vec<(Old, New, Fate)> = candidates
        .into_par_iter()
        .filter(|(old, new)| both.possible(*old, *new))
        .map(|(old, new)| {
            let sure = carried.run(|| both.distinctive(old, new) || blocks(both, old, new) >= SAME);
            (old, new, if sure { Fate::Certain } else { Fate::Doubtful })
        })
        .collect();
    graded.into_iter().for_each(|(old, new, fate)| pairs.join(old, new, fate));
}

/// Returns the number of sampled blocks that are equal in both objects and have more than one byte value.
fn blocks(both: &Both<'_>, old: Old, new: New) -> u32 {
    let size = both.old.bytes_of(old);
    // References change when their targets move, so blocks with references cannot be compared.
    if both.old.type_of(old).is_none_or(|ty| !matches!(ty.gc_desc, GcDesc::None)) || size < BLOCKS.saturating_mul(BLOCK) {
        return 0;
    }
    let step = size.checked_div(BLOCKS).unwrap_or(0);
    let mut same = 0u32;
    for block in 0..BLOCKS {
        let offset = block.saturating_mul(step);
        if offset.saturating_add(BLOCK).saturating_add(BLOCK) >= size {
            break;
        }
        let sample = |at: u64| Addr(at).plus(offset).plus(BLOCK);
        let before = both.old.heap.memory().bytes(sample(both.old.at(old)), BLOCK);
        let after = both.new.heap.memory().bytes(sample(both.new.at(new)), BLOCK);
        if let (Ok(before), Ok(after)) = (before, after)
            && before == after
            && before.iter().any(|b| Some(b) != before.first())
        {
            same.bump();
        }
    }
    same
}

/// Applies rule 9.
pub(super) fn stayed(both: &Both<'_>, pairs: &mut Pairs) {
    let found: Vec<(Old, New)> = both
        .old
        .parts
        .par_iter()
        .flat_map_iter(|part| part.ids())
        .filter(|old| pairs.fate(*old) == Fate::Unknown)
        .filter_map(|old| Some((old, both.new.id_of(Addr(both.old.at(old)))?)))
        .filter(|(old, new)| pairs.from(*new).is_none() && both.possible(*old, *new))
        .collect();
    found.into_iter().for_each(|(old, new)| pairs.join(old, new, Fate::Doubtful));
}
