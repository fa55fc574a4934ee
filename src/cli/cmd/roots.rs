use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg, root_kind};
use super::super::select::type_pattern;
use super::{Exit, Streams, finish, gc, open};
use crate::analysis::{self, Namer, RootOptions, RootsQuery, TypePattern};
use crate::model::RootKind;
use crate::output::Format;

/// What `roots` is asked.
#[derive(Clone, Debug, Args)]
pub struct RootsArgs {
    /// Only roots of this kind: strong-handle, pinned-handle, stack, register, finalizer-ready … (repeatable).
    #[arg(long = "kind", value_name = "KIND", value_parser = root_kind)]
    kinds: Vec<RootKind>,

    /// Also weak handles, which keep nothing alive.
    #[arg(long)]
    weak: bool,

    /// Only roots that lead to objects of this type: its full name, in which * and ? may stand for something else, or its
    /// method table as 0x… (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Types of the objects that roots lead to, instead of the roots.
    #[arg(long)]
    stat: bool,

    /// Rows to list, 0 for all; counts are always over everything [default: what fits the screen in a table, all in other
    /// formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump roots`.
pub(super) fn run(config: &Config, args: &RootsArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let heap = analysis::open_heap(&process, runtime, &gc)?;
    let options = RootOptions { kinds: args.kinds.clone(), weak: args.weak };
    let index = options.needs_index().then(|| analysis::index(&process, &heap));
    let namer = Namer::new(&process, runtime);
    let roots = analysis::collect_roots(&process, runtime, &gc, &heap, &namer, index.as_ref(), &options);
    let top = args.top.unwrap_or_else(|| if config.format() == Format::Table { streams.rows() } else { 0 });
    let query = RootsQuery { types: args.types.clone(), stat: args.stat, top };
    let report = analysis::roots_report(&roots, &gc, &namer, &options, &query);
    namer.note(&process.notes);
    let nothing = report.total == 0 && !args.types.is_empty();
    let exit = finish(config, "roots", &process, Some(runtime), report, streams)?;
    Ok(if nothing && exit == Exit::Ok { Exit::Negative } else { exit })
}
