//! Answers that are piped to a program or written to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};

use super::super::exit::{Exit, UsageError};
use super::super::failure::broken_pipe;
use super::super::pager::system_shell;
use super::super::pick;
use super::super::streams::{Streams, to_file};

/// Runs `work` with its output piped to `program`, a command line of the system's shell. If the program fails, a complete answer becomes a negative
/// one.
pub(super) fn to_program(program: &str, streams: &mut Streams<'_>, work: impl FnOnce(&mut Streams<'_>) -> Result<Exit>) -> Result<Exit> {
    streams.out.flush()?;
    let mut child = system_shell(program).stdin(Stdio::piped()).spawn().with_context(|| UsageError(format!("cannot run {program}")))?;
    let exit = feed(&mut child, streams, work);
    let status = child.wait().with_context(|| format!("waiting for {program}"))?;
    Ok(exit?.negative_if(!status.success()))
}

fn feed(child: &mut Child, streams: &mut Streams<'_>, work: impl FnOnce(&mut Streams<'_>) -> Result<Exit>) -> Result<Exit> {
    // Takes the pipe out of `child`, so that it is closed before the program is waited for.
    let Some(stdin) = child.stdin.take() else { return Ok(Exit::NotWritten) };
    let mut out = BufWriter::new(stdin);
    let mut inner = streams.with_output(&mut out);
    match work(&mut inner).and_then(|exit| Ok(out.flush().map(|()| exit)?)) {
        // A program may stop reading early.
        Err(e) if broken_pipe(&e) => Ok(Exit::Ok),
        done => done,
    }
}

/// Runs `work` and writes its output to the file at `path`. With `append`, the output is added at the end of the file. Otherwise it goes to a new
/// file, which replaces the old file once complete.
pub(super) fn into_file(
    path: &Path,
    append: bool,
    streams: &mut Streams<'_>,
    work: impl FnOnce(&mut Streams<'_>) -> Result<Exit>,
) -> Result<Exit> {
    if !append {
        return to_file(path, streams, work);
    }
    if pick::could_be_dump(path) {
        return Err(UsageError(format!("{} may be a dump; refusing to write to it", path.display())).into());
    }
    let file = File::options().append(true).create(true).open(path);
    let mut out = BufWriter::new(file.map_err(|e| UsageError(format!("cannot write {}: {e}", path.display())))?);
    let mut inner = streams.with_output(&mut out);
    let exit = work(&mut inner)?;
    out.flush().with_context(|| format!("writing {}", path.display()))?;
    Ok(exit)
}
