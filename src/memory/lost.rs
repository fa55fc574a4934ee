//! Whether memory that was not captured would be in a complete dump.

use super::Memory;
use crate::base::missed::Missed;
use crate::base::{Addr, AddrRange, PAGE};

impl Memory {
    /// Whether `address`, which was not captured, may have been mapped: it is less than 64 KiB from captured memory, the writer left it out
    /// (`left_out`), the dump lists a region there (`uncaptured`), or the dump is truncated. Other addresses are taken as unused address space.
    pub(crate) fn is_beside(&self, address: Addr) -> bool {
        const CLOSE: u64 = 1 << 16;
        let i = self.at_or_behind(address);
        let before = i.checked_sub(1).and_then(|i| self.pieces.get(i)).map(|p| address.0.saturating_sub(p.end));
        let behind = self.pieces.get(i).map(|p| p.start.saturating_sub(address.0));
        let is_in = |list: &[AddrRange]| list.get(list.partition_point(|r| r.end <= address)).is_some_and(|r| r.contains(address));
        let left_out = || is_in(&self.left_out) || is_in(&self.uncaptured);
        behind != Some(0) && (self.cut || left_out() || [before, behind].into_iter().flatten().any(|distance| distance < CLOSE))
    }

    /// Whether the dump is truncated, or does not describe all of its memory.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether the dump is a trimmed copy, which contains only the memory that gcdump read when it made the copy.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.trimmed
    }

    /// Whether the dump itself has a part of the page at `address`, and another part is missing. This happens if the dump is truncated or
    /// trimmed, or if the writer captures ranges that are not whole pages. A page of which the dump has nothing is not torn, even if a module
    /// file supplies a part of the page.
    pub(crate) fn is_torn(&self, address: Addr) -> bool {
        let page = AddrRange::new(address.align_down(PAGE), address.align_down(PAGE).plus(PAGE));
        self.captured(page) < PAGE && self.in_dump(page).any(|r| !r.is_empty())
    }

    /// Whether a complete dump of this kind would contain `range`. The caller has found that a part of `range` was not captured. The answer is yes
    /// if this dump is truncated, states that it holds all memory, or has only a part of the first or last page of `range`.
    pub(crate) fn is_lost(&self, range: AddrRange) -> bool {
        self.cut || self.all || self.is_torn(range.start) || range.end.minus(1).is_some_and(|last| self.is_torn(last))
    }

    /// Whether one of the failed reads `missed` would succeed in a complete dump of this kind.
    pub(crate) fn has_lost(&self, missed: &Missed) -> bool {
        missed.find(|at, len| self.is_lost(AddrRange::of(at, len))).is_some()
    }

    /// The lowest captured address, and the end of the highest captured range.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.pieces.first().map_or(0, |p| p.start), self.pieces.last().map_or(0, |p| p.end))
    }
}
