//! `index`: arguments, and the creation and check of an index file.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::{Exit, UsageError};
use super::super::open::Opening;
use super::super::write::{check_output, whole_file};
use crate::base::{Answer, Notes, len64};
use crate::heapgraph::{IndexUse, beside};
use crate::model::IndexReport;
use crate::session::Heap;

/// Write an index beside a dump: later commands find it there and answer without walking the heap.
///
/// An index holds object starts, types, sizes, references, the dominator tree and sums, in a file of about two thirds of a heap's size. With it,
/// stat, retained, path, objsize, diff and the like take milliseconds on a dump of gigabytes. It belongs to one dump: commands check that
/// before they use it, and walk the heap if it does not fit. It can be removed at any time. An interactive shell
/// writes one when it ends, if it built a large graph.
#[derive(Debug, Args)]
pub(in crate::cli) struct Index {
    /// Read an existing index completely instead, and check that it fits the dump. Exit code 1 if not.
    #[arg(long)]
    check: bool,

    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Index {
    const NAME: &'static str = "index";
    const GROUP: Group = Group::Tools;
    const EXAMPLES: &'static [Example] =
        &[example("index DUMP -o OUT", "for a dump that you query often; without -o, DUMP.gcindex, where all commands look for it")];
    const NAMES_OUTPUT: bool = true;
    type Report = IndexReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn prepare(&self, opening: &mut Opening) {
        // `--check` reads an index even if other options disable it. Without `--check`, the graph is built from the dump.
        opening.options.index = match (self.check, &opening.options.index) {
            (false, _) => IndexUse::None,
            (true, IndexUse::File(path)) => IndexUse::File(path.clone()),
            (true, IndexUse::Auto | IndexUse::None | IndexUse::Open(_)) => IndexUse::Auto,
        };
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<IndexReport>> {
        if self.check { self.read(at) } else { self.write(at) }
    }

    fn exit(&self, report: &IndexReport, exit: Exit) -> Exit {
        exit.negative_if(report.problem.is_some())
    }
}

impl Index {
    fn path(&self, at: &At<'_>) -> PathBuf {
        at.config.output.clone().unwrap_or_else(|| beside(&at.opening.path))
    }

    fn write(&self, at: &At<'_>) -> Result<Answer<IndexReport>> {
        let path = self.path(at);
        check_output(&at.opening.path, &path, self.force)?;
        let heap = at.heap()?;
        let file_bytes = whole_file(&path, self.force, |file| Ok(heap.write_index(file)??))?;
        let graph = heap.graph(false)?;
        let report = IndexReport {
            path: path.display().to_string(),
            file_bytes,
            dump_bytes: len64(at.dump()?.file().bytes.len()),
            objects: graph.len().into(),
            references: graph.edges.references().into(),
            written: true,
            problem: None,
        };
        Ok(Answer::new(report, Index::notes(at, Some(&heap))?))
    }

    /// The notes of opening the dump, and those on objects and references that the index of `heap` does not have.
    fn notes(at: &At<'_>, heap: Option<&Heap>) -> Result<Notes> {
        let mut notes = at.runtime()?.begin().into_notes();
        if let Some(heap) = heap {
            notes.extend(&heap.begin().into_notes().losses());
            notes.extend(&heap.graph(false)?.notes.losses());
        }
        Ok(notes)
    }

    fn read(&self, at: &At<'_>) -> Result<Answer<IndexReport>> {
        let path = match (&at.config.index, &at.config.output) {
            (_, Some(_)) => return Err(UsageError("--check writes nothing; --index FILE names the index to read".into()).into()),
            (IndexUse::File(path), None) => path.clone(),
            _ => beside(&at.opening.path),
        };
        let heap: Heap = at.runtime()?.heap()?;
        let file_bytes = path.metadata().map_or(0, |m| m.len());
        let problem = match (heap.index_problem(), heap.check_index()) {
            (Some(e), _) => Some(e.to_string()),
            (None, Some(checked)) => checked.err().map(|e| e.to_string()),
            (None, None) => Some(format!("there is no {}; gcdump index writes one", path.display())),
        };
        let indexed = problem.is_none().then_some(&heap);
        let graph = indexed.map(|heap| heap.graph(false)).transpose()?;
        let report = IndexReport {
            path: path.display().to_string(),
            file_bytes,
            dump_bytes: len64(at.dump()?.file().bytes.len()),
            objects: graph.map_or(0, |g| g.len().into()),
            references: graph.map_or(0, |g| g.edges.references().into()),
            written: false,
            problem,
        };
        Ok(Answer::new(report, Index::notes(at, indexed)?))
    }
}
