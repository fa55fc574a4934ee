//! Floor 8: arguments to answers to exit codes. The only floor that uses `anyhow`, and the only one that prints.

mod args;
mod cmd;
mod command;
mod exit;
mod open;
mod pick;
mod progress;
mod registry;
mod select;
mod sos;
mod write;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use clap::{ArgMatches, FromArgMatches};

pub use args::Config;
use command::At;
pub use command::{Entry, Example, Group};
pub use exit::Exit;
pub use registry::{COMMANDS, command_line};
pub use write::remove_unfinished;

use crate::base::{NoteKind, Notes};
use crate::contract::{ContractError, RuntimeError};
use crate::session::Error;
use exit::UsageError;

/// Where a run reads and writes.
pub struct Streams<'a> {
    /// Answers.
    pub out: &'a mut dyn Write,
    /// Everything else.
    pub err: &'a mut dyn Write,
    /// Whether a person looks at `out`.
    pub out_is_terminal: bool,
    /// Whether a person looks at `err`.
    pub err_is_terminal: bool,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams")
            .field("out_is_terminal", &self.out_is_terminal)
            .field("err_is_terminal", &self.err_is_terminal)
            .finish_non_exhaustive()
    }
}

impl Streams<'_> {
    /// Rows of a table that fit the screen with what stands around it; a readable number where there is no screen.
    fn rows(&self) -> usize {
        const AROUND: usize = 9;
        const WITHOUT_SCREEN: usize = 40;
        let screen = terminal_size::terminal_size().filter(|_| self.out_is_terminal);
        screen.map_or(WITHOUT_SCREEN, |(_, h)| usize::from(h.0).saturating_sub(AROUND).max(5))
    }
}

/// Runs a command line and says how it ended. Never ends the process itself, and takes the time that it takes: who keeps
/// `--timeout` is the caller, who alone can leave the work behind.
pub fn run(args: impl IntoIterator<Item = OsString>, mut streams: Streams<'_>) -> Exit {
    match parse(args, &mut streams) {
        Ok(cli) => run_parsed(&cli, streams),
        Err(exit) => exit,
    }
}

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Cli {
    /// Options that every command has.
    pub config: Config,
    command: &'static Entry,
    matches: ArgMatches,
}

impl Cli {
    fn of(args: &[OsString]) -> Result<Cli, clap::Error> {
        let matches = command_line().try_get_matches_from(args)?;
        let config = Config::from_arg_matches(&matches)?;
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, own) = matches.subcommand().ok_or_else(unknown)?;
        let command = registry::find(name).ok_or_else(unknown)?;
        Ok(Cli { config, command, matches: own.clone() })
    }

    fn run(&self, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
        if let Some(threads) = self.config.threads {
            // Fails where the pool is there already, as in a test that runs several commands: answers do not depend on it.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global();
        }
        (self.command.run)(&self.matches, &self.config, streams)
    }
}

/// Parses a command line. Where it is a wrong one, or asks for help, that is printed, and the run has ended.
///
/// # Errors
/// How the run ended.
pub fn parse(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> Result<Cli, Exit> {
    let args = sos::translate(args.into_iter().collect());
    Cli::of(&args).map_err(|e| usage(&e, streams))
}

/// Runs a parsed command line, as [`run`] does.
pub fn run_parsed(cli: &Cli, mut streams: Streams<'_>) -> Exit {
    let result = match cli.config.output.clone() {
        None => cli.run(&mut streams),
        Some(path) => to_file(cli, &path, &mut streams),
    };
    let flushed = streams.out.flush();
    match result {
        Err(e) if broken_pipe(&e) => Exit::Ok,
        _ if flushed.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) => Exit::Ok,
        Ok(exit) => match flushed {
            Ok(()) => exit,
            Err(e) => fail(&anyhow::Error::new(e).context("writing the answer"), &mut streams),
        },
        Err(e) => fail(&e, &mut streams),
    }
}

/// Help and versions go to `out` with success, wrong arguments to `err`.
fn usage(e: &clap::Error, streams: &mut Streams<'_>) -> Exit {
    let to_err = e.use_stderr();
    let text = e.render();
    let (stream, terminal): (&mut dyn Write, bool) =
        if to_err { (&mut *streams.err, streams.err_is_terminal) } else { (&mut *streams.out, streams.out_is_terminal) };
    // Nobody is left to tell when this fails.
    let _ = if terminal { write!(stream, "{}", text.ansi()) } else { write!(stream, "{text}") };
    let _ = stream.flush();
    if to_err { Exit::Usage } else { Exit::Ok }
}

