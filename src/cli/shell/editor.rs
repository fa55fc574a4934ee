//! Lines that somebody types: rustyline, with the history of this user.

use anyhow::Result;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::super::Streams;
use super::complete::Proposed;
use super::history::{History, LINES};
use super::session::Session;
use super::words::{quoted, tail};

const PROMPT: &str = "gcdump> ";

/// What was typed.
pub(super) enum Line {
    /// A line.
    Text(String),
    /// Nothing: a line that Ctrl-C gave up.
    None,
    /// Ctrl-D.
    End,
}

/// Reads lines, and knows those that were typed earlier.
pub(super) struct Lines {
    config: Config,
    /// What the arrow keys bring back.
    known: MemHistory,
    file: Option<History>,
}

impl Lines {
    /// Reads the history. That it cannot be read is said on `streams`.
    pub(super) fn new(streams: &mut Streams<'_>) -> Result<Lines> {
        let config = Config::builder().max_history_size(LINES)?.history_ignore_space(true).completion_type(CompletionType::List).build();
        let mut known = MemHistory::with_config(&config);
        let mut file = History::of_user();
        match file.as_ref().map(History::load).transpose() {
            Ok(lines) => {
                for line in lines.iter().flatten() {
                    known.add(line)?;
                }
            }
            Err(e) => {
                file = None;
                streams.say(&format!("gcdump: the history is not kept: {e}"))?;
            }
        }
        Ok(Lines { config, known, file })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Reading from the terminal.
    pub(super) fn read(&mut self, session: &Session<'_>) -> Result<Line> {
        // Made for each line: while it exists, SIGINT is its own, and commands have to be stopped by it.
        let mut editor: Editor<Typing<'_, '_>, MemHistory> = Editor::with_history(self.config.clone(), std::mem::take(&mut self.known))?;
        editor.set_max_history_size(LINES)?;
        editor.set_helper(Some(Typing { session, files: FilenameCompleter::new() }));
        let read = {
            let _mode = terminal::Kept::new();
            editor.readline(PROMPT)
        };
        self.known = std::mem::take(editor.history_mut());
        match read {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Line::None),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(e) => Err(e.into()),
        }
    }

    /// Adds a line to the history. That it cannot be written is said on `streams`, once.
    ///
    /// # Errors
    /// Writing to `streams`.
    pub(super) fn keep(&mut self, line: &str, streams: &mut Streams<'_>) -> Result<()> {
        if line.trim().is_empty() || !self.known.add(line)? {
            return Ok(());
        }
        if let Some(Err(e)) = self.file.as_ref().map(|file| file.add(line)) {
            self.file = None;
            streams.say(&format!("gcdump: the history is not kept: {e}"))?;
        }
        Ok(())
    }
}

/// What the editor asks while a line is typed.
struct Typing<'s, 'c> {
    session: &'s Session<'c>,
    files: FilenameCompleter,
}

impl Completer for Typing<'_, '_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or_default();
        let tail = tail(before);
        let words = match self.session.propose(&tail) {
            Proposed::File => return self.files.complete_path(line, pos),
            Proposed::Words(words) => words,
        };
        let pair = |word: String| {
            let replacement = match tail.quote {
                Some(quote) => format!("{word}{quote}"),
                None => quoted(&word),
            };
            Pair { replacement, display: crate::output::sanitize(&word).into_owned() }
        };
        Ok((tail.start, words.into_iter().map(pair).collect()))
    }
}

impl Helper for Typing<'_, '_> {}
impl Highlighter for Typing<'_, '_> {}
impl Validator for Typing<'_, '_> {}

impl Hinter for Typing<'_, '_> {
    type Hint = String;
}

/// What the terminal was set to before a line is edited: whoever ends the process meanwhile sets it back.
#[cfg(unix)]
mod terminal {
    use std::io::{self, Write};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

    static MODE: Mutex<Option<Termios>> = Mutex::new(None);

    fn mode() -> MutexGuard<'static, Option<Termios>> {
        MODE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it exists, a line is edited.
    pub(super) struct Kept(());

    impl Kept {
        pub(super) fn new() -> Kept {
            *mode() = tcgetattr(io::stdin()).ok();
            Kept(())
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            *mode() = None;
        }
    }

    /// Sets the terminal back, if a line is being edited. Returns whether one is.
    pub(super) fn restore() -> bool {
        let Some(mode) = mode().take() else { return false };
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &mode);
        // The editor asks for pasted text in brackets.
        let _ = io::stderr().write_all(b"\x1b[?2004l\r\n");
        true
    }
}

/// Nothing to set back.
#[cfg(not(unix))]
mod terminal {
    pub(super) struct Kept(());

    impl Kept {
        pub(super) fn new() -> Kept {
            Kept(())
        }
    }

    pub(super) fn restore() -> bool {
        false
    }
}

/// Sets the terminal back for the end of the process, if a line is being edited. Returns whether one is.
pub(super) fn ends() -> bool {
    terminal::restore()
}
