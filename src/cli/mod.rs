//! The command line. The only floor that prints, and the only one that uses `anyhow`.

mod args;
mod cache;
mod cmd;
mod command;
mod completion;
mod exit;
#[cfg(feature = "fetch")]
mod fetch;
mod help;
mod job;
mod lake;
mod man;
mod mcp;
mod notes;
mod open;
mod pager;
mod pick;
mod progress;
mod registry;
mod screen;
mod select;
mod shell;
mod sos;
mod words;
mod write;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use clap::{ArgMatches, FromArgMatches};

pub use args::Config;
use command::At;
pub use command::{Entry, Example, Group};
pub use completion::{complete, completed_in_bash, completed_in_powershell, words_of_bash};
pub use exit::Exit;
pub use mcp::MCP;
#[cfg(feature = "internals")]
pub use mcp::{conversation as mcp_conversation, try_mcp};
pub use pager::paging;
pub use registry::{COMMANDS, command_line};
pub use screen::screen_of;
pub use shell::{SHELL, completed_in_shell, words_of_shell};
pub use sos::{COMMANDS as SOS, Flag, FlagTo, Form, Sos, To};
pub use write::remove_unfinished;

pub use crate::dump::HugePages;
pub use crate::output::{Screen, Seen};

use crate::base::store::caught;
use crate::base::threads::make_pool;
use crate::base::{Cancel, NoteKind, Notes};
use crate::contract::{ContractError, RuntimeError};
use crate::dump::DumpError;
use crate::output::Target;
use crate::session::{Dump, Error};
use exit::UsageError;
use job::Ended;
use words::Ordered;

/// Output streams of a run.
pub struct Streams<'a> {
    /// Answers.
    pub out: &'a mut dyn Write,
    /// Diagnostics.
    pub err: &'a mut dyn Write,
    /// What `out` is shown on.
    pub screen: Screen,
    /// What `err` is shown on.
    pub err_screen: Screen,
    /// Receives the addresses in the rows of tables.
    pub seen: Option<&'a Seen>,
    /// Receives the command that leads on from the answer, without the dump.
    pub next: Option<&'a OnceLock<&'static str>>,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("screen", &self.screen).field("err_screen", &self.err_screen).finish_non_exhaustive()
    }
}

impl<'a> Streams<'a> {
    /// Streams to pipes.
    pub fn piped(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Streams<'a> {
        Streams { out, err, screen: Screen::NONE, err_screen: Screen::NONE, seen: None, next: None }
    }
}

impl Streams<'_> {
    /// The same, with answers to `out`, which is no screen.
    fn with_output<'s>(&'s mut self, out: &'s mut dyn Write) -> Streams<'s> {
        Streams { out, err: &mut *self.err, screen: Screen::NONE, err_screen: self.err_screen, seen: self.seen, next: self.next }
    }

    /// Widths and colours as the options have them.
    fn dress(&mut self, config: &Config) {
        self.screen = config.screen(self.screen);
        self.err_screen = config.screen(self.err_screen);
    }

    /// Where answers go.
    fn target(&mut self) -> Target<'_> {
        Target { out: &mut *self.out, screen: self.screen, seen: self.seen }
    }

    /// Writes a line of diagnostics, without control characters if a terminal shows it, and wrapped to its width.
    fn say(&mut self, line: &str) -> io::Result<()> {
        self.err_screen.lines(line).iter().try_for_each(|line| writeln!(self.err, "{line}"))
    }

    /// Writes a command line, which is pasted as it stands.
    fn show_command(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "{}", self.err_screen.wide().lines(line).concat())
    }

    /// Writes a line of diagnostics behind a coloured `word`.
    fn warn(&mut self, word: &str, message: &str) -> io::Result<()> {
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

    /// Table rows that fit the screen with the surrounding text; a default if there is no screen.
    fn rows(&self) -> usize {
        const AROUND: usize = 9;
        const WITHOUT_SCREEN: usize = 40;
        self.screen.height.map_or(WITHOUT_SCREEN, |lines| lines.saturating_sub(AROUND).max(5))
    }
}

