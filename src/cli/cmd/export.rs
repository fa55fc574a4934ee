//! `export`: arguments, the default name of the file, and the formats.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::super::args::{StacksArg, size};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::UsageError;
use super::super::lake::{Filled, Lake, bytes_of, check_folder, dump_id, rows_of, write_folder};
use super::super::open::Opening;
use super::super::values::address;
use super::super::write::{check_output, whole_file};
use crate::analysis::survivors;
use crate::base::{Addr, Answer, len64, thousands};
use crate::export::tables::Tables;
use crate::export::{Ids, Scope, Subgraph, Written, gcdump, heapsnapshot};
use crate::model::{ExportFormat, ExportReport, ExportTable, Sum};

/// Number of objects above which a remark states the memory that a browser needs.
const LARGE: u64 = 5_000_000;
/// Bytes that DevTools uses per object.
const DEVTOOLS_BYTES: u64 = 120;

/// A file for other tools: Chrome's DevTools, PerfView, Visual Studio; or tables for DuckDB, Spark, Polars, pandas.
///
/// The formats heapsnapshot and gcdump contain the objects that roots reach. They have the same roots as `retained`, so other tools
/// show the same retained sizes. --under and --min-retained select some of the objects; a few extra nodes represent the others, so that
/// retained sizes stay correct.
///
/// The tables (parquet, csv, ndjson) contain all objects. They are written to a folder, one file per table. The table `objects` numbers
/// its rows from 0, and other tables refer to objects by this number: `refs`, for example, lists the references between objects. Tables
/// are written row by row, so that a heap larger than the memory of this machine can be exported, too. Only --retained and the table
/// `suspects` build the graph of the heap.
///
/// Contents are exported only with --contents: texts of strings, elements of arrays of numbers, names of threads, the command line.
#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
    /// The format.
    #[arg(value_enum, ignore_case = true, value_name = "FORMAT")]
    to: ExportFormat,

    /// The dump, here or before the command [default: $GCDUMP_DUMP, else the only dump in the current folder].
    #[arg(value_name = "DUMP")]
    dump: Option<PathBuf>,

    /// The file or folder to write; also -o OUT [default: the name of the dump with the extension of the format, in the current folder].
    #[arg(value_name = "OUT")]
    out: Option<PathBuf>,

    /// An earlier dump of the process. Objects that `track` recognizes get the ids that they have in the heapsnapshot of that dump, so that
    /// DevTools' Comparison view shows what became of them.
    #[arg(long, value_name = "BEFORE")]
    since: Option<PathBuf>,

    /// heapsnapshot, gcdump: include objects that no root reaches.
    #[arg(long, conflicts_with_all = ["under", "min_retained"])]
    unreachable: bool,

    /// Export only the object that contains this address, the objects that it dominates, and its dominators.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    under: Option<Addr>,

    /// Export only objects with at least this retained size (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "0", hide_default_value = true)]
    min_retained: u64,

    /// Include contents: names of threads and texts of strings. A heapsnapshot has up to 1,000 characters of each string; tables have the
    /// texts in `strings` and in the columns of --fields.
    #[arg(long)]
    contents: bool,

    /// Tables to write [default: all but strings, and suspects only with --retained].
    #[arg(long, value_enum, ignore_case = true, value_name = "TABLE,…", value_delimiter = ',')]
    tables: Vec<ExportTable>,

    /// Tables: add these fields as columns of `objects`. Give names or paths through references and structures (_owner._name), separated by
    /// commas, as for `objects --fields` (repeatable).
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    fields: Vec<String>,

    /// Tables: add the dump to the folder as a Hive partition, TABLE/dump=ID/part-0.parquet. The id is computed from the dump's contents.
    #[arg(long)]
    partition: bool,

    /// Tables: include retained sizes, dominators and distances from roots. This builds the graph of the heap.
    #[arg(long)]
    retained: bool,

    /// gcdump: include the bounds of the generations, for PerfView's view by generation. Readers older than July 2022 refuse such files.
    #[arg(long)]
    generations: bool,

    /// Overwrite OUT if it exists. A dump is never overwritten.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    stacks: StacksArg,
}

