//! Notes on an answer, for people. JSON and NDJSON list all notes as `warnings`.

use std::collections::HashMap;
use std::io;

use indexmap::IndexMap;

use super::streams::Streams;
use crate::base::{Missing, Note, NoteKind, Notes, len64};
use crate::model::Generation;
use crate::output::{Reasons, plural};

/// Maximum number of notes to show.
const SHOWN: usize = 12;

/// Maximum number of notes to show with one code.
const ALIKE: u64 = 4;

/// Prints the notes to standard error. Notes that differ only in numbers and addresses are shown once. Notes with the same code are adjacent, at most
/// [`ALIKE`] of them.
pub(super) fn show(notes: &Notes, streams: &mut Streams<'_>) -> io::Result<()> {
    // The note that the dump has no heap explains all other missing data, so it comes first.
    let (first, rest): (Vec<&Note>, Vec<&Note>) = notes.iter().partition(|n| n.kind == NoteKind::NoHeap);
    let mut groups: IndexMap<(NoteKind, Option<Missing>, String), Vec<&Note>> = IndexMap::new();
    for note in first.into_iter().chain(rest) {
        groups.entry((note.kind, note.code, form(note))).or_default().push(note);
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut alike: HashMap<Missing, (usize, u64)> = HashMap::new();
    for (i, ((kind, code, _), notes)) in groups.iter().enumerate() {
        let (place, nth) = code.map_or((i, 0), |code| {
            let known = alike.entry(code).or_insert((i, 0));
            known.1 = known.1.saturating_add(1);
            *known
        });
        if nth <= ALIKE {
            lines.push(Line { place, kind: *kind, notes, code: None });
        }
    }
    for (code, (place, count)) in alike {
        let more = count.saturating_sub(ALIKE);
        if more > 0 {
            lines.push(Line { place, kind: NoteKind::Missing, notes: &[], code: Some((code, more)) });
        }
    }
    lines.sort_by_key(|line| (line.place, line.code.is_some()));
    let mut reasons = Reasons::default();
    for line in lines.iter().take(SHOWN) {
        let (word, is_remark) = match line.kind {
            NoteKind::GcInProgress | NoteKind::GcMoving => ("WARNING", false),
            NoteKind::OtherRuntimes | NoteKind::ThreadIds => ("note", true),
            k if k.makes_partial() => ("missing", true),
            _ => ("warning", false),
        };
        if let Some((code, more)) = line.code {
            let about = code.name().replace('-', " ");
            streams.remark(&format!("{word}: … and {} about {about} (--json lists all)", plural(more, "more reason")))?;
        }
        let Some((note, more)) = line.notes.split_first() else { continue };
        let more = match len64(more.len()) {
            0 => String::new(),
            n if note.address.is_some() => format!(" … and {n} more at other addresses"),
            n => format!(" … and {n} more of this kind"),
        };
        let message = format!("{}{more}", reasons.once(note.message.clone()));
        if is_remark { streams.remark(&format!("{word}: {message}")) } else { streams.warn(word, &message) }?;
    }
    let more = lines.len().saturating_sub(SHOWN);
    if more > 0 {
        streams.say(&format!("… {} (--json lists all)", plural(len64(more), "more warning")))?;
    }
    Ok(())
}

/// A line about equal notes, or about the number of notes with one code that are not listed.
struct Line<'n> {
    /// Index of the first line of its group.
    place: usize,
    kind: NoteKind,
    notes: &'n [&'n Note],
    code: Option<(Missing, u64)>,
}

/// Returns the text of a note with numbers, addresses and generations removed. Notes on modules without metadata have one form, because each part of
/// an answer names different modules.
fn form(note: &Note) -> String {
    if note.kind == NoteKind::NoMetadata {
        return String::new();
    }
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let is_place = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) || Generation::NAMES.contains(&word);
    let mut out = String::with_capacity(note.message.len());
    for piece in note.message.split_inclusive(|c| !part(c)) {
        let word = piece.trim_end_matches(|c| !part(c));
        out.push_str(if is_place(word) { "#" } else { word });
        out.push_str(piece.get(word.len()..).unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;

    #[test]
    fn a_reason_is_given_once() {
        let mut notes = Notes::new();
        let why = "code cannot be unwound in libc.so.6: 4 bytes at 0x7f9c78bbfb2c are not in the dump; --modules PATH with its file supplies this memory";
        notes.add(Missing::Stacks, None, format!("stacks: {why}"));
        notes.add(Missing::Handles, None, "handles: not in the dump");
        notes.add(Missing::Stacks, None, format!("1 object is held only by stack words that may be stale: {why}"));
        notes.add(NoteKind::Missing, None, "oom: not in the dump");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        show(&notes, &mut Streams::piped(&mut out, &mut err)).unwrap();
        let lines = format!(
            "missing: stacks: {why}\n\
             missing: 1 object is held only by stack words that may be stale, as above\n\
             missing: handles: not in the dump\n\
             missing: oom: not in the dump\n"
        );
        assert_eq!(String::from_utf8(err).unwrap(), lines);
    }

    #[test]
    fn reasons_with_one_code_are_grouped() {
        let mut notes = Notes::new();
        for what in ["frames", "registers", "roots", "arguments", "locals", "names"] {
            notes.add(Missing::Stacks, None, format!("{what} are missing"));
            notes.add(NoteKind::Invalid, None, format!("{what} are wrong"));
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        show(&notes, &mut Streams::piped(&mut out, &mut err)).unwrap();
        let err = String::from_utf8(err).unwrap();
        let lines: Vec<&str> = err.lines().take(6).collect();
        let wanted = [
            "missing: frames are missing",
            "missing: registers are missing",
            "missing: roots are missing",
            "missing: arguments are missing",
            "missing: … and 2 more reasons about stacks (--json lists all)",
            "missing: frames are wrong",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(err.lines().count(), 11);
    }

    #[test]
    fn notes_that_differ_only_in_addresses_are_shown_once() {
        let mut notes = Notes::new();
        for (i, generation) in (0u64..).zip(["gen0", "loh", "frozen"]) {
            let at = Addr(0x1000 * i);
            notes.add(NoteKind::Missing, at, format!("{generation} segment {at} of heap {i}: the walk stops at {at}; {i} bytes"));
        }
        notes.add(NoteKind::Missing, None, "System.Loh1 is not in the dump");
        notes.add(NoteKind::NoMetadata, None, "types of a have no names");
        notes.add(NoteKind::NoMetadata, None, "types of a, b have no names");
        notes.add(NoteKind::NoHeap, None, "this is a mini dump");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        show(&notes, &mut Streams::piped(&mut out, &mut err)).unwrap();
        let lines = "warning: this is a mini dump\n\
                     missing: gen0 segment 0x0 of heap 0: the walk stops at 0x0; 0 bytes … and 2 more at other addresses\n\
                     missing: System.Loh1 is not in the dump\n\
                     warning: types of a have no names … and 1 more of this kind\n";
        assert_eq!(String::from_utf8(err).unwrap(), lines);
    }
}
