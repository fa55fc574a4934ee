//! The command trait: arguments with examples, a query, and the function that answers it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args};
use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::advice::advised_notes;
use super::args::Config;
use super::exit::{Exit, UsageError};
use super::failure::fail;
use super::notes;
use super::object_name::{ObjectName, listed};
use super::open::Opening;
use super::streams::Streams;
use super::write::is_standard_output;
use crate::analysis::{self, head_parts};
use crate::base::{Addr, Answer, NoteKind, Notes, len64};
use crate::heapgraph::{IndexUse, beside};
use crate::memory::Memory;
use crate::model::{Envelope, Head};
use crate::output::{self, Format, Paging, Report, SCHEMA, Target, View};
use crate::session::{Dump, Error, GraphSource, Heap, Runtime};

/// Groups of commands, in help order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The dump and its runtime.
    Dump,
    /// The GC's structures.
    Heap,
    /// Objects and types.
    Objects,
    /// Roots, paths, retained sizes.
    Holders,
    /// Threads and exceptions.
    Threads,
    /// Several dumps, compared.
    Compare,
    /// Files for other tools.
    Tools,
    /// Copies and checks.
    Trust,
    /// The program itself.
    Program,
}

impl Group {
    /// All groups, in help order.
    pub const ALL: [Group; 9] = [
        Group::Dump,
        Group::Heap,
        Group::Objects,
        Group::Holders,
        Group::Threads,
        Group::Compare,
        Group::Tools,
        Group::Trust,
        Group::Program,
    ];

    /// Returns the heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Dump => "The dump",
            Group::Heap => "The heap",
            Group::Objects => "Objects and types",
            Group::Holders => "What holds what",
            Group::Threads => "Threads and exceptions",
            Group::Compare => "Comparing dumps",
            Group::Tools => "Files for other tools",
            Group::Trust => "Checks and copies",
            Group::Program => "The program",
        }
    }
}

/// An example command line. `DUMP`, `BEFORE`, `AFTER`, `ADDR` and `OUT` are placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The command line after `gcdump`.
    pub line: &'static str,
    /// The result, in a few words.
    pub shows: &'static str,
}

/// Creates an [`Example`].
pub(super) const fn example(line: &'static str, shows: &'static str) -> Example {
    Example { line, shows }
}

/// A command. Its doc comment is its help text.
pub(super) trait Command: Args {
    /// Name on the command line.
    const NAME: &'static str;
    /// Help group.
    const GROUP: Group;
    /// Example command lines, shown in its help and run by the tests.
    const EXAMPLES: &'static [Example];
    /// Whether `-o` names a file that the command writes itself rather than the file for the answer.
    const NAMES_OUTPUT: bool = false;
    /// Whether the command answers for each of several dumps instead of comparing them.
    const EACH_DUMP: bool = false;
    /// Type of the answer.
    type Report: Report + schemars::JsonSchema;

    /// Returns the dump, if given. For commands that compare dumps, returns the first dump.
    fn dump(&self) -> Result<Option<PathBuf>>;

    /// Returns the dumps after the first, for commands that compare dumps.
    fn further(&self) -> &[PathBuf] {
        &[]
    }

