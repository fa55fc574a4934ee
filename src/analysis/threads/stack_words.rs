//! Finds the threads that have the address of an object on their stacks.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, AddrRange};
use crate::memory::Memory;

/// Maps each of the `wanted` addresses to the threads that have it as a word on their stacks. The threads are numbered as in `stacks`. The word may
/// be stale.
pub(in crate::analysis) fn holders(
    memory: &Memory,
    stacks: impl Iterator<Item = (u32, AddrRange)>,
    wanted: &Set<Addr>,
) -> Map<Addr, Vec<u32>> {
    let mut out: Map<Addr, Vec<u32>> = Map::default();
    if wanted.is_empty() {
        return out;
    }
    for (id, range) in stacks {
        memory.need(range);
        for (_, bytes) in memory.words(range) {
            let word = Addr(memory.shape().number(bytes));
            if wanted.contains(&word) {
                let ids = out.entry(word).or_default();
                if ids.last() != Some(&id) {
                    ids.push(id);
                }
            }
        }
    }
    out
}
