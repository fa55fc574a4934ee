//! Atomic output files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::{Builder, NamedTempFile};

use super::exit::UsageError;
use crate::dump::is_same;

/// Unfinished output files and folders, removed if the process exits early.
static UNFINISHED: Mutex<Vec<Unfinished>> = Mutex::new(Vec::new());

struct Unfinished {
    path: PathBuf,
    /// Of a folder: a descriptor for removing it, which takes one.
    spare: Option<File>,
}

/// Removes unfinished output files; call before exiting the process while work goes on. Who would make another one then waits for the
/// exit.
pub fn remove_unfinished() {
    /// Another thread may still be adding files to a folder that is being removed.
    const TRIES: u32 = 20;
    let mut all = unfinished();
    for Unfinished { path, spare } in all.drain(..) {
        drop(spare);
        // There is nowhere left to report a failure.
        if !path.is_dir() {
            let _ = fs::remove_file(path);
            continue;
        }
        for _ in 0..TRIES {
            remove_folder(&path, DEPTH);
            if !path.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    std::mem::forget(all);
}

/// Folders below each other in one that this process makes.
const DEPTH: u32 = 8;

/// Removes a folder and all in it, with no more than one descriptor at a time. It is this process's own, and open to no other user, so that
/// nothing puts a link in the place of one of its folders.
fn remove_folder(folder: &Path, depth: u32) {
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).collect();
    for entry in entries {
        // What cannot be removed stays, and its folder with it.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => remove_folder(&entry.path(), depth.saturating_sub(1)),
            _ => drop(fs::remove_file(entry.path())),
        }
    }
    let _ = fs::remove_dir(folder);
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<Unfinished>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a path is the usual name of standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses what only a stream can be written to: files that appear whole or not at all have a name.
pub(super) fn check_named(out: &Path) -> Result<()> {
    if is_standard_output(out) {
        return Err(UsageError("- is standard output; this is written to a file (./- is one of that name)".into()).into());
    }
    Ok(())
}

/// Refuses to overwrite the dump under any name, and any other file without `--force`.
pub(super) fn check_output(dump: &Path, out: &Path, force: bool) -> Result<()> {
    check_named(out)?;
    if out.is_dir() {
        return Err(UsageError(format!("{} is a folder", out.display())).into());
    }
    // A rename would put a file in its place; and who opens a pipe waits.
    if out.metadata().is_ok_and(|m| !m.is_file()) {
        return Err(UsageError(format!("{} is a device or a pipe; this is written to a file", out.display())).into());
    }
    if out.exists() && is_same(dump, out).with_context(|| format!("comparing {} with the dump", out.display()))? {
        return Err(UsageError(format!("{} is the dump itself; it is never overwritten", out.display())).into());
    }
    if !force && out.symlink_metadata().is_ok() {
        return Err(UsageError(format!("{} exists; use --force to overwrite it", out.display())).into());
    }
    Ok(())
}

/// A temporary file next to its destination, renamed once complete.
pub(super) struct Draft {
    file: NamedTempFile,
    place: PathBuf,
    listed: Listed,
}

/// An entry of [`UNFINISHED`].
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().retain(|u| u.path != self.0);
    }
}

