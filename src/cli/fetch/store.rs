//! gcdump's cache of module files: a private directory of bounded size, whose files are named by their identities.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::cli::cache::{is_private, make, module_cache};
use crate::cli::exit::UsageError;
use crate::cli::write::Draft;
use crate::memory::FileId;
use crate::output::bytes_exactly;

/// Maximum number of files examined.
const FILES: usize = 100_000;
/// Prefixes of file names, followed by hexadecimal digits.
const KINDS: [&str; 3] = ["elf-", "pe-", "pdb-"];

/// The directory of the cache.
#[derive(Debug)]
pub(in crate::cli) struct Store {
    path: PathBuf,
    /// Maximum total size of the files in bytes.
    most: u64,
}

impl Store {
    /// Opens the directory of this user, creating it if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created, or if other users have access to it.
    pub(in crate::cli) fn of_user(most: u64) -> Result<Store> {
        let path = module_cache().ok_or_else(|| UsageError("--fetch needs a folder for its cache: set HOME or XDG_CACHE_HOME".into()))?;
        match make(&path).and_then(|()| is_private(&path)) {
            Ok(true) => Ok(Store { path, most }),
            Ok(false) => {
                Err(UsageError(format!("other users have access to {}; the module cache must be private (chmod 700)", path.display()))
                    .into())
            }
            Err(e) => Err(UsageError(format!("cannot use the cache {}: {e}", path.display())).into()),
        }
    }

    /// Whether the cache has a file.
    pub(super) fn has(&self, id: &FileId) -> bool {
        self.path.join(id.cache_name()).is_file()
    }

    /// Creates a file that is removed unless it is kept.
    pub(super) fn draft(&self, id: &FileId) -> Result<Draft> {
        Draft::of(&self.path.join(id.cache_name()), false).with_context(|| format!("cannot write to {}", self.path.display()))
    }

    /// Creates a file that is never kept.
    pub(super) fn scratch(&self) -> Result<Draft> {
        Draft::of(&self.path.join("package"), false).with_context(|| format!("cannot write to {}", self.path.display()))
    }

    /// Keeps a draft of this size: it is renamed atomically, and the oldest files are removed to make room.
    ///
    /// # Errors
    /// If the file is larger than the cache may be, and if it cannot be written.
    pub(super) fn keep(&self, draft: Draft, bytes: u64) -> Result<()> {
        if bytes > self.most {
            bail!("the file has {}, and the cache may have {} in all (--cache-size)", bytes_exactly(bytes), bytes_exactly(self.most));
        }
        let context = || format!("writing to {}", self.path.display());
        self.make_room(bytes).with_context(context)?;
        draft.file().sync_all().and_then(|()| draft.finish(true)).with_context(context)
    }

    fn make_room(&self, more: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)?.take(FILES).flatten() {
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
            if metadata.is_file() && KINDS.iter().any(|kind| name.strip_prefix(kind).is_some_and(is_hex)) {
                files.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), name, metadata.len()));
            }
        }
        files.sort();
        let mut taken = files.iter().fold(more, |sum, (_, _, len)| sum.saturating_add(*len));
        for (_, name, len) in files {
            if taken <= self.most {
                break;
            }
            fs::remove_file(self.path.join(name))?;
            taken = taken.saturating_sub(len);
        }
        Ok(())
    }
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_the_cache_does_not_empty_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { path: folder.path().to_path_buf(), most: 1000 };
        let id = |build: u8| FileId::BuildId(vec![build; 20]);
        store.keep(store.draft(&id(1)).unwrap(), 900).unwrap();
        let why = store.keep(store.draft(&id(2)).unwrap(), 1001).unwrap_err().to_string();
        assert!(why.contains("1,001 bytes") && why.contains("--cache-size"), "{why}");
        assert_eq!((store.has(&id(1)), store.has(&id(2))), (true, false));
    }
}
