//! `memory`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::advice::advise;
use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::select::PageArgs;
use crate::analysis::MemoryReport;
use crate::analysis::{MemoryQuery, memory_map};
use crate::base::Answer;
use crate::output::Paging;

/// Number of rows on a terminal without `--top`.
const FEW: usize = 10;

/// The memory of the process by what it is for: heap, GC, code, images, stacks, files, and what nothing explains.
///
/// Each byte of the address space is counted once. If a range has several uses, it is counted for the first of these: segments of the
/// GC, its free regions, handle tables, bookkeeping of the GC (card tables, mark array), stacks, images, loader heaps, code heaps and
/// stubs, mapped files, gaps and `.bss` of images, reserves of the GC. Shares are relative to the memory that the process could access.
///
/// `loader-heap` and `stub-heap` are followed by the purpose of the heap: method tables and descriptors (`high-frequency`,
/// `low-frequency`), statics, precodes and other stubs. For each heap of glibc's malloc, the answer has the bytes in use, the free
/// bytes, and the most common block sizes. Heaps of other allocators are part of the anonymous memory.
///
/// ZERO is the size of pages that contain only zeros; most of them were never written. UNLISTED is memory that the runtime refers to
/// and the dump does not list, such as address space that the GC reserved, in dumps of createdump.
///
/// Kernel cores and minidumps with a memory info list describe every mapping of the process, and full dumps describe all that it could
/// access. Other dumps describe only a part of the process, and the answer is partial.
#[derive(Debug, Args)]
pub(in crate::cli) struct Memory {
    /// List every range, by address.
    #[arg(long)]
    ranges: bool,

    /// Number of unexplained ranges to list, largest first; 0 for all [default: 10 on a terminal; all in pipes, files and other formats].
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Memory {
    const NAME: &'static str = "memory";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[
        example("memory DUMP", "what the memory of the process is for, and the largest ranges that nothing explains"),
        example("memory --ranges DUMP", "also every range, with permissions, owner and file"),
    ];
    type Report = MemoryReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.page.of(at.rows_or(self.top, FEW)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<MemoryReport>> {
        if at.dump()?.snapshot().is_some() {
            // A snapshot does not have process memory. Asking for its runtime returns the error about this.
            at.runtime()?;
        }
        let query = MemoryQuery {
            ranges: self.ranges,
            top: self.page.counted(at.rows_or(self.top, FEW)),
            runtime: at.config.runtime,
            contents: true,
        };
        let mut answer = memory_map(at.dump()?, &query);
        advise(&mut answer.data.runtime_error, at.dump()?.runtime_at(at.config.runtime));
        Ok(answer)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        if report.runtime_error.is_some() { Exit::NoRuntime } else { exit }
    }

    fn next(&self, _report: &MemoryReport, _at: &At<'_>) -> Option<&'static str> {
        (!self.ranges).then_some("memory --ranges")
    }
}
