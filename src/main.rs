//! The `gcdump` command line: everything is in the library's `cli`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use gcdump::cli::{self, Streams};

fn main() -> ExitCode {
    let stdout = io::stdout();
    let stderr = io::stderr();
    let out_is_terminal = stdout.is_terminal();
    let err_is_terminal = stderr.is_terminal();
    // Without the handler the shell ends the process as well, but leaves half a progress bar. Nothing has to be undone:
    // dumps are only read, and temporary files have no names, but for the unfinished copy of `trim`, which says what it is.
    let _ = ctrlc::set_handler(move || {
        if err_is_terminal {
            let _ = io::stderr().write_all(b"\r\x1b[2K");
        }
        #[allow(clippy::exit)] // This is `main`'s.
        std::process::exit(130);
    });
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = stderr.lock();
    let streams = Streams { out: &mut out, err: &mut err, out_is_terminal, err_is_terminal };
    ExitCode::from(cli::run(std::env::args_os(), streams).code())
}
