//! A command on a thread of its own, which Ctrl-C, `--timeout` and `--max-memory` stop.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::args::Config;
use super::super::{Exit, Streams, takes_too_much};
use super::editor;
use crate::base::Cancel;
use crate::base::cancel;

/// As much as the main thread of a Linux process has.
const STACK: usize = 8 << 20;
/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long to wait where nothing is watched.
const LONG: Duration = Duration::from_secs(3600);
/// A second Ctrl-C within this time is the same one: people press it twice.
const AGAIN: Duration = Duration::from_secs(1);
/// Bytes handed over at a time.
const FULL: usize = 1 << 16;

/// The command that runs in a shell that somebody types in.
static RUNNING: Mutex<Shell> = Mutex::new(Shell { open: false, job: None });

struct Shell {
    /// Whether there is such a shell.
    open: bool,
    job: Option<(Cancel, Option<Instant>)>,
}

fn running() -> MutexGuard<'static, Shell> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the command that runs in a shell. Returns false where the signal ends the process instead: without a shell; while a line is
/// edited, when Ctrl-C is the editor's, and other signals mean the shell; or if the command goes on long after it was asked to stop.
pub(in crate::cli) fn interrupt() -> bool {
    let mut shell = running();
    let open = shell.open;
    let Some((cancel, asked)) = &mut shell.job else { return open && !editor::ends() };
    cancel.cancel();
    asked.get_or_insert_with(Instant::now).elapsed() < AGAIN
}

/// While it exists, [`interrupt`] stops commands and not the process.
pub(super) struct Open(());

impl Open {
    pub(super) fn new() -> Open {
        running().open = true;
        Open(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        running().open = false;
    }
}

/// Makes a command the one that [`interrupt`] stops.
struct Interruptible(());

impl Interruptible {
    fn new(cancel: &Cancel) -> Interruptible {
        let mut shell = running();
        if shell.open {
            shell.job = Some((cancel.clone(), None));
        }
        Interruptible(())
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        running().job = None;
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself.
    Done(Exit),
    /// By Ctrl-C.
    Interrupted,
    /// By `--timeout`.
    TimedOut,
    /// By `--max-memory`.
    TooMuch,
}

/// What a command prints.
enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// The streams of a command, on its own thread.
struct Sink {
    to: SyncSender<Piece>,
    piece: fn(Vec<u8>) -> Piece,
    /// Whether each line is handed over.
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

/// Runs `work` for at most this long.
pub(super) fn for_a_while(time: Duration, work: impl FnOnce() + Send) {
    let cancel = Cancel::default();
    let (send, done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let job = || {
            let _ended = cancel.run(work);
            drop(send);
        };
        // Cannot spawn: without.
        if thread::Builder::new().stack_size(STACK).spawn_scoped(scope, job).is_ok() {
            let _ = done.recv_timeout(time);
            cancel.cancel();
        }
    });
}

/// Runs `work` within the time and memory that `config` allows, with streams whose contents arrive at `streams`.
///
/// # Errors
/// What writing to `streams` failed with. The command is stopped then.
pub(super) fn run(config: &Config, streams: &mut Streams<'_>, work: impl FnOnce(Streams<'_>) -> Exit + Send) -> io::Result<Ended> {
    let cancel = Cancel::default();
    let _interruptible = Interruptible::new(&cancel);
    let (screen, err_screen, seen) = (streams.screen, streams.err_screen, streams.seen);
    let (send, pieces) = mpsc::sync_channel(4);
    let job = || {
        let sink = |piece, lines| Sink { to: send.clone(), piece, lines, buffer: Vec::new() };
        let (mut out, mut err) = (sink(Piece::Out, false), sink(Piece::Err, true));
        let exit = cancel.run(|| work(Streams { out: &mut out, err: &mut err, screen, err_screen, seen }));
        // The other end waits until nobody can send.
        drop(send);
        exit
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, job)?;
        let (started, mut why, mut failed) = (Instant::now(), None, None);
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
                Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= wait) => {
                    why = Some(Ended::TimedOut);
                    cancel.cancel();
                }
                Err(RecvTimeoutError::Timeout) if takes_too_much(config) => {
                    why = Some(Ended::TooMuch);
                    cancel.cancel();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => pieces = None,
            }
        }
        match (worker.join(), failed) {
            (Ok(_), Some(e)) => Err(e),
            (Ok(Ok(exit)), None) => Ok(Ended::Done(exit)),
            (Ok(Err(_)), None) => Ok(why.unwrap_or(Ended::Interrupted)),
            // A panic has printed its message. What it was making is not kept.
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
        // Diagnostics that nobody reads stop nothing.
        Piece::Err(bytes) => {
            let _ = streams.err.write_all(&bytes).and_then(|()| streams.err.flush());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Cli;
    use super::*;

    /// How a command ends that goes on until it is stopped, and what it printed.
    fn endless(config: &Config) -> (Ended, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::piped(&mut out, &mut err);
        let work = |streams: Streams<'_>| {
            writeln!(streams.out, "begun").and_then(|()| streams.out.flush()).unwrap();
            loop {
                writeln!(streams.out, "goes on").unwrap();
                cancel::check();
                thread::sleep(Duration::from_millis(1));
            }
        };
        let ended = run(config, &mut streams, work).unwrap();
        (ended, String::from_utf8(out).unwrap())
    }

    /// Held by tests that run commands: an interrupt is meant for the one that runs.
    static ONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_command_is_stopped_by_a_signal_and_by_its_time() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let config = Cli::of(&["gcdump", "heap", "x"].map(Into::into)).unwrap().config;
        assert!(!interrupt(), "there is no shell");
        let open = Open::new();
        assert!(interrupt(), "nothing runs, and the shell stays");
        let stopper = thread::spawn(|| {
            while running().job.is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(20));
            (interrupt(), interrupt())
        });
        assert_eq!(endless(&config), (Ended::Interrupted, "begun\n".into()));
        assert_eq!(stopper.join().unwrap(), (true, true));
        drop(open);
        let short = Config { timeout: Some(Duration::from_millis(20)), ..config };
        assert_eq!(endless(&short).0, Ended::TimedOut);
        assert!(!interrupt());
    }

    #[test]
    fn what_cannot_be_written_ends_a_command() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
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
        assert_eq!(run(&config, &mut streams, work).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
