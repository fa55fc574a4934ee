use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::super::args::{Config, DumpArg};
use super::super::write::Draft;
use super::{Exit, Streams, UsageError, finish, prepare};
use crate::analysis::{Reads, Trim};
use crate::base::SharedNotes;
use crate::contract::{Options, Process};
use crate::memory::FileSearch;
use crate::model::TrimReport;

/// Level of compression: about what `zstd` does without being asked, and a little more.
const ZSTD_LEVEL: i32 = 6;

/// What `trim` is asked.
#[derive(Clone, Debug, Args)]
pub struct TrimArgs {
    /// The dump.
    #[arg(value_name = "IN")]
    dump: PathBuf,

    /// The copy to write. Compressed where its name ends in .zst.
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Overwrite the characters of strings and the elements of arrays of numbers, and leave out what lies between objects.
    #[arg(long)]
    redact: bool,

    /// Replace OUT where it exists. The dump itself is never replaced.
    #[arg(long)]
    force: bool,
}

/// `gcdump trim`.
pub(super) fn run(config: &Config, args: &TrimArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let dump = DumpArg { dump: Some(args.dump.clone()) };
    let (path, opening, options) = prepare(config, &dump, streams)?;
    check_output(&path, &args.out, args.force)?;
    // Without module files first: what the dump answers by itself. Then with them, because they lead to other places.
    let plain = Options { search: FileSearch::default(), record: true, ..options.clone() };
    let mut process = Process::open(&path, &opening, &plain)?;
    process.runtime(config.runtime)?;
    let opened = process.notes.all();
    let mut reads = Reads::of(&process);
    let dump = &process.dump;
    if dump.modules.iter().any(|m| !options.search.candidates(&m.path, dump.facts.os).is_empty()) {
        let options = Options { record: true, ..options.clone() };
        reads = reads.and(Reads::of(&Process::of(dump.clone(), &options)));
    }
    let trim = Trim::new(&process, reads, args.redact)?;
    let written = write(&trim, &args.out, args.force)?;
    let report = TrimReport {
        output: args.out.display().to_string(),
        bytes: process.dump.facts.file_bytes,
        kept_bytes: trim.file_bytes(),
        file_bytes: written.file_bytes,
        ranges: trim.ranges(),
        parts: trim.parts(),
        redacted: written.redacted,
    };
    // What the dump lacks makes its answers partial, not the copy.
    process.notes = SharedNotes::new();
    opened.into_iter().for_each(|n| process.notes.add(n.kind, n.address, n.message));
    finish(config, "trim", &process, process.runtime(config.runtime).ok(), report, streams)
}

/// Refuses to write over the dump, under whatever name, and over anything else that nobody said may go.
fn check_output(dump: &Path, out: &Path, force: bool) -> Result<()> {
    if out.is_dir() {
        return Err(UsageError(format!("{} is a folder", out.display())).into());
    }
    if out.exists() && same_file::is_same_file(dump, out).with_context(|| format!("comparing {} with the dump", out.display()))? {
        return Err(UsageError(format!("{} is the dump itself; it is never overwritten", out.display())).into());
    }
    if !force && out.symlink_metadata().is_ok() {
        return Err(UsageError(format!("{} exists; --force replaces it", out.display())).into());
    }
    Ok(())
}

struct Written {
    file_bytes: u64,
    redacted: Option<crate::model::RedactionModel>,
}

fn write(trim: &Trim<'_>, out: &Path, force: bool) -> Result<Written> {
    let context = || format!("writing {}", out.display());
    let draft = Draft::of(out, false).map_err(|e| UsageError(format!("cannot write {}: {e}", out.display())))?;
    let compressed = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("zst"));
    let redacted = fill(trim, draft.file(), compressed).with_context(context)?;
    let file_bytes = draft.file().metadata().with_context(context)?.len();
    draft.file().sync_all().with_context(context)?;
    draft.finish(force).with_context(context)?;
    Ok(Written { file_bytes, redacted })
}

fn fill(trim: &Trim<'_>, file: &File, compressed: bool) -> Result<Option<crate::model::RedactionModel>> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    if !compressed {
        let redacted = trim.write(&mut out)?;
        out.flush()?;
        return Ok(redacted);
    }
    let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(trim.file_bytes()))?;
    let redacted = trim.write(&mut encoder)?;
    encoder.finish()?.flush()?;
    Ok(redacted)
}
