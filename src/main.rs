//! The `gcdump` command line: everything is in the library's `cli`.

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

/// As much as the main thread of a Linux process has.
const STACK: usize = 8 << 20;
/// As of a main thread that panics.
const PANICKED: u8 = 101;
/// The exit code of a process that a signal ends.
const SIGNALLED: u8 = 130;

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

/// Runs the command on this thread, which looks at the flag of the signals, at the time and at the memory by itself.
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

/// How signals that end the process are noticed.
enum Signals {
    /// By a thread, or by the system.
    Handled,
    /// By this flag, where no thread can be started or no descriptor is left.
    Flag(Arc<AtomicBool>),
}

/// SIGINT, SIGTERM and SIGHUP would end the process as well, but leave half a progress bar and half a file. So they are caught before
/// there can be either, and wait for the thread that handles them. SIGXFSZ would end it in place of the error of the write that met the limit.
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
    // The second one ends the process wherever it is.
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    Signals::Flag(flag)
}

/// The same for the console of other systems.
#[cfg(not(unix))]
fn on_signals() -> Signals {
    let _ = ctrlc::set_handler(|| stop(true));
    Signals::Handled
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
    std::process::exit(SIGNALLED.into());
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

/// Runs the command on another thread, which the end of the process ends where it takes longer than `--timeout` or more
/// memory than `--max-memory` allows.
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
