//! Lists printed as they are produced: a heap may have a hundred million objects.
//!
//! The producer supplies batches, the thread pool formats them, and the calling thread writes them in order. Therefore the output does not depend on
//! the number of threads.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::Link;
use super::columns::Columns;
use super::formats::{Format, Out};
use super::layout::Layout;
use super::report::Report;
use super::table::Heading;
use super::{Head, Target, finish};
use crate::base::Answer;
use crate::base::missed::Carried;

/// A streamed list and its columns.
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
    /// Returns the list with the columns `names` only. Returns it with all columns if `names` is empty or `format` has no columns.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the list does not have one of the columns.
    pub fn select(mut self, format: Format, names: &[String]) -> io::Result<List<T>> {
        if super::select::has_columns(format) {
            super::select::check(names, format, std::iter::once(&self.heading))?;
            super::select::only(&mut self.heading, names);
        }
        Ok(self)
    }

    /// Whether the list has a column with this name.
    pub fn has(&self, name: &str) -> bool {
        self.heading.columns.iter().any(|column| column.is_named(name.trim()))
    }

    /// Creates a list named `list` in JSON, with rows of kind `record` in NDJSON.
    pub fn new(list: &'static str, record: &'static str, columns: Columns<'static, T>) -> List<T> {
        let heading = Heading { record: Some(record), list, csv: true, shown: true, complete: None, columns: columns.list() };
        List { heading, columns }
    }
}

/// A batch of rows, ready to be written.
struct Formatted {
    text: Vec<u8>,
    /// The address of each row, if addresses are recorded.
    addresses: Vec<Option<Link>>,
}

/// State shared by all threads.
struct Shared<'s, T> {
    list: &'s List<T>,
    format: Format,
    layout: Layout,
    /// Whether to record the addresses of the rows.
    seen: bool,
    /// Buffers to reuse.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl<T: Serialize> Shared<'_, T> {
    /// Formats the rows supplied by `each`; `first` is the index of the first of these rows.
    fn text(&self, first: u64, each: impl FnOnce(&mut dyn FnMut(&T) -> io::Result<()>) -> io::Result<()>) -> io::Result<Formatted> {
        let mut addresses = Vec::new();
        let mut text = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let (writer, mut number) = (self.format.writer(), first);
        each(&mut |row| {
            let row = self.list.columns.row(row);
            writer.row(&self.list.heading, &row, number, &self.layout, &mut text)?;
            number = number.saturating_add(1);
            addresses.extend(self.seen.then(|| self.list.heading.link_of(&row)));
            Ok(())
        })?;
        Ok(Formatted { text, addresses })
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        /// Maximum capacity to keep, in bytes. A larger buffer is rarely needed again: an array with a million references is rare.
        const KEPT: usize = 4 << 20;
        buffer.clear();
        buffer.shrink_to(KEPT);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Sink for the batches of a list.
pub struct Batches<'b, 'scope, 'w, T> {
    scope: &'b rayon::Scope<'scope>,
    shared: Arc<Shared<'scope, T>>,
    out: &'b mut Out<'w>,
    waiting: VecDeque<Receiver<io::Result<Formatted>>>,
    max_waiting: usize,
}

impl<T> std::fmt::Debug for Batches<'_, '_, '_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl<'scope, T: Serialize + Sync> Batches<'_, 'scope, '_, T> {
    /// Prints a batch of `rows` rows, supplied by `each`, possibly on another thread.
    ///
    /// # Errors
    /// Write errors of this batch or an earlier one.
    pub fn print(
        &mut self,
        rows: usize,
        each: impl FnOnce(&mut dyn FnMut(&T) -> io::Result<()>) -> io::Result<()> + Send + 'scope,
    ) -> io::Result<()> {
        let (first, shared) = (self.out.rows, Arc::clone(&self.shared));
        self.out.rows = first.saturating_add(u64::try_from(rows).unwrap_or(u64::MAX));
        // A thread of the pool formats the batch itself. It must not wait for the pool, because it may be the pool's only thread.
        if rayon::current_thread_index().is_some() {
            let text = shared.text(first, each)?;
            return self.write(text);
        }
        let (send, receive) = mpsc::sync_channel(1);
        let carried = Carried::here();
        self.scope.spawn(move |_| {
            // Sending fails only if the receiver has been dropped because writing failed.
            let _ = send.send(carried.run(|| shared.text(first, each)));
        });
        self.waiting.push_back(receive);
        while let Some(done) = self.waiting.front().and_then(|first| first.try_recv().ok()) {
            self.waiting.pop_front();
            self.write(done?)?;
        }
        if self.waiting.len() > self.max_waiting { self.write_first() } else { Ok(()) }
    }

    /// Waits for the batches that are being formatted and prints them. Afterwards, all failed reads of their rows have been recorded.
    ///
    /// # Errors
    /// Errors of the rows, and write errors.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        Ok(())
    }

    fn write(&mut self, Formatted { text, addresses }: Formatted) -> io::Result<()> {
        self.out.to.write_all(&text)?;
        if let Some(seen) = self.out.seen {
            seen.rows(addresses);
        }
        self.shared.give_back(text);
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.pop_front() else { return Ok(()) };
        let text = first.recv().map_err(|_| io::Error::other("a formatting thread terminated"))??;
        self.write(text)
    }
}

/// Prints an answer whose list is produced in batches by `make`, which returns the rest of the answer.
///
/// # Errors
/// Errors of `make`, and write errors.
pub fn stream<'w, 'scope, T: Serialize + Sync, R: Report>(
    head: &'w Head,
    list: &'scope List<T>,
    format: Format,
    target: Target<'w>,
    make: impl FnOnce(&mut Batches<'_, 'scope, '_, T>) -> io::Result<Answer<R>>,
) -> io::Result<Answer<R>> {
    let mut out = Out::new(target, head);
    format.writer().begin(&mut out)?;
    format.writer().list(&mut out, &list.heading)?;
    out.streamed = true;
    let layout = format.writer().layout(&list.heading, &out);
    let shared = Arc::new(Shared { list, format, layout, seen: out.seen.is_some() && format == Format::Table, spare: Mutex::default() });
    let answer = rayon::in_place_scope(|scope| {
        let max_waiting = rayon::current_num_threads().saturating_mul(2).saturating_add(1);
        let mut batches = Batches { scope, shared, out: &mut out, waiting: VecDeque::new(), max_waiting };
        let answer = make(&mut batches)?;
        batches.flush()?;
        io::Result::Ok(answer)
    })?;
    finish(&mut out, &answer, format)?;
    Ok(answer)
}
