//! The dumps that the server may read, and the dumps that it keeps open.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use anyhow::Result;
use serde::Serialize;

use super::super::exit::UsageError;
use super::super::pick::opened_dump;
use super::beneath::{Found, Stamp};
use super::rpc::cut;
use crate::heapgraph::{IndexUse, OpenIndex, beside};
use crate::session::{Dump, OpenOptions};

/// Maximum number of dumps kept open, each with its graph if the graph was built.
const OPEN: usize = 4;
/// Maximum number of dumps to list.
const LISTED: usize = 200;
/// Maximum number of files and folders to inspect for the list.
const LOOKED_AT: usize = 20_000;
/// Maximum depth of folders below a root.
const DEPTH: usize = 8;

/// The dump files that the server may read: those in its folders, and the one that it was started with.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub(super) struct DumpList {
    /// The dump files, by path.
    dumps: Vec<ListedDump>,
    /// The dump for calls that name none; `null` if several dumps exist, or none.
    default: Option<String>,
    /// The folders that are searched, including their subfolders.
    roots: Vec<String>,
    /// Whether all dumps are listed. The number of listed dumps and of inspected files is limited.
    complete: bool,
}

/// A dump file.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
struct ListedDump {
    /// Its path, for the argument `dump`.
    path: String,
    /// Size of the file in bytes.
    bytes: u64,
    /// Whether it is compressed: opening takes longer.
    compressed: bool,
    /// Whether it is open, so that answers come at once.
    open: bool,
}

/// A dump that is open.
struct Open {
    path: PathBuf,
    /// The stamp of the file when it was opened: a replaced file is opened again.
    stamp: Stamp,
    dump: Dump,
}

/// The dumps of a server.
pub(super) struct Dumps {
    /// Folders with dumps, as canonical paths.
    roots: Vec<PathBuf>,
    /// The dump that the server was started with, as canonical path.
    own: Option<PathBuf>,
    options: OpenOptions,
    /// Open dumps, least recently used first.
    open: VecDeque<Open>,
}

impl Dumps {
    /// Creates the access to the dumps below `roots` and to the dump `own`.
    ///
    /// # Errors
    /// Roots that are not folders, and a dump that is not a file.
    pub(super) fn new(roots: &[PathBuf], own: Option<&Path>, options: OpenOptions) -> Result<Dumps, UsageError> {
        let cannot = |path: &Path, e| UsageError(format!("cannot read {}: {e}", path.display()));
        let root = |path: &PathBuf| match path.canonicalize() {
            Ok(root) if root.is_dir() => Ok(root),
            Ok(_) => Err(UsageError(format!("{} is not a folder", path.display()))),
            Err(e) => Err(cannot(path, e)),
        };
        let own = own.map(|path| path.canonicalize().map_err(|e| cannot(path, e)).and_then(|found| regular(&found))).transpose()?;
        Ok(Dumps { roots: roots.iter().map(root).collect::<Result<_, _>>()?, own, options, open: VecDeque::new() })
    }

    /// Closes all dumps.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// Formats the folders for a message.
    fn named(&self) -> String {
        match self.roots.as_slice() {
            [] => "the dump that the server was started with".into(),
            roots => roots.iter().map(|r| r.display().to_string()).collect::<Vec<_>>().join(", "),
        }
    }

