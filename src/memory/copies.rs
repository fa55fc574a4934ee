//! Copies of image parts from a module's file, for the gaps in the dump. The copies are relocated before they fill the gaps.

use std::sync::Arc;

use super::Memory;
use crate::base::{Addr, AddrRange, len64, ranges};
use crate::dump::Bytes;

/// Copied parts of one image. Each byte is copied once, even if several headers cover it.
pub(super) struct Copies {
    bytes: Vec<u8>,
    /// Ranges in address order, each with the offset of its bytes.
    parts: Vec<(AddrRange, usize)>,
}

impl Copies {
    /// Allocates zeroed copies for the gaps of `memory` in `wanted`. `None` if they exceed the memory budget of the opening.
    pub(super) fn reserve(memory: &Memory, wanted: Vec<AddrRange>) -> Option<Copies> {
        let gaps: Vec<AddrRange> = ranges::union(wanted, 0).into_iter().flat_map(|r| memory.gaps(r)).collect();
        let len = ranges::bytes(&gaps);
        let room = usize::try_from(len).ok().filter(|_| memory.afford_memory(len))?;
        let mut at = 0usize;
        let part = |r: AddrRange| {
            let part = (r, at);
            at = at.saturating_add(usize::try_from(r.len()).unwrap_or(usize::MAX));
            part
        };
        Some(Copies { parts: gaps.into_iter().map(part).collect(), bytes: vec![0; room] })
    }

    /// The copied ranges, each with its bytes.
    pub(super) fn parts(&mut self) -> impl Iterator<Item = (AddrRange, &mut [u8])> {
        let mut rest = self.bytes.as_mut_slice();
        self.parts.iter().map_while(move |(range, _)| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut_checked(usize::try_from(range.len()).ok()?)?;
            rest = later;
            Some((*range, now))
        })
    }

    /// The `N` bytes at `address`; `None` if no single copied range contains all `N` bytes.
    pub(super) fn at<const N: usize>(&mut self, address: Addr) -> Option<&mut [u8; N]> {
        let last = self.parts.partition_point(|(r, _)| r.start <= address).checked_sub(1)?;
        let (range, offset) = self.parts.get(last)?;
        let skip = usize::try_from(address.since(range.start)?).ok()?;
        let part = self.bytes.get_mut(*offset..offset.checked_add(usize::try_from(range.len()).ok()?)?)?;
        part.get_mut(skip..)?.first_chunk_mut()
    }

    /// Whether nothing is copied, because `memory` has no gaps in the wanted ranges.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Fills the gaps of `memory` with the copies. Returns the number of bytes added.
    pub(super) fn fill(self, memory: &mut Memory) -> u64 {
        let parts = self.parts.into_iter().map(|(range, offset)| (range, len64(offset))).collect();
        memory.add(parts, &Arc::new(Bytes::Owned(self.bytes)))
    }
}