fn to_file(cli: &Cli, path: &std::path::Path, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    use anyhow::Context;
    // `gcdump heap -o crash.dmp` must not cost anybody their dump.
    if pick::could_be_dump(path) {
        return Err(UsageError(format!("{} may be a dump; it is not overwritten", path.display())).into());
    }
    let cannot = |e: io::Error| UsageError(format!("cannot write {}: {e}", path.display()));
    // Pipes and devices are written to as they are.
    let special = path.metadata().is_ok_and(|m| !m.is_file());
    let draft = if special { None } else { Some(write::Draft::of(path, true).map_err(cannot)?) };
    let file = match &draft {
        Some(draft) => draft.file().try_clone(),
        None => File::options().write(true).open(path),
    };
    let mut out = BufWriter::new(file.map_err(cannot)?);
    let inner = Streams { out: &mut out, err: &mut *streams.err, out_is_terminal: false, err_is_terminal: streams.err_is_terminal };
    let exit = cli.run(&mut { inner })?;
    out.flush().and_then(|()| draft.map_or(Ok(()), |d| d.finish(true))).with_context(|| format!("writing {}", path.display()))?;
    Ok(exit)
}

fn broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io == Some(io::ErrorKind::BrokenPipe) || json == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Says on `err` that the time of `--timeout` is over.
pub fn out_of_time(cli: &Cli, err: &mut dyn Write) -> Exit {
    let after = cli.config.timeout.unwrap_or_default();
    remove_unfinished();
    let _ = writeln!(err, "gcdump: not done after {after:?} (--timeout)");
    Exit::Timeout
}

fn fail(e: &anyhow::Error, streams: &mut Streams<'_>) -> Exit {
    let text = format!("{e:#}");
    let text = if streams.err_is_terminal { crate::output::sanitize(&text).into_owned() } else { text };
    let _ = writeln!(streams.err, "gcdump: {text}");
    exit_of(e)
}

fn exit_of(e: &anyhow::Error) -> Exit {
    let no_such_form = |e: &io::Error| e.kind() == io::ErrorKind::Unsupported;
    if e.is::<UsageError>() || e.downcast_ref().is_some_and(no_such_form) {
        return Exit::Usage;
    }
    match e.downcast_ref::<Error>() {
        Some(Error::Query(_) | Error::Memory(_)) => Exit::Usage,
        Some(Error::NoObject(_) | Error::Nothing(_)) => Exit::Negative,
        Some(Error::Runtime(_) | Error::Contract(_)) => Exit::NoRuntime,
        _ if e.chain().any(|c| c.is::<RuntimeError>() || c.is::<ContractError>()) => Exit::NoRuntime,
        _ => Exit::BadDump,
    }
}

/// Shows the notes where the answer does not carry them, and says how complete it is.
fn conclude(at: &At<'_>, notes: &Notes, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if !at.format().writer().carries_notes() {
        streams.out.flush()?;
        show_notes(notes, streams)?;
    }
    // A bundled overlay that passed its checks is how .NET 8 to 10 are read: nothing to be strict about.
    let strict = at.config.strict && notes.iter().any(|n| n.kind != NoteKind::OverlayUsed);
    Ok(if !notes.complete() || strict { Exit::Partial } else { Exit::Ok })
}

/// Tells a person what went less than perfectly. JSON and NDJSON carry the same as `warnings`.
fn show_notes(notes: &Notes, streams: &mut Streams<'_>) -> io::Result<()> {
    const SHOWN: usize = 12;
    for note in notes.iter().take(SHOWN) {
        let word = match note.kind {
            NoteKind::GcInProgress => "WARNING",
            k if k.makes_partial() => "missing",
            _ => "warning",
        };
        let text = if streams.err_is_terminal { crate::output::sanitize(&note.message).into_owned() } else { note.message.clone() };
        writeln!(streams.err, "{word}: {text}")?;
    }
    let more = notes.iter().len().saturating_sub(SHOWN);
    if more > 0 {
        writeln!(streams.err, "… and {more} more of these; --json lists them all")?;
    }
    Ok(())
}
