//! What a reader returns: the data, with notes on what could not be read.

use std::ops::Deref;

use super::Notes;

/// What was read, with what went less than perfectly while it was.
///
/// Reads as its data: `heap.stat()?.types`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Answer<T> {
    /// What was read.
    pub data: T,
    /// What could not be, and what else there is to tell about it.
    pub notes: Notes,
}

impl<T> Answer<T> {
    /// An answer with notes.
    pub fn new(data: T, notes: Notes) -> Answer<T> {
        Answer { data, notes }
    }

    /// An answer about which there is nothing to tell.
    pub fn whole(data: T) -> Answer<T> {
        Answer { data, notes: Notes::new() }
    }

    /// Whether nothing is missing that the process had: no note says so.
    pub fn complete(&self) -> bool {
        self.notes.complete()
    }

    /// The same notes with other data.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Answer<U> {
        Answer { data: f(self.data), notes: self.notes }
    }

    /// The data, its notes added to those of the answer that it becomes a part of.
    pub fn into_part(self, notes: &mut Notes) -> T {
        notes.extend(&self.notes);
        self.data
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}
