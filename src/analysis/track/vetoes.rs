//! What speaks against a pair drops it, whatever speaks for it.

use super::ids::{New, Old};
use super::side::{Side, Traits};
use crate::base::Collector;
use crate::model::Generation;

/// The two dumps, and what is known about the time between them.
pub(super) struct Both<'s> {
    pub(super) old: &'s Side<Old>,
    pub(super) new: &'s Side<New>,
    /// No collection between the dumps moved anything.
    pub(super) nothing_moved: bool,
    /// What could not be read of either.
    pub(super) notes: &'s Collector,
}

/// What collections do with the objects of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Small objects: they grow older, and move when the heap is compacted.
    Small(u8),
    /// Large objects: their free places are given to others; they move on request only.
    Large,
    /// Never moved, freed like large ones.
    Pinned,
    /// Never moved, never freed.
    Frozen,
}

impl Space {
    /// Of a generation.
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
    /// Whether nothing speaks against `new` being `old`.
    pub(super) fn possible(&self, old: Old, new: New) -> bool {
        self.alike(old, new) && self.placed(old, new)
    }

    /// What an object is stays: its type, its size, the text of a string, its hash code once it has one.
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

    /// Whether an object may have come from one place to the other. Nobody grows younger, and nobody leaves the heap of large,
    /// of pinned or of frozen objects. What is pinned stays.
    fn placed(&self, old: Old, new: New) -> bool {
        let (Some((_, from)), Some((_, to))) = (self.old.part_of(old), self.new.part_of(new)) else { return false };
        let stayed = self.old.at(old) == self.new.at(new);
        if !stayed && self.nothing_moved {
            return false;
        }
        let pinned = (self.old.traits(old).has(Traits::PINNED), self.new.traits(new).has(Traits::PINNED));
        match (Space::of(from.generation), Space::of(to.generation)) {
            // A collection that pins an object may demote it: seen. Its place was not given to another one then.
            (Space::Small(was), Space::Small(is)) if is < was => stayed && (pinned.0 || pinned.1 || self.telling(old, new)),
            (Space::Small(_), Space::Small(_)) => stayed || pinned != (true, true),
            (Space::Large, Space::Large) => stayed || pinned != (true, true),
            (Space::Pinned, Space::Pinned) | (Space::Frozen, Space::Frozen) => stayed,
            _ => false,
        }
    }

    /// Whether the contents of both are in the dumps, and the same.
    #[inline]
    pub(super) fn same_contents(&self, old: Old, new: New) -> bool {
        self.old.key_of(old).is_some_and(|key| self.new.key_of(new) == Some(key))
    }

    /// Whether both have the same contents, and these are telling.
    pub(super) fn telling(&self, old: Old, new: New) -> bool {
        self.old.traits(old).has(Traits::TELLING) && self.same_contents(old, new)
    }

    /// How far a pair moved.
    #[inline]
    pub(super) fn distance(&self, old: Old, new: New) -> u64 {
        self.new.at(new).wrapping_sub(self.old.at(old))
    }
}
