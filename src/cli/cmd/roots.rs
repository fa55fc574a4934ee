use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::type_pattern;
use super::on_heap::OnHeap;
use super::{Exit, Streams, open, rows};
use crate::analysis::{self, RootOptions, RootsQuery, TypePattern};
use crate::model::RootKind;

/// What `roots` is asked.
#[derive(Clone, Debug, Args)]
pub struct RootsArgs {
    /// Only roots of this kind (repeatable).
    #[arg(long = "kind", value_name = "KIND", value_enum, ignore_case = true)]
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
    let on = OnHeap::open(&process, config)?;
    let options = RootOptions { kinds: args.kinds.clone(), weak: args.weak };
    let index = options.needs_index().then(|| analysis::index(&process, &on.heap));
    let roots = analysis::collect_roots(&process, on.runtime, &on.gc, &on.heap, &on.namer, index.as_ref(), &options);
    let top = rows(config, args.top, streams);
    let query = RootsQuery { types: args.types.clone(), stat: args.stat, top };
    let report = analysis::roots_report(&roots, &on.gc, &on.namer, &options, &query);
    let nothing = report.total == 0 && !args.types.is_empty();
    let exit = on.finish(config, "roots", report, streams)?;
    Ok(exit.negative_if(nothing))
}