impl Draft {
    /// Creates a draft of `place`, readable for others only if `public`.
    pub(super) fn of(place: &Path, public: bool) -> io::Result<Draft> {
        // Write through symbolic links.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        builder.prefix(".gcdump-");
        if public {
            permit(&mut builder, &place);
        }
        // The errors of `tempfile` name its own file, which means nothing to the user.
        fs::metadata(folder)?;
        // A signal waits until it is listed.
        let mut all = unfinished();
        let file = builder.tempfile_in(folder).map_err(|e| io::Error::from(e.kind()))?;
        all.push(Unfinished { path: file.path().to_path_buf(), spare: None });
        drop(all);
        let listed = Listed(file.path().to_path_buf());
        Ok(Draft { file, place, listed })
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Renames the draft to its destination, overwriting it if `replace`.
    pub(super) fn finish(self, replace: bool) -> io::Result<()> {
        let Draft { file, place, listed } = self;
        let moved = if replace { file.persist(&place) } else { file.persist_noclobber(&place) };
        drop(listed);
        moved.map(drop).map_err(|e| e.error)
    }
}

/// A folder for unfinished files, beside the place where they will be; removed with all that is left in it.
pub(super) struct Workshop(Listed);

impl Drop for Workshop {
    fn drop(&mut self) {
        if let Some(own) = unfinished().iter_mut().find(|u| u.path == self.0.0) {
            own.spare = None;
        }
        remove_folder(&self.0.0, DEPTH);
    }
}

impl Workshop {
    /// Creates one in `parent`.
    pub(super) fn beside(parent: &Path) -> io::Result<Workshop> {
        // The errors of `tempfile` name its own folder, which means nothing to the user.
        fs::metadata(parent)?;
        // A signal waits until it is listed.
        let mut all = unfinished();
        let folder = Builder::new().prefix(".gcdump-").tempdir_in(parent).map_err(|e| io::Error::from(e.kind()))?;
        let path = folder.keep();
        // Before anything is in it: without a descriptor left, it is removed now.
        let spare = spare(&path).inspect_err(|_| drop(fs::remove_dir(&path)))?;
        all.push(Unfinished { path: path.clone(), spare: Some(spare) });
        drop(all);
        Ok(Workshop(Listed(path)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.0
    }

    /// Moves `new`, a folder in it, to `place`. What is there already is moved away, where `replace` allows: another process may put its own there
    /// at any time.
    pub(super) fn put(&self, new: &Path, place: &Path, replace: bool) -> io::Result<()> {
        /// More often than other processes write the same at the same time.
        const TRIES: u32 = 100;
        let mut tries = 0..TRIES;
        loop {
            match fs::rename(new, place) {
                Err(e) if replace && tries.next().is_some() && is_in_the_way(&e, place) => self.take_away(place)?,
                done => return done,
            }
        }
    }

    /// Moves the folder at `place`, if there is one, to where it is removed with this one.
    pub(super) fn take_away(&self, place: &Path) -> io::Result<()> {
        let old = Builder::new().prefix("old-").tempdir_in(self.path()).map_err(|e| io::Error::from(e.kind()))?.keep();
        match fs::rename(place, old.join("it")) {
            // Another process was faster.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }
}

/// Whether a folder could not be moved because there is another. Windows does not name the reason.
fn is_in_the_way(e: &io::Error, place: &Path) -> bool {
    matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) || cfg!(windows) && place.is_dir()
}

/// A descriptor that is kept until it is needed.
#[cfg(unix)]
fn spare(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// Of other systems, no folder can be opened.
#[cfg(not(unix))]
fn spare(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder.parent().unwrap_or(folder))
}

/// Uses the permissions of the existing file or the defaults; temporary files are readable by their owner only.
#[cfg(unix)]
fn permit(builder: &mut Builder<'_, '_>, place: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let now = fs::metadata(place).map(|m| m.permissions());
    builder.permissions(now.unwrap_or_else(|_| fs::Permissions::from_mode(0o666)));
}

#[cfg(not(unix))]
fn permit(_: &mut Builder<'_, '_>, _: &Path) {}

/// Writes the file at `path` by `fill`, readable for its owner only; all of it or nothing.
pub(super) fn whole_file<T>(path: &Path, force: bool, fill: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let context = || format!("writing {}", path.display());
    let draft = Draft::of(path, false).with_context(|| format!("cannot write {}", path.display()))?;
    let filled = fill(draft.file()).with_context(context)?;
    draft.file().sync_all().with_context(context)?;
    draft.finish(force).with_context(context)?;
    Ok(filled)
}