    /// Returns the objects that the command is about. The command answers for each object separately.
    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(Vec::new())
    }

    /// Adjusts the options for opening the dumps.
    fn prepare(&self, _opening: &mut Opening) {}

    /// Returns the requested page of the lists; `None` for the complete lists.
    fn page(&self, _at: &At<'_>) -> Option<Paging> {
        None
    }

    /// Returns the maximum number of rows to print of each table of an answer with complete lists; `None` for all rows.
    fn rows_on_screen(&self, _at: &At<'_>) -> Option<usize> {
        None
    }

    /// Returns how screens show the answer.
    fn view(&self, _at: &At<'_>, _report: &Self::Report) -> Result<View> {
        Ok(View::default())
    }

    /// Runs the query.
    fn answer(&self, at: &At<'_>) -> Result<Answer<Self::Report>>;

    /// Returns the format to print in, given the requested one.
    fn format(&self, asked: Format) -> Result<Format> {
        Ok(asked)
    }

    /// Returns the exit code. `exit` is the code for the completeness of the answer; commands replace it if nothing was found or a check failed.
    fn exit(&self, _report: &Self::Report, exit: Exit) -> Exit {
        exit
    }

    /// Returns lines for standard error, printed in every output format.
    fn remarks(&self, _report: &Self::Report) -> Vec<String> {
        Vec::new()
    }

    /// Returns a suggested follow-up command, without the dump; shown on terminals and to assistants.
    fn next(&self, _report: &Self::Report, _at: &At<'_>) -> Option<&'static str> {
        None
    }

    /// Whether the answer itself has command lines that show more of the dump.
    fn suggests(&self, _report: &Self::Report) -> bool {
        false
    }

    /// Whether the rows are the last ones of the list, for commands whose `--start` begins a list elsewhere. `None` for other commands.
    fn is_last(&self, _report: &Self::Report) -> Option<bool> {
        None
    }

    /// Runs the query and prints the answer. Overridden by commands that stream their rows.
    fn run(&self, at: &At<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
        let (mut answer, mut head) = (self.answer(at)?, at.head()?);
        answer.notes = advised_notes(&answer.notes);
        // The exit code depends on the complete lists, not on the page.
        let (exit, view) = (self.exit(&answer, exit_of(at, &answer.notes)), self.view(at, &answer)?);
        if let Some(mut page) = self.page(at) {
            page.hidden = at.dump().is_ok_and(|dump| dump.memory().hides_contents()).then_some(Memory::HIDDEN);
            answer.data.page(&mut page);
            head.pages = page.done().map_err(UsageError)?;
        }
        output::emit(&head, &answer, at.format(), Target { most: self.rows_on_screen(at), view, ..at.target(streams) })?;
        if let (Some(seen), Some(is_last)) = (streams.seen, self.is_last(&answer)) {
            seen.ends(is_last);
        }
        conclude(at, &answer.notes, streams)?;
        self.remarks(&answer).iter().try_for_each(|line| streams.say(line))?;
        // Follow-up commands need a heap.
        let has_heap = !answer.notes.iter().any(|n| n.kind == NoteKind::NoHeap);
        let next = self.next(&answer, at).filter(|_| has_heap);
        if let (Some(words), Some(to)) = (next, streams.next) {
            let _ = to.set(words);
        }
        // A dump from standard input is deleted after the command, so no further command can read it.
        if at.opening.spool.is_some() && self.suggests(&answer) {
            streams.say("gcdump: DUMP means a file: save the dump from standard input to one to run these commands")?;
        }
        if let Some(words) = next.filter(|_| at.is_table() && streams.screen.terminal && !at.is_standard_input()) {
            let path = at.opening.path.display().to_string();
            let options = at.config.repeated();
            let words = words.split(' ').chain(options.iter().map(String::as_str));
            streams.show_command(&format!("Next: {}", analysis::command_line(words, &path)))?;
        }
        Ok(exit)
    }
}

/// Function that runs a command line. It uses the dumps that are already open, and opens the other dumps of the command line.
pub(super) type Run = fn(&ArgMatches, &Config, &[Dump], &mut Streams<'_>) -> Result<Exit>;

/// A registered command.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Help group.
    pub group: Group,
    /// Example command lines, shown in its help and run by the tests.
    pub examples: &'static [Example],
    pub(super) arguments: fn(clap::Command) -> clap::Command,
    /// Answers a command line. `None` for commands without a report.
    pub(super) run: Option<Run>,
    /// Returns the dumps that a command line names.
    pub(super) dumps: fn(&ArgMatches) -> Result<Vec<PathBuf>>,
    pub(super) schema: fn() -> Schema,
    pub(super) names_output: bool,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// Returns the command's names in SOS.
    pub fn sos(&self) -> Vec<&'static str> {
        super::sos::names_of(self.name).collect()
    }

    /// Builds the clap command with all arguments, including the global options.
    pub(super) fn command(&self) -> clap::Command {
        let mut command = (self.arguments)(Config::augment_args(clap::Command::new(self.name)));
        command.build();
        command
    }

    /// Returns the JSON schema of the answer.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }
}

