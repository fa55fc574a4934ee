//! One file per command: what it reads, what it returns.

mod contracts;
mod exceptions;
mod finalizers;
mod fragmentation;
mod handles;
mod heap;
mod info;
mod object;
mod objects;
mod on_heap;
mod oom;
mod place;
mod retained;
mod roots;
mod segments;
mod stat;
mod statics;
mod strings;
mod survival;
mod threads;
mod trim;
mod types;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use finalizers::FinalizersArgs;
pub use fragmentation::FragmentationArgs;
pub use handles::HandlesArgs;
pub use objects::ObjectsArgs;
pub use retained::{PathArgs, RetainedArgs};
pub use roots::RootsArgs;
pub use stat::StatArgs;
pub use strings::StringsArgs;
pub use survival::{BridgeArgs, SimulateArgs, UnreachableArgs, WhatifArgs};
pub use trim::TrimArgs;
pub use verify::VerifyArgs;

use anyhow::{Context, Result};

use super::args::{Cli, Command, Config, DumpArg};
use super::exit::{Exit, UsageError};
use super::pick::pick;
use super::progress::Bar;
use super::{Streams, show_notes};
use crate::analysis;
use crate::base::{Answer, Limits, NoteKind, Notes, SharedNotes};
use crate::clr::threads::{Thread, Threads};
use crate::contract::{ContractError, Options, Overlay, Process, Runtime};
use crate::dump::OpenOptions;
use crate::gc::Gc;
use crate::memory::FileSearch;
use crate::model::Head;
use crate::output::{self, Format, Report, SCHEMA};

/// Runs the command.
pub(super) fn run(cli: &Cli, streams: &mut Streams<'_>) -> Result<Exit> {
    let config = &cli.config;
    if let Some(threads) = config.threads {
        // Fails where the pool is there already, as in a test that runs several commands: answers do not depend on it.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global();
    }
    if config.format() == Format::Dot && !matches!(cli.command, Command::Bridge(_)) {
        return Err(UsageError("this command has no DOT form; bridge has one".into()).into());
    }
    match &cli.command {
        Command::Info(dump) => info::run(config, dump, streams),
        Command::Heap { detail, dump } => heap::run(config, dump, *detail, streams),
        Command::Segments { free, walk, dump } => segments::run(config, dump, *free, *walk, streams),
        Command::Stat(args) => stat::run(config, args, streams),
        Command::Strings(args) => strings::run(config, args, streams),
        Command::Fragmentation(args) => fragmentation::run(config, args, streams),
        Command::Objects(args) => objects::run(config, args, streams),
        Command::Object { address, start, count, dump } => {
            object::run(config, dump, *address, &analysis::ObjectOptions { start: *start, count: *count }, streams)
        }
        Command::Where { address, dump } => place::run(config, dump, *address, streams),
        Command::Near { address, before, after, dump } => place::near(config, dump, *address, (*before, *after), streams),
        Command::Handles(args) => handles::run(config, args, streams),
        Command::Path(args) => retained::path(config, args, streams),
        Command::Retained(args) => retained::run(config, args, streams),
        Command::Objsize { address, dump } => retained::objsize(config, dump, *address, streams),
        Command::Roots(args) => roots::run(config, args, streams),
        Command::Bridge(args) => survival::bridge(config, args, streams),
        Command::Whatif(args) => survival::whatif(config, args, streams),
        Command::Unreachable(args) => survival::unreachable(config, args, streams),
        Command::Simulate(args) => survival::simulate(config, args, streams),
        Command::Finalizers(args) => finalizers::run(config, args, streams),
        Command::Oom(dump) => oom::run(config, dump, streams),
        Command::Threads(dump) => threads::run(config, dump, streams),
        Command::Exceptions { stat, dump } => exceptions::run(config, dump, *stat, streams),
        Command::Statics { pattern, thread_statics, all, dump } => {
            let options = analysis::StaticsOptions { pattern: pattern.as_deref(), thread_statics: *thread_statics, everything: *all };
            statics::run(config, dump, &options, streams)
        }
        Command::Type { name, dump } => types::run(config, name, dump, streams),
        Command::Trim(args) => trim::run(config, args, streams),
        Command::Verify(args) => verify::run(config, args, streams),
        Command::Contracts { check, dump } => contracts::run(config, dump, *check, streams),
    }
}

