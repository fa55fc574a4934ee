//! `fleet`: arguments, and the workers that write the tables of many dumps.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Args;

use super::super::advice::{advised, advised_notes};
use super::super::args::StacksArg;
use super::super::command::{At, Command, Example, Group, conclude, example};
use super::super::exit::{Exit, UsageError};
use super::super::failure::exit_of;
use super::super::lake::{Lake, dump_id};
use super::super::open::Opening;
use super::super::pick::all_dumps;
use super::super::streams::Streams;
use crate::analysis::head_parts;
use crate::base::missed::Carried;
use crate::base::threads::start;
use crate::base::{Answer, Collector, Count, Missing, Note, NoteKind};
use crate::dump::DumpError;
use crate::export::tables::Tables;
use crate::model::{DumpModel, ExportFormat, ExportTable, FleetDump, FleetReport, FleetState, FleetTotals, Head, RuntimeModel};
use crate::output::{self, SCHEMA};
use crate::session::{Dump, OpenOptions};

/// Tables of many dumps side by side in one folder, for questions about a fleet: the same leak in a thousand dumps, which build regressed.
///
/// Each dump is a Hive partition, TABLE/dump=ID/part-0.parquet, whose id is of its contents. Dumps that the folder has already are
/// skipped, so that a run that was stopped goes on where it was. A dump that cannot be read has a row in `dumps` with the reason. The
/// questions, as SQL, are in docs/fleet.md.
#[derive(Debug, Args)]
pub(in crate::cli) struct Fleet {
    /// The dumps; of a folder all in it, but not those in folders below it. * and ? match parts of names: 'dumps/*/*.dmp' [default: as for
    /// other commands].
    #[arg(value_name = "DUMP")]
    dumps: Vec<PathBuf>,

    /// Dumps to read at the same time.
    #[arg(long, value_name = "N", default_value = "2")]
    workers: std::num::NonZeroU8,

    /// Tables to write; dumps is among them in any case.
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "TABLE,…",
        value_delimiter = ',',
        default_value = "dumps,types,segments,suspects"
    )]
    tables: Vec<ExportTable>,

    /// Also contents: texts of strings in the table `strings`, names of threads.
    #[arg(long)]
    contents: bool,

    /// Write dumps anew that the folder has already, and those that failed.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    stacks: StacksArg,
}

impl Command for Fleet {
    const NAME: &'static str = "fleet";
    const GROUP: Group = Group::Tools;
    const EXAMPLES: &'static [Example] = &[
        example("fleet DUMP -o OUT", "add a dump to a lake of Parquet files"),
        example("fleet --workers 4 --tables types DUMP -o OUT", "only counts, bytes and retained sizes by type"),
    ];
    const NAMES_OUTPUT: bool = true;
    type Report = FleetReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(if self.dumps.is_empty() { None } else { self.all()?.into_iter().next() })
    }

    /// Opens the dumps with contents hidden unless `--contents` is given.
    fn prepare(&self, opening: &mut Opening) {
        opening.options.hide_contents |= !self.contents;
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<FleetReport>> {
        Ok(self.written(at)?.0)
    }

    fn run(&self, at: &At<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
        let (mut answer, described) = self.written(at)?;
        answer.notes = advised_notes(&answer.notes);
        // If every dump was already in the folder, no dump has been opened yet. The header of the answer then needs the first readable dump.
        let open = |path: &PathBuf| Dump::open(path, &at.opening.options).ok();
        let first =
            || self.all().ok()?.iter().find_map(open).map(|dump| head_parts(&dump, dump.runtime_at(at.config.runtime).ok().as_ref()));
        let head = match described.or_else(first) {
            Some((dump, runtime, runtimes)) => {
                let (schema, gcdump) = (SCHEMA.into(), env!("CARGO_PKG_VERSION").into());
                Head { schema, command: Self::NAME.into(), gcdump, dump, runtime, runtimes, pages: Vec::new() }
            }
            None => at.head()?,
        };
        output::emit(&head, &answer, at.format(), at.target(streams))?;
        conclude(at, &answer.notes, streams)
    }
}

/// A dump, its runtime, and the number of runtimes, for the header of the answer.
type Described = (DumpModel, Option<RuntimeModel>, u64);

/// The result for one dump.
struct Done {
    row: FleetDump,
    described: Option<Described>,
    /// The first note about missing data, if the tables are incomplete.
    loss: Option<Note>,
    /// The note that names other runtimes of the process.
    others: Option<Note>,
}

impl Fleet {
    fn all(&self) -> Result<Vec<PathBuf>> {
        let all = all_dumps(&self.dumps).map_err(|e| UsageError(format!("cannot list the dumps: {e}")))?;
        if all.is_empty() {
            return Err(UsageError(format!("there is no dump in {}", self.dumps.first().map_or(Path::new("."), |p| p).display())).into());
        }
        Ok(all)
    }

