//! Runs a command on a separate thread that a `Cancel` handle, `--timeout` and `--max-memory` can stop.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::args::Config;
use super::exit::Exit;
use super::limits::{takes_more_than, takes_too_much};
use super::streams::Streams;
use crate::base::Cancel;
use crate::base::cancel;
use crate::base::threads::start;

/// Stack size in bytes: the usual size for the main thread of a Linux process.
const STACK: usize = 8 << 20;
/// Interval of memory checks.
const LOOK: Duration = Duration::from_millis(10);
/// Interval if there is nothing to check.
const LONG: Duration = Duration::from_secs(3600);
/// Number of buffered bytes that are sent together.
const FULL: usize = 1 << 16;

/// The reason why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The command finished.
    Done(Exit),
    /// The `Cancel` handle stopped the command.
    Interrupted,
    /// `--timeout` expired.
    TimedOut,
    /// `--max-memory` was exceeded.
    TooMuch,
}

/// A piece of output of a command.
enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// An output stream of a command that runs on another thread.
struct Sink {
    to: SyncSender<Piece>,
    piece: fn(Vec<u8>) -> Piece,
    /// Whether each line is sent at once.
    lines: bool,
    buffer: Vec<u8>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= FULL || (self.lines && bytes.ends_with(b"\n")) {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        cancel::check();
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.buffer);
        self.to.send((self.piece)(bytes)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Runs `work` for at most `time`.
pub(super) fn for_a_while(time: Duration, work: impl FnOnce() + Send) {
    let cancel = Cancel::default();
    let (send, done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let job = || {
            let _ended = cancel.run(work);
            drop(send);
        };
        // If no thread can be started, `work` is skipped.
        if start(scope, Some(STACK), job).is_ok() {
            let _ = done.recv_timeout(time);
            cancel.cancel();
        }
    });
}

/// Runs `work` on the current thread. Used if no other thread can be started. `cancel` stops `work`, and so do the limits of `config`, which are
/// checked whenever `work` checks for cancellation.
pub(super) fn here(cancel: &Cancel, config: &Config, work: impl FnOnce() -> Exit) -> Ended {
    let why = Arc::new(Mutex::new(None));
    let (started, end, looked) = (Instant::now(), Arc::clone(&why), Mutex::new(Instant::now()));
    let (timeout, most) = (config.timeout, config.max_memory);
    let look = move || {
        let now = Instant::now();
        let found = if timeout.is_some_and(|most| now.duration_since(started) >= most) {
            Some(Ended::TimedOut)
        } else {
            let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = most.is_some() && now.duration_since(*looked) >= LOOK;
            if is_due {
                *looked = now;
            }
            (is_due && takes_more_than(most)).then_some(Ended::TooMuch)
        };
        let stop = found.is_some();
        if stop {
            *end.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
        stop
    };
    match cancel.watching(look).run(work) {
        Ok(exit) => Ended::Done(exit),
        Err(_) => why.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Ended::Interrupted),
    }
}

/// Runs `work` until `cancel` stops it, within the time and memory that `config` allows. Its output is forwarded to `streams`.
///
/// # Errors
/// Errors of writing to `streams`, which also stop the command.
pub(super) fn run(
    cancel: &Cancel,
    config: &Config,
    streams: &mut Streams<'_>,
    work: impl FnOnce(Streams<'_>) -> Exit + Send,
) -> io::Result<Ended> {
    let (screen, err_screen, seen, next) = (streams.screen, streams.err_screen, streams.seen, streams.next);
    let (send, pieces) = mpsc::sync_channel(4);
    let work = Arc::new(Mutex::new(Some(work)));
    let taken = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let job = || {
        let sink = |piece, lines| Sink { to: send.clone(), piece, lines, buffer: Vec::new() };
        let (mut out, mut err) = (sink(Piece::Out, false), sink(Piece::Err, true));
        let streams = Streams { out: &mut out, err: &mut err, screen, err_screen, seen, next };
        let exit = cancel.run(|| taken().map_or(Exit::BadDump, |work| work(streams)));
        // The receiver waits until all senders are dropped, so this sender must be dropped here.
        drop(send);
        exit
    };
    thread::scope(|scope| {
        let Ok(worker) = start(scope, Some(STACK), job) else {
            let Some(work) = taken() else { return Ok(Ended::Interrupted) };
            let streams = Streams { out: &mut *streams.out, err: &mut *streams.err, screen, err_screen, seen, next };
            return Ok(here(cancel, config, || work(streams)));
        };
        let (started, mut why, mut failed) = (Instant::now(), None, None);
        let mut looked = started;
        let mut pieces = Some(pieces);
        while let Some(open) = &pieces {
            let left = config.timeout.filter(|_| why.is_none()).map(|t| t.saturating_sub(started.elapsed()));
            let look = config.max_memory.filter(|_| why.is_none()).map(|_| LOOK);
            let wait = left.into_iter().chain(look).min().unwrap_or(LONG);
            match open.recv_timeout(wait) {
                Ok(_) if cancel.is_cancelled() => {}
                Ok(piece) => {
                    if let Err(e) = print(piece, streams) {
                        failed = Some(e);
                        pieces = None;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    pieces = None;
                    continue;
                }
            }
            // A command that prints without a pause, to a slow reader for example, is limited as well.
            if why.is_none() && config.timeout.is_some_and(|most| started.elapsed() >= most) {
                why = Some(Ended::TimedOut);
            } else if why.is_none() && looked.elapsed() >= LOOK {
                looked = Instant::now();
                why = takes_too_much(config).then_some(Ended::TooMuch);
            }
            if why.is_some() {
                cancel.cancel();
            }
        }
        match (worker.join(), failed) {
            (Ok(_), Some(e)) => Err(e),
            // Output that arrived after the limit was discarded, even if the command ended by itself.
            (Ok(ended), None) => Ok(why.unwrap_or(ended.map_or(Ended::Interrupted, Ended::Done))),
            // The panic has already printed its message. The result is discarded.
            (Err(_), _) => Ok(Ended::Done(Exit::BadDump)),
        }
    })
}

fn print(piece: Piece, streams: &mut Streams<'_>) -> io::Result<()> {
    match piece {
        Piece::Out(bytes) => {
            streams.out.write_all(&bytes)?;
            streams.out.flush()
        }
        // Errors on writing diagnostics are ignored.
        Piece::Err(bytes) => {
            let _ = streams.err.write_all(&bytes).and_then(|()| streams.err.flush());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    /// Collects output; stops the command on the first output if a handle is given.
    struct Printed<'c> {
        text: Vec<u8>,
        stop: Option<&'c Cancel>,
    }

    impl Write for Printed<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.text.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.stop.iter().for_each(|stop| stop.cancel());
            Ok(())
        }
    }

    /// Runs a command that never finishes until `stop` cancels it after its first output. Returns how the command ended, and its output.
    fn endless(cancel: &Cancel, stop: Option<&Cancel>, config: &Config) -> (Ended, String) {
        let (mut out, mut err) = (Printed { text: Vec::new(), stop }, Vec::new());
        let mut streams = Streams::piped(&mut out, &mut err);
        let work = |streams: Streams<'_>| {
            writeln!(streams.out, "begun").and_then(|()| streams.out.flush()).unwrap();
            loop {
                writeln!(streams.out, "goes on").unwrap();
                cancel::check();
                thread::sleep(Duration::from_millis(1));
            }
        };
        let ended = run(cancel, config, &mut streams, work).unwrap();
        (ended, String::from_utf8(out.text).unwrap())
    }

    #[test]
    fn a_command_is_stopped_by_its_handle_and_by_its_time() {
        let config = Cli::of(&["gcdump", "heap", "x"].map(Into::into)).unwrap().config;
        let cancel = Cancel::default();
        assert_eq!(endless(&cancel, Some(&cancel.clone()), &config), (Ended::Interrupted, "begun\n".into()));
        let short = Config { timeout: Some(Duration::from_millis(20)), ..config };
        assert_eq!(endless(&Cancel::default(), None, &short).0, Ended::TimedOut);
    }

    #[test]
    fn a_write_error_ends_a_command() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let config = Cli::of(&["gcdump", "heap", "x"].map(Into::into)).unwrap().config;
        let mut err = Vec::new();
        let mut out = Full;
        let mut streams = Streams::piped(&mut out, &mut err);
        let work = |streams: Streams<'_>| loop {
            if streams.out.write_all(&[b'x'; FULL]).is_err() {
                return Exit::NotWritten;
            }
        };
        assert_eq!(run(&Cancel::default(), &config, &mut streams, work).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