/// Creates the registry entry of a command.
pub(super) const fn entry<C: Command>() -> Entry {
    Entry {
        name: C::NAME,
        group: C::GROUP,
        examples: C::EXAMPLES,
        arguments: C::augment_args,
        names_output: C::NAMES_OUTPUT,
        run: Some(run::<C>),
        dumps: dumps::<C>,
        schema: || SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Envelope<C::Report>>(),
    }
}

fn dumps<C: Command>(matches: &ArgMatches) -> Result<Vec<PathBuf>> {
    let command = C::from_arg_matches(matches)?;
    Ok(command.dump()?.into_iter().chain(command.further().iter().cloned()).collect())
}

fn run<C: Command>(matches: &ArgMatches, config: &Config, open: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let command = C::from_arg_matches(matches)?;
    let is_first = open.is_empty();
    // The dump may be omitted if one is already open.
    let given = command.dump()?.or_else(|| open.first().map(|dump| dump.file().facts.path.clone()));
    let mut opening = Opening::prepare(config, given, streams)?;
    let as_opened = |opening: &Opening| (opening.options.hide_contents, opening.options.index.clone());
    let asked = as_opened(&opening);
    command.prepare(&mut opening);
    // An open dump cannot be reused if the command changes whether contents are shown or whether an index is used.
    let open = if as_opened(&opening) == asked { open } else { &[] };
    let format = command.format(config.format())?;
    let open = open.iter().cloned().map(OnceCell::from).chain(std::iter::repeat_with(OnceCell::new));
    let paths = std::iter::once(&opening.path).chain(command.further());
    let dumps = paths.zip(open).map(|(path, dump)| Lazy { path: path.clone(), dump }).collect();
    let mut objects = command.objects()?;
    if objects.contains(&ObjectName::Listed) {
        if !is_first || opening.spool.is_some() {
            return Err(UsageError("`-` as the list of objects is standard input, which was already read as something else".into()).into());
        }
        objects = listed(std::io::stdin().lock())?;
    }
    if objects.len() > 1 && format == Format::Csv {
        return Err(UsageError("the answers about several objects are not one table: use --format ndjson".into()).into());
    }
    let mut at = At {
        config,
        format,
        command: C::NAME,
        dumps,
        opening,
        screen: streams.rows(),
        terminal: streams.screen.terminal,
        remark: OnceCell::new(),
        file: config.output.as_deref().filter(|path| !C::NAMES_OUTPUT && !is_standard_output(path)),
        object: None,
        several: false,
    };
    if C::EACH_DUMP && at.dumps.len() > 1 {
        return each_dump(&command, at, streams);
    }
    if objects.len() < 2 {
        at.object = objects.pop();
        return command.run(&at, streams);
    }
    let mut exit = Exit::Ok;
    for (i, object) in objects.into_iter().enumerate() {
        if i > 0 && at.is_table() {
            writeln!(streams.out)?;
        }
        at.object = Some(object);
        exit = exit.worse(one_of_several(&command, &at, is_of_an_object, streams)?);
    }
    Ok(exit)
}

/// Computes one of several answers. An error that `ends_one` accepts is printed and does not prevent the next answer.
fn one_of_several<C: Command>(command: &C, at: &At<'_>, ends_one: fn(&Error) -> bool, streams: &mut Streams<'_>) -> Result<Exit> {
    match command.run(at, streams) {
        Err(e) if e.downcast_ref().is_some_and(ends_one) => Ok(fail(&e, streams)),
        one => one,
    }
}

/// Answers for each dump in turn. A dump that cannot be opened does not stop the others.
fn each_dump<C: Command>(command: &C, mut at: At<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
    let mut exit = Exit::Ok;
    at.several = true;
    for dump in std::mem::take(&mut at.dumps) {
        at.opening.path.clone_from(&dump.path);
        at.dumps = vec![dump];
        exit = exit.worse(one_of_several(command, &at, |_| true, streams)?);
    }
    Ok(exit)
}

