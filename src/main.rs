//! The `gcdump` command line: everything is in the library's `cli`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use gcdump::cli::{self, Cli, Exit, HugePages, Streams};

#[global_allocator]
static MEMORY: HugePages = HugePages;

/// As much as the main thread of a Linux process has.
const STACK: usize = 8 << 20;
/// As of a main thread that panics.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    if cfg!(unix) {
        return run();
    }
    // The main thread of a Windows process has 1 MiB.
    thread::Builder::new().stack_size(STACK).spawn(run).map_or_else(|_| run(), |all| all.join().unwrap_or(ExitCode::from(PANICKED)))
}

fn run() -> ExitCode {
    if cli::complete(std::env::args_os()) {
        return ExitCode::SUCCESS;
    }
    on_signals();
    let cli = with_streams(|mut streams| cli::parse(std::env::args_os(), &mut streams));
    let exit = match cli {
        Err(exit) => exit,
        Ok(cli) if cli.watches_itself() || (cli.config.timeout.is_none() && cli.config.max_memory.is_none()) => {
            with_streams(|streams| cli::run_parsed(&cli, streams))
        }
        Ok(cli) => watched(cli),
    };
    ExitCode::from(exit.code())
}

/// SIGINT, SIGTERM and SIGHUP would end the process as well, but leave half a progress bar and half a file. Without a thread that waits
/// for them, they do.
#[cfg(unix)]
fn on_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let waits = || {
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            signals.forever().for_each(|signal| stop(signal == SIGINT));
        }
    };
    let _ = thread::Builder::new().name("signals".into()).spawn(waits);
}

/// The same for the console of other systems.
#[cfg(not(unix))]
fn on_signals() {
    let _ = ctrlc::set_handler(|| stop(true));
}

/// Ends the process, or the command that runs in a shell. Only what was being written has to be undone: dumps are only read, and what
/// they are unpacked into has no name.
fn stop(interrupted: bool) {
    // An interrupt while a pager runs is the pager's: the terminal sends it to both.
    if (interrupted && cli::paging()) || cli::interrupt(interrupted) {
        return;
    }
    clear_line();
    cli::remove_unfinished();
    #[allow(clippy::exit)] // This is `main`'s.
    std::process::exit(130);
}

fn with_streams<R>(work: impl FnOnce(Streams<'_>) -> R) -> R {
    let stdout = io::stdout();
    // Not locked: who runs out of time has to be told while the work still goes on.
    let mut err = io::stderr();
    let (screen, err_screen) = (cli::screen_of(&stdout), cli::screen_of(&err));
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    work(Streams { out: &mut out, err: &mut err, screen, err_screen, seen: None, next: None })
}

/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command on a thread of its own, which the end of the process ends where it takes longer than `--timeout` or more
/// memory than `--max-memory` allows.
fn watched(cli: Cli) -> Exit {
    let (done, answer) = mpsc::channel();
    let work = cli.clone();
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || {
        let exit = with_streams(|streams| cli::run_parsed(&work, streams));
        let _ = done.send(exit);
    });
    // Cannot spawn: run without a watch.
    let Ok(worker) = worker else { return with_streams(|streams| cli::run_parsed(&cli, streams)) };
    let started = Instant::now();
    loop {
        let left = cli.config.timeout.map(|t| t.saturating_sub(started.elapsed()));
        let look = cli.config.max_memory.map(|_| LOOK);
        let wait = left.into_iter().chain(look).min().unwrap_or(LOOK);
        match answer.recv_timeout(wait) {
            Ok(exit) => return exit,
            Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= wait) => {
                clear_line();
                cli::remove_unfinished();
                return cli::out_of_time(&cli.config, &mut io::stderr());
            }
            Err(RecvTimeoutError::Timeout) if cli::takes_too_much(&cli.config) => {
                clear_line();
                cli::remove_unfinished();
                return cli::out_of_memory(&cli.config, &mut io::stderr());
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The worker panicked, and its message is printed.
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Ok(()) => return Exit::BadDump,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}

/// Clears a partial progress bar.
fn clear_line() {
    let mut err = io::stderr();
    if err.is_terminal() {
        let _ = err.write_all(b"\r\x1b[2K");
    }
}
