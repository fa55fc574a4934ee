//! Notes: problems found while reading, shown with the answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};

use super::missed::{Missed, Scope};
use super::missing::{Missing, NoteReason, Remedy};
use super::{Addr, named_enum, plural};

named_enum! {
    /// The kind of a [`Note`].
    pub enum NoteKind {
        /// The dump file does not have memory that it declares.
        TruncatedDump = "truncated-dump",
        /// The compressed data is damaged: any decompressed byte may be wrong. The answer is partial.
        DamagedStream = "damaged-stream",
        /// Captured ranges overlap; the first wins.
        OverlappingRanges = "overlapping-ranges",
        /// A part of the container (a stream, a note) could not be read.
        UnreadableStream = "unreadable-stream",
        /// A module file was found, but it is not the one that the process had loaded.
        ModuleMismatch = "module-mismatch",
        /// A bundled or user-given overlay supplies what the dump does not have.
        OverlayUsed = "overlay-used",
        /// A data contract descriptor is irregular: an unknown baseline, a duplicate, an unreadable child.
        Descriptor = "descriptor",
        /// Types have no names because their modules' metadata is neither in the dump nor in a module file.
        NoMetadata = "no-metadata",
        /// The dump was taken without the heap: mini and triage dumps.
        NoHeap = "no-heap",
        /// The dump has other ids of threads than the runtime recorded, as if it was written from outside the container of the process.
        ThreadIds = "thread-ids",
        /// A garbage collection was in progress when the dump was taken, and was not moving objects.
        GcInProgress = "gc-in-progress",
        /// The process has several runtimes, and the answer is about one of them.
        OtherRuntimes = "other-runtimes",
        /// A garbage collection was moving objects when the dump was taken: answers about them may be wrong.
        GcMoving = "gc-moving",
        /// A name or pattern of the query matches nothing.
        NoMatch = "no-match",
        /// A dump that comes first in a comparison was taken last.
        Order = "order",
        /// An object was being allocated when the dump was taken: its space is reserved, its method table not yet written.
        InAllocation = "in-allocation",
        /// Memory that the answer needs is not in the dump. The answer is partial.
        Missing = "missing",
        /// Memory holds an impossible value. The answer is partial.
        Invalid = "invalid",
        /// A list has a cycle or exceeds its cap. The answer is partial.
        LimitHit = "limit-hit",
    }
}

impl NoteKind {
    /// Whether a note of this kind means that the answer may differ from the complete dump's answer.
    pub fn makes_partial(self) -> bool {
        matches!(self, NoteKind::Missing | NoteKind::Invalid | NoteKind::LimitHit | NoteKind::DamagedStream)
    }
}

/// A remark for the user about an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Note {
    /// The kind of problem.
    pub kind: NoteKind,
    /// The part that is missing; `null` unless the kind is `missing`.
    #[serde(default)]
    pub code: Option<Missing>,
    /// One sentence for a person.
    pub message: String,
    /// The address of the problem, if it has one.
    pub address: Option<Addr>,
    /// The source of the missing data, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Note {
    /// The kind, the missing part and the remedy, for another note with this reason.
    pub fn reason(&self) -> NoteReason {
        NoteReason { kind: self.kind, code: self.code, remedy: self.remedy }
    }
}

/// Maximum number of different notes in one answer. A hostile dump could cause a note for each of a million threads.
const MAX_NOTES: usize = 10_000;

