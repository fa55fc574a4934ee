//! Notes: problems met while reading, shown with the answer.

use std::collections::HashSet;
use std::sync::Mutex;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde::Serialize;

use super::Addr;

/// The kind of a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// The dump file lacks memory that it declares.
    TruncatedDump,
    /// Captured ranges overlap; the first wins.
    OverlappingRanges,
    /// A part of the container (a stream, a note) could not be read.
    UnreadableStream,
    /// A module file was found but is not the one that the process had loaded.
    ModuleMismatch,
    /// A bundled or user-given overlay supplies what the dump lacks.
    OverlayUsed,
    /// A data contract descriptor is irregular: an unknown baseline, a duplicate, an unreadable child.
    Descriptor,
    /// Types have no names because their modules' metadata is neither in the dump nor in a module file.
    NoMetadata,
    /// A garbage collection was moving objects when the dump was taken.
    GcInProgress,
    /// An object was being allocated when the dump was taken: its space is taken, its method table not yet written.
    InAllocation,
    /// Memory that the answer needs is not in the dump. The answer is partial.
    Missing,
    /// Memory holds an impossible value. The answer is partial.
    Invalid,
    /// A list has a cycle or exceeds its cap. The answer is partial.
    LimitHit,
}

impl NoteKind {
    /// Whether a note of this kind means that the answer lacks something that the process had.
    pub fn makes_partial(self) -> bool {
        matches!(self, NoteKind::Missing | NoteKind::Invalid | NoteKind::LimitHit)
    }
}

/// A remark on an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
pub struct Note {
    /// Its kind.
    pub kind: NoteKind,
    /// One sentence, for people.
    pub message: String,
    /// The address concerned, if any.
    pub address: Option<Addr>,
}

/// Maximum number of notes per answer. A hostile dump could produce one for each of a million threads.
const MAX_NOTES: usize = 10_000;

/// The notes of one answer: an ordered set with counts.
///
/// Each reader creates its own and returns it with the data (see [`Answer`](super::Answer)): a problem belongs to the value that
/// lost something by it, not to a shared log.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Notes {
    list: IndexMap<Note, u64, FxBuildHasher>,
}

impl Notes {
    /// No notes.
    pub fn new() -> Notes {
        Notes::default()
    }

    /// Adds a note. Adding an equal one again only increments its count.
    pub fn add(&mut self, kind: NoteKind, address: impl Into<Option<Addr>>, message: impl Into<String>) {
        self.insert(Note { kind, message: message.into(), address: address.into() }, 1);
    }

    fn insert(&mut self, note: Note, times: u64) {
        if let Some(n) = self.list.get_mut(&note) {
            *n = n.saturating_add(times);
        } else if self.list.len() < MAX_NOTES {
            self.list.insert(note, times);
        } else {
            let message = format!("more than {MAX_NOTES} notes; the rest is left out");
            let n = self.list.entry(Note { kind: NoteKind::LimitHit, message, address: None }).or_default();
            *n = n.saturating_add(times);
        }
    }

    /// Appends the notes of `other`.
    pub fn extend(&mut self, other: &Notes) {
        for (note, times) in &other.list {
            self.insert(note.clone(), *times);
        }
    }

    /// The notes, in order of first occurrence.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Note> {
        self.list.keys()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no note means that the answer lacks something that the process had.
    pub fn complete(&self) -> bool {
        !self.iter().any(|n| n.kind.makes_partial())
    }

    /// The first note that makes the answer partial.
    pub fn first_loss(&self) -> Option<&Note> {
        self.iter().find(|n| n.kind.makes_partial())
    }
}

/// A thread-safe collector of notes.
#[derive(Debug, Default)]
pub struct SharedNotes {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    list: Vec<Note>,
    seen: HashSet<Note>,
}

impl SharedNotes {
    /// An empty collector.
    pub fn new() -> SharedNotes {
        SharedNotes::default()
    }

    /// Adds a note unless an equal one is already present.
    pub fn add(&self, kind: NoteKind, address: impl Into<Option<Addr>>, message: impl Into<String>) {
        let note = Note { kind, message: message.into(), address: address.into() };
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.list.len() == MAX_NOTES && !kept.seen.contains(&note) {
            let message = format!("more than {MAX_NOTES} notes; the rest is left out");
            kept.list.push(Note { kind: NoteKind::LimitHit, message, address: None });
        }
        if kept.list.len() < MAX_NOTES && kept.seen.insert(note.clone()) {
            kept.list.push(note);
        }
    }

    /// The notes so far, in order of arrival.
    pub fn all(&self) -> Vec<Note> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner).list.clone()
    }

    /// Whether any note so far means that the answer is partial.
    pub fn partial(&self) -> bool {
        self.all().iter().any(|n| n.kind.makes_partial())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_once_with_its_count() {
        let mut notes = Notes::new();
        for i in 0..50_000u64 {
            notes.add(NoteKind::UnreadableStream, Addr(i / 2), "the same");
        }
        assert!(notes.iter().len() == MAX_NOTES + 1 && !notes.complete());
        assert!(notes.first_loss().unwrap().message.contains("left out"));
        let mut both = Notes::new();
        both.extend(&notes);
        both.extend(&notes);
        assert!(both.iter().eq(notes.iter()));
    }

    #[test]
    fn each_note_once_and_not_without_end() {
        let notes = SharedNotes::new();
        for i in 0..50_000u64 {
            notes.add(NoteKind::UnreadableStream, Addr(i / 2), "the same");
        }
        let all = notes.all();
        assert_eq!(all.len(), MAX_NOTES + 1);
        assert!(all.last().unwrap().message.contains("left out") && notes.partial());
    }
}