    fn may_read(&self, path: &Path) -> bool {
        self.own.as_deref() == Some(path) || self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns the folder below which the dump at `path` may be read.
    fn root_of(&self, path: &Path) -> io::Result<&Path> {
        let own = self.own.as_deref().filter(|own| *own == path).and_then(Path::parent);
        let root = own.or_else(|| self.roots.iter().find(|root| path.starts_with(root)).map(PathBuf::as_path));
        root.ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    /// Opens the file at `path`, which contains no links and may be read.
    fn opened(&self, path: &Path) -> io::Result<Found> {
        Found::open(self.root_of(path)?, path)
    }

    /// Opens the file that `given` names by an absolute path or a path relative to a root; `None` opens the default dump. Returns the open file,
    /// because its path may refer to another file later.
    ///
    /// # Errors
    /// Files that may not be read, and everything other than regular files.
    pub(super) fn find(&self, given: Option<&str>) -> Result<Found, UsageError> {
        let cannot = |path: &Path, e: io::Error| UsageError(format!("cannot read {}: {e}", cut(&path.display().to_string())));
        let Some(given) = given else {
            let path = self.default()?;
            return self.opened(&path).map_err(|e| cannot(&path, e));
        };
        let path = Path::new(given);
        // The dump with which the server was started can be named by its file name.
        let own = self.own.iter().filter(|own| own.as_path() == path || own.file_name() == Some(path.as_os_str())).cloned();
        let places = self.roots.iter().map(|root| root.join(path));
        let mut outside = path.is_absolute() || path.components().any(|c| c == Component::ParentDir);
        for place in own.chain(places) {
            // Links are resolved first, and the target is checked. After the check, links are not followed.
            match place.canonicalize() {
                Ok(found) if self.may_read(&found) => match self.opened(&found) {
                    Ok(found) => return Ok(found),
                    Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                        return Err(UsageError(format!("{} is not a regular file", cut(&found.display().to_string()))));
                    }
                    // A link has appeared since the check, or the file was removed.
                    Err(e) if e.kind() == io::ErrorKind::NotADirectory => outside = true,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => outside = false,
                    Err(e) => return Err(cannot(&found, e)),
                },
                Ok(_) => outside = true,
                Err(_) => outside &= !self.may_read(&place) || place.components().any(|c| c == Component::ParentDir),
            }
        }
        // Outside the roots, existing and missing files give the same message, which reveals nothing about other files.
        let given = cut(given);
        Err(UsageError(match outside {
            true => format!("{given} is outside of what this server may read: {}", self.named()),
            false => format!("there is no file {given} in {}: the tool dumps lists the dumps", self.named()),
        }))
    }

    fn default(&self) -> Result<PathBuf, UsageError> {
        if let Some(own) = &self.own {
            return Ok(own.clone());
        }
        let (found, _) = self.all();
        match found.as_slice() {
            [only] => Ok(only.path.clone()),
            [] => Err(UsageError(format!("there is no dump in {}", self.named()))),
            many => {
                let mut text = format!("there are {} dumps: name one as dump:", many.len());
                for dump in many.iter().take(20) {
                    text.push_str(&format!("\n  {}", dump.path.display()));
                }
                Err(UsageError(text))
            }
        }
    }

    /// Opens the dump in a file that [`Dumps::find`] opened.
    ///
    /// # Errors
    /// See [`Dump::open`].
    pub(super) fn open(&mut self, found: &Found) -> Result<Dump> {
        let kept = self.open.iter().position(|open| open.path == found.path).and_then(|at| self.open.remove(at));
        let open = match kept.filter(|open| open.stamp == found.stamp()) {
            Some(open) => open,
            None => {
                let options = OpenOptions { index: self.index_of(&found.path), ..self.options.clone() };
                let dump = Dump::open_file(&found.file, &found.path, &options)?;
                Open { path: found.path.clone(), stamp: found.stamp(), dump }
            }
        };
        let dump = open.dump.clone();
        self.open.push_back(open);
        if self.open.len() > OPEN {
            self.open.pop_front();
        }
        Ok(dump)
    }

    /// Returns the index of the dump at `path`. An index next to the dump is opened with the same checks as the dump.
    fn index_of(&self, path: &Path) -> IndexUse {
        match &self.options.index {
            IndexUse::Auto => match self.root_of(path).and_then(|root| Found::open(root, &beside(path))) {
                Ok(index) => IndexUse::Open(OpenIndex(Arc::new(index.file))),
                Err(_) => IndexUse::None,
            },
            asked => asked.clone(),
        }
    }

    /// Returns the dumps that may be read.
    pub(super) fn list(&self) -> DumpList {
        let (found, complete) = self.all();
        let listed = |dump: &Seen| {
            Some(ListedDump {
                path: dump.path.to_str()?.into(),
                bytes: dump.bytes,
                compressed: dump.compressed,
                open: self.open.iter().any(|open| open.path == dump.path),
            })
        };
        let text = |path: &PathBuf| path.display().to_string();
        let default = self.own.as_ref().or(match found.as_slice() {
            [only] => Some(&only.path),
            _ => None,
        });
        DumpList {
            default: default.map(text),
            roots: self.roots.iter().map(text).collect(),
            complete: complete && found.len() <= LISTED,
            dumps: found.iter().take(LISTED).filter_map(listed).collect(),
        }
    }

    /// Returns the dumps that may be read, in order, and whether the list is complete.
    fn all(&self) -> (Vec<Seen>, bool) {
        let seen = |path: PathBuf, is_named: bool| {
            let found = self.opened(&path).ok()?;
            let dump = opened_dump(&found.file, &path);
            (dump.is_some() || is_named).then(|| Seen { bytes: found.len(), compressed: dump.unwrap_or(false), path })
        };
        let mut found: Vec<Seen> = self.own.iter().filter_map(|own| seen(own.clone(), true)).collect();
        let mut folders: VecDeque<(PathBuf, usize)> = self.roots.iter().map(|root| (root.clone(), 0)).collect();
        let (mut left, mut complete) = (LOOKED_AT, true);
        while let Some((folder, depth)) = folders.pop_front() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.filter_map(Result::ok) {
                if left == 0 {
                    complete = false;
                    break;
                }
                left = left.saturating_sub(1);
                let path = entry.path();
                // Links to folders are not followed, because they may form cycles.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < DEPTH => folders.push_back((path, depth.saturating_add(1))),
                    Ok(kind) if kind.is_dir() => complete = false,
                    Ok(_) => found.extend(path.canonicalize().ok().filter(|p| self.may_read(p)).and_then(|p| seen(p, false))),
                    Err(_) => {}
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        (found, complete)
    }
}

/// A dump file that was inspected.
struct Seen {
    path: PathBuf,
    bytes: u64,
    compressed: bool,
}

/// Checks that `path` is a regular file, because pipes and devices have no end.
fn regular(path: &Path) -> Result<PathBuf, UsageError> {
    match path.metadata() {
        Ok(m) if m.is_file() => Ok(path.into()),
        Ok(_) => Err(UsageError(format!("{} is not a regular file", path.display()))),
        Err(e) => Err(UsageError(format!("cannot read {}: {e}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumps(root: &Path, own: Option<&Path>) -> Dumps {
        Dumps::new(&[root.to_path_buf()], own, OpenOptions::default()).unwrap()
    }

    fn place(known: &Dumps, given: Option<&str>) -> Result<PathBuf, String> {
        known.find(given).map(|found| found.path).map_err(|e| e.0)
    }

    const MINIDUMP: &[u8] = b"MDMP\x93\xa7\0\0 and some more bytes to be long enough for a header";

    #[test]
    fn only_files_below_the_roots_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let root = folder.join("root");
        fs::create_dir_all(root.join("deep/er")).unwrap();
        for path in ["secret.dmp", "root/a.dmp", "root/deep/er/b.dmp"] {
            fs::write(folder.join(path), MINIDUMP).unwrap();
        }
        let known = dumps(&root, None);
        for (given, found) in [
            ("a.dmp", "root/a.dmp"),
            ("deep/er/b.dmp", "root/deep/er/b.dmp"),
            ("deep/../a.dmp", "root/a.dmp"),
            (root.join("a.dmp").to_str().unwrap(), "root/a.dmp"),
        ] {
            assert_eq!(place(&known, Some(given)), Ok(folder.join(found)), "{given}");
        }
        let why = |given: &str| place(&known, Some(given)).unwrap_err();
        for given in ["../secret.dmp", "../nothing.dmp", "deep/../../secret.dmp", "/etc/passwd", "/etc/no/such/file"] {
            assert_eq!(why(given), format!("{given} is outside of what this server may read: {}", root.display()));
        }
        assert!(why("nothing.dmp").starts_with("there is no file nothing.dmp in "), "{}", why("nothing.dmp"));
        assert!(why("deep").ends_with("is not a regular file"));
        assert!(place(&known, None).unwrap_err().starts_with("there are 2 dumps"));
        // The dump given at startup may be outside the roots.
        let with = dumps(&root, Some(&folder.join("secret.dmp")));
        for given in [None, Some("secret.dmp"), folder.join("secret.dmp").to_str()] {
            assert_eq!(place(&with, given), Ok(folder.join("secret.dmp")), "{given:?}");
        }
        assert!(with.find(Some("../secret.dmp")).is_ok(), "by whatever way");
        assert!(with.find(Some("/etc/passwd")).is_err());
        let list = with.list();
        assert_eq!((list.dumps.len(), list.complete, list.default.as_deref()), (3, true, folder.join("secret.dmp").to_str()));
        // Without roots, only the dump is readable.
        let alone = Dumps::new(&[], Some(&folder.join("secret.dmp")), OpenOptions::default()).unwrap();
        assert!(alone.find(None).is_ok() && alone.find(Some(root.join("a.dmp").to_str().unwrap())).is_err());
        assert!(Dumps::new(&[folder.join("secret.dmp")], None, OpenOptions::default()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_roots_and_non_files_are_refused() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (root, other) = (folder.join("root"), folder.join("other"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("secret.dmp"), MINIDUMP).unwrap();
        fs::write(root.join("a.dmp"), MINIDUMP).unwrap();
        symlink(other.join("secret.dmp"), root.join("link.dmp")).unwrap();
        symlink(&other, root.join("folder")).unwrap();
        symlink(root.join("a.dmp"), root.join("inside.dmp")).unwrap();
        symlink("/dev/zero", root.join("zero.dmp")).unwrap();
        let known = dumps(&root, None);
        for given in ["link.dmp", "folder/secret.dmp", "folder/../secret.dmp", "zero.dmp"] {
            assert!(place(&known, Some(given)).unwrap_err().contains("outside of what this server may read"), "{given}");
        }
        assert_eq!(place(&known, Some("inside.dmp")), Ok(root.join("a.dmp")));
        assert_eq!(known.list().dumps.iter().map(|d| d.path.as_str()).collect::<Vec<_>>(), [root.join("a.dmp").to_str().unwrap()]);
        let zero = Dumps::new(&[], Some(Path::new("/dev/zero")), OpenOptions::default()).err().unwrap();
        assert_eq!(zero.0, "/dev/zero is not a regular file");
    }
}
