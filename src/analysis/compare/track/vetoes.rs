//! Evidence against a pair. A pair with such evidence is dropped, however strong the evidence for it is.

use super::ids::{New, Old};
use super::side::{Side, Traits};
use crate::base::Collector;
use crate::model::Generation;

/// The two dumps, and facts about the time between them.
pub(super) struct Both<'s> {
    pub(super) old: &'s Side<Old>,
    pub(super) new: &'s Side<New>,
    /// Whether no collection between the dumps moved anything.
    pub(super) nothing_moved: bool,
    /// Failed reads of either dump.
    pub(super) notes: &'s Collector,
}

/// How collections treat the objects of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Small objects, with the number of the generation. They are promoted, and move when the heap is compacted.
    Small(u8),
    /// Large objects: their free space is reused, and they move only if the program requests it.
    Large,
    /// Objects of the pinned object heap: never moved; their free space is reused.
    Pinned,
    /// Frozen objects: never moved, never freed.
    Frozen,
}

impl Space {
    /// Returns the space of a generation.
    pub(super) fn of(generation: Generation) -> Space {
        match generation {
            Generation::Gen0 => Space::Small(0),
            Generation::Gen1 => Space::Small(1),
            Generation::Gen2 | Generation::Ephemeral | Generation::Unknown => Space::Small(2),
            Generation::Loh => Space::Large,
            Generation::Poh => Space::Pinned,
            Generation::Frozen => Space::Frozen,
        }
    }
}

impl Both<'_> {
    /// Whether `new` may be the same object as `old`.
    pub(super) fn possible(&self, old: Old, new: New) -> bool {
        self.alike(old, new) && self.placed(old, new)
    }

    /// Whether the properties are equal that never change: type, size, text of a string, and the hash code once it exists.
    #[inline]
    pub(super) fn alike(&self, old: Old, new: New) -> bool {
        let (o, n) = (self.old, self.new);
        if o.kind.get(old) != n.kind.get(new) || o.size.get(old) != n.size.get(new) {
            return false;
        }
        let (was, is) = (o.traits(old), n.traits(new));
        if was.has(Traits::STRING) && !self.same_contents(old, new) {
            return false;
        }
        !was.has(Traits::HASHED) || is.has(Traits::HASHED) && o.hash_of(old) == n.hash_of(new)
    }

    /// Whether an object may have moved from one address to the other. Objects never move to a younger generation, and never leave the heap of large,
    /// pinned or frozen objects. Pinned objects do not move.
    fn placed(&self, old: Old, new: New) -> bool {
        let (Some((_, from)), Some((_, to))) = (self.old.part_of(old), self.new.part_of(new)) else { return false };
        let stayed = self.old.at(old) == self.new.at(new);
        if !stayed && self.nothing_moved {
            return false;
        }
        let pinned = (self.old.traits(old).has(Traits::PINNED), self.new.traits(new).has(Traits::PINNED));
        match (Space::of(from.generation), Space::of(to.generation)) {
            // A collection may demote a pinned object (observed). The object then stays at its address; pinning or distinctive contents show that the
            // address was not reused.
            (Space::Small(was), Space::Small(is)) if is < was => stayed && (pinned.0 || pinned.1 || self.distinctive(old, new)),
            (Space::Small(_), Space::Small(_)) => stayed || pinned != (true, true),
            (Space::Large, Space::Large) => stayed || pinned != (true, true),
            (Space::Pinned, Space::Pinned) | (Space::Frozen, Space::Frozen) => stayed,
            _ => false,
        }
    }

    /// Whether the contents of both are in the dumps and equal.
    #[inline]
    pub(super) fn same_contents(&self, old: Old, new: New) -> bool {
        self.old.key_of(old).is_some_and(|key| self.new.key_of(new) == Some(key))
    }

    /// Whether the contents of both are equal and distinctive.
    pub(super) fn distinctive(&self, old: Old, new: New) -> bool {
        self.old.traits(old).has(Traits::DISTINCTIVE) && self.same_contents(old, new)
    }

    /// Returns the distance that a pair moved.
    #[inline]
    pub(super) fn distance(&self, old: Old, new: New) -> u64 {
        self.new.at(new).wrapping_sub(self.old.at(old))
    }
}
