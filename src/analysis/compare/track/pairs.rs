//! Matches of objects and their certainty.

use super::ids::{New, Old};
use crate::analysis::Certainty;
use crate::base::{Index, IndexVec};

/// State of the knowledge about an object of the first dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The object died.
    Dead,
    /// The object may have survived.
    Doubtful,
    /// The object most likely survived.
    Likely,
    /// The object survived.
    Certain,
}

impl Fate {
    /// Returns the certainty of the match, if there is one.
    pub(super) fn certainty(self) -> Option<Certainty> {
        Some(match self {
            Fate::Certain => Certainty::Certain,
            Fate::Likely => Certainty::Likely,
            Fate::Doubtful => Certainty::Doubtful,
            Fate::Unknown | Fate::Dead => return None,
        })
    }

    /// Whether the object survived, certainly or likely.
    pub(super) fn stands(self) -> bool {
        self >= Fate::Likely
    }
}

/// Represents an unmatched object.
const NONE: u32 = u32::MAX;

/// Matches of objects. An object has at most one match.
pub(super) struct Pairs {
    to: IndexVec<Old, u32>,
    from: IndexVec<New, u32>,
    fate: IndexVec<Old, Fate>,
}

impl Pairs {
    /// Creates an empty list of matches.
    pub(super) fn new(old: u32, new: u32) -> Pairs {
        let unmatched = |n: u32| vec![NONE; Old::from_u32(n).index()];
        Pairs { to: unmatched(old).into(), from: unmatched(new).into(), fate: vec![Fate::Unknown; Old::from_u32(old).index()].into() }
    }

    /// Returns the match of an object of the first dump.
    #[inline]
    pub(super) fn to(&self, old: Old) -> Option<New> {
        self.to.get(old).filter(|n| **n != NONE).map(|n| New::from_u32(*n))
    }

    /// Returns the match of an object of the last dump.
    #[inline]
    pub(super) fn from(&self, new: New) -> Option<Old> {
        self.from.get(new).filter(|n| **n != NONE).map(|n| Old::from_u32(*n))
    }

    /// Returns the state of the knowledge about an object.
    #[inline]
    pub(super) fn fate(&self, old: Old) -> Fate {
        self.fate.get(old).copied().unwrap_or_default()
    }

    /// Whether an object has a match that is at least likely.
    pub(super) fn stands(&self, old: Old) -> bool {
        self.fate(old).stands()
    }

    /// Returns the match of an object of the last dump, if it is at least likely.
    pub(super) fn standing_from(&self, new: New) -> Option<Old> {
        self.from(new).filter(|old| self.stands(*old))
    }

    /// Returns the match of an object of the first dump, if it is at least likely.
    pub(super) fn standing_to(&self, old: Old) -> Option<New> {
        self.to(old).filter(|_| self.stands(old))
    }

    /// Matches two objects. If one of them already has another match, the more certain match stays. If both are equally certain, neither stays: at
    /// most one is right, and it is unknown which.
    pub(super) fn join(&mut self, old: Old, new: New, fate: Fate) {
        let rivals = [self.to(old).filter(|n| *n != new).map(|_| old), self.from(new).filter(|o| *o != old)];
        let strongest = rivals.iter().flatten().map(|o| self.fate(*o)).max();
        if strongest.is_some_and(|rival| rival > fate) {
            return;
        }
        let draw = strongest == Some(fate);
        rivals.into_iter().flatten().for_each(|rival| self.unmatch(rival));
        if !draw {
            let fate = self.fate(old).max(fate);
            self.set(old, Some(new), fate);
        }
    }

    /// Removes a match.
    pub(super) fn unmatch(&mut self, old: Old) {
        if let Some(from) = self.to(old).and_then(|new| self.from.get_mut(new)) {
            *from = NONE;
        }
        self.set(old, None, Fate::Unknown);
    }

    /// Records that an object died, unless it has a match.
    pub(super) fn mark_dead(&mut self, old: Old) {
        if self.fate(old) == Fate::Unknown {
            self.set(old, None, Fate::Dead);
        }
    }

    fn set(&mut self, old: Old, new: Option<New>, fate: Fate) {
        if let Some(to) = self.to.get_mut(old) {
            *to = new.map_or(NONE, New::as_u32);
        }
        if let Some(from) = new.and_then(|new| self.from.get_mut(new)) {
            *from = old.as_u32();
        }
        if let Some(f) = self.fate.get_mut(old) {
            *f = fate;
        }
    }

    /// Returns the objects of the first dump.
    pub(super) fn olds(&self) -> crate::base::Indices<Old> {
        self.to.indices()
    }

    /// Returns the objects of the last dump.
    pub(super) fn news(&self) -> crate::base::Indices<New> {
        self.from.indices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_rule_each_other_out() {
        let (a, b, x) = (Old::from_u32(0), Old::from_u32(1), New::from_u32(0));
        let mut pairs = Pairs::new(2, 2);
        pairs.join(a, x, Fate::Likely);
        pairs.join(b, x, Fate::Doubtful);
        assert_eq!((pairs.to(a), pairs.from(x), pairs.to(b)), (Some(x), Some(a), None));
        pairs.join(b, x, Fate::Likely);
        assert_eq!((pairs.to(a), pairs.from(x), pairs.to(b)), (None, None, None));
        pairs.join(b, x, Fate::Likely);
        pairs.join(b, x, Fate::Doubtful);
        assert_eq!((pairs.fate(b), pairs.from(x)), (Fate::Likely, Some(b)));
        pairs.join(a, x, Fate::Certain);
        assert_eq!((pairs.to(b), pairs.from(x), pairs.fate(b)), (None, Some(a), Fate::Unknown));
        pairs.mark_dead(a);
        assert!(pairs.stands(a));
    }
}
