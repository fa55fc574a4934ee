//! The cache of decompressed dumps (`--cache`).
//!
//! An entry is a file named after the BLAKE3 hash of the compressed dump, so that another dump, even a forged one, cannot be mistaken for this dump.
//! A stamp file next to the entry has the length and times of the entry and a hash of samples. Changing an entry changes its times, so a change is
//! detected without reading the whole entry, which would take as long as decompressing. The modification time of the stamp file is the time of the
//! last use.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::exit::UsageError;
use super::write::Draft;
use crate::base::at_even_distances;
use crate::dump::{Cache, CacheDraft, Found, regular};

/// Cache chosen with `--cache`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheArg {
    /// No cache.
    Off,
    /// The cache folder of the current user.
    Auto,
    /// The given folder.
    Folder(PathBuf),
}

impl From<OsString> for CacheArg {
    fn from(given: OsString) -> CacheArg {
        match given.to_str() {
            Some("" | "off") => CacheArg::Off,
            Some("auto") => CacheArg::Auto,
            _ => CacheArg::Folder(given.into()),
        }
    }
}

/// Prefix of draft files, the same as for other output files.
const DRAFT: &str = ".gcdump-";
/// Extension of stamp files.
const STAMP: &str = "stamp";
/// Age after which a draft is considered abandoned by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Bytes per sample, and number of samples.
const PIECE: u64 = 4096;
const PIECES: u64 = 64;
/// Maximum size of a stamp in bytes.
const LONGEST: u64 = 1024;
/// Maximum number of files of the folder to inspect.
const FILES: usize = 100_000;

/// A folder with decompressed dumps.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Maximum total size of the entries in bytes.
    most: u64,
}

impl Folder {
    /// Opens the requested folder and creates it if it does not exist. `most` is the maximum total size of the entries in bytes.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or is accessible to other users.
    pub(super) fn of(asked: &CacheArg, most: u64) -> Result<Option<Folder>, UsageError> {
        let path = match asked {
            CacheArg::Off => return Ok(None),
            CacheArg::Folder(path) => path.clone(),
            CacheArg::Auto => of_user().ok_or_else(|| UsageError("--cache auto: there is no home folder; name one".into()))?,
        };
        let made = make(&path).and_then(|()| is_private(&path));
        match made {
            Ok(true) => Ok(Some(Folder { path, most })),
            Ok(false) => Err(UsageError(format!("other users have access to {}; the cache must be private (chmod 700)", path.display()))),
            Err(e) => Err(UsageError(format!("cannot use the cache {}: {e}", path.display()))),
        }
    }

    /// Opens the entry with this name if it matches its stamp.
    fn entry(&self, name: &str) -> Option<File> {
        let mut file = regular(&self.path.join(name)).ok()?;
        let stamp = self.stamp(name);
        let mut text = String::new();
        let kept = regular(&stamp).and_then(|f| f.take(LONGEST).read_to_string(&mut text));
        if kept.is_err() || Some(text) != stamp_of(&mut file).ok() {
            self.remove(name);
            return None;
        }
        file.rewind().ok()?;
        // Records the use. If this fails, the entry may be evicted earlier.
        let _ = File::options().write(true).open(&stamp).and_then(|f| f.set_modified(SystemTime::now()));
        Some(file)
    }

    fn stamp(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension(STAMP)
    }

    /// Removes an entry. Processes that have it open can still read it.
    fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.stamp(name));
        let _ = fs::remove_file(self.path.join(name));
    }

    /// Evicts the least recently used entries until `more` bytes fit. Returns whether they fit.
    fn make_room(&self, more: u64) -> bool {
        let Some(room) = self.most.checked_sub(more) else { return false };
        let mut entries: Vec<(SystemTime, String, u64)> = Vec::new();
        for file in fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok).take(FILES) {
            let (Ok(name), Ok(metadata)) = (file.file_name().into_string(), file.metadata()) else { continue };
            if name.starts_with(DRAFT) && metadata.modified().is_ok_and(|t| t.elapsed().is_ok_and(|age| age > ABANDONED)) {
                let _ = fs::remove_file(file.path());
            } else if is_key(&name) {
                let used = fs::metadata(self.stamp(&name)).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push((used, name, metadata.len()));
            }
        }
        entries.sort();
        let mut taken = entries.iter().fold(0u64, |sum, (_, _, len)| sum.saturating_add(*len));
        for (_, name, len) in entries {
            if taken <= room {
                break;
            }
            self.remove(&name);
            taken = taken.saturating_sub(len);
        }
        taken <= room
    }
}

