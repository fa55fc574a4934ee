use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::super::command::{At, Command, Example, Group, example};
use super::super::write::{check_output, whole_file};
use crate::analysis::{Reads, Surveys, Trim as Copying};
use crate::base::Answer;
use crate::memory::FileSearch;
use crate::model::{RedactionModel, TrimReport};
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

    /// Overwrite OUT if it exists. The dump itself is never overwritten.
    #[arg(long)]
    force: bool,
}

impl Command for Trim {
    const NAME: &'static str = "trim";
    const GROUP: Group = Group::Trust;
    const EXAMPLES: &'static [Example] = &[
        example("trim DUMP OUT", "a smaller dump that gives the same answers"),
        example("trim --redact DUMP OUT", "one to share: strings and arrays overwritten"),
    ];
    type Report = TrimReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(Some(self.dump.clone()))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TrimReport>> {
        let (path, options) = (&at.opening.path, &at.opening.options);
        check_output(path, &self.out, self.force)?;
        // First without module files: what the dump answers on its own. Then with them, because they cause other reads.
        let alone = OpenOptions { search: FileSearch::default(), record: true, ..options.clone() };
        let mut dump = Dump::open(path, &alone)?;
        dump.runtime_at(at.config.runtime)?;
        let mut reads = Reads::of(&dump, &Surveys::default());
        if options.search.finds_any(dump.file(), dump.memory()) {
            // One after the other: what each keeps of a dump may take as much as the dump.
            let (found, file) = (Surveys::of(&dump), dump.file().clone());
            drop(dump);
            let with_files = Dump::of(file.clone(), &OpenOptions { record: true, ..options.clone() });
            reads = reads.and(Reads::of(&with_files, &found));
            drop(with_files);
            dump = Dump::of(file, &alone);
            if self.redact {
                found.give_to(&dump);
            }
        }
        let file = dump.file();
        let copying = Copying::new(&dump, reads, self.redact)?;
        let written = write(&copying, &self.out, self.force)?;
        let report = TrimReport {
            output: self.out.display().to_string(),
            bytes: file.facts.file_bytes,
            kept_bytes: copying.file_bytes(),
            file_bytes: written.file_bytes,
            ranges: copying.ranges(),
            parts: copying.parts(),
            redacted: written.redacted,
        };
        // Memory missing from the dump makes its answers partial, not the copy.
        Ok(Answer::new(report, dump.notes().clone()))
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