/// Whether an error concerns one object rather than the dump.
fn is_of_an_object(e: &Error) -> bool {
    matches!(
        e,
        Error::NoObject(_)
            | Error::NotIn(..)
            | Error::NoValueType(..)
            | Error::NotAnException(..)
            | Error::Nothing(_)
            | Error::Unknown(..)
            | Error::Value(_)
            | Error::Query(_)
    )
}

/// A dump, opened on first use.
struct Lazy {
    path: PathBuf,
    dump: OnceCell<Dump>,
}

/// Context of a command: the dumps, opened on first use, and the output settings.
pub(super) struct At<'c> {
    pub(super) config: &'c Config,
    format: Format,
    command: &'static str,
    pub(super) opening: Opening,
    /// The dumps, at least one.
    dumps: Vec<Lazy>,
    screen: usize,
    terminal: bool,
    remark: OnceCell<String>,
    /// The file that the answer is written to.
    file: Option<&'c Path>,
    /// The object that the answer is about, for commands that name objects.
    object: Option<ObjectName>,
    /// Whether the same command line also answers for other dumps.
    several: bool,
}

impl At<'_> {
    /// The destination of the answer, with the requested columns.
    pub(super) fn target<'s>(&'s self, streams: &'s mut Streams<'_>) -> Target<'s> {
        Target { select: &self.config.select, ..streams.target() }
    }

    /// Returns the dump; the first if there are several.
    pub(super) fn dump(&self) -> Result<&Dump, Error> {
        self.dump_at(0)
    }

    /// Returns the dump at this position on the command line, from 0.
    pub(super) fn dump_at(&self, index: usize) -> Result<&Dump, Error> {
        let lazy = self.dumps.get(index).ok_or_else(|| Error::Query(format!("no dump {index} was given")))?;
        if let Some(dump) = lazy.dump.get() {
            return Ok(dump);
        }
        let dump = Dump::open(&lazy.path, &self.opening.options)?;
        Ok(lazy.dump.get_or_init(|| dump))
    }

    /// Whether the dump was read from standard input.
    fn is_standard_input(&self) -> bool {
        self.dump().is_ok_and(|dump| dump.file().facts.is_standard_input)
    }

    /// Whether the same command line also answers for other dumps.
    pub(super) fn has_several_dumps(&self) -> bool {
        self.several
    }

    /// Returns the object that the answer is about.
    pub(super) fn object(&self) -> Option<&ObjectName> {
        self.object.as_ref()
    }

    /// Returns the address of the object that the answer is about.
    ///
    /// # Errors
    /// As [`At::address_of`].
    pub(super) fn address(&self) -> Result<Addr> {
        let object = self.object().ok_or_else(|| UsageError(format!("{}: the address is missing", self.command)))?;
        self.address_of(0, object)
    }

    /// Returns the selected runtime.
    pub(super) fn runtime(&self) -> Result<Runtime> {
        self.runtime_at(0)
    }

    /// Returns the selected runtime of the dump at this position. Errors name the dump if there are several.
    pub(super) fn runtime_at(&self, index: usize) -> Result<Runtime> {
        let runtime = self.dump_at(index)?.runtime_at(self.config.runtime);
        self.named(index, runtime.map_err(Error::from))
    }

    /// Whether `stacks` can answer. It cannot for a NativeAOT program, whose runtime has no structures for methods.
    pub(super) fn has_managed_stacks(&self) -> bool {
        self.runtime().is_ok_and(|runtime| !runtime.descriptor().is_native_aot())
    }

    /// Returns the heap of the selected runtime.
    pub(super) fn heap(&self) -> Result<Heap> {
        self.heap_at(0)
    }

    /// Returns the heap of the dump at this position. Errors name the dump if there are several.
    pub(super) fn heap_at(&self, index: usize) -> Result<Heap> {
        let heap = self.named(index, self.runtime_at(index)?.heap())?;
        if let Some(problem) = heap.index_problem() {
            if let IndexUse::File(path) = &self.opening.options.index {
                return Err(UsageError(format!("{} is not used as an index: {problem}", path.display())).into());
            }
            let beside = beside(&heap.runtime().file().facts.path);
            let _ = self.remark.set(format!("{} is not used: {problem} (gcdump index --force writes it anew)", beside.display()));
        }
        Ok(heap)
    }

    /// Returns the remark about an index that does not match the dump.
    pub(super) fn remark(&self) -> Option<&str> {
        self.remark.get().map(String::as_str)
    }

    /// Returns the source of the heap graph in the file at this position: the heap of a dump, or a heap snapshot. For commands that need only
    /// types, sizes and references.
    pub(super) fn source_at(&self, index: usize) -> Result<Box<dyn GraphSource>> {
        match self.dump_at(index)?.snapshot() {
            Some(snapshot) => Ok(Box::new(snapshot.clone())),
            None => Ok(Box::new(self.heap_at(index)?)),
        }
    }

    fn named<T>(&self, index: usize, result: Result<T, Error>) -> Result<T> {
        match self.dumps.get(index).filter(|_| self.dumps.len() > 1) {
            Some(lazy) => result.with_context(|| lazy.path.display().to_string()),
            None => Ok(result?),
        }
    }

    /// Returns the header of the answer.
    pub(super) fn head(&self) -> Result<Head> {
        let dump = self.dump()?;
        let runtime = dump.runtime_at(self.config.runtime).ok();
        let (dump, runtime, runtimes) = head_parts(dump, runtime.as_ref());
        let (schema, gcdump) = (SCHEMA.into(), env!("CARGO_PKG_VERSION").into());
        Ok(Head { schema, command: self.command.into(), gcdump, dump, runtime, runtimes, pages: Vec::new() })
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Whether the output format is a table.
    pub(super) fn is_table(&self) -> bool {
        self.format() == Format::Table
    }

    /// Whether answers go to a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns the maximum number of rows of a list: as requested; by default a screenful for tables on a terminal, otherwise unlimited (0).
    pub(super) fn rows(&self, top: Option<usize>) -> usize {
        self.rows_or(top, self.screen)
    }

    /// Returns the maximum number of rows of a list: as requested; by default `few` for tables on a terminal, otherwise unlimited (0).
    pub(super) fn rows_or(&self, top: Option<usize>, few: usize) -> usize {
        top.unwrap_or(if self.terminal && self.is_table() { few } else { 0 })
    }

    /// Returns the number of table rows that fit the screen.
    pub(super) fn screen(&self) -> usize {
        self.screen
    }
}

