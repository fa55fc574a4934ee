//! Files that answers go to: nobody meets half of one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// Files that are being written. The end of the process removes them where it comes first.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes files that are not finished: for who ends the process in the middle of the work.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        // Nobody is left to tell when this fails.
        let _ = fs::remove_file(path);
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file beside its place, which it is moved to once it is whole.
pub(super) struct Draft {
    file: NamedTempFile,
    place: PathBuf,
    listed: Listed,
}

/// An entry of [`UNFINISHED`].
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().retain(|p| *p != self.0);
    }
}

impl Draft {
    /// A draft of `place`. Others may read it only where `public`.
    pub(super) fn of(place: &Path, public: bool) -> io::Result<Draft> {
        // Who writes through a link means the file behind it.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        builder.prefix(".gcdump-");
        if public {
            permit(&mut builder, &place);
        }
        let file = builder.tempfile_in(folder)?;
        unfinished().push(file.path().to_path_buf());
        let listed = Listed(file.path().to_path_buf());
        Ok(Draft { file, place, listed })
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Moves the draft to its place, over what is there where `replace`.
    pub(super) fn finish(self, replace: bool) -> io::Result<()> {
        let Draft { file, place, listed } = self;
        let moved = if replace { file.persist(&place) } else { file.persist_noclobber(&place) };
        drop(listed);
        moved.map(drop).map_err(|e| e.error)
    }
}

/// As any program would create it, or as it is now: what the builder makes by itself is readable for its owner only.
#[cfg(unix)]
fn permit(builder: &mut Builder<'_, '_>, place: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let now = fs::metadata(place).map(|m| m.permissions());
    builder.permissions(now.unwrap_or_else(|_| fs::Permissions::from_mode(0o666)));
}

#[cfg(not(unix))]
fn permit(_: &mut Builder<'_, '_>, _: &Path) {}