impl Command for Export {
    const NAME: &'static str = "export";
    const GROUP: Group = Group::Tools;
    const EXAMPLES: &'static [Example] = &[
        example("export heapsnapshot DUMP OUT", "for Chrome: DevTools, Memory, Load profile"),
        example("export gcdump DUMP OUT", "for PerfView, Visual Studio and dotnet-gcdump report"),
        example("export parquet DUMP OUT", "a folder of tables: duckdb -c \"select * from 'OUT/types.parquet'\""),
        example("export csv --tables objects --fields _stringLength DUMP OUT", "objects with the values of chosen fields as columns"),
        example("export heapsnapshot --min-retained 1M DUMP OUT", "the part of a large heap that a browser can open"),
    ];
    const NAMES_OUTPUT: bool = true;
    type Report = ExportReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.clone())
    }

    fn further(&self) -> &[PathBuf] {
        self.since.as_slice()
    }

    /// Opens the dumps with contents hidden unless `--contents` is given.
    fn prepare(&self, opening: &mut Opening) {
        opening.options.hide_contents |= !self.contents;
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ExportReport>> {
        self.check()?;
        let out = self.out(at)?;
        if self.to.is_tables() {
            return self.write_tables(at, &out);
        }
        check_output(&at.opening.path, &out, self.force)?;
        if let Some(since) = &self.since {
            check_output(since, &out, self.force)?;
        }
        let heap = at.heap()?;
        let scope = Scope { stacks: self.stacks.stacks, unreachable: self.unreachable, under: self.under, min_retained: self.min_retained };
        let part = Subgraph::open(&heap, &scope)?;
        let (ids, survivors) = self.ids(at, &part)?;
        let (written, file_bytes) = whole_file(&out, self.force, |file| {
            let written = self.write(at, &part, &ids, file)?;
            Ok((written, file.metadata()?.len()))
        })?;
        let totals = part.tree.totals(part.graph);
        let reachable = Sum { count: totals.reachable_objects, bytes: totals.reachable_bytes };
        let all = Sum { count: totals.objects, bytes: totals.bytes };
        let cuts = self.under.is_some() || self.min_retained > 0;
        let report = ExportReport {
            format: self.to,
            output: out.display().to_string(),
            file_bytes,
            objects: part.sum,
            references: Some(part.references),
            nodes: Some(written.nodes),
            edges: Some(written.edges),
            left_out: cuts.then(|| reachable.without(part.sum)),
            unreachable: (!self.unreachable).then(|| all.without(reachable)),
            survivors,
            tables: None,
            dump_id: None,
        };
        if written.clipped > 0 {
            let what = format!("{} sizes are cut to the largest that the format holds", thousands(written.clipped));
            part.notes().add(crate::base::NoteKind::LimitHit, None, what);
        }
        Ok(part.finish(report))
    }

    fn remarks(&self, report: &ExportReport) -> Vec<String> {
        if self.to != ExportFormat::HeapSnapshot || report.objects.count <= LARGE {
            return Vec::new();
        }
        let bytes = crate::output::bytes(report.objects.count.saturating_mul(DEVTOOLS_BYTES));
        let objects = thousands(report.objects.count);
        vec![format!(
            "{objects} objects: DevTools needs about {bytes} of memory to open the file; --under ADDR and --min-retained BYTES write less"
        )]
    }
}

impl Export {
    /// Refuses options that do not apply to the format.
    fn check(&self) -> Result<()> {
        let graph = self.since.is_some() || self.unreachable || self.under.is_some() || self.min_retained > 0;
        let tables = !self.tables.is_empty() || self.partition || self.retained || !self.fields.is_empty();
        let wrong = match self.to {
            ExportFormat::HeapSnapshot | ExportFormat::Gcdump if tables => {
                Some("--tables, --fields, --partition and --retained apply to formats with tables only: parquet, csv, ndjson")
            }
            ExportFormat::HeapSnapshot => self.generations.then_some("--generations applies to the format gcdump only"),
            ExportFormat::Gcdump if self.contents => {
                Some("--contents applies to the format heapsnapshot only: a .gcdump file holds no contents")
            }
            ExportFormat::Gcdump => {
                self.since.is_some().then_some("--since applies to the format heapsnapshot only: a .gcdump file has no ids")
            }
            ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Ndjson if graph || self.generations => {
                Some("--since, --unreachable, --under, --min-retained and --generations do not apply to tables, which have all objects")
            }
            _ if !self.fields.is_empty() && !self.tables.is_empty() && !self.tables.contains(&ExportTable::Objects) => {
                Some("--fields are columns of the table objects: add --tables objects")
            }
            _ => None,
        };
        wrong.map_or(Ok(()), |what| Err(UsageError(what.into()).into()))
    }