/// Prints the notes unless the format includes them, and returns the exit code for the completeness of the answer.
pub(super) fn conclude(at: &At<'_>, notes: &Notes, streams: &mut Streams<'_>) -> Result<Exit> {
    if !at.format().writer().carries_notes() {
        streams.out.flush()?;
        notes::show(notes, streams)?;
    } else if let (Some(file), Some(loss)) = (at.file, notes.first_loss()) {
        // The notes are in the file, which is not on the screen.
        let more = len64(notes.iter().filter(|note| note.kind.makes_partial()).count()).saturating_sub(1);
        let more = if more > 0 { format!(", and {more} more in {}", file.display()) } else { String::new() };
        streams.remark(&format!("missing: {}{more}", loss.message))?;
    }
    if let Some(remark) = at.remark() {
        streams.say(&format!("gcdump: {remark}"))?;
    }
    Ok(exit_of(at, notes))
}

/// Returns the exit code for the completeness of the answer.
fn exit_of(at: &At<'_>, notes: &Notes) -> Exit {
    // `--strict` ignores these notes. A bundled overlay that passed its checks is the normal way to read .NET 8 to 10; a second runtime and the thread
    // ids of a container are not problems.
    let regular = [NoteKind::OverlayUsed, NoteKind::OtherRuntimes, NoteKind::ThreadIds];
    let strict = at.config.strict && notes.iter().any(|n| !regular.contains(&n.kind));
    if !notes.complete() || strict { Exit::Partial } else { Exit::Ok }
}