/// Runs a command line and returns its exit code. Never exits the process. Does not enforce `--timeout`, which is up to the
/// caller: only the caller can abandon the work.
pub fn run(args: impl IntoIterator<Item = OsString>, mut streams: Streams<'_>) -> Exit {
    match parse(args, &mut streams) {
        Ok(cli) => run_parsed(&cli, streams),
        Err(exit) => exit,
    }
}

/// Idle threads look for work at each other, which a thousand of them do for seconds.
const THREADS_PER_PROCESSOR: usize = 4;

/// The options and commands. To build them takes longer than a command on a small dump, which counts for shells, assistants and tests.
static LINE: LazyLock<clap::Command> = LazyLock::new(command_line);

/// Copies of [`LINE`] that are not in use. Parsing adds to a copy.
static PARSERS: Mutex<Vec<clap::Command>> = Mutex::new(Vec::new());

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Cli {
    /// Global options.
    pub config: Config,
    command: &'static Entry,
    matches: ArgMatches,
}

impl Cli {
    /// Whether it watches time and memory of its commands itself, and has no answer of its own for `--output`.
    pub fn watches_itself(&self) -> bool {
        [shell::NAME, mcp::NAME].contains(&self.command.name)
    }

    fn of(args: &[OsString]) -> Result<Cli, clap::Error> {
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
        Ok(Cli { config, command, matches: own.clone() })
    }

    /// Runs it on `dumps`, which are open already, in place of the first dumps that it names. Prints to `streams`, whatever
    /// `--output` says. `trim` opens its dump anew, to see what is read.
    pub fn run_on(&self, dumps: &[Dump], mut streams: Streams<'_>) -> Exit {
        streams.dress(&self.config);
        let result = self.run_command(dumps, &mut streams);
        conclusion(result, &mut streams)
    }

    fn run(&self, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
        // One that exists is kept, as in tests that run several commands; answers do not depend on it.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let most = processors.saturating_mul(THREADS_PER_PROCESSOR);
        make_pool(self.config.threads.map(|threads| usize::from(threads).min(most)));
        self.run_command(&[], streams)
    }

    fn run_command(&self, dumps: &[Dump], streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
        // Analyses return that error. Exports make arrays as well.
        caught(|| (self.command.run)(&self.matches, &self.config, dumps, streams)).map_err(Error::from)?
    }
}

/// Parses a command line. Prints usage errors and help.
///
/// # Errors
/// The exit code, if the command line is invalid or asks for help.
pub fn parse(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> Result<Cli, Exit> {
    let args: Vec<OsString> = args.into_iter().collect();
    let args = match words::ordered(args, &LINE) {
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
        None => cli.run(&mut streams),
        Some(path) if write::is_standard_output(&path) && !cli.command.names_output => cli.run(&mut streams),
        Some(_) if cli.watches_itself() || cli.command.names_output => cli.run(&mut streams),
        Some(path) => to_file(&path, &mut streams, |streams| {
            streams.dress(&cli.config);
            cli.run(streams)
        }),
    };
    conclusion(result, &mut streams)
}

/// Runs the command with a pager for what does not fit the screen. Diagnostics wait until the pager is left.
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
        let result = cli.run(&mut inner);
        conclusion(result, &mut inner)
    };
    let left = paged.finish();
    // There is nowhere left to report a failure.
    let _ = streams.err.write_all(&err);
    match left {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&anyhow::Error::new(e).context("writing the answer"), streams),
        _ => exit,
    }
}

/// Flushes the answer, reports an error, and returns the exit code.
fn conclusion(result: anyhow::Result<Exit>, streams: &mut Streams<'_>) -> Exit {
    let flushed = streams.out.flush();
    match result {
        Err(e) if broken_pipe(&e) => Exit::Ok,
        _ if flushed.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) => Exit::Ok,
        Ok(exit) => match flushed {
            Ok(()) => exit,
            Err(e) => fail(&anyhow::Error::new(e).context("writing the answer"), streams),
        },
        Err(e) => fail(&e, streams),
    }
}