/// The notes of one answer: an ordered set, each with the number of times it was added.
///
/// A reader returns its notes with its data (see [`Answer`](super::Answer)) instead of writing to a common log, so that each note stays with the
/// value that it affects.
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

    /// Adds a note. Adding an equal note again only increases its count.
    pub fn add(&mut self, reason: impl Into<NoteReason>, address: impl Into<Option<Addr>>, message: impl Into<String>) {
        let NoteReason { kind, code, remedy } = reason.into();
        self.insert(Note { kind, code, message: message.into(), address: address.into(), remedy }, 1);
    }

    fn insert(&mut self, note: Note, times: u64) {
        if let Some(n) = self.list.get_mut(&note) {
            *n = n.saturating_add(times);
        } else if self.list.len() < MAX_NOTES {
            self.list.insert(note, times);
        } else {
            let message = format!("more than {MAX_NOTES} notes; the rest are left out");
            let n = self.list.entry(Note { kind: NoteKind::LimitHit, code: None, message, address: None, remedy: None }).or_default();
            *n = n.saturating_add(times);
        }
    }

    /// Appends all notes of `other`.
    pub fn extend(&mut self, other: &Notes) {
        for (note, times) in &other.list {
            self.insert(note.clone(), *times);
        }
    }

    /// The notes of all kinds except `kind`.
    pub fn without(&self, kind: NoteKind) -> Notes {
        Notes { list: self.list.iter().filter(|(note, _)| note.kind != kind).map(|(note, times)| (note.clone(), *times)).collect() }
    }

    /// The notes that make an answer partial.
    pub(crate) fn losses(&self) -> Notes {
        let lost = self.list.iter().filter(|(note, _)| note.kind.makes_partial());
        Notes { list: lost.map(|(note, times)| (note.clone(), *times)).collect() }
    }

    /// The notes, each prefixed with `subject`: for answers about several dumps.
    pub fn about(&self, subject: &str) -> Notes {
        self.reworded(|note| format!("{subject}: {}", note.message))
    }

    /// The notes with the messages that `message` returns.
    pub(crate) fn reworded(&self, message: impl Fn(&Note) -> String) -> Notes {
        let reworded = |note: &Note| Note { message: message(note), ..note.clone() };
        Notes { list: self.list.iter().map(|(note, times)| (reworded(note), *times)).collect() }
    }

    /// The notes, in the order in which each was first added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Note> {
        self.list.keys()
    }

    /// The notes, each with the number of times it was added.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&Note, u64)> {
        self.list.iter().map(|(note, times)| (note, *times))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the answer is complete: no note [makes it partial](NoteKind::makes_partial).
    pub fn complete(&self) -> bool {
        !self.iter().any(|n| n.kind.makes_partial())
    }

    /// Adds notes on missing names and on contradictions. If the answer is still complete, adds a note on an invalid pointer or on failed
    /// reads.
    pub(crate) fn add_missed(&mut self, missed: &Missed) {
        if let Some((first, types)) = missed.first_unnamed() {
            let of = match types {
                1 => format!("the type with the method table {first}"),
                n => format!("{n} types (the first has the method table {first})"),
            };
            self.add(Missing::Metadata, first, format!("the answer depends on names or fields of {of}, which are not in the dump"));
        }
        for (what, (at, times)) in missed.contradictions() {
            let more = match times {
                0 | 1 => String::new(),
                n => format!(", and {} more", n.saturating_sub(1)),
            };
            self.add(NoteKind::Invalid, at, format!("the dump contradicts itself: {what} (at {at}{more})"));
        }
        if let Some((at, to)) = missed.first_stray().filter(|_| self.complete()) {
            self.add(
                NoteKind::Invalid,
                at,
                format!("a pointer that the answer needs is invalid: the one at {at} is {to}, which is not a user-mode address"),
            );
        }
        let Some((address, len, times)) = missed.first().filter(|_| self.complete()) else { return };
        let more = match times {
            0 | 1 => String::new(),
            2 => ", and memory at one more address".into(),
            n => format!(", and memory at {} other addresses", n.saturating_sub(1)),
        };
        self.add(
            NoteKind::Missing,
            address,
            format!("memory that the answer needs is not in the dump: {} at {address}{more}", plural(len, "byte")),
        );
    }

    /// The first note on a name or pattern that does not match anything.
    pub(crate) fn no_match(&self) -> Option<&Note> {
        self.iter().find(|n| n.kind == NoteKind::NoMatch)
    }

    /// The first note that makes the answer partial.
    pub fn first_loss(&self) -> Option<&Note> {
        self.iter().find(|n| n.kind.makes_partial())
    }
}

impl FromIterator<(Note, u64)> for Notes {
    fn from_iter<S: IntoIterator<Item = (Note, u64)>>(counted: S) -> Notes {
        let mut notes = Notes::new();
        counted.into_iter().for_each(|(note, times)| notes.insert(note, times));
        notes
    }
}

/// Collects the notes of one answer, for readers whose methods take `&self`. Reads that fail during its lifetime result in a note, unless
/// another note already makes the answer partial.
#[derive(Debug)]
pub struct Collector {
    notes: Mutex<Notes>,
    scope: Scope,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl Collector {
    /// An empty collector.
    pub fn new() -> Collector {
        Collector { notes: Mutex::default(), scope: Scope::open() }
    }

    pub(super) fn own(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note: see [`Notes::add`].
    pub fn add(&self, reason: impl Into<NoteReason>, address: impl Into<Option<Addr>>, message: impl Into<String>) {
        self.own().add(reason, address, message);
    }

    /// Adds all of `notes`.
    pub fn extend(&self, notes: &Notes) {
        self.own().extend(notes);
    }

    /// The notes collected so far.
    pub fn notes(&self) -> Notes {
        let mut notes = self.own().clone();
        notes.add_missed(&self.scope.missed());
        notes
    }

    /// The notes collected.
    pub fn into_notes(self) -> Notes {
        let mut notes = self.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        notes.add_missed(&self.scope.missed());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_notes_are_counted() {
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
        let about = both.about("a.dmp");
        assert!(about.iter().all(|n| n.message.starts_with("a.dmp: ")) && about.complete() == both.complete());
    }

    #[test]
    fn a_note_without_a_remedy_is_written_as_before_there_were_remedies() {
        let mut notes = Notes::new();
        notes.add(Missing::Metadata, None, "a");
        notes.add(Missing::Metadata.supplied_by(Remedy::ModuleFile), None, "a");
        notes.add(NoteKind::ModuleMismatch.supplied_by(None), None, "a");
        let texts: Vec<String> = notes.iter().map(|note| serde_json::to_string(note).unwrap()).collect();
        let wanted = [
            r#"{"kind":"missing","code":"metadata","message":"a","address":null}"#,
            r#"{"kind":"missing","code":"metadata","message":"a","address":null,"remedy":"module-file"}"#,
            r#"{"kind":"module-mismatch","code":null,"message":"a","address":null}"#,
        ];
        assert_eq!(texts, wanted);
        let read: Vec<Note> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert!(notes.iter().eq(&read));
        // Another note with the reason of a note keeps its remedy.
        let mut again = Notes::new();
        read.iter().for_each(|note| again.add(note.reason(), note.address, note.message.clone()));
        assert!(again.iter().eq(&read));
    }
}
