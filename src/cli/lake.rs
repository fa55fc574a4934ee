//! Folders of tables: one folder for one dump, or a data set with a partition for each dump.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::exit::UsageError;
use super::write::{Workshop, check_named};
use crate::base::Answer;
use crate::dump::regular;
use crate::export::tables::{About, Tables, TablesError, seconds, written};
use crate::model::{ExportTable, Sum, TableFile};
use crate::session::{Dump, Heap};

/// Number of bytes of a file that are hashed at a time.
const PIECE: usize = 1 << 22;

/// Returns the partition name of a dump: the first 64 bits of the BLAKE3 hash of its contents in hexadecimal.
pub(super) fn dump_id(path: &Path) -> Result<String> {
    // The `io::Error` is not kept in the chain, so that the error is attributed to the dump rather than to the output folder.
    let cannot = |e: io::Error| anyhow::anyhow!("reading {}: {e}", path.display());
    let mut file = regular(path).map_err(cannot)?;
    let mut hash = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        crate::base::cancel::check();
        let read = file.read(&mut piece).map_err(cannot)?;
        match piece.get(..read).filter(|p| !p.is_empty()) {
            Some(part) => hash.update_rayon(part),
            None => break,
        };
    }
    Ok(hash.finalize().to_hex().chars().take(16).collect())
}

/// Tables that were written.
pub(super) struct Filled {
    pub(super) files: Vec<TableFile>,
    pub(super) objects: Sum,
}

/// Returns the path of a table within a folder of tables.
fn plain(table: ExportTable, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", table.name()))
}

/// Returns the path of a partition within the data set: the rows of one dump in a table.
fn partition(table: ExportTable, id: &str) -> PathBuf {
    Path::new(table.name()).join(format!("dump={id}"))
}

/// Writes tables to the files that `place` names, in the folder `new` of `shop`, which is moved to `output` later.
fn fill(
    (heap, dump): (&Heap, &Dump),
    tables: &Tables,
    (shop, new, output): (&Workshop, &str, &Path),
    place: impl Fn(ExportTable) -> PathBuf,
) -> Result<Answer<Filled>> {
    let file_time = dump.file().facts.path.metadata().and_then(|m| m.modified()).ok().and_then(seconds);
    let mut files: Vec<(ExportTable, File)> = Vec::new();
    let create = |table: ExportTable| {
        let file = shop.create(&Path::new(new).join(place(table)))?;
        files.push((table, file.try_clone()?));
        Ok(file)
    };
    let written = written(heap, &About { dump: dump.clone(), file_time }, tables, create).map_err(|e| match e {
        TablesError::Dump(e) => anyhow::Error::from(e),
        TablesError::File(e) => anyhow::Error::from(e).context(format!("writing {}", output.display())),
    })?;
    let context = || format!("writing {}", output.display());
    let mut rows = Vec::new();
    for (table, count) in &written.tables {
        let Some((_, file)) = files.iter().find(|(t, _)| t == table) else { continue };
        file.sync_all().with_context(context)?;
        let bytes = file.metadata().with_context(context)?.len();
        rows.push(TableFile { table: *table, file: output.join(place(*table)).display().to_string(), rows: *count, bytes });
    }
    Ok(written.map(|w| Filled { files: rows, objects: w.objects }))
}

/// Refuses to replace anything other than a folder of tables.
pub(super) fn check_folder(out: &Path, force: bool) -> Result<()> {
    check_named(out)?;
    let Ok(metadata) = out.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return Err(UsageError(format!("{} is not a folder; name a folder for the tables", out.display())).into());
    }
    if !force {
        return Err(UsageError(format!("{} exists; use --force to overwrite it", out.display())).into());
    }
    // Another process may move the folder away at any time, so entries may disappear during these checks.
    let own = |entry: &fs::DirEntry| {
        let path = entry.path();
        let table = path.file_stem().is_some_and(|s| ExportTable::ALL.iter().any(|t| s == t.name()));
        // Another process may have replaced the file between the two checks.
        let is_gone = || path.symlink_metadata().map_or_else(|e| e.kind() == ErrorKind::NotFound, |found| found.is_file());
        let is_file = || path.metadata().map_or_else(|e| e.kind() == ErrorKind::NotFound && is_gone(), |found| found.is_file());
        table && is_file() && path.extension().is_some_and(|e| e == "parquet" || e == "csv" || e == "ndjson")
    };
    let entries = match fs::read_dir(out).and_then(Iterator::collect::<io::Result<Vec<fs::DirEntry>>>) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| out.display().to_string())?,
    };
    match entries.iter().find(|e| !own(e)) {
        None => Ok(()),
        Some(other) => {
            let what = format!("{} is not overwritten: it holds {}, which is not a table", out.display(), other.file_name().display());
            Err(UsageError(what).into())
        }
    }
}

