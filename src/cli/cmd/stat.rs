use anyhow::Result;
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::select::Select;
use super::on_heap::OnHeap;
use super::{Exit, Streams, open, rows};
use crate::analysis;
use crate::model::{StatBy, StatReport, StatSort};

/// What `stat` is asked.
#[derive(Clone, Debug, Args)]
pub struct StatArgs {
    /// What the rows stand for.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StatBy::Type)]
    by: StatBy,

    /// Order of the rows. Generations, heaps, segments and sizes come in their own order.
    #[arg(long, value_enum, ignore_case = true, default_value_t = StatSort::Bytes)]
    sort: StatSort,

    /// Rows to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    pub(super) dump: DumpArg,
}

/// `gcdump stat`.
pub(super) fn run(config: &Config, args: &StatArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let on = OnHeap::open(&process, config)?;
    let selection = args.select.selection();
    let mut report = analysis::stat(&process, &on.heap, &on.namer, &selection, args.by);
    let nothing = report.totals.count == 0 && !selection.is_everything();
    sort(&mut report, args.sort);
    let top = rows(config, args.top, streams);
    cut(&mut report, top);
    let exit = on.finish(config, "stat", report, streams)?;
    Ok(exit.negative_if(nothing))
}

fn sort(report: &mut StatReport, by: StatSort) {
    let own_order = matches!(report.by, StatBy::Generation | StatBy::Heap | StatBy::Segment | StatBy::Size);
    // Rows come sorted by bytes, and sorting is stable.
    match by {
        StatSort::Bytes => {}
        StatSort::Count => {
            report.types.iter_mut().for_each(|rows| rows.sort_by_key(|t| std::cmp::Reverse(t.count)));
            report.groups.iter_mut().filter(|_| !own_order).for_each(|rows| rows.sort_by_key(|g| std::cmp::Reverse(g.count)));
        }
        StatSort::Name => {
            report.types.iter_mut().for_each(|rows| rows.sort_by(|a, b| a.type_name.cmp(&b.type_name)));
            report.groups.iter_mut().filter(|_| !own_order).for_each(|rows| rows.sort_by(|a, b| a.key.cmp(&b.key)));
        }
    }
}

/// Keeps the first `top` rows, and that of free space.
fn cut(report: &mut StatReport, top: usize) {
    let Some(types) = &mut report.types else { return };
    let kept = types.iter().filter(|t| !t.free).count().min(top);
    if top == 0 || kept == types.iter().filter(|t| !t.free).count() {
        return;
    }
    let mut left = top;
    types.retain(|t| {
        let keep = t.free || left > 0;
        left = left.saturating_sub(usize::from(!t.free));
        keep
    });
    report.shown = u64::try_from(kept).ok();
}
