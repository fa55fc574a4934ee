use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::address;
use super::on_heap::no_object;
use super::{Exit, Streams, finish, gc, open};
use crate::analysis::{self, Namer, VerifyQuery};
use crate::base::Addr;

/// What `verify` is asked.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// Only what concerns the object at this address, or around it.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(super) object: Option<Addr>,

    /// Findings to list, 0 for all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    top: usize,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump verify`.
pub(super) fn run(config: &Config, args: &VerifyArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let namer = Namer::new(&process, runtime);
    let query = VerifyQuery { object: args.object, top: args.top };
    let report = analysis::verify(&process, runtime, &gc, &namer, query)?;
    let report = report.ok_or_else(|| no_object(args.object.unwrap_or_default()))?;
    namer.note(&process.notes);
    let broken = report.totals.errors > 0;
    let exit = finish(config, "verify", &process, Some(runtime), report, streams)?;
    Ok(if broken { Exit::Negative } else { exit })
}
