//! Interactive input of lines: rustyline, with the history of this user.

use std::borrow::Cow;
use std::cell::RefCell;

use anyhow::Result;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use unicode_width::UnicodeWidthChar;

use super::super::completion::is_offered;
use super::super::streams::Streams;
use super::complete::{Proposed, files};
use super::history::{History, LINES};
use super::session::Session;
use super::terminal;
use super::words::{Place, Tail, in_quotes, quoted, tail};
use crate::output::is_hostile;

const PROMPT: &str = "gcdump> ";

/// Result of reading a line.
pub(super) enum Line {
    /// A line, or several pasted lines.
    Text(String),
    /// Nothing: the line was abandoned with Ctrl-C.
    None,
    /// Bytes that are not text.
    NotText,
    /// Ctrl-D.
    End,
}

/// A session that the editor queries while a line is typed, and that lines change.
pub(super) type Shared<'s, 'c> = RefCell<&'s mut Session<'c>>;

/// Reads lines, with the history of earlier lines. All lines are read with one editor, because an editor may have buffered input.
pub(super) struct Lines<'t, 's, 'c> {
    editor: Editor<Typing<'t, 's, 'c>, MemHistory>,
    file: Option<History>,
}

impl<'t, 's, 'c> Lines<'t, 's, 'c> {
    /// Reads the history. A failure to read it is reported on `streams`.
    pub(super) fn new(session: &'t Shared<'s, 'c>, streams: &mut Streams<'_>) -> Result<Lines<'t, 's, 'c>> {
        let config = Config::builder().max_history_size(LINES)?.history_ignore_space(true).completion_type(CompletionType::List).build();
        let mut known = MemHistory::with_config(&config);
        let mut file = History::of_user();
        match file.as_ref().map(History::load).transpose() {
            Ok(lines) => {
                for line in lines.iter().flatten().filter(|line| hidden(line).is_none()) {
                    known.add(line)?;
                }
            }
            Err(e) => {
                file = None;
                streams.say(&format!("gcdump: the history is not kept: {e}"))?;
            }
        }
        let mut editor = Editor::with_history(config, known)?;
        editor.set_helper(Some(Typing { session }));
        Ok(Lines { editor, file })
    }

    /// Reads a line. Meanwhile, the editor handles SIGINT.
    ///
    /// # Errors
    /// Errors of reading from the terminal.
    pub(super) fn read(&mut self) -> Result<Line> {
        let read = {
            let _mode = terminal::Kept::new();
            self.editor.readline(PROMPT)
        };
        match read {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Line::None),
            Err(ReadlineError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => Ok(Line::NotText),
            #[cfg(windows)]
            Err(ReadlineError::Decode(_)) => Ok(Line::NotText),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(e) => Err(e.into()),
        }
    }

    /// Adds a line to the history. The first failure to write the history is reported on `streams`.
    ///
    /// # Errors
    /// Errors of writing to `streams`.
    pub(super) fn keep(&mut self, line: &str, streams: &mut Streams<'_>) -> Result<()> {
        if line.trim().is_empty() || !self.editor.history_mut().add(line)? {
            return Ok(());
        }
        if let Some(Err(e)) = self.file.as_ref().map(|file| file.add(line)) {
            self.file = None;
            streams.say(&format!("gcdump: the history is not kept: {e}"))?;
        }
        Ok(())
    }
}

/// Returns the first character of a line that a terminal would not show literally.
pub(super) fn hidden(line: &str) -> Option<char> {
    line.chars().find(|c| is_hidden(*c))
}

fn is_hidden(c: char) -> bool {
    c != '\t' && is_hostile(c)
}