/// The folder of tables in a workshop.
const NEW: &str = "new";

/// Writes the folder at `out`, with all tables or not at all.
pub(super) fn write_folder(of: (&Heap, &Dump), tables: &Tables, out: &Path, force: bool) -> Result<Answer<Filled>> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shop = Workshop::beside(parent).with_context(|| format!("cannot write {}", out.display()))?;
    let filled = fill(of, tables, (&shop, NEW, out), |table| plain(table, tables.format.name()))?;
    // The folder is checked again, because it may have appeared since the command began.
    check_folder(out, force)?;
    shop.put(&shop.path().join(NEW), out, force).with_context(|| format!("writing {}", out.display()))?;
    Ok(filled)
}

/// A data set with a partition for each dump.
pub(super) struct Lake<'l> {
    pub(super) root: &'l Path,
    pub(super) tables: &'l Tables,
}

impl Lake<'_> {
    /// Refuses paths that are not folders.
    pub(super) fn check(&self) -> Result<()> {
        check_named(self.root)?;
        match self.root.metadata() {
            Ok(metadata) if !metadata.is_dir() => {
                Err(UsageError(format!("{} is not a folder; name a folder for the tables", self.root.display())).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the data set has all tables of a dump.
    pub(super) fn has(&self, id: &str) -> bool {
        self.tables.tables.iter().all(|table| self.root.join(partition(*table, id)).is_dir())
    }

    fn shop(&self) -> Result<Workshop> {
        Workshop::within(self.root).with_context(|| format!("cannot write {}", self.root.display()))
    }

    fn place(&self, table: ExportTable, id: &str) -> PathBuf {
        partition(table, id).join(format!("part-0.{}", self.tables.format.name()))
    }

    /// Adds a dump, or replaces its partitions.
    pub(super) fn add(&self, of: (&Heap, &Dump), id: &str) -> Result<Answer<Filled>> {
        let shop = self.shop()?;
        let filled = fill(of, self.tables, (&shop, "", self.root), |table| self.place(table, id))?;
        self.take(&shop, id)?;
        Ok(filled)
    }

    /// Adds a dump that cannot be read.
    pub(super) fn add_failed(&self, path: &Path, id: &str, why: &str) -> Result<()> {
        use crate::export::tables::{columns, failed, sink};
        let shop = self.shop()?;
        for table in &self.tables.tables {
            let file = shop.create(&self.place(*table, id))?;
            let Some(to) = sink(self.tables.format, *table, columns(*table), file)? else { continue };
            match table {
                ExportTable::Dumps => failed(&path.display().to_string(), path.metadata().ok().as_ref(), why, to)?,
                // The other tables are empty. They are written because the data set has all tables of each dump.
                _ => to.finish()?,
            }
        }
        self.take(&shop, id)
    }

    /// Moves the partitions of a dump from `shop` to their final paths. The partition of `dumps` is removed first and added last, so that a
    /// dump listed there is complete.
    fn take(&self, shop: &Workshop, id: &str) -> Result<()> {
        let context = || format!("writing {}", self.root.display());
        let mut tables = self.tables.tables.clone();
        tables.sort_by_key(|t| *t != ExportTable::Dumps);
        for table in &tables {
            shop.take_away(&self.root.join(partition(*table, id))).with_context(context)?;
        }
        for table in tables.iter().rev() {
            let part = partition(*table, id);
            let to = self.root.join(&part);
            to.parent().map_or(Ok(()), fs::create_dir_all).with_context(context)?;
            shop.put(&shop.path().join(&part), &to, true).with_context(context)?;
        }
        Ok(())
    }
}

/// Returns the total size of all files in bytes.
pub(super) fn bytes_of(files: &[TableFile]) -> u64 {
    crate::base::total(files.iter().map(|f| f.bytes))
}

/// Returns the number of rows of a table, if it was written.
pub(super) fn rows_of(files: &[TableFile], table: ExportTable) -> Option<u64> {
    files.iter().find(|f| f.table == table).map(|f| f.rows)
}
