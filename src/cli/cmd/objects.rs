use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::Select;
use super::on_heap::OnHeap;
use super::{Exit, Streams, conclude, head, notes, open};
use crate::analysis::{self, ObjectsPage};
use crate::base::Answer;
use crate::output::{self, Format, objects_list};

/// What `objects` is asked.
#[derive(Clone, Debug, Args)]
pub struct ObjectsArgs {
    /// Also the references that each object holds: offset, target, field.
    #[arg(long)]
    refs: bool,

    /// Objects to leave out at the start of the list.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u64,

    /// Most objects to list, 0 for all [default: what fits the screen in a table, all in other formats].
    #[arg(long, visible_alias = "top", value_name = "N")]
    count: Option<u64>,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump objects`.
pub(super) fn run(config: &Config, args: &ObjectsArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let fitting = if config.format() == Format::Table { u64::try_from(streams.rows())? } else { 0 };
    let most = Some(args.count.unwrap_or(fitting)).filter(|n| *n > 0).unwrap_or(u64::MAX);
    let page = ObjectsPage { start: args.start, count: most, refs: args.refs };
    let selection = args.select.selection();
    let (head, list) = (head(&process, Some(on.runtime), "objects"), objects_list(args.refs));
    let form = (config.format(), streams.out_is_terminal);
    let answer = output::stream(&head, &list, form, streams.out, |batches| {
        let tail =
            analysis::objects(&process, &on.heap, &on.namer, &selection, page, |batch| batches.print(batch.len(), |row| batch.each(row)))?;
        on.namer.note(&process.notes);
        Ok(Answer::new(tail, notes(&process)))
    })?;
    let exit = conclude(config, &answer.notes, streams)?;
    let nothing = answer.listed == 0 && args.start == 0 && !selection.is_everything();
    Ok(if exit == Exit::Ok && nothing { Exit::Negative } else { exit })
}
