//! Atomic output files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use tempfile::{Builder, NamedTempFile};

use super::exit::UsageError;
use crate::dump::{is_same, reason};

/// Unfinished output files and folders, removed if the process exits early.
static UNFINISHED: Mutex<Vec<Unfinished>> = Mutex::new(Vec::new());

struct Unfinished {
    path: PathBuf,
    /// Files and folders created inside the folder. They are removed by path, because listing a folder needs a free file descriptor.
    inside: Vec<PathBuf>,
    /// The parent folder, if this process created it. The parent folder is also removed if it is empty.
    around: Option<PathBuf>,
}

/// Removes unfinished output files. Call this function before the process exits while work is in progress. Threads that create another file after the
/// call block until the exit.
pub fn remove_unfinished() {
    let mut all = unfinished();
    all.drain(..).for_each(Unfinished::remove);
    std::mem::forget(all);
}

impl Unfinished {
    /// Removes the file or folder with its contents. Failures are ignored.
    fn remove(self) {
        if !self.path.is_dir() {
            let _ = fs::remove_file(self.path);
            return;
        }
        for inside in self.inside.iter().rev() {
            let _ = fs::remove_file(inside).or_else(|_| fs::remove_dir(inside));
        }
        // Removes what `inside` does not list: folders that were moved into this folder.
        remove_folder(&self.path, DEPTH);
        let _ = self.around.map(fs::remove_dir);
    }
}

/// Maximum nesting depth of the folders that this process creates inside one folder.
const DEPTH: u32 = 8;