    fn written(&self, at: &At<'_>) -> Result<(Answer<FleetReport>, Option<Described>)> {
        let root = at.config.output.clone().ok_or_else(|| UsageError("name the folder to write: -o LAKE".into()))?;
        let files = if self.dumps.is_empty() { vec![at.opening.path.clone()] } else { self.all()? };
        let wanted = |t: &ExportTable| *t == ExportTable::Dumps || self.tables.contains(t);
        let list = ExportTable::ALL.into_iter().filter(wanted).collect();
        let tables = Tables {
            format: ExportFormat::Parquet,
            tables: list,
            retained: true,
            stacks: self.stacks.stacks,
            contents: self.contents,
            fields: Vec::new(),
        };
        let lake = Lake { root: &root, tables: &tables };
        lake.check()?;
        let work = Work {
            lake,
            options: OpenOptions { progress: None, ..at.opening.options.clone() },
            runtime: at.config.runtime,
            force: self.force,
            taken: Mutex::default(),
        };
        let done = work.all(&files, self.workers.get().into())?;
        let notes = Collector::new();
        let (mut rows, mut described, mut totals) = (Vec::new(), None, FleetTotals::default());
        for Done { row, described: of, loss, others } in done {
            if let Some(others) = others {
                notes.add(others.reason(), None, format!("{}: {}", row.path, others.message));
            }
            totals.dumps.bump();
            match row.state {
                FleetState::Written | FleetState::Partial => totals.written.bump(),
                FleetState::Known => totals.known.bump(),
                FleetState::Failed => totals.failed.bump(),
            }
            if let Some(why) = &row.error {
                notes.add(Missing::File, None, format!("{}: {why}", row.path));
            } else if let Some(loss) = loss {
                notes.add(Missing::File.supplied_by(loss.remedy), None, format!("{}: {}", row.path, loss.message));
            }
            described = described.or(of);
            rows.push(row);
        }
        Ok((notes.finish(FleetReport { lake: root.display().to_string(), dumps: rows, totals }), described))
    }
}

/// State shared by all workers.
struct Work<'w> {
    lake: Lake<'w>,
    options: OpenOptions,
    runtime: usize,
    force: bool,
    /// Ids of the dumps that workers have begun. Copies of a dump have the same id, and only the first copy is read.
    taken: Mutex<HashSet<String>>,
}

impl Work<'_> {
    /// Adds all of `files` to the folder, at most `workers` at the same time. Stops if the folder cannot be written.
    fn all(&self, files: &[PathBuf], workers: usize) -> Result<Vec<Done>> {
        let next = AtomicUsize::new(0);
        let carried = Carried::here();
        let worker = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else { break };
                match carried.run(|| self.one(file)) {
                    Ok(one) => done.push((at, one)),
                    Err(e) => {
                        next.store(files.len(), Ordering::Relaxed);
                        return Err(e);
                    }
                }
            }
            Ok(done)
        };
        let results: Vec<Result<Vec<(usize, Done)>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers.min(files.len())).map_while(|_| start(scope, None, worker).ok()).collect();
            if threads.is_empty() {
                return vec![worker()];
            }
            threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let mut done: Vec<(usize, Done)> = results.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, one)| one).collect())
    }

    /// Adds one dump to the folder.
    ///
    /// # Errors
    /// Errors of writing, including temporary files. Errors of reading the dump are recorded in its row.
    fn one(&self, path: &Path) -> Result<Done> {
        let row = |id: Option<&str>, state: FleetState| FleetDump {
            id: id.map(Into::into),
            path: path.display().to_string(),
            state,
            runtime: None,
            objects: None,
            bytes: None,
            error: None,
        };
        let id = match dump_id(path) {
            Ok(id) => id,
            Err(e) => {
                // The id is a hash of the contents, so an unreadable file has no partition.
                let row = FleetDump { error: Some(e.to_string()), ..row(None, FleetState::Failed) };
                return Ok(Done { row, described: None, loss: None, others: None });
            }
        };
        let first = self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        if !first || !self.force && self.lake.has(&id) {
            return Ok(Done { row: row(Some(&id), FleetState::Known), described: None, loss: None, others: None });
        }
        match self.read(path, &id) {
            Ok((answer, described)) => {
                let state = if answer.complete() { FleetState::Written } else { FleetState::Partial };
                let loss = answer.notes.first_loss().cloned();
                let runtime = described.1.as_ref().and_then(|r| r.version.clone());
                let (objects, bytes) = (Some(answer.objects.count), Some(answer.objects.bytes));
                let others = answer.notes.iter().find(|note| note.kind == NoteKind::OtherRuntimes).cloned();
                Ok(Done { row: FleetDump { runtime, objects, bytes, ..row(Some(&id), state) }, described: Some(described), loss, others })
            }
            Err(e) if is_of_the_lake(&e) => Err(e),
            Err(e) => {
                let why = advised(&e);
                self.lake.add_failed(path, &id, &why).with_context(|| format!("writing {}", self.lake.root.display()))?;
                Ok(Done {
                    row: FleetDump { error: Some(why), ..row(Some(&id), FleetState::Failed) },
                    described: None,
                    loss: None,
                    others: None,
                })
            }
        }
    }

    fn read(&self, path: &Path, id: &str) -> Result<(Answer<super::super::lake::Filled>, Described)> {
        let dump = Dump::open(path, &self.options)?;
        let runtime = dump.runtime_at(self.runtime)?;
        let heap = runtime.heap()?;
        let filled = self.lake.add((&heap, &dump), id)?;
        Ok((filled, head_parts(&dump, Some(&runtime))))
    }
}

/// Whether an error comes from the output folder or this machine (disk full, no free file descriptor) rather than from the dump.
fn is_of_the_lake(e: &anyhow::Error) -> bool {
    if exit_of(e) == Exit::NotWritten {
        return true;
    }
    let of_dump = e.chain().any(|c| c.is::<DumpError>() || c.is::<crate::session::Error>());
    e.is::<UsageError>() || !of_dump && e.chain().any(|c| c.is::<std::io::Error>())
}
