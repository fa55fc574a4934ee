//! Opens files below a folder so that no link leads out of it.
//!
//! A checked path may name another file by the time it is opened. Therefore a file is opened first, folder by folder without following links,
//! and all checks and reads use the open file.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// A regular file that is open.
pub(super) struct Found {
    /// Path without links.
    pub(super) path: PathBuf,
    pub(super) file: File,
    metadata: Metadata,
}

/// Properties of a file that change if it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and inode number, on systems that have them.
    file: (u64, u64),
}

impl Found {
    /// Opens the file at `path`, which must be `root` or below it and must not contain links.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] for a link, [`io::ErrorKind::InvalidInput`] for folders, pipes and devices; errors of the system.
    pub(super) fn open(root: &Path, path: &Path) -> io::Result<Found> {
        let below = path.strip_prefix(root).map_err(|_| io::ErrorKind::NotADirectory)?;
        let file = open(root, below)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Found { path: path.into(), file, metadata }),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    /// Returns the size of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.metadata.len()
    }

    /// Returns the stamp of the file.
    pub(super) fn stamp(&self) -> Stamp {
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::MetadataExt as _;
            (self.metadata.dev(), self.metadata.ino())
        };
        #[cfg(not(unix))]
        let file = (0, 0);
        Stamp { len: self.metadata.len(), modified: self.metadata.modified().ok(), file }
    }
}

#[cfg(unix)]
fn open(root: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // `NONBLOCK` is set because opening a pipe without a writer would block.
    let last = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // On Linux, `O_PATH` is added, because it also opens a folder that may be searched but not listed.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let folder = folder | OFlags::PATH;
    // The system reports ELOOP for a link.
    let link = |e: rustix::io::Errno| match e {
        rustix::io::Errno::LOOP => io::ErrorKind::NotADirectory.into(),
        e => io::Error::from(e),
    };
    let mut at = rustix::fs::open(root, folder, Mode::empty()).map_err(link)?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::NotADirectory.into()) };
        let flags = if parts.peek().is_some() { folder } else { last };
        at = rustix::fs::openat(&at, name, flags, Mode::empty()).map_err(link)?;
    }
    Ok(File::from(at))
}

/// Opens the file by its path, on systems without `openat`, and then checks that the path contains no links and still names the open file.
#[cfg(not(unix))]
fn open(root: &Path, below: &Path) -> io::Result<File> {
    use same_file::Handle;
    let path = root.join(below);
    let file = File::open(&path)?;
    let is_there = path.canonicalize()? == path && Handle::from_file(file.try_clone()?)? == Handle::from_path(&path)?;
    if is_there && below.components().all(|c| matches!(c, Component::Normal(_))) {
        return Ok(file);
    }
    Err(io::ErrorKind::NotADirectory.into())
}