impl Cache for Folder {
    fn find(&self, compressed: &[u8]) -> Found {
        let name = key(compressed);
        if let Some(file) = self.entry(&name) {
            return Found::Kept(file);
        }
        match Draft::of(&self.path.join(&name), false) {
            Ok(draft) => Found::New(Box::new(New { folder: self.clone(), name, draft })),
            Err(_) => Found::None,
        }
    }
}

/// An entry being written.
struct New {
    folder: Folder,
    name: String,
    draft: Draft,
}

impl std::fmt::Debug for New {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("New").field("name", &self.name).finish_non_exhaustive()
    }
}

impl New {
    fn finish(self) -> io::Result<()> {
        let New { folder, name, draft } = self;
        let mut file = draft.file().try_clone()?;
        if !folder.make_room(file.metadata()?.len()) {
            return Ok(());
        }
        // Protects the entry from accidental writes. Windows is excluded, because it does not delete read-only files.
        #[cfg(unix)]
        {
            let mut permissions = file.metadata()?.permissions();
            permissions.set_readonly(true);
            file.set_permissions(permissions)?;
        }
        // Sets the modification time, because Windows otherwise updates it lazily.
        #[cfg(not(unix))]
        file.set_modified(SystemTime::now())?;
        // If another process has written the entry first, the file and the stamp of that process are kept.
        draft.finish(false)?;
        let text = stamp_of(&mut file)?;
        let stamp = Draft::of(&folder.stamp(&name), false)?;
        let mut out = stamp.file();
        out.write_all(text.as_bytes())?;
        stamp.finish(true)
    }
}

impl CacheDraft for New {
    fn file(&self) -> &File {
        self.draft.file()
    }

    fn reader(&self) -> io::Result<File> {
        regular(self.draft.path())
    }

    fn folder(&self) -> PathBuf {
        self.folder.path.clone()
    }

    fn keep(self: Box<Self>) {
        let (folder, name) = (self.folder.clone(), self.name.clone());
        // An entry that cannot be kept is decompressed again next time.
        if self.finish().is_err_and(|e| e.kind() != io::ErrorKind::AlreadyExists) {
            folder.remove(&name);
        }
    }
}

/// Returns the entry name for a compressed dump.
fn key(compressed: &[u8]) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update_rayon(compressed);
    hash.finalize().to_hex().to_string()
}

fn is_key(name: &str) -> bool {
    name.len() == blake3::OUT_LEN.saturating_mul(2) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Computes the stamp of a file: its length, its times, and a hash of samples at even distances.
fn stamp_of(file: &mut File) -> io::Result<String> {
    let metadata = file.metadata()?;
    let len = metadata.len();
    let mut hash = blake3::Hasher::new();
    for at in at_even_distances(len, PIECE, PIECES) {
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        io::Read::by_ref(file).take(PIECE).read_to_end(&mut bytes)?;
        hash.update(&bytes);
    }
    let mut text = format!("1 {len}");
    for time in times(&metadata)? {
        let _ = write!(text, " {time}");
    }
    let _ = write!(text, " {}", hash.finalize());
    Ok(text)
}

/// Returns the modification time and, on Unix, the inode change time.
#[cfg(unix)]
fn times(metadata: &Metadata) -> io::Result<[i64; 4]> {
    use std::os::unix::fs::MetadataExt;
    Ok([metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()])
}

#[cfg(not(unix))]
fn times(metadata: &Metadata) -> io::Result<[u128; 1]> {
    let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    Ok([since.map_err(io::Error::other)?.as_nanos()])
}

/// Returns the cache folder of the user: `gcdump` in `$XDG_CACHE_HOME`, else in `~/.cache`; on macOS in `~/Library/Caches`, on Windows in
/// `%LOCALAPPDATA%`.
fn of_user() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let usual = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let caches =
        if cfg!(windows) { folder("LOCALAPPDATA") } else { folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(usual))) };
    Some(caches?.join("gcdump"))
}

/// Returns the user's folder of module files, which `gcdump modules --fetch` fills.
pub(super) fn module_cache() -> Option<PathBuf> {
    Some(of_user()?.join("modules"))
}

/// Creates a folder that only its owner can access.
pub(super) fn make(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether a folder belongs to the current user and no other user can access it.
pub(super) fn is_private(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = tempfile::tempfile_in(path)?.metadata()?.uid();
        Ok(metadata.mode() & 0o077 == 0 && metadata.uid() == own)
    }
    #[cfg(not(unix))]
    Ok(true)
}
