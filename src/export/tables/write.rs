//! Writes the tables of one dump.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::block::{Block, Column, Value};
use super::fields::Fields;
use super::objects::Retention;
use super::{About, BLOCK_ROWS, Sink, answers, columns, dumps, objects, sink};
use crate::analysis::{StatQuery, stat};
use crate::base::hash::Map;
use crate::base::threads::start;
use crate::base::{Addr, Answer, Collector, Count, IndexVec, Name};
use crate::gc::{ObjectStarts, TypeIndex};
use crate::heapgraph::{Depends, Extra, Roots};
use crate::model::{ExportFormat, ExportTable, Stacks, StatReport, Sum};
use crate::session::roots::RootOptions;
use crate::session::{Error, Heap, Namer, extra_edges};

/// What to write.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The format.
    pub format: ExportFormat,
    /// The tables.
    pub tables: Vec<ExportTable>,
    /// Fill the columns that need the graph of the heap: retained sizes, dominators, distances.
    pub retained: bool,
    /// Which stack values count as roots.
    pub stacks: Stacks,
    /// Also the contents of strings.
    pub contents: bool,
    /// Fields that are columns of `objects`: names, or paths of names with dots.
    pub fields: Vec<String>,
}

impl Tables {
    fn has(&self, table: ExportTable) -> bool {
        self.tables.contains(&table)
    }
}

/// Why tables were not written.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The dump does not tell.
    #[error(transparent)]
    Dump(#[from] Error),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Tables with the number of their rows.
    pub tables: Vec<(ExportTable, u64)>,
    /// Objects of the heap.
    pub objects: Sum,
}

/// A type on the heap.
pub(super) struct HeapType {
    /// Its number: types are numbered by method table.
    pub(super) id: u32,
    pub(super) name: Name,
}

/// What the tables of a dump have in common.
pub(super) struct Context<'c> {
    pub(super) heap: &'c Heap,
    pub(super) namer: &'c Namer,
    pub(super) notes: &'c Collector,
    pub(super) starts: &'c ObjectStarts,
    pub(super) stat: &'c StatReport,
    pub(super) types: IndexVec<TypeIndex, Option<HeapType>>,
    pub(super) options: &'c Tables,
}

impl Context<'_> {
    /// The number of the object at an address; nothing for those that the heap does not have.
    pub(super) fn object(&self, at: Addr) -> Value<'static> {
        self.starts.id_of(at).map(crate::base::Index::as_u32).into()
    }
}

/// Takes the rows of a table and hands them to the thread that writes it.
pub(super) struct Feed {
    table: ExportTable,
    columns: Vec<Column>,
    block: Block,
    to: To,
    rows: u64,
}

impl Feed {
    /// Adds a row. Breaks once the file cannot be written any more.
    #[inline]
    pub(super) fn row<const N: usize>(&mut self, values: [Value<'_>; N]) -> ControlFlow<()> {
        self.block.row(values);
        self.counted()
    }

    /// Adds a row of a table that has more columns than its own.
    #[inline]
    pub(super) fn wider<'v, const N: usize>(&mut self, values: [Value<'_>; N], more: impl Iterator<Item = Value<'v>>) -> ControlFlow<()> {
        self.block.wider(values, more);
        self.counted()
    }

    #[inline]
    fn counted(&mut self) -> ControlFlow<()> {
        self.rows.bump();
        if self.block.rows < BLOCK_ROWS { ControlFlow::Continue(()) } else { self.send() }
    }

    fn send(&mut self) -> ControlFlow<()> {
        let sent = match &mut self.to {
            To::Thread { to, back } => {
                let next = back.try_recv().unwrap_or_else(|_| Block::new(&self.columns));
                to.send(std::mem::replace(&mut self.block, next)).is_ok()
            }
            To::Here(sink, written) => {
                if written.is_ok() {
                    *written = sink.block(&self.block);
                }
                self.block.clear();
                written.is_ok()
            }
        };
        if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Ends the file, where no thread does.
    fn finish(self) -> io::Result<()> {
        match self.to {
            To::Thread { .. } => Ok(()),
            To::Here(sink, written) => written.and_then(|()| sink.finish()),
        }
    }
}

