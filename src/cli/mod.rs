//! The command line. The only layer that prints, and the only one that uses `anyhow`.

mod advice;
mod args;
mod cache;
mod cmd;
mod command;
mod command_line;
mod completion;
mod exit;
mod failure;
#[cfg(feature = "fetch")]
mod fetch;
mod first;
mod help;
mod job;
mod lake;
mod limits;
mod line;
mod man;
mod mcp;
mod meant;
mod notes;
mod object_name;
mod open;
mod pager;
mod parsed;
mod pick;
mod progress;
mod registry;
mod screen;
mod select;
mod shell;
mod sos;
mod standard_input;
mod streams;
mod values;
mod words;
mod write;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ArgMatches;

pub use args::Config;
pub use cmd::mcp::MCP;
pub use cmd::shell::SHELL;
pub use command::{Entry, Example, Group};
pub use command_line::command_line;
pub use completion::{complete, completed_in_bash, completed_in_powershell, words_of_bash};
pub use exit::Exit;
pub use limits::{out_of_memory, out_of_time, takes_too_much};
#[cfg(feature = "internals")]
pub use mcp::{conversation as mcp_conversation, try_mcp};
pub use pager::paging;
pub use parsed::Cli;
pub use registry::COMMANDS;
pub use screen::screen_of;
pub use shell::{completed_in_shell, words_of_shell};
pub use sos::{COMMANDS as SOS, Flag, FlagTo, Form, HABITS, Sos, To};
pub use streams::Streams;
pub use write::remove_unfinished;

pub use crate::output::{Screen, Seen};

use crate::base::Cancel;
use crate::base::store::caught;
use crate::base::threads::make_pool;
use crate::session::Error;
use cmd::completions::COMPLETIONS;
use cmd::man::MAN;
use failure::{conclusion, fail, usage};
use job::Ended;
use parsed::{LINE, fitted};
use streams::to_file;
use words::Ordered;

/// Runs a command line and returns its exit code. Never exits the process. Does not enforce `--timeout`: only the caller can abandon the
/// work.
pub fn run(args: impl IntoIterator<Item = OsString>, mut streams: Streams<'_>) -> Exit {
    match parse(args, &mut streams) {
        Ok(cli) => run_parsed(&cli, streams),
        Err(exit) => exit,
    }
}

/// Maximum number of threads per processor. Idle rayon workers search for work to steal: a thousand of them spin for seconds.
const THREADS_PER_PROCESSOR: usize = 4;

