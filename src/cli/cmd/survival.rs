//! `bridge`, `whatif`, `unreachable` and `simulate`: each asks the graph of the heap who lives.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::super::args::{Config, DumpArg};
use super::super::exit::NothingThere;
use super::super::select::{address, type_pattern};
use super::on_heap::OnHeap;
use super::retained::graph;
use super::{Exit, Streams, UsageError, open, rows};
use crate::analysis::{self, BridgeQuery, HeapGraph, Stacks, TypePattern, UnreachableQuery, WhatifQuery};
use crate::base::Addr;
use crate::output::{Format, Report};

/// What `bridge` is asked.
#[derive(Clone, Debug, Args)]
pub struct BridgeArgs {
    /// Objects of this type are bridged as well: its full name, in which * and ? may stand for something else, or its method
    /// table as 0x… (repeatable). Objects that cross-reference handles lead to always are.
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    bridged: Vec<TypePattern>,

    /// Objects of this type are not looked into: opaque, or opaque-bridge where they are bridged (repeatable).
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    opaque: Vec<TypePattern>,

    /// Exceptions from --opaque: transparent, or transparent-bridge, as all types are without a rule (repeatable).
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    transparent: Vec<TypePattern>,

    /// Also bridged objects that something else than the bridge's handles keeps alive.
    #[arg(long)]
    all: bool,

    /// Print a graph for Graphviz (DOT) instead of a table.
    #[arg(long)]
    dot: bool,

    #[command(flatten)]
    dump: DumpArg,
}

/// What `whatif` is asked.
#[derive(Clone, Debug, Args)]
pub struct WhatifArgs {
    /// This object is kept alive; any address inside of it will do (repeatable, or separated by commas).
    #[arg(long, value_name = "ADDR", value_parser = address, value_delimiter = ',', required_unless_present = "dead")]
    alive: Vec<Addr>,

    /// This handle is gone; any other place that holds a root will do, too (repeatable, or separated by commas).
    #[arg(long, value_name = "HANDLE", value_parser = address, value_delimiter = ',')]
    dead: Vec<Addr>,

    /// Types to list of each, 0 for all; the sums are always over everything [default: what fits the screen in a table, all
    /// in other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    dump: DumpArg,
}

/// What `unreachable` is asked.
#[derive(Clone, Debug, Args)]
pub struct UnreachableArgs {
    /// The objects instead of their types, in the order of the heap.
    #[arg(long)]
    objects: bool,

    /// Rows to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Whether words of stacks and registers count as roots. Each may be a leftover: without them, what only such words hold
    /// is listed as well.
    #[arg(long, value_enum, default_value_t = StackWords::All)]
    stacks: StackWords,

    #[command(flatten)]
    dump: DumpArg,
}

/// Whether words of stacks and registers count.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StackWords {
    /// Like all other roots.
    All,
    /// Not at all.
    None,
}

/// What `simulate` is asked.
#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    #[command(subcommand)]
    what: Simulate,
}

#[derive(Clone, Debug, Subcommand)]
enum Simulate {
    /// A garbage collection: what it would free, what would survive.
    Collect {
        /// The oldest generation to collect; 2 also collects large and pinned objects.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
        generation: u8,
        /// Types to list, 0 for all; the sums are always over everything [default: what fits the screen in a table, all in
        /// other formats].
        #[arg(long, value_name = "N")]
        top: Option<usize>,
        #[command(flatten)]
        dump: DumpArg,
    },
}

/// Opens the dump, makes its graph, asks it, prints the answer.
fn ask<R: Report>(
    config: &Config,
    command: &str,
    dump: &DumpArg,
    streams: &mut Streams<'_>,
    question: impl FnOnce(&OnHeap<'_>, &HeapGraph) -> Result<R>,
) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let graph = graph(&on, config, true)?;
    let report = question(&on, &graph)?;
    on.finish(config, command, report, streams)
}

fn cut<T>(rows: &mut Vec<T>, most: usize) {
    if most > 0 {
        rows.truncate(most);
    }
}

/// `gcdump bridge`.
pub(super) fn bridge(config: &Config, args: &BridgeArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    if args.dot && !matches!(config.format(), Format::Table | Format::Dot) {
        return Err(UsageError("--dot is a format of its own: leave out --format and --json".into()).into());
    }
    let config = &if args.dot { Config { format: Format::Dot, ..config.clone() } } else { config.clone() };
    let query =
        BridgeQuery { bridged: args.bridged.clone(), opaque: args.opaque.clone(), transparent: args.transparent.clone(), all: args.all };
    ask(config, "bridge", &args.dump, streams, |on, graph| Ok(analysis::bridge(on.process, &on.gc, graph, &on.namer, &query)?))
}

/// `gcdump whatif`.
pub(super) fn whatif(config: &Config, args: &WhatifArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let query = WhatifQuery { alive: args.alive.clone(), dead: args.dead.clone() };
    let most = rows(config, args.top, streams);
    ask(config, "whatif", &args.dump, streams, |on, graph| {
        let mut report = analysis::whatif(&on.gc, &on.heap, graph, &on.namer, &query).map_err(|e| NothingThere(e.to_string()))?;
        cut(&mut report.survivors.types, most);
        cut(&mut report.freed.types, most);
        if config.format() == Format::Table {
            cut(&mut report.components, most);
        }
        Ok(report)
    })
}

/// `gcdump unreachable`.
pub(super) fn unreachable(config: &Config, args: &UnreachableArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let stacks = match args.stacks {
        StackWords::All => Stacks::All,
        StackWords::None => Stacks::None,
    };
    let query = UnreachableQuery { objects: args.objects, top: rows(config, args.top, streams), stacks };
    ask(config, "unreachable", &args.dump, streams, |on, graph| Ok(analysis::unreachable(&on.gc, &on.heap, graph, &on.namer, &query)))
}

/// `gcdump simulate`.
pub(super) fn simulate(config: &Config, args: &SimulateArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let Simulate::Collect { generation, top, dump } = &args.what;
    let most = rows(config, *top, streams);
    ask(config, "simulate", dump, streams, |on, graph| {
        let mut report = analysis::collect(&on.gc, &on.heap, graph, &on.namer, *generation);
        cut(&mut report.freed.types, most);
        Ok(report)
    })
}
