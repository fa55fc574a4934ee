//! `heap`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::HeapReport;
use crate::analysis::{HeapQuery, MapQuery, heap};
use crate::base::Answer;
use crate::model::Stacks;

/// The heap by generation: segments, allocated, committed and reserved bytes.
#[derive(Debug, Args)]
pub(in crate::cli) struct Heap {
    /// Also show everything else the GC publishes about each heap, and what it keeps of its collections.
    #[arg(long)]
    detail: bool,

    /// Also show what the memory of each segment holds, cell by cell: objects, pinned ones, free space, unused and reserved memory.
    #[arg(long)]
    map: bool,

    /// In the map, distinguish garbage from objects: builds the graph, as `unreachable` does.
    #[arg(long, requires = "map")]
    garbage: bool,

    /// Show only the heap of this index (server GC).
    #[arg(long, value_name = "N")]
    heap: Option<u64>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Heap {
    const NAME: &'static str = "heap";
    const GROUP: Group = Group::Heap;
    const EXAMPLES: &'static [Example] = &[
        example("heap DUMP", "size of each generation"),
        example("heap --map DUMP", "what the memory of each segment holds, as a picture"),
        example("heap --detail --heap 0 DUMP", "everything the GC publishes about its first heap, and its collections"),
    ];
    type Report = HeapReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<HeapReport>> {
        let map = self.map.then(|| MapQuery { garbage: self.garbage.then(Stacks::default) });
        Ok(heap(&at.runtime()?, &HeapQuery { detail: self.detail, heap: self.heap, map })?)
    }

    fn next(&self, _report: &HeapReport, _at: &At<'_>) -> Option<&'static str> {
        (!self.detail).then_some("stat")
    }
}