    fn write_tables(&self, at: &At<'_>, out: &Path) -> Result<Answer<ExportReport>> {
        let mut list = self.tables.clone();
        if list.is_empty() {
            // The default omits suspects, because the graph for this table takes more memory than all other tables together.
            let given = |t: &ExportTable| t.is_of_heap() && *t != ExportTable::Strings && (*t != ExportTable::Suspects || self.retained);
            list.extend(ExportTable::ALL.into_iter().filter(given));
        }
        list.sort_by_key(|table| ExportTable::ALL.iter().position(|t| t == table));
        list.dedup();
        let mut fields: Vec<String> = Vec::new();
        for path in &self.fields {
            if !fields.contains(path) {
                fields.push(path.clone());
            }
        }
        let (format, retained, stacks, contents) = (self.to, self.retained, self.stacks.stacks, self.contents);
        let tables = Tables { format, tables: list, retained, stacks, contents, fields };
        let lake = Lake { root: out, tables: &tables };
        if self.partition {
            lake.check()?
        } else {
            check_folder(out, self.force)?
        }
        let id = if self.partition { Some(dump_id(&at.opening.path)?) } else { None };
        if let Some(id) = id.as_ref().filter(|id| !self.force && lake.has(id)) {
            return Err(UsageError(format!("{} has the dump already, as dump={id}; use --force to overwrite it", out.display())).into());
        }
        let heap = at.heap()?;
        let of = (&heap, at.dump()?);
        let answer = match &id {
            Some(id) => lake.add(of, id)?,
            None => write_folder(of, &tables, out, self.force)?,
        };
        Ok(answer.map(|Filled { files, objects }| ExportReport {
            format: self.to,
            output: out.display().to_string(),
            file_bytes: bytes_of(&files),
            objects,
            references: rows_of(&files, ExportTable::Refs),
            nodes: None,
            edges: None,
            left_out: None,
            unreachable: None,
            survivors: None,
            tables: Some(files),
            dump_id: id,
        }))
    }

    fn out(&self, at: &At<'_>) -> Result<PathBuf> {
        match (&self.out, &at.config.output) {
            (Some(_), Some(_)) => Err(UsageError("OUT and -o both name the file to write".into()).into()),
            (Some(out), None) | (None, Some(out)) => Ok(out.clone()),
            (None, None) => Ok(default_name(&at.opening.path, self.to)),
        }
    }

    /// Returns the ids of the objects, and the number of objects that keep an id of the earlier dump.
    fn ids(&self, at: &At<'_>, part: &Subgraph<'_>) -> Result<(Ids, Option<u64>)> {
        if self.since.is_none() {
            return Ok((Ids::default(), None));
        }
        let before = at.heap_at(1)?;
        let was = part.notes().take(survivors(&before, part.heap)?);
        let known = len64(part.objects().filter(|id| matches!(was.get(*id), Some(Some(_)))).count());
        let objects = before.starts().len();
        Ok((Ids::since(objects, was), Some(known)))
    }

    fn write(&self, at: &At<'_>, part: &Subgraph<'_>, ids: &Ids, file: &File) -> Result<Written> {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let written = match self.to {
            ExportFormat::HeapSnapshot => {
                heapsnapshot::write(part, ids, heapsnapshot::Options { contents: self.contents }, &mut out).map_err(smaller)?
            }
            ExportFormat::Gcdump => gcdump::write(part, &self.about(at)?, &mut out).map_err(smaller)?,
            ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Ndjson => Written::default(),
        };
        out.flush()?;
        Ok(written)
    }

    fn about(&self, at: &At<'_>) -> Result<gcdump::About> {
        let facts = &at.dump()?.file().facts;
        Ok(gcdump::About {
            // ELF cores do not record their time.
            time: facts.time,
            process: facts.process_name.clone().unwrap_or_default(),
            process_id: facts.pid,
            generations: self.generations,
        })
    }
}

/// Adds to the error `e` the options that help if the graph is too large for the format.
fn smaller(e: io::Error) -> io::Error {
    if e.kind() == io::ErrorKind::InvalidInput {
        io::Error::new(e.kind(), format!("{e} with --under ADDR or --min-retained BYTES"))
    } else {
        e
    }
}

/// Returns the dump's name with another extension: `crash.dmp.zst` becomes `crash.heapsnapshot`.
fn default_name(dump: &Path, format: ExportFormat) -> PathBuf {
    let mut stem = PathBuf::from(dump.file_name().unwrap_or_else(|| "heap".as_ref()));
    if stem.extension().is_some_and(|e| e == "zst" || e == "gz") {
        stem.set_extension("");
    }
    stem.set_extension(format.name());
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_dump() {
        let name = |dump: &str, format| default_name(Path::new(dump), format).display().to_string();
        assert_eq!(name("a/crash.dmp", ExportFormat::HeapSnapshot), "crash.heapsnapshot");
        assert_eq!(name("crash.dmp.zst", ExportFormat::Gcdump), "crash.gcdump");
        assert_eq!(name("core", ExportFormat::Gcdump), "core.gcdump");
    }
}