/// Opens the dump that is meant, with everything that the options say.
fn open(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Process> {
    let (path, opening, options) = prepare(config, dump, streams)?;
    Ok(Process::open(&path, &opening, &options)?)
}

/// Which dump is meant, and how to open it.
fn prepare(config: &Config, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<(PathBuf, OpenOptions, Options)> {
    let variable = std::env::var_os("GCDUMP_DUMP").map(PathBuf::from);
    let picked = pick(dump.dump.as_deref(), variable, Path::new("."))?;
    if let Some(remark) = &picked.remark {
        let remark = if streams.err_is_terminal { output::sanitize(remark) } else { remark.as_str().into() };
        writeln!(streams.err, "gcdump: {remark}")?;
    }
    let limits = Limits { decompressed_bytes: config.max_decompressed, ..Limits::default() };
    let mut opening = OpenOptions { limits: limits.clone(), ..OpenOptions::default() };
    if streams.err_is_terminal {
        opening.progress = Some(Arc::new(Bar::default()));
    }
    let options = Options {
        overlays: config.overlay.iter().map(|p| overlay(p)).collect::<Result<_>>()?,
        search: FileSearch { modules: config.modules.clone(), sysroot: config.sysroot.clone(), recorded_paths: !config.no_local_files },
        limits,
        record: false,
    };
    for dir in config.modules.iter().chain(&config.sysroot) {
        if !dir.is_dir() {
            return Err(UsageError(format!("{} is not a folder", dir.display())).into());
        }
    }
    Ok((picked.path, opening, options))
}

fn overlay(path: &Path) -> Result<Overlay> {
    /// No overlay is longer: the largest bundled one has 14 KB.
    const MAX: u64 = 4 << 20;
    let size = path.metadata().with_context(|| UsageError(format!("reading the overlay {}", path.display())))?.len();
    if size > MAX {
        return Err(UsageError(format!("{} has {size} bytes: too large for an overlay", path.display())).into());
    }
    let text = std::fs::read(path).with_context(|| UsageError(format!("reading the overlay {}", path.display())))?;
    let parsed = Overlay::parse(&text, true);
    parsed.map_err(|e| UsageError(format!("{} is not an overlay: {e}", path.display())).into())
}

/// Binds the GC contract of `runtime`, saying which of the three failures it is where that is not possible.
fn gc<'p>(process: &'p Process, runtime: &'p Runtime) -> Result<Gc<'p>, ContractError> {
    runtime.require("GC")?;
    Gc::bind(&process.memory, &runtime.descriptor, &process.notes, &process.limits)
}

/// The managed threads, for answers that are still answers without them.
fn threads_of(process: &Process, runtime: &Runtime) -> Vec<Thread> {
    let quiet = SharedNotes::new();
    let threads = Threads::bind(&process.memory, &runtime.descriptor, &quiet, &process.limits);
    threads.map(|t| t.list()).unwrap_or_default()
}

/// Rows to list: as many as asked for, else what fits a screen in a table and all (0) in other formats.
fn rows(config: &Config, top: Option<usize>, streams: &Streams<'_>) -> usize {
    top.unwrap_or_else(|| if config.format() == Format::Table { streams.rows() } else { 0 })
}

/// What every answer begins with.
fn head(process: &Process, runtime: Option<&Runtime>, command: &str) -> Head {
    let (dump, runtime) = analysis::envelope_parts(process, runtime);
    let gcdump = env!("CARGO_PKG_VERSION").into();
    Head { schema: SCHEMA.into(), command: command.into(), gcdump, dump, runtime }
}

/// What everything that was read so far has to tell.
fn notes(process: &Process) -> Notes {
    let mut notes = Notes::new();
    process.notes.all().into_iter().for_each(|n| notes.add(n.kind, n.address, n.message));
    notes
}

/// Prints the answer and the notes, and says how complete it is.
fn finish<R: Report>(
    config: &Config,
    command: &str,
    process: &Process,
    runtime: Option<&Runtime>,
    report: R,
    streams: &mut Streams<'_>,
) -> Result<Exit> {
    let (head, answer) = (head(process, runtime, command), Answer::new(report, notes(process)));
    output::emit(&head, &answer, config.format(), streams.out, streams.out_is_terminal)?;
    conclude(config, &answer.notes, streams)
}

/// Shows the notes where the answer does not carry them, and says how complete it is.
fn conclude(config: &Config, notes: &Notes, streams: &mut Streams<'_>) -> Result<Exit> {
    if !config.format().writer().carries_notes() {
        streams.out.flush()?;
        show_notes(notes, streams)?;
    }
    // A bundled overlay that passed its checks is how .NET 8 to 10 are read: nothing to be strict about.
    let strict = config.strict && notes.iter().any(|n| n.kind != NoteKind::OverlayUsed);
    Ok(if !notes.complete() || strict { Exit::Partial } else { Exit::Ok })
}
