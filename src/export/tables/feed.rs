//! Passes the rows of tables to the threads that write them.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::block::{Block, Column, Value};
use super::{BLOCK_ROWS, Sink};
use crate::base::Count;
use crate::base::threads::start;
use crate::model::ExportTable;

/// Collects the rows of a table and passes them to the thread that writes it.
pub(super) struct Feed {
    pub(super) table: ExportTable,
    columns: Vec<Column>,
    block: Block,
    to: To,
    rows: u64,
}

impl Feed {
    /// Adds a row. Returns `Break` once writing has failed.
    #[inline]
    pub(super) fn row<const N: usize>(&mut self, values: [Value<'_>; N]) -> ControlFlow<()> {
        self.block.row(values);
        self.counted()
    }

    /// Adds a row with `values` for the first columns and `more` for the additional ones.
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

    /// Finishes the file, unless a writer thread finishes it.
    fn finish(self) -> io::Result<()> {
        match self.to {
            To::Thread { .. } => Ok(()),
            To::Here(sink, written) => written.and_then(|()| sink.finish()),
        }
    }
}

/// Where the blocks of a table are sent.
enum To {
    /// A writer thread.
    Thread {
        /// Sends filled blocks to the thread.
        to: SyncSender<Block>,
        /// Returns written blocks for reuse.
        back: Receiver<Block>,
    },
    /// The current thread, if no thread could be started; with the result of writing so far.
    Here(Box<dyn Sink>, io::Result<()>),
}

/// Writes blocks as they arrive and returns them for reuse.
fn encode(mut sink: Box<dyn Sink>, blocks: &Receiver<Block>, back: &Sender<Block>) -> io::Result<()> {
    for mut block in blocks {
        sink.block(&block)?;
        block.clear();
        // Sending fails after the last rows, when the feed no longer exists.
        let _ = back.send(block);
    }
    sink.finish()
}

/// A table with its columns and the writer of its file.
pub(super) struct Opened {
    pub(super) table: ExportTable,
    pub(super) columns: Vec<Column>,
    pub(super) sink: Box<dyn Sink>,
}

/// Runs `produce` with a feed for each table. Each table is written by its own thread. Adds the tables and their numbers of rows to `done`.
pub(super) fn fed<T>(tables: Vec<Opened>, done: &mut Vec<(ExportTable, u64)>, produce: impl FnOnce(&mut [Feed]) -> T) -> io::Result<T> {
    std::thread::scope(|scope| {
        let (mut feeds, threads): (Vec<Feed>, Vec<_>) = tables.into_iter().map(|opened| feed(scope, opened)).unzip();
        let made = produce(&mut feeds);
        for feed in &mut feeds {
            if feed.block.rows > 0 {
                // A failure is ignored here, because joining the writer thread returns its error.
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
            // Sending cannot fail, because the thread waits for the sink.
            let _ = hand.send(sink);
            (To::Thread { to, back }, Some(thread))
        }
        Err(_) => (To::Here(sink, Ok(())), None),
    };
    (Feed { table, block: Block::new(&columns), columns, to, rows: 0 }, thread)
}
