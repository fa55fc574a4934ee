//! One shell: the open dump, the printed addresses, and the execution of lines.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::super::args::Config;
use super::super::command::Entry;
use super::super::command_line::command_line;
use super::super::exit::{Exit, UsageError};
use super::super::failure::{fail, in_one_line, usage};
use super::super::job::{self, Ended};
use super::super::limits::{out_of_memory, out_of_time};
use super::super::line::{STANDARD_INPUT, is_path, takes_next};
use super::super::open::Opening;
use super::super::parsed::{Cli, fitted};
use super::super::streams::Streams;
use super::super::words::{Ordered, ordered};
use super::super::write::whole_file;
use super::super::{help, sos};
use super::commands::{self, OPEN};
use super::complete::{Completer, PATIENCE, Proposed, TYPES};
use super::interrupt::Interruptible;
use super::pipe;
use super::variables::Variables;
use super::words::{Statement, Tail, To, Word, split};
use crate::base::Cancel;
use crate::heapgraph::beside;
use crate::output::{Format, Seen, bytes};
use crate::session::Dump;

/// Maximum number of other dumps that stay open.
const OTHERS: usize = 2;

/// Minimum number of objects for which an index is written. Loading the index instead of building the graph saves at least 0.15 s, and several times
/// as much if the dump is not in the page cache.
const INDEX_PAYS: u32 = 2_000_000;

/// Whether the shell continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The shell continues.
    On,
    /// The shell ends.
    Quit,
}

/// The answer that `next` continues.
struct Last {
    entry: &'static Entry,
    args: Vec<OsString>,
    /// Number of rows of each table listed so far.
    listed: u64,
    /// Number of rows listed at a time.
    page: u64,
}

/// A command to run.
struct Job {
    cli: Cli,
    args: Vec<OsString>,
    /// Number of rows of each table that were already listed.
    skipped: u64,
    /// Whether row numbers continue the numbers of the last answer.
    continues: bool,
}

/// A shell.
pub(super) struct Session<'c> {
    config: &'c Config,
    opening: Opening,
    /// `None` before the first use, and after a command exceeded the memory limit.
    dump: Option<Dump>,
    /// Dumps that commands compared with the open dump, the latest last.
    others: VecDeque<(PathBuf, Dump)>,
    variables: Variables,
    last: Option<Last>,
    /// Type names, for completion.
    types: OnceCell<Vec<String>>,
}