/// Help that fits the screen which it is shown on; any other error as it is.
fn fitted(e: clap::Error, args: &[OsString], streams: &Streams<'_>) -> clap::Error {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    let screen = if e.use_stderr() { streams.err_screen } else { streams.screen };
    match screen.width.filter(|_| matches!(e.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand)) {
        Some(width) => registry::command_line_within(width).try_get_matches_from(args).err().unwrap_or(e),
        None => e,
    }
}

/// Help and version go to `out` with success, usage errors to `err`. Errors repeat arguments: unless those are `plain`, a terminal is
/// shown neither their control characters nor colours.
fn usage(e: &clap::Error, plain: bool, streams: &mut Streams<'_>) -> Exit {
    let to_err = e.use_stderr();
    let text = e.render();
    let (stream, screen): (&mut dyn Write, Screen) =
        if to_err { (&mut *streams.err, streams.err_screen) } else { (&mut *streams.out, streams.screen) };
    let written = match (screen.interprets(), plain) {
        (true, false) => text.to_string().lines().try_for_each(|line| writeln!(stream, "{}", crate::output::sanitize(line))),
        _ if screen.colour => write!(stream, "{}", text.ansi()),
        _ => write!(stream, "{text}"),
    };
    if to_err {
        // There is nowhere left to report a failure.
        let _ = written.and_then(|()| stream.flush());
        return Exit::Usage;
    }
    conclusion(written.map(|()| Exit::Ok).map_err(|e| anyhow::Error::new(e).context("writing the answer")), streams)
}

/// The error of a command line, in one line.
fn in_one_line(e: &clap::Error) -> String {
    let text = e.to_string();
    let message = text.lines().map_while(|l| Some(l.trim()).filter(|l| !l.is_empty())).collect::<Vec<_>>().join(" ");
    let tip = text.lines().find_map(|l| l.trim().strip_prefix("tip: "));
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    tip.map_or_else(|| message.to_string(), |tip| format!("{message}; {tip}"))
}