/// The writer of a table.
enum To {
    /// A thread.
    Thread {
        /// Takes blocks.
        to: SyncSender<Block>,
        /// Blocks that are written, to be filled again.
        back: Receiver<Block>,
    },
    /// This thread, where the system starts no other; and whether all blocks could be written.
    Here(Box<dyn Sink>, io::Result<()>),
}

/// Writes blocks as they come, and hands them back.
fn encode(mut sink: Box<dyn Sink>, blocks: &Receiver<Block>, back: &Sender<Block>) -> io::Result<()> {
    for mut block in blocks {
        sink.block(&block)?;
        block.clear();
        // Nobody takes the last ones.
        let _ = back.send(block);
    }
    sink.finish()
}

/// A table with its columns and the file that it goes to.
struct Opened {
    table: ExportTable,
    columns: Vec<Column>,
    sink: Box<dyn Sink>,
}

/// Runs `produce` with a feed for each table, each written by its own thread.
fn fed<T>(tables: Vec<Opened>, done: &mut Vec<(ExportTable, u64)>, produce: impl FnOnce(&mut [Feed]) -> T) -> io::Result<T> {
    std::thread::scope(|scope| {
        let (mut feeds, threads): (Vec<Feed>, Vec<_>) = tables.into_iter().map(|opened| feed(scope, opened)).unzip();
        let made = produce(&mut feeds);
        for feed in &mut feeds {
            if feed.block.rows > 0 {
                // What is wrong with the file, its thread says.
                let _ = feed.send();
            }
            done.push((feed.table, feed.rows));
        }
        feeds.into_iter().try_for_each(Feed::finish)?;
        for thread in threads.into_iter().flatten() {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(made)
    })
}

fn feed<'s>(scope: &'s Scope<'s, '_>, opened: Opened) -> (Feed, Option<ScopedJoinHandle<'s, io::Result<()>>>) {
    let Opened { table, columns, sink } = opened;
    let (to, blocks) = sync_channel(1);
    let (give, back) = channel();
    let (hand, handed) = channel();
    let work = move || handed.recv().map_or(Ok(()), |sink| encode(sink, &blocks, &give));
    let (to, thread) = match start(scope, None, work) {
        Ok(thread) => {
            // It has not ended: it waits for this.
            let _ = hand.send(sink);
            (To::Thread { to, back }, Some(thread))
        }
        Err(_) => (To::Here(sink, Ok(())), None),
    };
    (Feed { table, block: Block::new(&columns), columns, to, rows: 0 }, thread)
}

/// Writes the tables of `heap` to the files that `create` makes.
///
/// # Errors
/// [`TablesError`]: those of the analyses that the tables are made from, and of the files.
pub fn written(
    heap: &Heap,
    about: &About,
    options: &Tables,
    mut create: impl FnMut(ExportTable) -> io::Result<File>,
) -> Result<Answer<Written>, TablesError> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let stat = notes.take(stat(heap, &StatQuery::default())?);
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
    // What the dump lacks is known once all others are made.
    let small = ExportTable::ALL.into_iter().filter(|t| !matches!(t, ExportTable::Objects | ExportTable::Refs | ExportTable::Dumps));
    for table in small.chain([ExportTable::Dumps]).filter(|t| options.has(*t)) {
        let sinks = open(table)?.into_iter().collect();
        fed(sinks, &mut done, |feeds| match feeds.first_mut() {
            Some(feed) if table == ExportTable::Dumps => dumps::dump(&context, about, feed),
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

/// The types of the heap by index, numbered by method table: the same in every run.
fn numbered(heap: &Heap, stat: &StatReport) -> IndexVec<TypeIndex, Option<HeapType>> {
    let mut rows: Vec<(Addr, &str)> = stat.types.iter().flatten().map(|t| (t.method_table, t.type_name.as_str())).collect();
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
    Ok(Retention::new(graph, heap.dominators(stacks)?, graph.starts(stacks)))
}

/// What the runtime keeps alive behind what objects refer to.
fn extra(context: &Context<'_>) -> Extra {
    // Dependent handles come with all kinds of roots.
    let options = RootOptions { stacks: Stacks::None, ..RootOptions::default() };
    let roots = context.notes.take(Roots::collect(context.heap, context.namer, &options));
    extra_edges(context.heap, context.namer, context.starts, &roots)
}
