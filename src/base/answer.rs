//! The result of a reader: data, with notes on what could not be read.

use std::ops::Deref;

use super::{Collector, Notes};

/// Data, with the notes that were made while it was read.
///
/// Dereferences to its data: `heap.stat()?.types`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Answer<T> {
    /// The data.
    pub data: T,
    /// Notes on what could not be read, and further remarks.
    pub notes: Notes,
}

impl<T> Answer<T> {
    /// An answer with these notes.
    pub fn new(data: T, notes: Notes) -> Answer<T> {
        Answer { data, notes }
    }

    /// An answer without notes.
    pub fn whole(data: T) -> Answer<T> {
        Answer { data, notes: Notes::new() }
    }

    /// Whether the answer is complete: no note makes it partial.
    pub fn complete(&self) -> bool {
        self.notes.complete()
    }

    /// Transforms the data, keeping the notes.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Answer<U> {
        Answer { data: f(self.data), notes: self.notes }
    }

    /// Returns the data. Its notes are added to `notes`, which belong to the answer that the data becomes a part of.
    pub fn into_part(self, notes: &mut Notes) -> T {
        notes.extend(&self.notes);
        self.data
    }
}

/// Iterates over the items of a list and drops its notes: `for thread in runtime.threads()? { … }`.
impl<T: IntoIterator> IntoIterator for Answer<T> {
    type Item = T::Item;
    type IntoIter = T::IntoIter;

    fn into_iter(self) -> T::IntoIter {
        self.data.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Answer<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.data.into_iter()
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl Collector {
    /// Returns the data of a part of the answer, and adds the notes of the part.
    pub fn take<T>(&self, part: Answer<T>) -> T {
        part.into_part(&mut self.own())
    }

    /// Returns the data of a part that other answers share, and adds the notes of the part.
    pub fn with<'p, T>(&self, part: &'p Answer<T>) -> &'p T {
        self.extend(&part.notes);
        &part.data
    }

    /// Returns the answer: `data` with the notes collected.
    pub fn finish<T>(self, data: T) -> Answer<T> {
        Answer::new(data, self.into_notes())
    }
}