/// Runs a command without a report.
type RunOwn = fn(&ArgMatches, &Config, &mut Streams<'_>) -> anyhow::Result<Exit>;

/// The commands without a report: they run other commands, or print data of the program itself.
const OWN: [(&str, RunOwn); 4] = [
    (SHELL.name, shell::run),
    (MCP.name, mcp::run),
    (COMPLETIONS.name, |matches, _, streams| completion::run(matches, streams)),
    (MAN.name, |matches, _, streams| man::run(matches, streams)),
];

/// Runs a parsed command in a process without an open dump.
fn run_alone(cli: &Cli, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    // If the process already has a thread pool, as in tests that run several commands, the pool is kept. Answers do not depend on the pool.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = processors.saturating_mul(THREADS_PER_PROCESSOR);
    make_pool(cli.config.threads.map(|threads| usize::from(threads).min(most)));
    match OWN.iter().find(|(name, _)| *name == cli.command.name) {
        Some((_, run)) => caught(|| run(&cli.matches, &cli.config, streams)).map_err(Error::from)?,
        None => cli.run_command(&[], streams),
    }
}

/// Parses a command line. Prints usage errors and help.
///
/// # Errors
/// The exit code, if the command line is invalid or asks for help.
pub fn parse(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> Result<Cli, Exit> {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.len() <= 1 {
        let Some(first) = first::first(Path::new(".")) else {
            // A failure to write to standard error cannot be reported.
            let _ = streams.err.write_all(first::NO_DUMP.as_bytes());
            return Err(Exit::Usage);
        };
        let cli = Cli::of(&first.line).map_err(|e| usage(&e, true, streams))?;
        return Ok(Cli { hints: first.hints, ..cli });
    }
    let args = match words::ordered(args, &LINE, &|| pick::default_dump(Path::new("."))) {
        Ok(Ordered::Line(args)) => args,
        Ok(Ordered::Help(topic)) => {
            let text = help::text(topic, streams.screen.width);
            let written = streams.out.write_all(text.as_bytes()).map_err(|e| anyhow::Error::new(e).context("writing the answer"));
            return Err(conclusion(written.map(|()| Exit::Ok), streams));
        }
        Err(e) => return Err(fail(&e.into(), streams)),
    };
    let plain = args.iter().all(|arg| arg.to_str().is_some_and(|text| matches!(crate::output::sanitize(text), Cow::Borrowed(_))));
    Cli::of(&args).map_err(|e| usage(&fitted(e, &args, streams), plain, streams))
}

/// Runs a parsed command line, like [`run`].
pub fn run_parsed(cli: &Cli, mut streams: Streams<'_>) -> Exit {
    streams.dress(&cli.config);
    if let (Some(pager), Some(height), None) = (&cli.config.pager, streams.screen.height, &cli.config.output) {
        return to_pager(cli, pager::command(pager), height, &mut streams);
    }
    let result = match cli.config.output.clone() {
        None => run_alone(cli, &mut streams),
        Some(path) if write::is_standard_output(&path) && !cli.command.names_output => run_alone(cli, &mut streams),
        Some(_) if cli.watches_itself() || cli.command.names_output => run_alone(cli, &mut streams),
        Some(path) => to_file(&path, &mut streams, |streams| {
            streams.dress(&cli.config);
            run_alone(cli, streams)
        }),
    };
    if result.is_ok() && streams.screen.terminal {
        // A failure to write to standard error cannot be reported.
        let _ = streams.err.write_all(cli.hints.as_bytes());
    }
    conclusion(result, &mut streams)
}

/// Runs the command with a pager for output that does not fit the screen. Diagnostics are printed after the pager ends.
fn to_pager(cli: &Cli, pager: String, height: usize, streams: &mut Streams<'_>) -> Exit {
    let mut err = Vec::new();
    let mut paged = pager::Paged::new(&mut *streams.out, pager, (height, streams.screen.width.unwrap_or(usize::MAX)));
    let inner = Streams {
        out: &mut paged,
        err: &mut err,
        screen: streams.screen.paged(),
        err_screen: streams.err_screen,
        seen: streams.seen,
        next: streams.next,
    };
    let exit = {
        let mut inner = inner;
        let result = run_alone(cli, &mut inner);
        conclusion(result, &mut inner)
    };
    let left = paged.finish();
    // A failure to write to standard error cannot be reported.
    let _ = streams.err.write_all(&err);
    match left {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&anyhow::Error::new(e).context("writing the answer"), streams),
        _ => exit,
    }
}

/// Runs a parsed command line on the current thread, and returns its exit code. Used if no other thread can be started. `stopped`, `--timeout` and
/// `--max-memory` end the command. Returns `None` if `stopped` ended the command.
pub fn run_here(cli: &Cli, streams: Streams<'_>, stopped: &Arc<AtomicBool>) -> Option<Exit> {
    let inner = Streams { out: &mut *streams.out, err: &mut *streams.err, ..streams };
    match job::here(&Cancel::of(Arc::clone(stopped)), &cli.config, || run_parsed(cli, inner)) {
        Ended::Done(exit) => Some(exit),
        Ended::Interrupted => None,
        Ended::TimedOut => Some(out_of_time(&cli.config, streams.err)),
        Ended::TooMuch => Some(out_of_memory(&cli.config, streams.err)),
    }
}

/// Stops the command that runs in a shell, because of an interrupt or of another signal. Returns false if the signal should end the process.
pub fn interrupt(interrupted: bool) -> bool {
    shell::interrupt(interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_run() {
        for entry in registry::all() {
            assert_ne!(entry.run.is_some(), OWN.iter().any(|(name, _)| *name == entry.name), "{}", entry.name);
        }
    }
}
