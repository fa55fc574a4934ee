//! Lists that are printed while they are made: a heap may have a hundred million objects.
//!
//! Who makes the list hands it over in batches. Other threads turn batches into text, this one writes them in their order:
//! the answer is the same for any number of threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::formats::{Format, Out};
use super::report::Report;
use super::table::{Columns, Heading};
use super::{Head, finish};
use crate::base::Answer;

/// A list with its columns.
pub struct List<T> {
    heading: Heading,
    columns: Columns<'static, T>,
}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("heading", &self.heading).finish_non_exhaustive()
    }
}

impl<T: Serialize> List<T> {
    /// A list called `list` in JSON, its rows `record` in NDJSON.
    pub fn new(list: &'static str, record: &'static str, columns: Columns<'static, T>) -> List<T> {
        let heading = Heading { record: Some(record), list, csv: true, shown: true, complete: None, columns: columns.list().to_vec() };
        List { heading, columns }
    }
}

/// What all threads share.
struct Shared<'s, T> {
    list: &'s List<T>,
    format: Format,
    terminal: bool,
    /// Buffers to use again.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl<T: Serialize> Shared<'_, T> {
    /// The text of the rows that `each` hands out, the first of which has the number `first`.
    fn text(&self, first: u64, each: impl FnOnce(&mut dyn FnMut(&T) -> io::Result<()>) -> io::Result<()>) -> io::Result<Vec<u8>> {
        let mut text = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let (writer, mut number) = (self.format.writer(), first);
        each(&mut |row| {
            writer.row(&self.list.heading, &self.list.columns.row(row), number, self.terminal, &mut text)?;
            number = number.saturating_add(1);
            Ok(())
        })?;
        Ok(text)
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        /// Most bytes to keep: an array with a million references is rare.
        const KEPT: usize = 4 << 20;
        buffer.clear();
        buffer.shrink_to(KEPT);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Where the batches of a list go.
pub struct Batches<'b, 'scope, 'w, T> {
    scope: &'b rayon::Scope<'scope>,
    shared: Arc<Shared<'scope, T>>,
    out: &'b mut Out<'w>,
    waiting: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    most: usize,
}

impl<T> std::fmt::Debug for Batches<'_, '_, '_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl<'scope, T: Serialize + Sync> Batches<'_, 'scope, '_, T> {
    /// Prints a batch of so many rows. `each` hands them out, maybe on another thread.
    ///
    /// # Errors
    /// Those of the writer, of this batch or one before.
    pub fn print(
        &mut self,
        rows: usize,
        each: impl FnOnce(&mut dyn FnMut(&T) -> io::Result<()>) -> io::Result<()> + Send + 'scope,
    ) -> io::Result<()> {
        let (first, shared) = (self.out.rows, Arc::clone(&self.shared));
        self.out.rows = first.saturating_add(u64::try_from(rows).unwrap_or(u64::MAX));
        // A thread of the pool must not wait for the pool: it may be the only one.
        if rayon::current_thread_index().is_some() {
            let text = shared.text(first, each)?;
            return self.write(text);
        }
        let (send, receive) = mpsc::sync_channel(1);
        self.scope.spawn(move |_| {
            // Nobody waits any more where the writer failed.
            let _ = send.send(shared.text(first, each));
        });
        self.waiting.push_back(receive);
        while let Some(done) = self.waiting.front().and_then(|first| first.try_recv().ok()) {
            self.waiting.pop_front();
            self.write(done?)?;
        }
        if self.waiting.len() > self.most { self.write_first() } else { Ok(()) }
    }

    fn write(&mut self, text: Vec<u8>) -> io::Result<()> {
        self.out.to.write_all(&text)?;
        self.shared.give_back(text);
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.pop_front() else { return Ok(()) };
        let text = first.recv().map_err(|_| io::Error::other("a thread that prints rows has ended"))??;
        self.write(text)
    }
}

/// Prints an answer whose list `make` hands over in batches while it makes it, and whose rest it returns.
///
/// # Errors
/// Those of `make` and of the writer.
pub fn stream<'scope, T: Serialize + Sync, R: Report>(
    head: &Head,
    list: &'scope List<T>,
    (format, terminal): (Format, bool),
    to: &mut dyn Write,
    make: impl FnOnce(&mut Batches<'_, 'scope, '_, T>) -> io::Result<Answer<R>>,
) -> io::Result<Answer<R>> {
    let mut out = Out::new(to, terminal, head);
    format.writer().begin(&mut out)?;
    format.writer().list(&mut out, &list.heading)?;
    out.streamed = true;
    let shared = Arc::new(Shared { list, format, terminal, spare: Mutex::default() });
    let answer = rayon::in_place_scope(|scope| {
        let most = rayon::current_num_threads().saturating_mul(2).saturating_add(1);
        let mut batches = Batches { scope, shared, out: &mut out, waiting: VecDeque::new(), most };
        let answer = make(&mut batches)?;
        while !batches.waiting.is_empty() {
            batches.write_first()?;
        }
        io::Result::Ok(answer)
    })?;
    finish(&mut out, &answer, format)?;
    Ok(answer)
}
