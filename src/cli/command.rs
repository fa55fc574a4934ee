//! What a command is: arguments with examples, a query, one function that answers it.

use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args};
use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::args::Config;
use super::exit::Exit;
use super::open::Opening;
use super::{Streams, conclude};
use crate::analysis::head_parts;
use crate::base::Answer;
use crate::model::{Envelope, Head};
use crate::output::{self, Format, Report, SCHEMA};
use crate::session::{Dump, Error, Heap, Runtime};

/// What people want to know, as the help sorts commands.
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
    /// Copies and checks.
    Trust,
}

impl Group {
    /// Every group, in the order of the help.
    pub const ALL: [Group; 6] = [Group::Dump, Group::Heap, Group::Objects, Group::Holders, Group::Threads, Group::Trust];

    /// Heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Dump => "The dump",
            Group::Heap => "The heap",
            Group::Objects => "Objects and types",
            Group::Holders => "What holds what",
            Group::Threads => "Threads and exceptions",
            Group::Trust => "Checks and copies",
        }
    }
}

/// A command line that shows what a command is good for. `DUMP`, `ADDR` and `OUT` stand for the user's own.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What is typed, behind `gcdump`.
    pub line: &'static str,
    /// What it shows.
    pub shows: &'static str,
}

/// An [`Example`].
pub(super) const fn example(line: &'static str, shows: &'static str) -> Example {
    Example { line, shows }
}

/// A command. Its doc comment is its help.
pub(super) trait Command: Args {
    /// What is typed.
    const NAME: &'static str;
    /// Where the help lists it.
    const GROUP: Group;
    /// What SOS calls it.
    const SOS: &'static [&'static str] = &[];
    /// Command lines that its help shows and the tests run.
    const EXAMPLES: &'static [Example];
    /// What it answers.
    type Report: Report + schemars::JsonSchema;

    /// The dump, where one is named.
    fn dump(&self) -> Result<Option<PathBuf>>;

    /// Answers.
    fn answer(&self, at: &At<'_>) -> Result<Answer<Self::Report>>;

    /// The format to print in, where one is asked for.
    fn format(&self, asked: Format) -> Result<Format> {
        Ok(asked)
    }

    /// How an answer ends that is whole or partial: "none" and "bad" are told apart here.
    fn exit(&self, _report: &Self::Report, exit: Exit) -> Exit {
        exit
    }

    /// Answers and prints. Commands whose rows are printed while they are made do it their own way.
    fn run(&self, at: &At<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
        let answer = self.answer(at)?;
        output::emit(&at.head()?, &answer, at.format(), streams.out, streams.out_is_terminal)?;
        Ok(self.exit(&answer, conclude(at, &answer.notes, streams)?))
    }
}

/// A command as the registry has it.
pub struct Entry {
    /// What is typed.
    pub name: &'static str,
    /// Where the help lists it.
    pub group: Group,
    /// What SOS calls it.
    pub sos: &'static [&'static str],
    /// Command lines that its help shows and the tests run.
    pub examples: &'static [Example],
    pub(super) arguments: fn(clap::Command) -> clap::Command,
    pub(super) run: fn(&ArgMatches, &Config, &mut Streams<'_>) -> Result<Exit>,
    schema: fn() -> Schema,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// The JSON schema of its answer.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }
}

/// The line of the registry for a command.
pub(super) const fn entry<C: Command>() -> Entry {
    Entry {
        name: C::NAME,
        group: C::GROUP,
        sos: C::SOS,
        examples: C::EXAMPLES,
        arguments: C::augment_args,
        run: run::<C>,
        schema: || SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Envelope<C::Report>>(),
    }
}

fn run<C: Command>(matches: &ArgMatches, config: &Config, streams: &mut Streams<'_>) -> Result<Exit> {
    let command = C::from_arg_matches(matches)?;
    let opening = Opening::prepare(config, command.dump()?, streams)?;
    let format = command.format(config.format())?;
    let at = At { config, format, command: C::NAME, opening, screen: streams.rows(), dump: OnceCell::new() };
    command.run(&at, streams)
}

/// Where a command runs: the dump that is meant, opened at first use, and what the user wants to see of it.
pub(super) struct At<'c> {
    pub(super) config: &'c Config,
    format: Format,
    command: &'static str,
    pub(super) opening: Opening,
    screen: usize,
    dump: OnceCell<Dump>,
}

impl At<'_> {
    /// The dump.
    pub(super) fn dump(&self) -> Result<&Dump, Error> {
        if let Some(dump) = self.dump.get() {
            return Ok(dump);
        }
        let dump = Dump::open(&self.opening.path, &self.opening.options)?;
        Ok(self.dump.get_or_init(|| dump))
    }

    /// The runtime that is meant.
    pub(super) fn runtime(&self) -> Result<Runtime, Error> {
        Ok(self.dump()?.runtime_at(self.config.runtime)?)
    }

    /// Its heap.
    pub(super) fn heap(&self) -> Result<Heap, Error> {
        self.runtime()?.heap()
    }

    /// What the answer begins with.
    pub(super) fn head(&self) -> Result<Head> {
        let dump = self.dump()?;
        let runtime = dump.runtime_at(self.config.runtime).ok();
        let (dump, runtime) = head_parts(dump, runtime.as_ref());
        Ok(Head { schema: SCHEMA.into(), command: self.command.into(), gcdump: env!("CARGO_PKG_VERSION").into(), dump, runtime })
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Whether the answer is a table for people.
    pub(super) fn is_table(&self) -> bool {
        self.format() == Format::Table
    }

    /// Rows to list: as many as asked for, else what fits the screen in a table and all (0) in other formats.
    pub(super) fn rows(&self, top: Option<usize>) -> usize {
        top.unwrap_or(if self.is_table() { self.screen } else { 0 })
    }

    /// Rows of a table that fit the screen.
    pub(super) fn screen(&self) -> usize {
        self.screen
    }
}
