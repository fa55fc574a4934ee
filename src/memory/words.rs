//! Iterates over the pointer-sized words of memory.

use super::Memory;
use crate::base::cancel::tick;
use crate::base::{Addr, AddrRange};

impl Memory {
    /// The captured, aligned, pointer-sized words of `range`, in address order. The reads are not recorded.
    pub fn words(&self, range: AddrRange) -> impl Iterator<Item = (Addr, &[u8])> {
        let word = self.ptr_bytes();
        Words { stretches: self.stretches(range), at: 0, bytes: &[], word, len: usize::try_from(word).unwrap_or(8) }
    }

    /// The nonzero values of [`Memory::words`], for searches for addresses. Records that the answer depends on all of `range`: see
    /// [`Memory::scan`].
    pub(crate) fn search(&self, range: AddrRange) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.scan(range);
        self.set_words(range)
    }

    /// The word at `address` as an address; `None` if it is zero or absent. Recorded as in [`Memory::search`].
    pub(crate) fn search_at(&self, address: Addr) -> Option<Addr> {
        self.search(AddrRange::of(address, self.ptr_bytes())).next().map(|(_, value)| Addr(value))
    }

    /// The nonzero values of [`Memory::words`]. The reads are not recorded.
    pub(crate) fn set_words(&self, range: AddrRange) -> impl Iterator<Item = (Addr, u64)> + '_ {
        let (mut words, shape) = (self.words(range), self.shape);
        std::iter::from_fn(move || {
            loop {
                let (at, bytes) = words.next()?;
                let value = shape.number(bytes);
                if value != 0 {
                    return Some((at, value));
                }
            }
        })
    }
}

/// Number of bytes for which one [`tick`] is counted; a power of two.
const WORDS_OF_A_TICK: u64 = 256;

/// The words of stretches of memory. Not built from iterator adapters, because unoptimized builds spend much of their time here.
struct Words<'m, S> {
    stretches: S,
    /// Address of `bytes`.
    at: u64,
    /// The rest of the current stretch.
    bytes: &'m [u8],
    /// Size of a word in bytes.
    word: u64,
    /// Length of a word as a slice, equal to `word`.
    len: usize,
}

impl<'m, S: Iterator<Item = (Addr, &'m [u8])>> Iterator for Words<'m, S> {
    type Item = (Addr, &'m [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((word, rest)) = self.bytes.split_at_checked(self.len) {
                let at = Addr(self.at);
                self.at = self.at.wrapping_add(self.word);
                self.bytes = rest;
                if at.0 & (WORDS_OF_A_TICK - 1) == 0 {
                    tick();
                }
                return Some((at, word));
            }
            let (start, bytes) = self.stretches.next()?;
            self.at = start.0.checked_next_multiple_of(self.word).unwrap_or(u64::MAX);
            let skip = usize::try_from(self.at.wrapping_sub(start.0)).unwrap_or(usize::MAX);
            self.bytes = bytes.get(skip..).unwrap_or_default();
        }
    }
}
