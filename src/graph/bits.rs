//! A set of nodes with one bit per node.

use crate::base::rank::{BLOCK_WORDS, Counted, before_word, count};

/// A fixed-size set of indices below a bound, with one bit per index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
    bound: u32,
}

impl BitSet {
    /// An empty set that can hold `0..bound`.
    pub fn new(bound: u32) -> Self {
        Self { words: vec![0; bound.div_ceil(64) as usize], bound }
    }

    /// The set of the bits of `words` that are below `bound`. If there are too few words, the missing bits are taken as 0.
    pub fn of_words(bound: u32, words: &[u64]) -> Self {
        let mut set = Self::new(bound);
        set.words.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        if let Some(last) = set.words.last_mut()
            && !bound.is_multiple_of(64)
        {
            *last &= (1 << (bound % 64)) - 1;
        }
        set
    }

    /// The members as bits, 64 per word; the smallest index is the lowest bit of the first word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bound: all members are below it.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Adds an index. Returns whether it is a new member; an index at or above the bound is not added.
    #[inline]
    pub fn set(&mut self, index: u32) -> bool {
        let bit = 1u64 << (index % 64);
        match self.words.get_mut((index / 64) as usize) {
            Some(word) if index < self.bound && *word & bit == 0 => {
                *word |= bit;
                true
            }
            _ => false,
        }
    }

    /// Removes an index. Returns whether it was a member.
    pub fn clear(&mut self, index: u32) -> bool {
        let bit = 1u64 << (index % 64);
        self.words.get_mut((index / 64) as usize).is_some_and(|word| {
            let was = *word & bit != 0;
            *word &= !bit;
            was
        })
    }

    /// Whether the index is a member.
    #[inline]
    pub fn test(&self, index: u32) -> bool {
        self.words.get((index / 64) as usize).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The number of members.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The members in increasing order.
    pub fn iter(&self) -> BitIter<'_> {
        BitIter { words: self.words.iter(), flip: 0, word: 0, next_base: 0, base: 0 }
    }

    /// The indices below the bound that are not members, in increasing order.
    pub fn iter_others(&self) -> impl Iterator<Item = u32> {
        let all = BitIter { words: self.words.iter(), flip: u64::MAX, word: 0, next_base: 0, base: 0 };
        all.take_while(|index| *index < self.bound)
    }

    /// Memory used, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }
}

/// The ranks of the members of a [`BitSet`].
#[derive(Debug)]
pub(super) struct Ranks<'s> {
    set: &'s BitSet,
    blocks: Vec<Counted>,
}

impl<'s> Ranks<'s> {
    pub(super) fn of(set: &'s BitSet) -> Ranks<'s> {
        let mut before = 0;
        let blocks = set.words.chunks(BLOCK_WORDS).map(|block| {
            let (counted, next) = count(before, block);
            before = next;
            counted
        });
        Ranks { blocks: blocks.collect(), set }
    }

    /// Whether the index is a member.
    #[inline]
    pub(super) fn has(&self, index: u32) -> bool {
        self.set.test(index)
    }

    /// The number of members below `index`, which may equal the bound.
    #[inline]
    pub(super) fn before(&self, index: u32) -> u32 {
        let word = (index / 64) as usize;
        let Some(counted) = self.blocks.get(word / BLOCK_WORDS) else { return self.members() };
        let below = self.set.words.get(word).map_or(0, |bits| (bits & ((1 << (index % 64)) - 1)).count_ones());
        before_word(counted, word) + below
    }

    fn members(&self) -> u32 {
        u32::try_from(self.set.count()).unwrap_or(u32::MAX)
    }
}

impl<'a> IntoIterator for &'a BitSet {
    type Item = u32;
    type IntoIter = BitIter<'a>;

    fn into_iter(self) -> BitIter<'a> {
        self.iter()
    }
}

/// The members of a [`BitSet`] in increasing order.
#[derive(Debug, Clone)]
pub struct BitIter<'a> {
    words: std::slice::Iter<'a, u64>,
    /// All ones to iterate over the indices that are not members, else 0.
    flip: u64,
    word: u64,
    base: u32,
    next_base: u32,
}

impl Iterator for BitIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            self.word = *self.words.next()? ^ self.flip;
            self.base = self.next_base;
            // The last word may start less than 64 below 2^32; nothing is read after it.
            self.next_base = self.next_base.wrapping_add(64);
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.base | bit)
    }
}
