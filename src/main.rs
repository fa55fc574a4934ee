//! The `gcdump` command line: everything is in the library's `cli`.

use std::io::{self, BufWriter, IsTerminal};
use std::process::ExitCode;

use gcdump::cli::{self, Streams};

fn main() -> ExitCode {
    let stdout = io::stdout();
    let stderr = io::stderr();
    let out_is_terminal = stdout.is_terminal();
    let err_is_terminal = stderr.is_terminal();
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = stderr.lock();
    let streams = Streams { out: &mut out, err: &mut err, out_is_terminal, err_is_terminal };
    ExitCode::from(cli::run(std::env::args_os(), streams).code())
}
