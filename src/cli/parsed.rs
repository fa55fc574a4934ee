//! Parsed command lines.

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

/// The clap definition. It is built once, because building it takes longer than a command on a small dump, and shells, assistants and tests run many
/// commands.
pub(super) static LINE: LazyLock<clap::Command> = LazyLock::new(command_line);

/// Unused copies of [`LINE`]. Parsing modifies a copy.
static PARSERS: Mutex<Vec<clap::Command>> = Mutex::new(Vec::new());

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Cli {
    /// Global options.
    pub config: Config,
    pub(super) command: &'static Entry,
    pub(super) matches: ArgMatches,
    /// Suggested follow-up commands, shown after the answer on a terminal; empty unless the command line had no arguments.
    pub(super) hints: String,
}

impl Cli {
    /// Whether the command runs other commands (`shell`, `mcp`). Such a command enforces the time and memory limits of the other commands itself, and
    /// does not support `--output`.
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

    /// Runs the command on `dumps`, which are already open and replace the first dumps that it names. Prints to `streams` regardless of `--output`.
    /// `trim` opens its dump again to record reads.
    pub fn run_on(&self, dumps: &[Dump], mut streams: Streams<'_>) -> Exit {
        streams.dress(&self.config);
        let result = self.run_command(dumps, &mut streams);
        conclusion(result, &mut streams)
    }

    /// Runs the command on `dumps`, which are already open, and opens the other dumps.
    pub(super) fn run_command(&self, dumps: &[Dump], streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
        let Some(run) = self.command.run else {
            return Err(UsageError(format!("{} cannot be run on a dump that is already open", self.command.name)).into());
        };
        // Converts `NoRoom` (no space for temporary files) to an error. Analyses do this themselves, but exports allocate arrays outside of analyses.
        caught(|| run(&self.matches, &self.config, dumps, streams)).map_err(Error::from)?
    }
}

/// Wraps help to the width of its screen. Returns other errors unchanged.
pub(super) fn fitted(e: clap::Error, args: &[OsString], streams: &Streams<'_>) -> clap::Error {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    let screen = if e.use_stderr() { streams.err_screen } else { streams.screen };
    match screen.width.filter(|_| matches!(e.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand)) {
        Some(width) => command_line_within(width).try_get_matches_from(args).err().unwrap_or(e),
        None => e,
    }
}