impl<'c> Session<'c> {
    pub(super) fn new(config: &'c Config, opening: Opening) -> Session<'c> {
        Session {
            config,
            opening,
            dump: None,
            others: VecDeque::new(),
            variables: Variables::default(),
            last: None,
            types: OnceCell::new(),
        }
    }

    /// Opens the dump, within the time and memory limits of a command. Returns the exit code if the dump cannot be opened.
    ///
    /// # Errors
    /// Errors of writing to `streams`.
    pub(super) fn open(&mut self, streams: &mut Streams<'_>) -> Result<Option<Exit>> {
        let ended = run(self.config, streams, |mut streams| match self.kept(Wanted::Open) {
            Ok(_) => Exit::Ok,
            Err(e) => fail(&e, &mut streams),
        })?;
        let exit = self.stopped(self.config, ended, streams)?;
        Ok(Some(exit).filter(|_| ended != Ended::Done(Exit::Ok)))
    }

    /// Describes the open dump in one line.
    pub(super) fn about(&self) -> String {
        let name = match &self.opening.options.standard_input {
            Some(_) => STANDARD_INPUT.into(),
            None => self.opening.path.display().to_string(),
        };
        let Some(dump) = &self.dump else { return name };
        let runtime = match dump.runtime_at(self.config.runtime) {
            Ok(runtime) => format!(".NET {}", runtime.description().version.as_deref().unwrap_or("of an unknown version")),
            Err(e) => e.to_string(),
        };
        format!("{name}: {}, {runtime}", bytes(dump.file().facts.file_bytes))
    }

    /// Returns proposals for completion.
    pub(super) fn propose(&self, tail: &Tail) -> Proposed {
        Completer { variables: &self.variables, types: &self.types, find_types: &|| self.find_types() }.propose(tail)
    }

    /// Returns the type names that a short walk finds.
    fn find_types(&self) -> Vec<String> {
        let heap = || self.dump.as_ref()?.runtime_at(self.config.runtime).ok()?.heap().ok();
        let Some(heap) = heap() else { return Vec::new() };
        // If the walk runs out of time, `type_names` returns the types found so far.
        job::for_a_while(PATIENCE, || drop(heap.stat()));
        if let Some(progress) = &self.opening.options.progress {
            progress.finish();
        }
        heap.type_names(TYPES)
    }

    /// Writes an index next to the dump for the next shell, unless an index exists or the graph is small. A failure is only reported on `streams`,
    /// because the index was not requested.
    ///
    /// # Errors
    /// Errors of writing to `streams`.
    pub(super) fn leave_index(&mut self, streams: &mut Streams<'_>) -> Result<()> {
        let heap = || self.dump.as_ref()?.runtime_at(self.config.runtime).ok()?.heap().ok();
        let Some(heap) = heap().filter(|heap| heap.index_spares().is_some_and(|objects| objects >= INDEX_PAYS)) else { return Ok(()) };
        let path = beside(&self.opening.path);
        streams.say(&format!("gcdump: writing the index {} for later commands (Ctrl-C skips it)", path.display()))?;
        let ended = run(self.config, streams, |mut streams| match whole_file(&path, false, |file| Ok(heap.write_index(file)??)) {
            Ok(_) => Exit::Ok,
            Err(e) => fail(&e.context("no index"), &mut streams),
        })?;
        self.stopped(self.config, ended, streams)?;
        Ok(())
    }

    /// Runs the commands of a line, until `ended` returns true for the exit code of a command.
    ///
    /// # Errors
    /// Errors of writing to `streams`.
    pub(super) fn line(&mut self, line: &str, streams: &mut Streams<'_>, mut ended: impl FnMut(Exit) -> bool) -> Result<Flow> {
        let statements = match split(line) {
            Ok(statements) => statements,
            Err(message) => {
                let exit = fail(&UsageError(message).into(), streams);
                return Ok(if ended(exit) { Flow::Quit } else { Flow::On });
            }
        };
        for statement in &statements {
            if matches!(statement.words.first().and_then(Word::plain), Some("quit" | "exit" | "q")) {
                return Ok(Flow::Quit);
            }
            let exit = self.statement(statement, streams);
            streams.out.flush()?;
            if ended(exit) {
                return Ok(Flow::Quit);
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &Statement, streams: &mut Streams<'_>) -> Exit {
        let done = match &statement.to {
            To::Here => self.command(&statement.words, streams),
            To::Program(program) => pipe::to_program(program, streams, |streams| self.command(&statement.words, streams)),
            To::File { name, append } => {
                self.file(name).and_then(|path| pipe::into_file(&path, *append, streams, |streams| self.command(&statement.words, streams)))
            }
        };
        done.unwrap_or_else(|e| match e.downcast_ref() {
            Some(Stopped(exit)) => *exit,
            None => fail(&e, streams),
        })
    }

    fn file(&self, name: &Word) -> Result<PathBuf> {
        Ok(self.variables.text(name, false).map_err(UsageError)?.into())
    }

    fn command(&mut self, words: &[Word], streams: &mut Streams<'_>) -> Result<Exit> {
        let name = words.first().and_then(Word::plain).unwrap_or_default();
        let words = match name {
            _ if words.len() == 1 && (name == "?" || sos::bare(name) == "help") => {
                streams.out.write_all(super::help::overview().as_bytes())?;
                return Ok(Exit::Ok);
            }
            "next" if words.len() == 1 => self.next()?,
            "next" => return Err(UsageError("next takes no arguments: it continues the last answer".into()).into()),
            _ => match self.typed(words)? {
                Ordered::Line(args) => Words { args, skipped: 0, continues: false },
                Ordered::Help(topic) => {
                    streams.out.write_all(help::text(topic, streams.screen.width).as_bytes())?;
                    return Ok(Exit::Ok);
                }
            },
        };
        let args = words.args.clone();
        match self.parsed(words) {
            Ok((job, dumps)) => self.run(job, dumps, streams),
            Err(Refused::ByClap(e)) if !e.use_stderr() => Ok(usage(&fitted(e, &args, streams), false, streams)),
            Err(Refused::ByClap(e)) => Err(UsageError(in_one_line(&e)).into()),
            Err(Refused::Here(e)) => Err(e),
        }
    }

    /// Builds the command line that was typed.
    fn typed(&self, words: &[Word]) -> Result<Ordered> {
        // A line that was copied from a hint begins with `gcdump`.
        let words = match words {
            [name, rest @ ..] if name.plain() == Some("gcdump") && !rest.is_empty() => rest,
            words => words,
        };
        let words = match words {
            [name, rest @ ..] if name.plain().is_some_and(sos::is_prefix) && !rest.is_empty() => rest,
            words => words,
        };
        let about = match words.first() {
            Some(word) => self.variables.about(word).map_err(UsageError)?,
            None => None,
        };
        let first = about.or_else(|| words.first().and_then(Word::plain)).unwrap_or_default();
        let arguments = commands::named(first).map(Entry::command);
        let by_type = arguments.as_ref().is_some_and(|c| c.get_arguments().any(commands::is_type));
        let mut args: Vec<OsString> = vec!["gcdump".into()];
        args.extend(about.map(OsString::from));
        let mut is_value = false;
        for word in words {
            let text = self.variables.text(word, by_type && !is_value).map_err(UsageError)?;
            let option = arguments.as_ref().and_then(|c| commands::option(c, &text));
            is_value = option.is_some_and(takes_next) && !text.contains('=') || (text.starts_with('-') && option.is_none());
            // A quoted `.` names a file, not the open dump.
            args.push(if text == OPEN && word.quoted { "./.".into() } else { text.into() });
        }
        // Reports an unknown command here, before `ordered` takes the word for the value of an option or for a file.
        if sos::bare(first) != "help"
            && !first.starts_with('-')
            && !is_path(first.as_ref())
            && arguments.is_none()
            && sos::find(first).is_none()
        {
            let near = commands::nearest(first).map(|n| format!("; did you mean '{n}'?")).unwrap_or_default();
            return Err(UsageError(format!("there is no command '{first}'{near}")).into());
        }
        Ok(ordered(args, &command_line(), &|| Some(self.opening.path.clone()))?)
    }
}

/// A command line for clap.
struct Words {
    args: Vec<OsString>,
    skipped: u64,
    continues: bool,
}

/// Reasons for not running a command.
enum Refused {
    ByClap(clap::Error),
    Here(anyhow::Error),
}

impl From<clap::Error> for Refused {
    fn from(e: clap::Error) -> Refused {
        Refused::ByClap(e)
    }
}

impl From<anyhow::Error> for Refused {
    fn from(e: anyhow::Error) -> Refused {
        Refused::Here(e)
    }
}

impl From<UsageError> for Refused {
    fn from(e: UsageError) -> Refused {
        Refused::Here(e.into())
    }
}

/// Error of a command that was stopped. The reason has already been printed.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Stopped(Exit);

/// The dump of a command.
enum Wanted {
    Open,
    Other(PathBuf),
}

impl Session<'_> {
    fn parsed(&mut self, words: Words) -> Result<(Job, Vec<Wanted>), Refused> {
        let name = words.args.get(1).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(entry) = commands::named(&name) else {
            // The line begins with an option: clap reports the missing command.
            let refused = if name.starts_with('-') { Cli::of(&words.args).err() } else { None };
            return Err(refused.map_or_else(|| UsageError(format!("there is no command '{name}'")).into(), Refused::ByClap));
        };
        let mut args = commands::with_open(entry, words.args);
        let open = self.opening.path.clone().into_os_string();
        args.iter_mut().filter(|a| **a == OPEN).for_each(|a| a.clone_from(&open));
        let mut cli = Cli::of(&args)?;
        let given = |id: &str| cli.matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        if given("threads") {
            return Err(UsageError("--threads is an option of the shell itself".into()).into());
        }
        cli.config = cli.config.clone().over(self.config, given);
        let mut named = (cli.command.dumps)(&cli.matches)?;
        // A command that compares dumps may omit its first dump. It then compares the open dump with the named dumps.
        if !named.is_empty() && commands::leaves_out_dump(entry, &cli.matches) {
            named.insert(0, self.opening.path.clone());
        }
        let wanted = self.wanted(&cli, named)?;
        Ok((Job { cli, args, skipped: words.skipped, continues: words.continues }, wanted))
    }

    /// Returns the dumps of a command.
    fn wanted(&self, cli: &Cli, named: Vec<PathBuf>) -> Result<Vec<Wanted>, UsageError> {
        let is_open = |path: &Path| *path == self.opening.path || is_same_file(path, &self.opening.path);
        match named.as_slice() {
            [] => Ok(vec![Wanted::Open]),
            [path] if !is_open(path) => Err(UsageError(format!(
                "this shell has {} open: omit {}, or run '{}' in another shell",
                self.opening.path.display(),
                path.display(),
                cli.command.name
            ))),
            _ => Ok(named.into_iter().map(|path| if is_open(&path) { Wanted::Open } else { Wanted::Other(path) }).collect()),
        }
    }

    fn run(&mut self, job: Job, wanted: Vec<Wanted>, streams: &mut Streams<'_>) -> Result<Exit> {
        if let Some(path) = job.cli.config.output.clone().filter(|_| !job.cli.command.names_output) {
            let job = Job { cli: Cli { config: Config { output: None, ..job.cli.config }, ..job.cli }, ..job };
            return pipe::into_file(&path, false, streams, |streams| self.run(job, wanted, streams));
        }
        let Job { cli, args, skipped, continues } = job;
        let seen = Seen::after(if cli.config.format() == Format::Table { skipped } else { 0 });
        let seen = seen.numbered_from(if continues { self.variables.numbered() } else { 0 });
        let ended = run(&cli.config, streams, |mut streams| match self.opened(&cli, wanted) {
            Ok(dumps) => {
                let Streams { out, err, screen, err_screen, next, .. } = streams;
                cli.run_on(&dumps, Streams { out: &mut *out, err: &mut *err, screen, err_screen, seen: Some(&seen), next })
            }
            Err(e) => fail(&e, &mut streams),
        });
        match ended? {
            Ended::Done(exit) => {
                self.remember(&cli, args, (skipped, continues), &seen, exit);
                Ok(exit)
            }
            stopped => Err(Stopped(self.stopped(&cli.config, stopped, streams)?).into()),
        }
    }

    /// Reports why a command ended early, and returns its exit code.
    fn stopped(&mut self, config: &Config, ended: Ended, streams: &mut Streams<'_>) -> Result<Exit> {
        if let Some(progress) = &self.opening.options.progress {
            progress.finish();
        }
        streams.out.flush()?;
        Ok(match ended {
            Ended::Done(exit) => exit,
            Ended::Interrupted => {
                streams.say("gcdump: interrupted")?;
                Exit::Negative
            }
            Ended::TimedOut => out_of_time(config, streams.err),
            Ended::TooMuch => {
                // The dumps are closed, because the results cached in them may occupy most of the memory.
                self.dump = None;
                self.others.clear();
                out_of_memory(config, streams.err)
            }
        })
    }

    /// Records the command for `next`, and the printed rows and the object for variables.
    fn remember(&mut self, cli: &Cli, args: Vec<OsString>, (skipped, continues): (u64, bool), seen: &Seen, exit: Exit) {
        if !matches!(exit, Exit::Ok | Exit::Negative | Exit::Partial) {
            return;
        }
        if let Some(object) = commands::object(cli.command, &cli.matches) {
            self.variables.looked_at(object);
        }
        let tables = seen.take();
        let rows = tables.iter().map(Vec::len).max().unwrap_or(0);
        let page = u64::try_from(rows).unwrap_or(u64::MAX);
        if page > 0 || skipped > 0 {
            let page = if seen.has_ended() { 0 } else { page };
            self.last = Some(Last { entry: cli.command, args, listed: skipped.saturating_add(page), page });
        }
        let rows = tables.into_iter().flatten().collect();
        match continues {
            true => self.variables.continued(rows),
            false => self.variables.printed(rows),
        }
    }

    /// Returns the command line that continues the last answer.
    fn next(&self) -> Result<Words> {
        let last = self.last.as_ref().ok_or_else(|| UsageError("next: nothing was listed".into()))?;
        if last.page == 0 {
            return Err(UsageError("next: the last answer has no more rows".into()).into());
        }
        let command = last.entry.command();
        let has = |name: &str| commands::option(&command, name).is_some();
        let more: Vec<OsString> = if has("--start") {
            let matches = Cli::of(&last.args)?.matches;
            let number = |id: &str| matches.try_get_one::<u64>(id).ok().flatten().copied();
            let step = number("count").unwrap_or(last.page);
            vec!["--start".into(), number("start").unwrap_or(0).saturating_add(step).to_string().into()]
        } else if has("--top") {
            vec!["--top".into(), last.listed.saturating_add(last.page).to_string().into()]
        } else {
            return Err(UsageError(format!("next: '{}' lists all its rows", last.entry.name)).into());
        };
        let skipped = if has("--start") { 0 } else { last.listed };
        let mut args = commands::without(&command, &last.args, if has("--start") { &["start"] } else { &["top"] });
        args.splice(2.min(args.len())..2.min(args.len()), more);
        Ok(Words { args, skipped, continues: true })
    }

    /// Opens the dumps that are not open yet.
    fn opened(&mut self, cli: &Cli, wanted: Vec<Wanted>) -> Result<Vec<Dump>> {
        if cli.config.opens_like(self.config) {
            return wanted.into_iter().map(|w| self.kept(w)).collect();
        }
        let mut quiet = (std::io::sink(), std::io::sink());
        let mut streams = Streams::piped(&mut quiet.0, &mut quiet.1);
        let open = |wanted: Wanted, streams: &mut Streams<'_>| {
            let path = match wanted {
                Wanted::Open => self.opening.path.clone(),
                Wanted::Other(path) => path,
            };
            let mut opening = Opening::prepare(&cli.config, Some(path), streams)?;
            opening.options.standard_input.clone_from(&self.opening.options.standard_input);
            Ok(Dump::open(&opening.path, &opening.options)?)
        };
        wanted.into_iter().map(|w| open(w, &mut streams)).collect()
    }

    fn kept(&mut self, wanted: Wanted) -> Result<Dump> {
        let path = match wanted {
            Wanted::Open => {
                let dump = match self.dump.take() {
                    Some(dump) => dump,
                    None => Dump::open(&self.opening.path, &self.opening.options)?,
                };
                return Ok(self.dump.insert(dump).clone());
            }
            Wanted::Other(path) => path,
        };
        if let Some((_, dump)) = self.others.iter().find(|(p, _)| *p == path) {
            return Ok(dump.clone());
        }
        let dump = Dump::open(&path, &self.opening.options)?;
        if self.others.len() >= OTHERS {
            self.others.pop_front();
        }
        self.others.push_back((path, dump.clone()));
        Ok(dump)
    }
}

/// Whether both paths refer to one file. Neither file is opened, because opening a pipe would block.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    place(a).is_some_and(|file| place(b) == Some(file))
}

#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> bool {
    same_file::is_same_file(a, b).unwrap_or(false)
}

/// Runs `work` as a command that Ctrl-C stops.
fn run(config: &Config, streams: &mut Streams<'_>, work: impl FnOnce(Streams<'_>) -> Exit + Send) -> std::io::Result<Ended> {
    let cancel = Cancel::default();
    let _interruptible = Interruptible::new(&cancel);
    job::run(&cancel, config, streams, work)
}
