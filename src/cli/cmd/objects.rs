use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::Select;
use super::super::show_notes;
use super::on_heap::OnHeap;
use super::{Exit, Streams, head, open};
use crate::analysis::{self, ObjectsPage};
use crate::base::NoteKind;
use crate::model::ObjectBrief;
use crate::output::{Cell, Column, Format, Stream, count};

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

fn cells(o: &ObjectBrief) -> Vec<Cell> {
    let mut row = vec![
        Cell::Addr(o.address),
        Cell::Addr(o.method_table),
        Cell::Bytes(o.size),
        Cell::Text(o.generation.name().into()),
        Cell::Text(o.type_name.clone()),
    ];
    if let Some(refs) = &o.refs {
        let name = |field: &Option<String>, offset: u64| field.clone().unwrap_or_else(|| format!("+{offset:#x}"));
        let list: Vec<String> = refs.iter().map(|r| format!("{}={}", name(&r.field, r.offset), r.to)).collect();
        row.push(Cell::Text(list.join(" ")));
    }
    row
}

/// `gcdump objects`.
pub(super) fn run(config: &Config, args: &ObjectsArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let format = config.format();
    let fitting = if format == Format::Table { u64::try_from(streams.rows())? } else { 0 };
    let most = Some(args.count.unwrap_or(fitting)).filter(|n| *n > 0).unwrap_or(u64::MAX);
    let page = ObjectsPage { start: args.start, count: most, refs: args.refs };
    let mut columns = vec![
        Column::address("address"),
        Column::address("method_table"),
        Column { width: 11, ..Column::number("size") },
        Column::text("generation", 10),
        Column::text("type", if args.refs { 50 } else { 1 }),
    ];
    if args.refs {
        columns.push(Column::text("refs", 1));
    }
    let selection = args.select.selection();
    let head = head(&process, Some(on.runtime), "objects");
    let mut stream = Stream::begin(&mut *streams.out, (format, streams.out_is_terminal), &head, ("objects", "object"), columns)?;
    let mut tail = analysis::objects(&process, &on.heap, &on.namer, &selection, page, |o| stream.row(o, cells))?;
    on.namer.note(&process.notes);
    let partial = process.notes.partial();
    tail.complete = !partial;
    let warnings = process.notes.all();
    stream.finish(&tail, tail.complete, &warnings)?;
    if format == Format::Table {
        match tail.next_start {
            Some(next) => writeln!(streams.out, "… and more: --start {next} lists the next ones, --count 0 all")?,
            None => writeln!(streams.out, "\n{} objects, {} bytes", count(tail.listed), count(tail.bytes))?,
        }
    }
    if matches!(format, Format::Table | Format::Csv) {
        streams.out.flush()?;
        show_notes(&warnings, streams)?;
    }
    let strict = config.strict && warnings.iter().any(|n| n.kind != NoteKind::OverlayUsed);
    let nothing = tail.listed == 0 && args.start == 0 && !selection.is_everything();
    Ok(if partial || strict {
        Exit::Partial
    } else if nothing {
        Exit::Negative
    } else {
        Exit::Ok
    })
}
