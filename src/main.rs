//! The `gcdump` command line, which is implemented in the library's `cli` module.

mod huge_pages;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use gcdump::cli::{self, Cli, Exit, Streams};
use huge_pages::HugePages;

#[global_allocator]
static MEMORY: HugePages = HugePages;

/// The stack size of the main thread of a Linux process.
const STACK: usize = 8 << 20;
/// The exit code of a process whose main thread panics.
const PANICKED: u8 = 101;
/// The exit code of a process that was interrupted.
const SIGNALLED: u8 = 130;

fn main() -> ExitCode {
    if cfg!(unix) {
        return run();
    }
    // The main thread of a Windows process has a stack of 1 MiB.
    thread::Builder::new().stack_size(STACK).spawn(run).map_or_else(|_| run(), |all| all.join().unwrap_or(ExitCode::from(PANICKED)))
}

fn run() -> ExitCode {
    if cli::complete(std::env::args_os()) {
        return ExitCode::SUCCESS;
    }
    let signals = on_signals();
    let cli = with_streams(|mut streams| cli::parse(std::env::args_os(), &mut streams));
    let exit = match cli {
        Err(exit) => exit,
        Ok(cli) => match (signals, cli.watches_itself() || (cli.config.timeout.is_none() && cli.config.max_memory.is_none())) {
            (Signals::Flag(stopped), _) => return here(&cli, &stopped),
            (Signals::Handled, true) => with_streams(|streams| cli::run_parsed(&cli, streams)),
            (Signals::Handled, false) => watched(cli),
        },
    };
    ExitCode::from(exit.code())
}

/// Runs the command on this thread, which checks the signal flag, the time and the memory itself.
fn here(cli: &Cli, stopped: &Arc<AtomicBool>) -> ExitCode {
    let exit = with_streams(|streams| cli::run_here(cli, streams, stopped));
    exit.map_or_else(
        || {
            clear_line();
            cli::remove_unfinished();
            ExitCode::from(SIGNALLED)
        },
        |exit| ExitCode::from(exit.code()),
    )
}

/// How signals that end the process are received.
enum Signals {
    /// By a thread, or by the system.
    Handled,
    /// By this flag, if no thread can be started or no descriptor is left.
    Flag(Arc<AtomicBool>),
}

/// Handles SIGINT, SIGTERM and SIGHUP on a separate thread: by default, they would leave an incomplete progress bar or file. Also catches SIGXFSZ, so
/// that a write beyond the file size limit fails instead of ending the process.
#[cfg(unix)]
fn on_signals() -> Signals {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(ENDING) {
        let waits = move || signals.forever().for_each(|signal| stop(signal == SIGINT));
        if thread::Builder::new().name("signals".into()).spawn(waits).is_ok() {
            return Signals::Handled;
        }
    }
    // A second signal ends the process immediately.
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    Signals::Flag(flag)
}

/// Installs the console handler of other systems.
#[cfg(not(unix))]
fn on_signals() -> Signals {
    let _ = ctrlc::set_handler(|| stop(true));
    Signals::Handled
}

/// Ends the process, or the command that runs in a shell. Removes the files being written; decompressed dumps are unnamed temporary files, which the
/// system removes.
fn stop(interrupted: bool) {
    // The terminal sends an interrupt to the pager as well, and the pager handles it.
    if (interrupted && cli::paging()) || cli::interrupt(interrupted) {
        return;
    }
    clear_line();
    cli::remove_unfinished();
    #[allow(clippy::exit)] // Only `main` exits.
    std::process::exit(SIGNALLED.into());
}

fn with_streams<R>(work: impl FnOnce(Streams<'_>) -> R) -> R {
    let stdout = io::stdout();
    // stderr is not locked: the watchdog writes to it while the work runs.
    let mut err = io::stderr();
    let (screen, err_screen) = (cli::screen_of(&stdout), cli::screen_of(&err));
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    work(Streams { out: &mut out, err: &mut err, screen, err_screen, seen: None, next: None })
}

/// Interval between two checks of the memory.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command on another thread. If it exceeds `--timeout` or `--max-memory`, the process exits, which ends that thread.
fn watched(cli: Cli) -> Exit {
    let (done, answer) = mpsc::channel();
    let work = cli.clone();
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || {
        let exit = with_streams(|streams| cli::run_parsed(&work, streams));
        let _ = done.send(exit);
    });
    let Ok(worker) = worker else {
        let exit = with_streams(|streams| cli::run_here(&cli, streams, &Arc::default()));
        return exit.unwrap_or(Exit::Timeout);
    };
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
            // The worker panicked; its message has been printed.
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
