//! The shell: commands on one dump, which stays open with all that was found out about it.

mod commands;
mod complete;
mod editor;
mod help;
mod history;
mod interrupt;
mod pipe;
mod session;
mod variables;
mod words;

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, FromArgMatches};

use super::Streams;
use super::args::{Config, DumpArg};
use super::command::{Entry, Example, Group, example};
use super::exit::{Exit, UsageError};
use super::open::Opening;
use crate::session::Dump;
pub use editor::completed_in_shell;
use editor::{Line, Lines, hidden};
pub(super) use interrupt::interrupt;
use session::{Flow, Session};

/// Its name on the command line.
pub(super) const NAME: &str = "shell";

/// Longest line of a script in bytes.
const LINE: u64 = 1 << 20;

/// Its line of the help. It gives no answer of its own, so it is no part of the registry.
pub const SHELL: Entry = Entry {
    name: NAME,
    group: Group::Dump,
    examples: EXAMPLES,
    arguments: Shell::augment_args,
    run,
    dumps: |matches| Ok(Shell::from_arg_matches(matches)?.dump.path().into_iter().collect()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[
    example("shell DUMP", "type commands, without the dump"),
    example("shell -c 'stat; path $1' DUMP", "the types, and what holds objects of the largest"),
    example("shell -e --script FILE DUMP", "the commands in a file, up to the first that fails"),
];

/// Commands on one dump, which is opened once and stays open: typed, from a file, or given with -c.
///
/// Every command and SOS name is known, with its options, without the dump. $1, $2 … stand for the rows of the last tables, $_ for the
/// last object; `next` lists more rows. Answers go to programs (`stat | grep Lab`) and files (`>`, `>>`). Ctrl-C stops a command. Global
/// options hold for all commands, which may override them; --timeout is for each of them. `diff OTHER` and `track OTHER` compare an
/// earlier dump with the open one; for a later one, `diff . OTHER`.
///
/// Input that is no terminal is a script. Its exit code is that of the last command that failed.
#[derive(Debug, Args)]
struct Shell {
    /// Run these commands, separated by ';', and end.
    #[arg(short = 'c', long = "command", value_name = "COMMANDS", conflicts_with = "script")]
    commands: Option<String>,

    /// Run the commands in FILE, one a line, and end.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// End at the first command that fails, with its exit code.
    #[arg(short = 'e', long)]
    errors_end: bool,

    #[command(flatten)]
    dump: DumpArg,
}

fn run(matches: &ArgMatches, config: &Config, open: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let shell = Shell::from_arg_matches(matches)?;
    if config.output.is_some() {
        return Err(UsageError("a shell has no --output: its commands have, and '>'".into()).into());
    }
    let given = shell.dump.path().or_else(|| open.first().map(|dump| dump.file().facts.path.clone()));
    let opening = Opening::prepare(config, given, streams)?;
    let mut session = Session::new(config, opening, open.first().cloned());
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

/// Reads what is typed.
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
            Line::NotText => streams.say("gcdump: not run: what was typed is not UTF-8")?,
            Line::None => {}
            Line::End => break,
        }
    }
    session.borrow_mut().leave_index(streams)?;
    Ok(Exit::Ok)
}

/// The words of `line`, if it is one command that prints to the shell; for tests.
pub fn words_of_shell(line: &str) -> Option<Vec<String>> {
    let statements = words::split(line).ok()?;
    let [statement] = statements.as_slice() else { return None };
    let words = statement.words.iter().map(|word| word.plain().map(Into::into)).collect::<Option<_>>()?;
    (statement.to == words::To::Here).then_some(words)
}

/// Commands that nobody types.
struct Script<'s, 'c> {
    session: &'s mut Session<'c>,
    ends: bool,
    number: u64,
    failed: Exit,
}

impl Script<'_, '_> {
    fn read(&mut self, mut input: impl BufRead, streams: &mut Streams<'_>) -> Result<()> {
        let next = || -> Option<Result<String>> {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut input, LINE).read_until(b'\n', &mut line);
            let text = || -> Result<Option<String>> {
                match u64::try_from(read?)? {
                    0 => Ok(None),
                    LINE => Err(UsageError(format!("a line has more than {LINE} bytes")).into()),
                    _ => Ok(Some(String::from_utf8(line).map_err(|_| UsageError("the script is no text".into()))?)),
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
