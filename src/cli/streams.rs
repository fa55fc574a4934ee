//! Output streams of a command.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use super::args::Config;
use super::exit::{Exit, UsageError};
use super::{pick, write};
use crate::output::{Screen, Seen, Target, View};

/// Output streams of a run.
pub struct Streams<'a> {
    /// Answers.
    pub out: &'a mut dyn Write,
    /// Diagnostics.
    pub err: &'a mut dyn Write,
    /// Screen that shows `out`.
    pub screen: Screen,
    /// Screen that shows `err`.
    pub err_screen: Screen,
    /// Receives the addresses in the rows of tables.
    pub seen: Option<&'a Seen>,
    /// Receives a suggested follow-up command, without the dump.
    pub next: Option<&'a OnceLock<&'static str>>,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("screen", &self.screen).field("err_screen", &self.err_screen).finish_non_exhaustive()
    }
}

impl<'a> Streams<'a> {
    /// Creates streams that write to pipes.
    pub fn piped(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Streams<'a> {
        Streams { out, err, screen: Screen::NONE, err_screen: Screen::NONE, seen: None, next: None }
    }
}

impl Streams<'_> {
    /// Returns these streams with answers redirected to `out`, which is not a screen.
    pub(super) fn with_output<'s>(&'s mut self, out: &'s mut dyn Write) -> Streams<'s> {
        Streams { out, err: &mut *self.err, screen: Screen::NONE, err_screen: self.err_screen, seen: self.seen, next: self.next }
    }

    /// Applies the width and color options.
    pub(super) fn dress(&mut self, config: &Config) {
        self.screen = config.screen(self.screen);
        self.err_screen = config.screen(self.err_screen);
    }

    /// Returns the target of answers.
    pub(super) fn target(&mut self) -> Target<'_> {
        Target { out: &mut *self.out, screen: self.screen, seen: self.seen, select: &[], most: None, view: View::default() }
    }

    /// Writes a line of diagnostics. If a terminal shows it, the line is wrapped to the width of the terminal, and control characters are escaped.
    pub(super) fn say(&mut self, line: &str) -> io::Result<()> {
        self.err_screen.lines(line).iter().try_for_each(|line| writeln!(self.err, "{line}"))
    }

    /// Writes a command line without wrapping it, so that it can be pasted.
    pub(super) fn show_command(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "{}", self.err_screen.wide().lines(line).concat())
    }

    /// Writes a line of diagnostics after a colored `word`.
    pub(super) fn warn(&mut self, word: &str, message: &str) -> io::Result<()> {
        let word = format!("{word}:");
        let text = format!("{word} {message}");
        let lines = self.err_screen.lines(&text);
        for (i, line) in lines.iter().enumerate() {
            match line.strip_prefix(&word).filter(|_| i == 0) {
                Some(rest) => writeln!(self.err, "{}{rest}", self.err_screen.warning(&word))?,
                None => writeln!(self.err, "{line}")?,
            }
        }
        Ok(())
    }

    /// Writes a line of diagnostics that is less important than the answer.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.err_screen.lines(text).iter().try_for_each(|line| writeln!(self.err, "{}", self.err_screen.remark(line)))
    }

    /// Returns the number of table rows that fit the screen with the surrounding text; a default without a screen.
    pub(super) fn rows(&self) -> usize {
        const AROUND: usize = 9;
        const WITHOUT_SCREEN: usize = 40;
        self.screen.height.map_or(WITHOUT_SCREEN, |lines| lines.saturating_sub(AROUND).max(5))
    }
}

/// Runs `work` and writes its output to the file at `path` once the output is complete.
pub(super) fn to_file(path: &Path, streams: &mut Streams<'_>, work: impl FnOnce(&mut Streams<'_>) -> Result<Exit>) -> Result<Exit> {
    // `gcdump heap -o crash.dmp` must not overwrite the dump.
    if pick::could_be_dump(path) {
        return Err(UsageError(format!("{} may be a dump; refusing to overwrite it", path.display())).into());
    }
    let cannot = || format!("cannot write {}", path.display());
    // Pipes and devices are written in place.
    let special = path.metadata().is_ok_and(|m| !m.is_file());
    let draft = if special { None } else { Some(write::Draft::of(path, true).with_context(cannot)?) };
    let file = match &draft {
        Some(draft) => draft.file().try_clone(),
        None => File::options().write(true).open(path),
    };
    let mut out = BufWriter::new(file.with_context(cannot)?);
    // Adds the path, which the `io::Error` does not contain.
    let exit = work(&mut streams.with_output(&mut out)).map_err(|e| match e.downcast_ref::<io::Error>() {
        Some(_) => e.context(format!("writing {}", path.display())),
        None => e,
    })?;
    out.flush().and_then(|()| draft.map_or(Ok(()), |d| d.finish(true))).with_context(|| format!("writing {}", path.display()))?;
    Ok(exit)
}
