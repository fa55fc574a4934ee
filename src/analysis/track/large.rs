//! Rules 8 and 9: large and pinned objects, and objects at an unchanged address.
//!
//! 8. Free space in the large and the pinned heap is reused for the next object that fits. The same place is evidence only with
//!    the same distinctive contents, or, for a buffer that was partly overwritten, if at least 16 of 64 sampled blocks are equal.
//!    Otherwise a reused buffer cannot be distinguished from another one, and the match is doubtful until a good holder confirms it.
//! 9. A similar object at the same address without other evidence is doubtful, because whole regions are reused.

use rayon::prelude::*;

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::vetoes::{Both, Space};
use crate::base::missed::Carried;
use crate::base::{Addr, Count};
use crate::gc::GcDesc;

/// Blocks that are compared.
const BLOCKS: u64 = 64;
/// Blocks that must be the same, and not empty.
const SAME: u32 = 16;
/// Bytes of a block.
const BLOCK: u64 = 64;

/// Rule 8, for what place and rule 3 found: raises it, or leaves it doubtful.
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

/// Sampled blocks of both objects that are the same and hold more than one byte value.
fn blocks(both: &Both<'_>, old: Old, new: New) -> u32 {
    let size = both.old.bytes_of(old);
    // References change when what they lead to moves.
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

/// Rule 9.
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
