//! The shell: commands on one dump, which stays open with everything computed about it.

mod commands;
mod complete;
mod editor;
mod help;
mod history;
mod interrupt;
mod pipe;
mod session;
mod terminal;
mod variables;
mod words;

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};

use anyhow::{Context, Result};
use clap::{ArgMatches, FromArgMatches};

use super::args::Config;
use super::cmd::shell::Shell;
use super::exit::{Exit, UsageError};
use super::line::STANDARD_INPUT;
use super::open::{Opening, without_mark};
use super::streams::Streams;
pub use editor::completed_in_shell;
use editor::{Line, Lines, hidden};
pub(super) use interrupt::interrupt;
use session::{Flow, Session};

/// Longest line of a script in bytes.
const LINE: u64 = 1 << 20;

/// Runs the shell.
pub(super) fn run(matches: &ArgMatches, config: &Config, streams: &mut Streams<'_>) -> Result<Exit> {
    let shell = Shell::from_arg_matches(matches)?;
    if config.output.is_some() {
        return Err(UsageError("--output does not apply to the shell: use it with a command, or '>'".into()).into());
    }
    let reads_input = shell.commands.is_none() && shell.script.is_none();
    if reads_input && shell.dump.path().is_some_and(|dump| dump.as_os_str() == STANDARD_INPUT) {
        return Err(UsageError("the shell reads its commands from standard input; use -c COMMANDS to read a dump from there".into()).into());
    }
    let opening = Opening::prepare(config, shell.dump.path(), streams)?;
    let mut session = Session::new(config, opening);
    if let Some(exit) = session.open(streams)? {
        return Ok(exit);
    }
    let mut script = Script { session: &mut session, ends: shell.errors_end, number: 0, failed: Exit::Ok };
    if let Some(commands) = &shell.commands {
        script.lines(commands.lines().map(|line| Ok(line.into())), streams)?;
    } else if let Some(path) = &shell.script {
        let file = File::open(path).with_context(|| UsageError(format!("reading the script {}", path.display())))?;
        script.read(BufReader::new(file), streams).with_context(|| path.display().to_string())?;
    } else if streams.screen.terminal && std::io::stdin().is_terminal() {
        return typed(&mut session, streams);
    } else {
        script.read(std::io::stdin().lock(), streams)?;
    }
    Ok(script.failed)
}

/// Reads lines from the terminal.
fn typed(session: &mut Session<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
    let _open = interrupt::Open::new();
    streams.say(&format!("{}; 'help' lists the commands", session.about()))?;
    let session = RefCell::new(session);
    let mut lines = Lines::new(&session, streams)?;
    'typed: loop {
        streams.out.flush()?;
        match lines.read()? {
            Line::Text(text) => {
                for line in text.lines() {
                    if let Some(c) = hidden(line) {
                        let code = u32::from(c);
                        streams.say(&format!("gcdump: not run: the line has a control or invisible character, U+{code:04X}"))?;
                        continue;
                    }
                    lines.keep(line, streams)?;
                    if session.borrow_mut().line(line, streams, |_| false)? == Flow::Quit {
                        break 'typed;
                    }
                }
            }
            Line::NotText => streams.say("gcdump: not run: the line is not UTF-8")?,
            Line::None => {}
            Line::End => break,
        }
    }
    session.borrow_mut().leave_index(streams)?;
    Ok(Exit::Ok)
}

/// Returns the words of `line`, if it is one command that prints to the shell; for tests.
pub fn words_of_shell(line: &str) -> Option<Vec<String>> {
    let statements = words::split(line).ok()?;
    let [statement] = statements.as_slice() else { return None };
    let words = statement.words.iter().map(|word| word.plain().map(Into::into)).collect::<Option<_>>()?;
    (statement.to == words::To::Here).then_some(words)
}

/// Commands from a script.
struct Script<'s, 'c> {
    session: &'s mut Session<'c>,
    ends: bool,
    number: u64,
    failed: Exit,
}

impl Script<'_, '_> {
    fn read(&mut self, mut input: impl BufRead, streams: &mut Streams<'_>) -> Result<()> {
        let mut is_first = true;
        let next = || -> Option<Result<String>> {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut input, LINE).read_until(b'\n', &mut line);
            line = if std::mem::take(&mut is_first) { without_mark(line) } else { line };
            let text = || -> Result<Option<String>> {
                match u64::try_from(read?)? {
                    0 => Ok(None),
                    LINE => Err(UsageError(format!("a line has more than {LINE} bytes")).into()),
                    _ => Ok(Some(String::from_utf8(line).map_err(|_| UsageError("the script is not UTF-8".into()))?)),
                }
            };
            text().transpose()
        };
        self.lines(std::iter::from_fn(next), streams)
    }

    fn lines(&mut self, lines: impl Iterator<Item = Result<String>>, streams: &mut Streams<'_>) -> Result<()> {
        for line in lines {
            self.number = self.number.saturating_add(1);
            let ends = self.ends;
            let mut failed = self.failed;
            let flow = self.session.line(&line?, streams, |exit| {
                if exit != Exit::Ok {
                    failed = exit;
                }
                exit != Exit::Ok && ends
            })?;
            self.failed = failed;
            if flow == Flow::Quit {
                break;
            }
        }
        Ok(())
    }
}
