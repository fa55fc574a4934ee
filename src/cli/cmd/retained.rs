use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::exit::{NothingThere, UsageError};
use super::super::select::{address, type_pattern};
use super::on_heap::{OnHeap, no_object};
use super::{Exit, Streams, open};
use crate::analysis::{GraphOptions, HeapGraph, HeapGraphError, PathOptions, Paths, Retained, RetainedQuery, RootOptions, TypePattern};
use crate::base::Addr;
use crate::gc::Heap;
use crate::model::Stacks;
use crate::output::Format;

/// What `retained` is asked.
#[derive(Clone, Debug, Args)]
pub struct RetainedArgs {
    /// Only this object: what it dominates, and what dominates it.
    #[arg(long, value_name = "ADDR", value_parser = address, conflicts_with_all = ["tree", "suspects"])]
    object: Option<Addr>,

    /// The dominator tree.
    #[arg(long, conflicts_with = "suspects")]
    tree: bool,

    /// Depth of the tree.
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    depth: u32,

    /// Single objects or types that hold more than their share, where it accumulates, and why.
    #[arg(long)]
    suspects: bool,

    /// Share of all bytes below which the tree hides objects, and suspects are none: 1 of the tree, 10 of suspects.
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<f64>,

    /// Only objects of this type (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Whether words of stacks and registers count as roots.
    #[arg(long, value_enum, ignore_case = true, default_value_t = Stacks::Fallback)]
    stacks: Stacks,

    /// Rows to list, 0 for all [default: 20 of each].
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// What `path` is asked.
#[derive(Clone, Debug, Args)]
pub struct PathArgs {
    /// The address of the object, or one inside of it (not with --type), then the dump [default: $GCDUMP_DUMP, else the only
    /// dump in the current folder].
    #[arg(value_names = ["ADDR", "DUMP"], num_args = 0..=2)]
    what: Vec<OsString>,

    /// All objects of this type instead: their paths, merged (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Most paths of each object, each from another root.
    #[arg(long, value_name = "N", default_value_t = 3)]
    paths: usize,

    /// One path from every root that holds the object.
    #[arg(long)]
    all_roots: bool,

    /// Also paths from weak handles, which keep nothing alive.
    #[arg(long)]
    weak: bool,
}

/// Builds the graph, or says why not.
pub(super) fn graph(on: &OnHeap<'_>, config: &Config, weak: bool) -> Result<HeapGraph> {
    let options = GraphOptions { roots: RootOptions { kinds: Vec::new(), weak }, max_memory: config.max_memory };
    HeapGraph::build(on.process, on.runtime, &on.gc, &on.heap, &on.namer, &options).map_err(|e| match e {
        HeapGraphError::Memory { .. } => UsageError(e.to_string()).into(),
        HeapGraphError::Graph(_) => anyhow::Error::new(e),
    })
}

/// The number of the object at `at`, or around it.
pub(super) fn object_id(graph: &HeapGraph, heap: &Heap, at: Addr) -> Result<u32> {
    let found = graph.index.containing(heap, at).map(|(id, _)| id);
    found.ok_or_else(|| no_object(at).into())
}

/// `gcdump retained`.
pub(super) fn run(config: &Config, args: &RetainedArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let graph = graph(&on, config, false)?;
    let query = match (args.object, args.tree, args.suspects) {
        (Some(at), ..) => RetainedQuery::Object(object_id(&graph, &on.heap, at)?),
        (_, true, _) => RetainedQuery::Tree { depth: args.depth, threshold: args.threshold.unwrap_or(1.0) / 100.0 },
        (_, _, true) => RetainedQuery::Suspects(args.threshold.unwrap_or(10.0) / 100.0),
        _ => RetainedQuery::Top,
    };
    let retained = Retained::compute(&graph, args.stacks, &*process.progress);
    let report = retained.report(&on.gc, &on.namer, &query, &args.types, args.top);
    on.finish(config, "retained", report, streams)
}

/// `gcdump objsize`.
pub(super) fn objsize(config: &Config, dump: &DumpArg, at: Addr, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let graph = graph(&on, config, false)?;
    let id = object_id(&graph, &on.heap, at)?;
    let report = Retained::compute(&graph, Stacks::Fallback, &*process.progress).objsize(&on.namer, id);
    on.finish(config, "objsize", report, streams)
}

/// `gcdump path`.
pub(super) fn path(config: &Config, args: &PathArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let by_type = !args.types.is_empty();
    let wrong = || UsageError("an address and a dump are wanted, or --type and a dump".into());
    let (at, dump) = match args.what.as_slice() {
        [dump] if by_type => (None, Some(dump)),
        [] if by_type => (None, None),
        [at] if !by_type => (Some(at), None),
        [at, dump] if !by_type => (Some(at), Some(dump)),
        _ => return Err(wrong().into()),
    };
    let at = at.map(|a| address(&a.to_string_lossy())).transpose().map_err(UsageError)?;
    let process = open(config, &DumpArg { dump: dump.map(PathBuf::from) }, streams)?;
    let on = OnHeap::open(&process, config)?;
    let graph = graph(&on, config, args.weak)?;
    let targets = match at {
        Some(at) => vec![object_id(&graph, &on.heap, at)?],
        None => graph.of_types(&on.namer, &args.types),
    };
    if targets.is_empty() {
        return Err(NothingThere("no object is of that type".into()).into());
    }
    let lines = if config.format() == Format::Table { streams.rows().saturating_mul(2) } else { 1000 };
    let options = PathOptions {
        paths: if args.all_roots { 10_000 } else { args.paths.max(1) },
        weak: args.weak,
        targets: if by_type { 1 } else { targets.len() },
        depth: 12,
        lines,
    };
    let report = Paths::new(&graph, &on.gc, &on.heap, &on.namer, options).report(&targets, by_type);
    let nothing = report.reachable == 0;
    let exit = on.finish(config, "path", report, streams)?;
    Ok(exit.negative_if(nothing))
}
