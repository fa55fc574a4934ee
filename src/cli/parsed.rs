//! Command lines, parsed.

use std::ffi::OsString;
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::{ArgMatches, FromArgMatches};

use super::args::Config;
use super::cmd::mcp::MCP;
use super::cmd::shell::SHELL;
use super::command::Entry;
use super::command_line::{command_line, command_line_within};
use super::exit::{Exit, UsageError};
use super::failure::conclusion;
use super::registry;
use super::streams::Streams;
use crate::base::store::caught;
use crate::session::{Dump, Error};

/// The options and commands. To build them takes longer than a command on a small dump, which counts for shells, assistants and tests.
pub(super) static LINE: LazyLock<clap::Command> = LazyLock::new(command_line);

/// Copies of [`LINE`] that are not in use. Parsing adds to a copy.
static PARSERS: Mutex<Vec<clap::Command>> = Mutex::new(Vec::new());

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Cli {
    /// Global options.
    pub config: Config,
    pub(super) command: &'static Entry,
    pub(super) matches: ArgMatches,
    /// Commands to go on with, shown after the answer on a terminal; empty but for a command line without arguments.
    pub(super) hints: String,
}

impl Cli {
    /// Whether it watches time and memory of its commands itself, and has no answer of its own for `--output`.
    pub fn watches_itself(&self) -> bool {
        [SHELL.name, MCP.name].contains(&self.command.name)
    }

    pub(super) fn of(args: &[OsString]) -> Result<Cli, clap::Error> {
        let parsers = || PARSERS.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = parsers().pop();
        let mut parser = kept.unwrap_or_else(|| LINE.clone());
        let cli = Cli::with(&mut parser, args);
        parsers().push(parser);
        cli
    }

    fn with(root: &mut clap::Command, args: &[OsString]) -> Result<Cli, clap::Error> {
        let matches = root.try_get_matches_from_mut(args)?;
        let config = Config::from_arg_matches(&matches)?;
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, own) = matches.subcommand().ok_or_else(unknown)?;
        let command = registry::find(name).ok_or_else(unknown)?;
        Ok(Cli { config, command, matches: own.clone(), hints: String::new() })
    }

    /// Runs it on `dumps`, which are open already, in place of the first dumps that it names. Prints to `streams`, whatever
    /// `--output` says. `trim` opens its dump anew, to see what is read.
    pub fn run_on(&self, dumps: &[Dump], mut streams: Streams<'_>) -> Exit {
        streams.dress(&self.config);
        let result = self.run_command(dumps, &mut streams);
        conclusion(result, &mut streams)
    }

    /// Answers it, about `dumps` that are open already.
    pub(super) fn run_command(&self, dumps: &[Dump], streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
        let Some(run) = self.command.run else {
            return Err(UsageError(format!("{} runs by itself, and on no dump that is open", self.command.name)).into());
        };
        // Analyses return that error. Exports make arrays as well.
        caught(|| run(&self.matches, &self.config, dumps, streams)).map_err(Error::from)?
    }
}

/// Help that fits the screen which it is shown on; any other error as it is.
pub(super) fn fitted(e: clap::Error, args: &[OsString], streams: &Streams<'_>) -> clap::Error {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    let screen = if e.use_stderr() { streams.err_screen } else { streams.screen };
    match screen.width.filter(|_| matches!(e.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand)) {
        Some(width) => command_line_within(width).try_get_matches_from(args).err().unwrap_or(e),
        None => e,
    }
}
