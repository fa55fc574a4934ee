//! Writes the tables of one dump.

use std::fs::File;
use std::io;

use super::block::Column;
use super::context::{Context, HeapType, Tables};
use super::feed::{Opened, fed};
use super::fields::Fields;
use super::objects::Retention;
use super::{About, answers, columns, dumps, objects, process, sink};
use crate::analysis::TypeStats;
use crate::base::hash::Map;
use crate::base::{Addr, Answer, IndexVec, Name};
use crate::gc::TypeIndex;
use crate::heapgraph::{Depends, Extra, Roots};
use crate::model::{ExportTable, Stacks, Sum};
use crate::session::roots::RootOptions;
use crate::session::{Error, Heap, extra_edges};

/// Why tables were not written.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The dump cannot be analyzed.
    #[error(transparent)]
    Dump(#[from] Error),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// The result of writing tables.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The tables with their numbers of rows.
    pub tables: Vec<(ExportTable, u64)>,
    /// Count and bytes of the objects on the heap.
    pub objects: Sum,
}

/// Writes the tables of `heap` to the files that `create` opens.
///
/// # Errors
/// [`TablesError`]: errors of the analyses that the tables are made from, and of the files.
pub fn written(
    heap: &Heap,
    about: &About,
    options: &Tables,
    mut create: impl FnMut(ExportTable) -> io::Result<File>,
) -> Result<Answer<Written>, TablesError> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let stat = notes.take(heap.stat()?);
    let starts = notes.with(heap.starts());
    let context = Context { heap, namer: &namer, notes: &notes, starts, stat: &stat, types: numbered(heap, &stat), options };
    let retention = if options.retained { Some(retention(&context)?) } else { None };
    let mut done = Vec::new();
    let mut fields = Fields::of(heap, &options.fields, columns(ExportTable::Objects));
    let more: Vec<Column> = fields.columns().collect();
    let mut open = |table: ExportTable| -> io::Result<Option<Opened>> {
        let mut columns = columns(table).to_vec();
        columns.extend(more.iter().filter(|_| table == ExportTable::Objects).cloned());
        let sink = sink(options.format, table, &columns, create(table)?)?;
        Ok(sink.map(|sink| Opened { table, columns, sink }))
    };
    let streamed = [ExportTable::Objects, ExportTable::Refs].into_iter().filter(|t| options.has(*t));
    let streamed: Vec<_> = streamed.map(&mut open).collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect();
    if !streamed.is_empty() {
        let extra = if options.has(ExportTable::Refs) { extra(&context) } else { Extra::default() };
        fed(streamed, &mut done, |feeds| {
            let (mut objects, mut refs) = (None, None);
            for feed in feeds {
                if feed.table == ExportTable::Objects { objects = Some(feed) } else { refs = Some(feed) }
            }
            objects::stream(&context, retention.as_ref(), (&extra, &mut fields), objects, refs);
        })?;
    }
    // The table `dumps` is written last, because its column `complete` depends on the notes of all other tables.
    let small = ExportTable::ALL.into_iter().filter(|t| !matches!(t, ExportTable::Objects | ExportTable::Refs | ExportTable::Dumps));
    for table in small.chain([ExportTable::Dumps]).filter(|t| options.has(*t)) {
        let sinks = open(table)?.into_iter().collect();
        fed(sinks, &mut done, |feeds| match feeds.first_mut() {
            Some(feed) if table == ExportTable::Dumps => dumps::dump(&context, about, feed),
            Some(feed) if !table.is_of_heap() => {
                process::table(&context, &about.dump, table, feed);
                Ok(())
            }
            Some(feed) => answers::table(&context, table, retention.as_ref().map(|r| r.tree), feed),
            None => Ok(()),
        })??;
    }
    namer.note(&notes);
    done.sort_by_key(|(table, _)| ExportTable::ALL.iter().position(|t| t == table));
    let objects = Sum { count: stat.totals.count, bytes: stat.totals.bytes };
    drop(context);
    Ok(notes.finish(Written { tables: done, objects }))
}

/// Numbers the types of the heap in method table order, so that the numbers are the same in every run. Returns the numbered types by type index.
fn numbered(heap: &Heap, stat: &TypeStats) -> IndexVec<TypeIndex, Option<HeapType>> {
    let mut rows: Vec<(Addr, &str)> = stat.types.iter().map(|t| (t.method_table, t.type_name.as_str())).collect();
    rows.sort_unstable();
    let known: Map<Addr, (u32, &str)> = rows.into_iter().zip(0u32..).map(|((mt, name), id)| (mt, (id, name))).collect();
    let types = heap.walker().types().list();
    types.iter().map(|t| known.get(&t.method_table).map(|(id, name)| HeapType { id: *id, name: Name::from(*name) })).collect()
}

fn retention<'c>(context: &Context<'c>) -> Result<Retention<'c>, Error> {
    let (heap, stacks) = (context.heap, context.options.stacks);
    let graph = context.notes.with(heap.graph(false)?);
    graph.root_notes(stacks).into_iter().for_each(|n| context.notes.extend(n));
    graph.note_doubts(stacks, Depends::Roots, context.notes);
    let mut starts = graph.rooted(stacks);
    starts.extend(&graph.frozen);
    starts.sort_unstable();
    starts.dedup();
    Ok(Retention::new(graph, heap.dominators(stacks)?, starts))
}

/// Collects the edges that are not references of objects: dependent handles and loader allocators.
fn extra(context: &Context<'_>) -> Extra {
    // Dependent handles are collected for any choice of roots, so roots on stacks are not needed.
    let options = RootOptions { stacks: Stacks::None, ..RootOptions::default() };
    let roots = context.notes.take(Roots::collect(context.heap, context.namer, &options));
    extra_edges(context.heap, context.namer, context.starts, &roots)
}
