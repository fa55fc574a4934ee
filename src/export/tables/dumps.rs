//! The table `dumps`: one row that describes the dump.

use super::block::{Block, Value};
use super::context::Context;
use super::feed::Feed;
use super::{Sink, columns};
use crate::analysis::{FinalizersQuery, HandlesQuery, HandlesView, HeapQuery, KnownNumbers};
use crate::analysis::{app, finalizers, handles, head_parts, heap, known};
use crate::base::{Answer, Collector, Missing, total};
use crate::dump::DumpFacts;
use crate::model::{ExportTable, GcKind, GcLayout, HandleKind};
use crate::session::{Dump, Error};

/// A dump with facts about its file.
#[derive(Clone, Debug)]
pub struct About {
    /// The dump.
    pub dump: Dump,
    /// Modification time of the file, in seconds since 1970. ELF cores do not record when they were written.
    pub file_time: Option<u64>,
}

/// Writes the table `dumps` for a dump that cannot be read: one row with facts about the file and the reason `why`.
///
/// # Errors
/// Errors of the file.
pub fn failed(path: &str, file: Option<&std::fs::Metadata>, why: &str, mut to: Box<dyn Sink>) -> std::io::Result<()> {
    let columns = columns(ExportTable::Dumps);
    let time = file.and_then(|f| f.modified().ok()).and_then(seconds);
    let mut block = Block::new(columns);
    let value = |name: &str| match name {
        "path" => Value::Text(path),
        "file_bytes" => file.map(std::fs::Metadata::len).into(),
        "file_time" => time.into(),
        "complete" => Value::Flag(false),
        "gcdump" => Value::Text(env!("CARGO_PKG_VERSION")),
        "error" => Value::Text(why),
        _ => Value::Null,
    };
    block.values(columns.iter().map(|c| value(&c.name)));
    to.block(&block)?;
    to.finish()
}

/// Returns a time in seconds since 1970; `None` for earlier times.
pub fn seconds(time: std::time::SystemTime) -> Option<u64> {
    Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}

pub(super) fn dump(context: &Context<'_>, about: &About, feed: &mut Feed) -> Result<(), Error> {
    let (notes, totals) = (context.notes, &context.stat.totals);
    let runtime = context.heap.runtime();
    let (dump, described, _) = head_parts(&about.dump, Some(runtime));
    let facts: &DumpFacts = &runtime.file().facts;
    let gc = notes.with(runtime.gc()?);
    let (gc, numbers) = (gc.facts(), KnownNumbers::of(context.heap, context.stat));
    let sizes = notes.take(heap(runtime, &HeapQuery::default())?).totals;
    // Handles and finalizers may be unreadable even if the heap is readable.
    let counts = handles(runtime, &HandlesQuery { view: HandlesView::Counts, ..HandlesQuery::default() });
    let all_handles = counts.as_ref().is_ok_and(Answer::complete);
    let counts = or_noted(counts, "handles", notes);
    let of_kind = |kind| counts.as_ref().map(|c| total(c.counts.iter().filter(|s| s.kind == kind).map(|s| s.count)));
    let queue = finalizers(runtime, &FinalizersQuery { top: 1, ..FinalizersQuery::default() });
    let all_queues = queue.as_ref().is_ok_and(|queue| queue.complete() && !queue.heaps.is_empty());
    let queue = or_noted(queue, "finalizers", notes);
    let app = app(runtime, context.namer);
    let _ = feed.row([
        (&dump.path).into(),
        facts.file_bytes.into(),
        about.file_time.into(),
        facts.process_name.as_ref().into(),
        facts.pid.into(),
        facts.time.into(),
        facts.os.name().into(),
        facts.arch.name().into(),
        described.as_ref().and_then(|r| r.version.as_ref()).into(),
        described.as_ref().and_then(|r| r.build_id.as_ref()).into(),
        numbers.has_figures().then(|| if gc.server { GcKind::Server } else { GcKind::Workstation }.name()).into(),
        numbers.has_figures().then(|| if gc.regions { GcLayout::Regions } else { GcLayout::Segments }.name()).into(),
        gc.heap_count.into(),
        app.as_ref().map(|a| &a.name).into(),
        app.as_ref().and_then(|a| a.build_id.as_ref()).into(),
        numbers.of_walk(totals.types).into(),
        numbers.of_walk(totals.count).into(),
        numbers.of_walk(totals.bytes).into(),
        numbers.free_bytes().into(),
        numbers.of_segments(sizes.allocated).into(),
        numbers.committed(sizes.committed).into(),
        counts.as_ref().and_then(|c| known(c.total, all_handles)).into(),
        of_kind(HandleKind::Pinned).and_then(|n| known(n, all_handles)).into(),
        queue.and_then(|q| known(q.ready.saturating_add(q.critical), all_queues)).into(),
        notes.notes().complete().into(),
        env!("CARGO_PKG_VERSION").into(),
        Value::Null,
        facts.command_line.as_ref().filter(|_| context.options.contents).into(),
    ]);
    Ok(())
}

/// Returns the data of an answer and adds its notes. For an error, adds a note and returns `None`.
pub(super) fn or_noted<T>(answer: Result<Answer<T>, Error>, what: &str, notes: &Collector) -> Option<T> {
    match answer {
        Ok(answer) => Some(notes.take(answer)),
        Err(e) => {
            notes.add(Missing::Answer, None, format!("{what}: {e}"));
            None
        }
    }
}
