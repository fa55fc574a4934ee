//! `trim`: arguments, and the file that is written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::super::command::{At, Command, Example, Group, example};
use super::super::write::{check_output, whole_file};
use crate::analysis::{Contents, ModulesQuery, Reads, Surveys, Trim as Copying, incomplete_images, modules};
use crate::analysis::{ModuleNeed, RedactionModel, TrimReport};
use crate::base::{Answer, Missing, len64, plural};
use crate::memory::FileSearch;
use crate::session::{Dump, OpenOptions};

/// Zstandard compression level.
const ZSTD_LEVEL: i32 = 6;

/// Write a smaller dump that gives the same answers, keeping only the memory gcdump reads. With --redact, without contents.
#[derive(Debug, Args)]
pub(in crate::cli) struct Trim {
    /// The dump.
    #[arg(value_name = "IN")]
    dump: PathBuf,

    /// The copy to write; compressed if the name ends in .zst.
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Overwrite string characters and elements of numeric arrays, and drop the memory between objects.
    #[arg(long)]
    redact: bool,

    /// Put the pages of module files that answers read into the copy, so that no other machine needs the files.
    #[arg(long)]
    with_modules: bool,

    /// Overwrite OUT if it exists. The dump itself is never overwritten.
    #[arg(long)]
    force: bool,
}

impl Command for Trim {
    const NAME: &'static str = "trim";
    const GROUP: Group = Group::Trust;
    const EXAMPLES: &'static [Example] = &[
        example("trim DUMP OUT", "a smaller dump that gives the same answers"),
        example("trim --with-modules DUMP OUT", "one that answers in full on a machine without .NET"),
        example("trim --redact DUMP OUT", "one to share: strings and arrays overwritten"),
    ];
    type Report = TrimReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(Some(self.dump.clone()))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TrimReport>> {
        let (path, options) = (&at.opening.path, &at.opening.options);
        check_output(path, &self.out, self.force)?;
        // The first pass reads without module files and records what the dump itself supplies. The second pass reads with module files, because these
        // cause different reads.
        let alone = OpenOptions { search: FileSearch::default(), record: true, ..options.clone() };
        let mut dump = Dump::open(path, &alone)?;
        dump.runtime_at(at.config.runtime)?;
        let mut reads = Reads::of(&dump, &Surveys::default());
        if options.search.finds_any(dump.file(), dump.memory()) {
            // The first dump is closed before the second dump is opened, because the cached state of each may take as much memory as the dump.
            let (found, file) = (Surveys::of(&dump), dump.file().clone());
            drop(dump);
            let with_files = OpenOptions { record: true, ..options.clone() };
            let mut opened = Dump::of(file.clone(), &with_files);
            if self.with_modules {
                let fill = incomplete_images(&opened);
                opened = Dump::of(file.clone(), &OpenOptions { fill, ..with_files });
            }
            reads = reads.and(Reads::of(&opened, &found));
            if self.with_modules {
                dump = opened;
            } else {
                drop(opened);
                dump = Dump::of(file, &alone);
            }
            if self.redact {
                found.give_to(&dump);
            }
        }
        let file = dump.file();
        let redact = self.redact.then(|| Contents::of(&dump)).transpose()?;
        let copying = match self.with_modules {
            true => Copying::with_modules(&dump, reads, redact)?,
            false => Copying::new(&dump, reads, redact)?,
        };
        let written = write(&copying, &self.out, self.force)?;
        let report = TrimReport {
            output: self.out.display().to_string(),
            bytes: file.facts.file_bytes,
            kept_bytes: copying.file_bytes(),
            file_bytes: written.file_bytes,
            ranges: copying.ranges(),
            parts: copying.parts(),
            module_bytes: self.with_modules.then(|| copying.module_bytes()),
            redacted: written.redacted,
        };
        // Memory that the dump does not contain makes answers partial, but the copy is complete.
        let mut notes = dump.notes().clone();
        if self.with_modules {
            let query = ModulesQuery { runtime: at.config.runtime, needed: true, ..ModulesQuery::default() };
            let report = modules(&dump, &query)?;
            // Modules that are needed only for the data of the runtime are not counted, because the copy contains what their files supply.
            let lacking = report.modules.iter().filter(|m| m.needed_for.iter().any(|need| *need != ModuleNeed::Runtime)).count();
            if lacking > 0 {
                let what = format!(
                    "the copy does not have the memory of {} that answers need: gcdump modules --needed lists files that were not found or cannot be verified",
                    plural(len64(lacking), "module")
                );
                notes.add(Missing::File, None, what);
            }
        }
        Ok(Answer::new(report, notes))
    }
}

struct Written {
    file_bytes: u64,
    redacted: Option<RedactionModel>,
}

fn write(copying: &Copying<'_>, out: &Path, force: bool) -> Result<Written> {
    let compressed = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("zst"));
    whole_file(out, force, |file| {
        let redacted = fill(copying, file, compressed)?;
        Ok(Written { file_bytes: file.metadata()?.len(), redacted })
    })
}

fn fill(copying: &Copying<'_>, file: &File, compressed: bool) -> Result<Option<RedactionModel>> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    if !compressed {
        let redacted = copying.write(&mut out)?;
        out.flush()?;
        return Ok(redacted);
    }
    let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(copying.file_bytes()))?;
    let redacted = copying.write(&mut encoder)?;
    encoder.finish()?.flush()?;
    Ok(redacted)
}
