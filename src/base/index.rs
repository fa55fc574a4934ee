//! Typed indices, and vectors that accept only their own type of index. Numbers of more than 32 bits and indices past the end are handled
//! here rather than at each use.
//!
//! The `index_vec` crate is not used, because an index past the end must not panic.

use std::marker::PhantomData;
use std::ops::Range;

/// A dense 32-bit index that starts at 0. `index_type!` declares one.
pub trait Index: Copy + Ord {
    /// The index with this number.
    fn from_u32(index: u32) -> Self;

    /// The index as a number.
    fn as_u32(self) -> u32;

    /// The index with this number; `None` if it exceeds 32 bits.
    fn new(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self::from_u32)
    }

    /// The index as a `usize`, for slices.
    #[inline]
    fn index(self) -> usize {
        self.as_u32() as usize
    }
}

/// Declares an index type: a newtype of `u32`.
macro_rules! index_type {
    ($(#[$doc:meta])* $vis:vis struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(u32);

        impl $crate::base::Index for $name {
            #[inline]
            fn from_u32(index: u32) -> Self {
                Self(index)
            }

            #[inline]
            fn as_u32(self) -> u32 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(crate) use index_type;

/// Consecutive indices.
#[derive(Clone, Debug)]
pub struct Indices<I> {
    range: Range<u32>,
    index: PhantomData<fn() -> I>,
}

impl<I: Index> Indices<I> {
    /// `count` indices starting at `first`, clamped to 32 bits.
    pub fn new(first: I, count: u32) -> Indices<I> {
        let first = first.as_u32();
        Indices { range: first..first.saturating_add(count), index: PhantomData }
    }

    /// Whether the range contains `index`.
    pub fn contains(&self, index: I) -> bool {
        self.range.contains(&index.as_u32())
    }

    /// The first `count` indices.
    pub fn up_to(count: u32) -> Indices<I> {
        Indices { range: 0..count, index: PhantomData }
    }
}

impl<I: Index> Iterator for Indices<I> {
    type Item = I;

    #[inline]
    fn next(&mut self) -> Option<I> {
        self.range.next().map(I::from_u32)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl<I: Index> ExactSizeIterator for Indices<I> {}

/// A vector that is accessed with one type of index.
#[derive(Clone, Debug)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    index: PhantomData<fn(I)>,
}

/// Minimum number of items that a vector grows by, so that repeated growth by one item stays cheap.
const GROW: usize = 64;

impl<I: Index, T> IndexVec<I, T> {
    /// An empty vector.
    pub fn new() -> IndexVec<I, T> {
        Vec::new().into()
    }

    /// An empty vector with room for `capacity` items.
    pub fn with_capacity(capacity: usize) -> IndexVec<I, T> {
        Vec::with_capacity(capacity).into()
    }

    /// The item at `index`.
    #[inline]
    pub fn get(&self, index: I) -> Option<&T> {
        self.items.get(index.index())
    }

    /// The item at `index`, mutably.
    #[inline]
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.items.get_mut(index.index())
    }

    /// Appends an item and returns its index. Returns `None`, without adding the item, if the index exceeds 32 bits.
    pub fn push(&mut self, item: T) -> Option<I> {
        let index = I::new(self.items.len())?;
        self.items.push(item);
        Some(index)
    }

    /// The items.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The items.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// The items, mutably.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// The items with their indices.
    pub fn iter_enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        (0u32..).map(I::from_u32).zip(&self.items)
    }

    /// The indices of the items.
    pub fn indices(&self) -> Indices<I> {
        Indices::up_to(u32::try_from(self.items.len()).unwrap_or(u32::MAX))
    }

    /// Keeps the items for which `keep` returns true; later items shift down.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the vector is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of memory that the items take, without memory that they own elsewhere.
    pub fn bytes(&self) -> u64 {
        super::len64(self.items.capacity()).saturating_mul(super::len64(size_of::<T>()))
    }
}

impl<I: Index, T: Clone + Default> IndexVec<I, T> {
    /// The item at `index`. A vector that is too short grows, so the result is never `None`.
    #[inline]
    pub fn slot(&mut self, index: I) -> Option<&mut T> {
        let at = index.index();
        if at >= self.items.len() {
            self.grow(at);
        }
        self.items.get_mut(at)
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        self.items.resize(at.saturating_add(GROW), T::default());
    }

    /// Grows the vector to at least `len` items.
    pub fn grow_to(&mut self, len: usize) {
        if len > self.items.len() {
            self.items.resize(len, T::default());
        }
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(items: Vec<T>) -> IndexVec<I, T> {
        IndexVec { items, index: PhantomData }
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> IndexVec<I, T> {
        Vec::new().into()
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(items: S) -> IndexVec<I, T> {
        Vec::from_iter(items).into()
    }
}

impl<I, T> Extend<T> for IndexVec<I, T> {
    fn extend<S: IntoIterator<Item = T>>(&mut self, items: S) {
        self.items.extend(items);
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'v, I, T> IntoIterator for &'v IndexVec<I, T> {
    type Item = &'v T;
    type IntoIter = std::slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'v, I, T> IntoIterator for &'v mut IndexVec<I, T> {
    type Item = &'v mut T;
    type IntoIter = std::slice::IterMut<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    index_type! {
        /// An index type for the tests.
        struct Nth;
    }

    #[test]
    fn items_past_the_end_are_none() {
        let mut v: IndexVec<Nth, u8> = IndexVec::new();
        let first = v.push(7).unwrap();
        assert_eq!((v.get(first), v.get(Nth::from_u32(1)), v.len()), (Some(&7), None, 1));
        *v.slot(Nth::from_u32(100)).unwrap() = 9;
        assert!(v.len() > 100);
        assert_eq!(v.iter_enumerated().filter(|(_, n)| **n != 0).map(|(i, n)| (i.as_u32(), *n)).collect::<Vec<_>>(), [(0, 7), (100, 9)]);
    }

    #[test]
    fn indices_are_clamped_to_32_bits() {
        let all: Vec<u32> = Indices::new(Nth::from_u32(u32::MAX - 2), 9).map(Index::as_u32).collect();
        assert_eq!(all, [u32::MAX - 2, u32::MAX - 1]);
        assert_eq!(Indices::<Nth>::up_to(3).len(), 3);
        assert_eq!(Nth::new(usize::MAX), None);
    }
}
