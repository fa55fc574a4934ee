//! History of lines: a file of bounded size that only its owner can read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::super::write::Draft;

/// Number of lines kept.
pub(super) const LINES: usize = 1000;
/// Maximum number of bytes read from the end of the file.
const BYTES: u64 = 1 << 20;
/// Length of the longest line kept, in bytes.
const LONGEST: usize = 8 << 10;

/// The history file.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
}

impl History {
    /// Returns the history of this user: `gcdump/history` in `$XDG_STATE_HOME`, or else in `~/.local/state`; on Windows in `%LOCALAPPDATA%`. `None`
    /// without such a directory.
    pub(super) fn of_user() -> Option<History> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let state = if cfg!(windows) {
            folder("LOCALAPPDATA")
        } else {
            folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))
        };
        Some(History { path: state?.join("gcdump").join("history") })
    }

    /// Returns the lines, latest last. If the file is long, truncates the file to these lines.
    ///
    /// # Errors
    /// Errors of reading and writing the file; a file that does not exist has no lines.
    pub(super) fn load(&self) -> io::Result<Vec<String>> {
        let mut file = match self.open(OpenOptions::new().read(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let size = file.metadata()?.len();
        let begins = size.saturating_sub(BYTES);
        file.seek(SeekFrom::Start(begins))?;
        let lines = BufReader::new(file.take(BYTES)).split(b'\n').collect::<io::Result<Vec<_>>>()?;
        // The first line is incomplete, unless the file is read from its start.
        let whole = lines.into_iter().skip(usize::from(begins > 0));
        let mut lines: Vec<String> = whole.filter_map(|l| String::from_utf8(l).ok()).filter(|l| !l.is_empty()).collect();
        let cut = lines.len() > LINES.saturating_mul(2) || begins > 0;
        lines.drain(..lines.len().saturating_sub(LINES));
        if cut {
            let draft = Draft::of(&self.path, false)?;
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let mut file = draft.file();
            file.write_all(text.as_bytes())?;
            draft.finish(true)?;
        }
        Ok(lines)
    }

    /// Opens the file, which must belong to this user and have no other name.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        let refused = |why: &str| io::Error::other(format!("{} {why}; remove it", self.path.display()));
        if self.path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
            return Err(refused("is a link"));
        }
        #[cfg(unix)]
        {
            use nix::fcntl::OFlag;
            // Opening a pipe must not block, and a link created since the check above must not be followed.
            std::os::unix::fs::OpenOptionsExt::custom_flags(options, (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        }
        let not_a_file = || refused("is not a file");
        let file = match options.open(&self.path) {
            // Opening a pipe without a reader fails, so the kind of the file is checked here as well.
            Err(_) if self.path.symlink_metadata().is_ok_and(|m| !m.is_file()) => return Err(not_a_file()),
            file => file?,
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(not_a_file());
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            if meta.nlink() > 1 {
                return Err(refused("has another name, a hard link"));
            }
            if meta.uid() != nix::unistd::geteuid().as_raw() {
                return Err(refused("belongs to another user"));
            }
        }
        Ok(file)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Errors of writing the file and of creating its directory.
    pub(super) fn add(&self, line: &str) -> io::Result<()> {
        if line.len() > LONGEST || line.contains(['\n', '\r']) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            private_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = self.open(&mut options)?;
        private(&file)?;
        // The line is written in one call, because several shells may add lines at the same time.
        file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Creates a directory, with its parents, that only its owner can access.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes other users' access to an existing file.
fn private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return file.set_permissions(fs::Permissions::from_mode(0o600));
        }
    }
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_devices_are_neither_read_nor_written() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let history = History { path: folder.path().join("history") };
        let other = folder.path().join("other");
        fs::write(&other, "theirs\n").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
        let both = |says: &str| {
            for e in [history.load().map(|_| ()).unwrap_err(), history.add("stat").unwrap_err()] {
                assert!(e.to_string().contains(says) && e.to_string().contains("history"), "{e}");
            }
            fs::remove_file(&history.path).or_else(|_| fs::remove_dir(&history.path)).unwrap();
        };
        symlink(&other, &history.path).unwrap();
        both("is a link");
        symlink("nowhere", &history.path).unwrap();
        both("is a link");
        assert!(!folder.path().join("nowhere").exists());
        fs::hard_link(&other, &history.path).unwrap();
        both("another name");
        nix::unistd::mkfifo(&history.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        both("is not a file");
        fs::create_dir(&history.path).unwrap();
        both("is not a file");
        assert_eq!(
            (fs::read_to_string(&other).unwrap().as_str(), other.metadata().unwrap().permissions().mode() & 0o777),
            ("theirs\n", 0o644)
        );
        assert!(history.load().unwrap().is_empty());
        history.add("stat").unwrap();
        assert_eq!(history.load().unwrap(), ["stat"]);
    }

    #[test]
    fn lines_are_kept_bounded_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let history = History { path: folder.path().join("a/b/history") };
        assert!(history.load().unwrap().is_empty());
        history.add("stat").unwrap();
        history.add("path $1").unwrap();
        history.add("two\nlines").unwrap();
        history.add(&"x".repeat(LONGEST + 1)).unwrap();
        assert_eq!(history.load().unwrap(), ["stat", "path $1"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&history.path), mode(history.path.parent().unwrap())), (0o600, 0o700));
            fs::set_permissions(&history.path, fs::Permissions::from_mode(0o644)).unwrap();
            history.add("heap").unwrap();
            assert_eq!(mode(&history.path), 0o600);
        }
        for i in 0..2 * LINES {
            history.add(&format!("line {i}")).unwrap();
        }
        let lines = history.load().unwrap();
        assert_eq!((lines.len(), lines[LINES - 1].as_str()), (LINES, format!("line {}", 2 * LINES - 1).as_str()));
        assert_eq!(fs::read_to_string(&history.path).unwrap().lines().count(), LINES);
        // The file is longer than the part that is read.
        fs::write(&history.path, format!("{}\nlast\n", "y".repeat(usize::try_from(BYTES).unwrap()))).unwrap();
        assert_eq!(history.load().unwrap(), ["last"]);
        assert_eq!(fs::read_to_string(&history.path).unwrap(), "last\n");
    }
}
