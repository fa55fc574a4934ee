//! Who became whom, and how sure that is.

use super::ids::{New, Old};
use crate::base::{Index, IndexVec};
use crate::model::Certainty;

/// What is known about an object of the first dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// Nothing.
    #[default]
    Unknown,
    /// It died.
    Dead,
    /// It may have survived.
    Doubtful,
    /// It survived, most likely.
    Likely,
    /// It survived.
    Certain,
}

impl Fate {
    /// How certain the match is, where there is one.
    pub(super) fn certainty(self) -> Option<Certainty> {
        Some(match self {
            Fate::Certain => Certainty::Certain,
            Fate::Likely => Certainty::Likely,
            Fate::Doubtful => Certainty::Doubtful,
            Fate::Unknown | Fate::Dead => return None,
        })
    }

    /// Whether the object survived, as far as anybody can tell.
    pub(super) fn stands(self) -> bool {
        self >= Fate::Likely
    }
}

/// Stands for no object.
const NOBODY: u32 = u32::MAX;

/// Who became whom. One object is matched with one at most.
pub(super) struct Pairs {
    to: IndexVec<Old, u32>,
    from: IndexVec<New, u32>,
    fate: IndexVec<Old, Fate>,
}

impl Pairs {
    /// Nobody is matched with anybody.
    pub(super) fn new(old: u32, new: u32) -> Pairs {
        let nobody = |n: u32| vec![NOBODY; Old::from_u32(n).index()];
        Pairs { to: nobody(old).into(), from: nobody(new).into(), fate: vec![Fate::Unknown; Old::from_u32(old).index()].into() }
    }

    /// What an object became.
    #[inline]
    pub(super) fn to(&self, old: Old) -> Option<New> {
        self.to.get(old).filter(|n| **n != NOBODY).map(|n| New::from_u32(*n))
    }

    /// What an object was.
    #[inline]
    pub(super) fn from(&self, new: New) -> Option<Old> {
        self.from.get(new).filter(|n| **n != NOBODY).map(|n| Old::from_u32(*n))
    }

    /// What is known about an object.
    #[inline]
    pub(super) fn fate(&self, old: Old) -> Fate {
        self.fate.get(old).copied().unwrap_or_default()
    }

    /// Whether an object is matched, and the match stands.
    pub(super) fn stands(&self, old: Old) -> bool {
        self.fate(old).stands()
    }

    /// What an object of the last dump was, where the match stands.
    pub(super) fn standing_from(&self, new: New) -> Option<Old> {
        self.from(new).filter(|old| self.stands(*old))
    }

    /// What an object became, where the match stands.
    pub(super) fn standing_to(&self, old: Old) -> Option<New> {
        self.to(old).filter(|_| self.stands(old))
    }

    /// Matches two objects. Where one of them is matched with somebody else, the surer match stays; of two that are as sure,
    /// neither: at most one is right, and nothing says which.
    pub(super) fn join(&mut self, old: Old, new: New, fate: Fate) {
        let rivals = [self.to(old).filter(|n| *n != new).map(|_| old), self.from(new).filter(|o| *o != old)];
        let strongest = rivals.iter().flatten().map(|o| self.fate(*o)).max();
        if strongest.is_some_and(|rival| rival > fate) {
            return;
        }
        let draw = strongest == Some(fate);
        rivals.into_iter().flatten().for_each(|rival| self.part(rival));
        if !draw {
            let fate = self.fate(old).max(fate);
            self.set(old, Some(new), fate);
        }
    }

    /// Takes a match back.
    pub(super) fn part(&mut self, old: Old) {
        if let Some(from) = self.to(old).and_then(|new| self.from.get_mut(new)) {
            *from = NOBODY;
        }
        self.set(old, None, Fate::Unknown);
    }

    /// Says that an object died, unless it is matched already.
    pub(super) fn bury(&mut self, old: Old) {
        if self.fate(old) == Fate::Unknown {
            self.set(old, None, Fate::Dead);
        }
    }

    fn set(&mut self, old: Old, new: Option<New>, fate: Fate) {
        if let Some(to) = self.to.get_mut(old) {
            *to = new.map_or(NOBODY, New::as_u32);
        }
        if let Some(from) = new.and_then(|new| self.from.get_mut(new)) {
            *from = old.as_u32();
        }
        if let Some(f) = self.fate.get_mut(old) {
            *f = fate;
        }
    }

    /// The objects of the first dump.
    pub(super) fn olds(&self) -> crate::base::Indices<Old> {
        self.to.indices()
    }

    /// The objects of the last dump.
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
        pairs.bury(a);
        assert!(pairs.stands(a));
    }
}