/// Returns `line` for display, without the characters of [`hidden`]. The result has the width that rustyline computes for the original line, in which
/// an escape sequence has zero columns.
fn shown(line: &str) -> Cow<'_, str> {
    if line.chars().all(|c| c == '\n' || !is_hidden(c)) {
        return Cow::Borrowed(line);
    }
    let (mut out, mut sequence) = (String::new(), 0);
    for c in line.chars() {
        match (sequence, c) {
            (1, '[') => sequence = 2,
            (2, '0'..='9' | ';') => {}
            (1 | 2, _) => sequence = 0,
            (_, '\x1b') => sequence = 1,
            (_, '\n') => out.push(c),
            _ if is_hidden(c) => out.extend((c.is_control() || c.width().is_some_and(|width| width > 0)).then_some('?')),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns candidates for the word at `at`, and the start of the text that they replace. The list is empty if the word continues after `at`, because
/// the quotes of an inserted word would change the meaning of the rest.
fn completed(line: &str, at: usize, propose: impl FnOnce(&Tail) -> Proposed) -> (usize, Vec<Pair>) {
    let (Some(before), Some(after)) = (line.get(..at), line.get(at..)) else { return (at, Vec::new()) };
    let tail = tail(before);
    if !after.is_empty() && (tail.open || !after.starts_with(char::is_whitespace)) {
        return (at, Vec::new());
    }
    let words = match propose(&tail) {
        Proposed::File => files(&tail.word),
        Proposed::Words(words) => words,
    };
    // All candidates are quoted alike, so that their common prefix is completed.
    let quote = tail.open || words.iter().any(|word| quoted(word) != *word);
    let pair = |word: String| Pair { replacement: if quote { in_quotes(&word) } else { word.clone() }, display: word };
    (tail.start, words.into_iter().map(pair).collect())
}

/// Returns `line` with its last word completed to `name`; for tests.
pub fn completed_in_shell(line: &str, name: &str) -> Option<String> {
    let propose = |tail: &Tail| {
        let offered = tail.place != Place::Program && is_offered(name);
        Proposed::Words(offered.then(|| name.into()).into_iter().collect())
    };
    let (start, mut pairs) = completed(line, line.len(), propose);
    Some(format!("{}{}", line.get(..start)?, pairs.pop()?.replacement))
}

/// Callbacks of the editor while a line is typed.
struct Typing<'t, 's, 'c> {
    session: &'t Shared<'s, 'c>,
}

impl Completer for Typing<'_, '_, '_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Ok(session) = self.session.try_borrow() else { return Ok((pos, Vec::new())) };
        Ok(completed(line, pos, |tail| session.propose(tail)))
    }
}

impl Helper for Typing<'_, '_, '_> {}
impl Validator for Typing<'_, '_, '_> {}

impl Highlighter for Typing<'_, '_, '_> {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        shown(line)
    }

    // The prompt of a search contains the searched text.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        shown(prompt)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        hidden(line).is_some()
    }
}

impl Hinter for Typing<'_, '_, '_> {
    type Hint = String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_not_shown() {
        assert_eq!(
            (hidden("stat\t'ä 数'"), hidden("a\u{202e}"), hidden("a\x1bb"), hidden("\u{9b}")),
            (None, Some('\u{202e}'), Some('\x1b'), Some('\u{9b}'))
        );
        assert_eq!(shown("stat\t'ä 数'\nheap"), "stat\t'ä 数'\nheap");
        assert_eq!(shown("a\u{202e}b\u{200b}c"), "abc");
        assert_eq!(shown("a\x1b[2Jb\x07c\u{9b}d\n"), "ab?c?d\n");
        assert_eq!(shown("a\x1b[12;3Hb\x1bc"), "ab");
    }

    #[test]
    fn a_completed_name_is_parsed_as_one_word() {
        let completes = |line: &str, name: &str| completed_in_shell(line, name);
        assert_eq!(completes("stat --type Lab.N", "Lab.Node").as_deref(), Some("stat --type Lab.Node"));
        assert_eq!(completes("stat --type 'Lab.N", "Lab.Node").as_deref(), Some("stat --type 'Lab.Node'"));
        assert_eq!(completes("stat --type \"A", "A'|touch x;'").as_deref(), Some("stat --type 'A'\"'\"'|touch x;'\"'\"''"));
        assert_eq!((completes("stat --type 'A", "A\u{1b}[2J"), completes("stat --type A", "-x")), (None, None));
        // Words are completed only at their ends.
        let words = |line: &str, at: usize| completed(line, at, |_| Proposed::Words(vec!["A;b".into()])).1.len();
        assert_eq!((words("stat --type A x", 13), words("stat --type Ax", 13), words("stat --type 'A|touch x'", 14)), (1, 0, 0));
    }
}
