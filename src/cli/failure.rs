//! Messages and exit codes of errors.

use std::io::{self, Write};

use super::advice::advised;
use super::exit::{Exit, UsageError};
use super::streams::Streams;
use crate::contract::{ContractError, RuntimeError};
use crate::dump::DumpError;
use crate::output::Screen;
use crate::session::Error;

/// Flushes the answer, reports an error, and returns the exit code.
pub(super) fn conclusion(result: anyhow::Result<Exit>, streams: &mut Streams<'_>) -> Exit {
    let flushed = streams.out.flush();
    match result {
        Err(e) if broken_pipe(&e) => Exit::Ok,
        _ if flushed.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) => Exit::Ok,
        Ok(exit) => match flushed {
            Ok(()) => exit,
            Err(e) => fail(&anyhow::Error::new(e).context("writing the answer"), streams),
        },
        Err(e) => fail(&e, streams),
    }
}

/// Prints help and version to `out`, usage errors to `err`. Usage errors repeat arguments: unless these are `plain` (without control characters), a
/// terminal gets sanitized text without colors.
pub(super) fn usage(e: &clap::Error, plain: bool, streams: &mut Streams<'_>) -> Exit {
    let to_err = e.use_stderr();
    let text = e.render();
    let (stream, screen): (&mut dyn Write, Screen) =
        if to_err { (&mut *streams.err, streams.err_screen) } else { (&mut *streams.out, streams.screen) };
    let written = match (screen.interprets(), plain) {
        (true, false) => text.to_string().lines().try_for_each(|line| writeln!(stream, "{}", crate::output::sanitize(line))),
        _ if screen.color => write!(stream, "{}", text.ansi()),
        _ => write!(stream, "{text}"),
    };
    if to_err {
        // A failure to write to standard error cannot be reported.
        let _ = written.and_then(|()| stream.flush());
        return Exit::Usage;
    }
    conclusion(written.map(|()| Exit::Ok).map_err(|e| anyhow::Error::new(e).context("writing the answer")), streams)
}

/// Returns the error of a command line in one line.
pub(super) fn in_one_line(e: &clap::Error) -> String {
    let text = e.to_string();
    let message = text.lines().map_while(|l| Some(l.trim()).filter(|l| !l.is_empty())).collect::<Vec<_>>().join(" ");
    let tip = text.lines().find_map(|l| l.trim().strip_prefix("tip: "));
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    tip.map_or_else(|| message.to_string(), |tip| format!("{message}; {tip}"))
}

pub(super) fn broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io == Some(io::ErrorKind::BrokenPipe) || json == Some(io::ErrorKind::BrokenPipe)
    })
}

pub(super) fn fail(e: &anyhow::Error, streams: &mut Streams<'_>) -> Exit {
    let _ = streams.warn("gcdump", &advised(e));
    exit_of(e)
}

/// Returns the exit code for an error.
pub(super) fn exit_of(e: &anyhow::Error) -> Exit {
    let no_such_form = |e: &io::Error| e.kind() == io::ErrorKind::Unsupported;
    if e.is::<UsageError>() || e.downcast_ref().is_some_and(no_such_form) {
        return Exit::Usage;
    }
    match e.downcast_ref::<Error>() {
        Some(Error::Query(_) | Error::Memory(_)) => Exit::Usage,
        Some(Error::Room(_) | Error::Dump(DumpError::NoSpace { .. } | DumpError::NoTemporaryFile { .. })) => Exit::NotWritten,
        Some(
            Error::NoObject(_)
            | Error::NotIn(..)
            | Error::NoRoot(_)
            | Error::NoValueType(..)
            | Error::NotAnException(..)
            | Error::Nothing(_),
        ) => Exit::Negative,
        Some(Error::Unknown(..)) => Exit::Partial,
        Some(Error::Value(e)) => match e.is_known() {
            true => Exit::Negative,
            false => Exit::Partial,
        },
        Some(Error::Runtime(_) | Error::Contract(_)) => Exit::NoRuntime,
        _ if e.chain().any(|c| c.is::<RuntimeError>() || c.is::<ContractError>()) => Exit::NoRuntime,
        // I/O errors of reading a dump are wrapped in `DumpError`; others come from writing.
        None if e.chain().any(|c| c.is::<io::Error>()) && !e.chain().any(|c| c.is::<DumpError>()) => Exit::NotWritten,
        _ => Exit::BadDump,
    }
}