/// Runs `work`, whose output goes to the file at `path` once it is complete.
fn to_file(
    path: &std::path::Path,
    streams: &mut Streams<'_>,
    work: impl FnOnce(&mut Streams<'_>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    use anyhow::Context as _;
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
    // What cannot be written says why; where, only this knows.
    let exit = work(&mut streams.with_output(&mut out)).map_err(|e| match e.downcast_ref::<io::Error>() {
        Some(_) => e.context(format!("writing {}", path.display())),
        None => e,
    })?;
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

/// Runs a parsed command line where the system starts no other thread, and returns its exit code: `stopped` ends it, and so do `--timeout`
/// and `--max-memory`. `None` if it was stopped.
pub fn run_here(cli: &Cli, streams: Streams<'_>, stopped: &Arc<AtomicBool>) -> Option<Exit> {
    let inner = Streams { out: &mut *streams.out, err: &mut *streams.err, ..streams };
    match job::here(&Cancel::of(Arc::clone(stopped)), &cli.config, || run_parsed(cli, inner)) {
        Ended::Done(exit) => Some(exit),
        Ended::Interrupted => None,
        Ended::TimedOut => Some(out_of_time(&cli.config, streams.err)),
        Ended::TooMuch => Some(out_of_memory(&cli.config, streams.err)),
    }
}

/// Stops the command that runs in a shell, because of an interrupt or of another signal. Returns false if the signal is to end the process.
pub fn interrupt(interrupted: bool) -> bool {
    shell::interrupt(interrupted)
}

/// Reports on `err` that `--timeout` expired.
pub fn out_of_time(config: &Config, err: &mut dyn Write) -> Exit {
    let after = config.timeout.unwrap_or_default();
    let _ = writeln!(err, "gcdump: timed out after {after:?} (--timeout)");
    Exit::Timeout
}

/// Memory in bytes that `--max-memory` does not count: stacks, buffers, tables of the program itself.
const OWN_MEMORY: u64 = 16 << 20;

/// Whether the process takes more memory than `--max-memory` allows. Only Linux tells: elsewhere the estimates of the commands
/// have to do.
pub fn takes_too_much(config: &Config) -> bool {
    takes_more_than(config.max_memory)
}

/// Whether the process takes more than this many bytes.
fn takes_more_than(allowed: Option<u64>) -> bool {
    let Some(allowed) = allowed else { return false };
    // Without the pages of mapped files, the dump's and those of graphs beyond the limit: they can be taken back at any time.
    let status = own_status().unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib: Option<u64> = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.is_some_and(|kib| kib.saturating_mul(1024) > allowed.saturating_add(OWN_MEMORY))
}

/// The state of this process by the system, read from a file that stays open: at a limit of descriptors no other can be opened.
#[cfg(unix)]
fn own_status() -> Option<String> {
    use std::os::unix::fs::FileExt;
    const LONGEST: usize = 8 << 10;
    static STATUS: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/self/status").ok());
    let mut text = vec![0; LONGEST];
    let read = STATUS.as_ref()?.read_at(&mut text, 0).ok()?;
    text.truncate(read);
    String::from_utf8(text).ok()
}

#[cfg(not(unix))]
fn own_status() -> Option<String> {
    None
}

/// Reports on `err` that `--max-memory` is exceeded.
pub fn out_of_memory(config: &Config, err: &mut dyn Write) -> Exit {
    let allowed = config.max_memory.unwrap_or_default();
    let _ = writeln!(err, "gcdump: more than {allowed} bytes of memory are needed (--max-memory)");
    Exit::Usage
}

fn fail(e: &anyhow::Error, streams: &mut Streams<'_>) -> Exit {
    let _ = streams.warn("gcdump", &format!("{e:#}"));
    exit_of(e)
}

/// The exit code for an error.
fn exit_of(e: &anyhow::Error) -> Exit {
    let no_such_form = |e: &io::Error| e.kind() == io::ErrorKind::Unsupported;
    if e.is::<UsageError>() || e.downcast_ref().is_some_and(no_such_form) {
        return Exit::Usage;
    }
    match e.downcast_ref::<Error>() {
        Some(Error::Query(_) | Error::Memory(_)) => Exit::Usage,
        Some(Error::Room(_) | Error::Dump(DumpError::NoSpace { .. } | DumpError::NoTemporaryFile { .. })) => Exit::NotWritten,
        Some(Error::NoObject(_) | Error::Nothing(_)) => Exit::Negative,
        Some(Error::Unknown(..)) => Exit::Partial,
        Some(Error::Runtime(_) | Error::Contract(_)) => Exit::NoRuntime,
        _ if e.chain().any(|c| c.is::<RuntimeError>() || c.is::<ContractError>()) => Exit::NoRuntime,
        // What a dump is read from has errors of its own.
        None if e.chain().any(|c| c.is::<io::Error>()) && !e.chain().any(|c| c.is::<DumpError>()) => Exit::NotWritten,
        _ => Exit::BadDump,
    }
}

/// Prints the notes unless the format includes them, and returns the exit code for the completeness of the answer.
fn conclude(at: &At<'_>, notes: &Notes, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if !at.format().writer().carries_notes() {
        streams.out.flush()?;
        notes::show(notes, streams)?;
    }
    if let Some(remark) = at.remark() {
        streams.say(&format!("gcdump: {remark}"))?;
    }
    // A bundled overlay that passed its checks is the regular way to read .NET 8 to 10, and nothing is wrong with a second runtime.
    let regular = [NoteKind::OverlayUsed, NoteKind::OtherRuntimes];
    let strict = at.config.strict && notes.iter().any(|n| !regular.contains(&n.kind));
    Ok(if !notes.complete() || strict { Exit::Partial } else { Exit::Ok })
}
