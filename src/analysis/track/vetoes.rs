//! Evidence against a pair, which drops it whatever the evidence for it.

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

/// Treatment of the objects of a generation by collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Small objects: they are promoted, and move when the heap is compacted.
    Small(u8),
    /// Large objects: their free space is reused; they move only on request.
    Large,
    /// Pinned objects: never moved, and freed like large ones.
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
    /// Whether `new` may be `old`.
    pub(super) fn possible(&self, old: Old, new: New) -> bool {
        self.alike(old, new) && self.placed(old, new)
    }

    /// Whether properties that never change are the same: type, size, the text of a string, the hash code once there is
    /// one.
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

    /// Whether an object may have moved from one place to the other. Objects never move to a younger generation, nor out of the heap of large, pinned
    /// or frozen objects. Pinned objects stay.
    fn placed(&self, old: Old, new: New) -> bool {
        let (Some((_, from)), Some((_, to))) = (self.old.part_of(old), self.new.part_of(new)) else { return false };
        let stayed = self.old.at(old) == self.new.at(new);
        if !stayed && self.nothing_moved {
            return false;
        }
        let pinned = (self.old.traits(old).has(Traits::PINNED), self.new.traits(new).has(Traits::PINNED));
        match (Space::of(from.generation), Space::of(to.generation)) {
            // A collection that pins an object may demote it, as has been observed. In this case its place was not
            // reused.
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