/// Removes a folder and its contents with at most one descriptor open at a time. The folder belongs to this process and is inaccessible to
/// other users, so nothing can replace one of its folders with a link.
fn remove_folder(folder: &Path, depth: u32) {
    if fs::remove_dir(folder).is_ok() {
        return;
    }
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).collect();
    for entry in entries {
        // A file that cannot be removed remains, and so does its folder.
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

/// Whether a path is the conventional name of standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses standard output for output that is written to a temporary file and renamed.
pub(super) fn check_named(out: &Path) -> Result<()> {
    if is_standard_output(out) {
        return Err(UsageError("- is standard output, but this needs a file: give its name (./- is a file of that name)".into()).into());
    }
    Ok(())
}

/// Refuses to overwrite the dump under any name, and any other file without `--force`.
pub(super) fn check_output(dump: &Path, out: &Path, force: bool) -> Result<()> {
    check_named(out)?;
    if out.is_dir() {
        return Err(UsageError(format!("{} is a folder", out.display())).into());
    }
    // A device or pipe is refused, because renaming the temporary file would replace it.
    if out.metadata().is_ok_and(|m| !m.is_file()) {
        return Err(UsageError(format!("{} is a device or a pipe; name a file", out.display())).into());
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
    /// Creates a draft of `place`, readable by others only if `public`.
    pub(super) fn of(place: &Path, public: bool) -> io::Result<Draft> {
        // Resolves symbolic links, so that their target is replaced rather than the link.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        builder.prefix(".gcdump-");
        if public {
            permit(&mut builder, &place);
        }
        fs::metadata(folder)?;
        // While the lock is held, a signal cannot end the process, because `remove_unfinished` waits until the file is listed.
        let mut all = unfinished();
        let file = builder.tempfile_in(folder).map_err(reason)?;
        all.push(Unfinished { path: file.path().to_path_buf(), inside: Vec::new(), around: None });
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

    /// Renames the draft to its destination and overwrites an existing file if `replace`.
    pub(super) fn finish(self, replace: bool) -> io::Result<()> {
        let Draft { file, place, listed } = self;
        let moved = if replace { file.persist(&place) } else { file.persist_noclobber(&place) };
        drop(listed);
        moved.map(drop).map_err(|e| e.error)
    }
}

/// A folder for unfinished files, next to their destination. Dropping the `Workshop` removes the folder with everything left in it.
pub(super) struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let mut all = unfinished();
        if let Some(own) = all.iter().position(|u| u.path == self.0) {
            all.swap_remove(own).remove();
        }
    }
}

impl Workshop {
    /// Creates a workshop in `parent`.
    pub(super) fn beside(parent: &Path) -> io::Result<Workshop> {
        fs::metadata(parent)?;
        // While the lock is held, a signal cannot end the process, because `remove_unfinished` waits until the folder is listed.
        let mut all = unfinished();
        let folder = Builder::new().prefix(".gcdump-").tempdir_in(parent).map_err(reason)?;
        let path = folder.keep();
        all.push(Unfinished { path: path.clone(), inside: Vec::new(), around: None });
        drop(all);
        Ok(Workshop(path))
    }

    /// Creates a workshop in `root`, which is created if it does not exist.
    pub(super) fn within(root: &Path) -> io::Result<Workshop> {
        let is_new = !root.exists();
        fs::create_dir_all(root)?;
        let shop = Workshop::beside(root)?;
        if is_new && let Some(own) = unfinished().iter_mut().find(|u| u.path == shop.0) {
            own.around = Some(root.to_path_buf());
        }
        Ok(shop)
    }

    /// Creates a file in the workshop, along with its parent folders.
    pub(super) fn create(&self, place: &Path) -> io::Result<File> {
        let mut at = self.0.clone();
        for part in place.parent().into_iter().flat_map(Path::components) {
            at.push(part);
            match self.noted(&at, |at| fs::create_dir(at)) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        self.noted(&self.0.join(place), |path| File::create_new(path))
    }

    /// Creates a file or folder in the workshop and lists it in [`UNFINISHED`], under one lock.
    fn noted<T>(&self, path: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut all = unfinished();
        let made = make(path)?;
        let own = all.iter_mut().find(|u| u.path == self.0);
        own.into_iter().for_each(|own| own.inside.push(path.to_path_buf()));
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Moves `new`, a folder of the workshop, to `place`. If `replace`, an existing folder is first moved into the workshop. This is repeated,
    /// because another process may create the folder again.
    pub(super) fn put(&self, new: &Path, place: &Path, replace: bool) -> io::Result<()> {
        /// Maximum number of attempts: more than the processes that could write the folder at the same time.
        const TRIES: u32 = 100;
        let mut tries = 0..TRIES;
        loop {
            match fs::rename(new, place) {
                Err(e) if replace && tries.next().is_some() && is_in_the_way(&e, place) => self.take_away(place)?,
                done => return done,
            }
        }
    }

    /// Moves the folder at `place`, if it exists, into the workshop, so that the folder is removed together with the workshop.
    pub(super) fn take_away(&self, place: &Path) -> io::Result<()> {
        let old = (0u32..).map(|n| self.0.join(format!("old-{n}"))).find(|old| !old.exists()).unwrap_or_else(|| self.0.join("old"));
        self.noted(&old, |old| fs::create_dir(old))?;
        match fs::rename(place, old.join("it")) {
            // Another process has already moved the folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }
}

/// Whether a folder could not be moved because another folder exists there. Windows does not report the reason.
fn is_in_the_way(e: &io::Error, place: &Path) -> bool {
    matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) || cfg!(windows) && place.is_dir()
}

/// Gives the draft the permissions of the existing file, or else the default permissions. Without this, temporary files are readable only by their
/// owner.
#[cfg(unix)]
fn permit(builder: &mut Builder<'_, '_>, place: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let now = fs::metadata(place).map(|m| m.permissions());
    builder.permissions(now.unwrap_or_else(|_| fs::Permissions::from_mode(0o666)));
}

#[cfg(not(unix))]
fn permit(_: &mut Builder<'_, '_>, _: &Path) {}

/// Writes the file at `path` with `fill`, readable only by its owner, completely or not at all.
pub(super) fn whole_file<T>(path: &Path, force: bool, fill: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let context = || format!("writing {}", path.display());
    let draft = Draft::of(path, false).with_context(|| format!("cannot write {}", path.display()))?;
    let filled = fill(draft.file()).with_context(context)?;
    draft.file().sync_all().with_context(context)?;
    draft.finish(force).with_context(context)?;
    Ok(filled)
}
