use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::type_pattern;
use super::{Exit, Streams, finish, gc, open, rows};
use crate::analysis::{self, Namer, TypePattern};

/// What `finalizers` is asked.
#[derive(Clone, Debug, Args)]
pub struct FinalizersArgs {
    /// Also list every object.
    #[arg(long)]
    objects: bool,

    /// Only objects of this type: its full name, in which * and ? may stand for something else, or its method table as
    /// 0x… (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Types to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump finalizers`.
pub(super) fn run(config: &Config, args: &FinalizersArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let namer = Namer::new(&process, runtime);
    let top = rows(config, args.top, streams);
    let report = analysis::finalizers(&process, runtime, &gc, &namer, &args.types, args.objects, top);
    namer.note(&process.notes);
    let nothing = report.types.is_empty() && !args.types.is_empty();
    let exit = finish(config, "finalizers", &process, Some(runtime), report, streams)?;
    Ok(exit.negative_if(nothing))
}
