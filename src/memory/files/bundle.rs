//! Single-file programs: .NET's host followed by the files of the program, each plain or compressed.
//!
//! Source: the runtime's design document of the single-file bundler, and `corehost/bundle`. The data of the host contains the file offset of
//! the bundle's header, followed by a fixed mark. The header lists the files.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use flate2::read::DeflateDecoder;

use crate::base::hash::Map;
use crate::base::{file_name, len64};
use crate::dump::Bytes;

/// The mark after the offset of the header: the SHA-256 of ".net core bundle" and a line feed. Verified in the hosts of .NET 8, 10 and 11.
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
    0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
/// Number of bytes of a file that are searched for the mark. The largest hosts, which contain the runtime, have 12 to 70 MB.
const MAX_HOST: usize = 256 << 20;
/// Maximum number of occurrences of the mark that are tried. A program that contains a library for writing bundles has several.
const MAX_MARKS: usize = 16;
/// Major versions of the header: one for .NET 5, one for .NET 6 and later.
const NET5: u32 = 2;
const NET6: u32 = 6;
/// Cap on the number of files in a bundle. Programs with ASP.NET Core have 400 files, and each translation adds satellite assemblies.
const MAX_FILES: u32 = 1 << 14;
/// Cap on the length in bytes of a path in a bundle, and of the bundle's ID.
const MAX_TEXT: usize = 4096;
/// Cap on the ratio between a file's size and its compressed size. Assemblies have a ratio of two or three.
const MAX_RATIO: u64 = 64;
/// Cap on the total size in bytes of all files decompressed in a session. If the dump is larger, the size of the dump is the cap.
const MAX_UNPACKED: u64 = 256 << 20;

/// Why a file cannot be read as a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BundleError {
    /// The file has no mark, or the offset before the mark is 0, as in the host of a program whose files are separate.
    #[error("it is not a single-file program")]
    NotOne,
    /// The header has an unknown major version.
    #[error("it is a single-file program whose list of files has version {0}, which this gcdump does not know")]
    Version(u32),
    /// The header is corrupt, or the file is truncated.
    #[error("it is a single-file program whose list of files is corrupt or cut off")]
    Corrupt,
}

/// Why a file in a bundle cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BundledFileError {
    #[error("the single-file program with it cannot be read: {0}")]
    File(String),
    #[error("it lies outside of the single-file program that lists it")]
    Outside,
    #[error("it claims {MAX_RATIO} times its compressed size or more: no assembly compresses that well")]
    Ratio,
    #[error("it and the files unpacked before it would take too much memory")]
    Room,
    #[error("its compressed contents are corrupt")]
    Contents,
}

/// A file in a bundle.
#[derive(Debug)]
struct Entry {
    /// Offset in the bundle's file.
    offset: u64,
    /// Size of the file in bytes.
    size: u64,
    /// Compressed size in bytes; 0 if the file is not compressed.
    packed: u64,
    contents: OnceLock<Result<Arc<Bytes>, BundledFileError>>,
}

/// A single-file program.
#[derive(Debug)]
struct Bundle {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Entries by file name, in lower case.
    by_name: Map<String, Vec<usize>>,
}

/// The single-file programs that may contain files of a process. They are read when the first file is requested.
#[derive(Debug, Default)]
pub struct Bundles {
    paths: Vec<PathBuf>,
    /// Number of bytes that may still be decompressed.
    room: AtomicU64,
    read: OnceLock<Vec<Bundle>>,
}

/// Refers to a file in one of the `bundles`.
#[derive(Clone, Debug)]
pub(super) struct BundledFile {
    bundles: Arc<Bundles>,
    bundle: usize,
    entry: usize,
}

impl Bundles {
    /// The single-file programs among the files at `paths`, for a session whose dump has `dump` bytes. `most` is the user's memory limit in
    /// bytes.
    pub(super) fn new(paths: Vec<PathBuf>, dump: u64, most: Option<u64>) -> Bundles {
        let room = dump.max(MAX_UNPACKED).min(most.unwrap_or(u64::MAX));
        Bundles { paths, room: AtomicU64::new(room), read: OnceLock::new() }
    }

    fn read(&self) -> &[Bundle] {
        self.read.get_or_init(|| self.paths.iter().filter_map(|path| Bundle::open(path).ok()).collect())
    }

    /// The files called `name` in any folder of a bundle. Each has a path to show to the user: the path of the program, followed by `name`.
    pub(super) fn named(self: &Arc<Self>, name: &str) -> Vec<(PathBuf, BundledFile)> {
        let key = name.to_ascii_lowercase();
        let mut out = Vec::new();
        for (index, bundle) in self.read().iter().enumerate() {
            let entries = bundle.by_name.get(&key).into_iter().flatten();
            out.extend(
                entries.map(|entry| (bundle.path.join(name), BundledFile { bundles: Arc::clone(self), bundle: index, entry: *entry })),
            );
        }
        out
    }

    fn take(&self, bytes: u64) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

impl BundledFile {
    /// The contents of the file, which is unpacked only once.
    pub(super) fn open(&self) -> Result<Arc<Bytes>, BundledFileError> {
        let bundle = self.bundles.read().get(self.bundle).ok_or(BundledFileError::Outside)?;
        let entry = bundle.entries.get(self.entry).ok_or(BundledFileError::Outside)?;
        entry.contents.get_or_init(|| entry.read(&bundle.path, |bytes| self.bundles.take(bytes)).map(Arc::new)).clone()
    }
}

impl Entry {
    fn read(&self, path: &Path, afford: impl FnOnce(u64) -> bool) -> Result<Bytes, BundledFileError> {
        let len = if self.packed == 0 { self.size } else { self.packed };
        let bytes =
            Bytes::map_part(path, self.offset, len).map_err(|e| BundledFileError::File(e.to_string()))?.ok_or(BundledFileError::Outside)?;
        if self.packed == 0 {
            return Ok(bytes);
        }
        if self.size / MAX_RATIO >= self.packed {
            return Err(BundledFileError::Ratio);
        }
        if !afford(self.size) {
            return Err(BundledFileError::Room);
        }
        let mut out = Vec::with_capacity(usize::try_from(self.size).map_err(|_| BundledFileError::Room)?);
        // One byte more than the size is read, to detect a wrong size.
        let read = DeflateDecoder::new(&*bytes).take(self.size.saturating_add(1)).read_to_end(&mut out);
        match read {
            Ok(_) if len64(out.len()) == self.size => Ok(Bytes::Owned(out)),
            _ => Err(BundledFileError::Contents),
        }
    }
}

impl Bundle {
    fn open(path: &Path) -> Result<Bundle, BundleError> {
        Bundle::open_bytes(path, &Bytes::map_path(path).map_err(|_| BundleError::NotOne)?)
    }

    fn open_bytes(path: &Path, bytes: &[u8]) -> Result<Bundle, BundleError> {
        let host = bytes.get(..MAX_HOST).unwrap_or(bytes);
        let mut found = BundleError::NotOne;
        for at in memchr::memmem::find_iter(host, &MARK).take(MAX_MARKS) {
            let before = host.get(..at).and_then(<[u8]>::last_chunk::<8>);
            // The offset is 0 in a host without a bundle. The SDK sets the offset when it appends a bundle.
            let Some(offset) = before.map(|b| u64::from_le_bytes(*b)).filter(|offset| *offset != 0) else { continue };
            let header = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
            match Bundle::parse(path, header.unwrap_or_default()) {
                Ok(bundle) => return Ok(bundle),
                // The first mark is the host's own, so its error is kept.
                Err(why) if found == BundleError::NotOne => found = why,
                Err(_) => {}
            }
        }
        Err(found)
    }

    fn parse(path: &Path, mut header: &[u8]) -> Result<Bundle, BundleError> {
        let rest = &mut header;
        let version = number32(rest).ok_or(BundleError::Corrupt)?;
        let _minor = number32(rest);
        if ![NET5, NET6].contains(&version) {
            return Err(BundleError::Version(version));
        }
        let list = |rest: &mut &[u8]| {
            let count = number32(rest).filter(|n| *n <= MAX_FILES)?;
            let _id = text(rest)?;
            // Offset and size of `deps.json` and of `runtimeconfig.json`, and flags.
            for _ in 0..5 {
                number64(rest)?;
            }
            let mut bundle = Bundle { path: path.into(), entries: Vec::new(), by_name: Map::default() };
            for index in 0..usize::try_from(count).ok()? {
                let (offset, size) = (number64(rest)?, number64(rest)?);
                let packed = if version == NET5 { 0 } else { number64(rest)? };
                let (_kind, after) = rest.split_first()?;
                *rest = after;
                let name = text(rest)?;
                // Files are looked up by a UTF-8 name, so another name cannot match.
                if let Ok(name) = std::str::from_utf8(name) {
                    bundle.by_name.entry(file_name(name).to_ascii_lowercase()).or_default().push(index);
                }
                bundle.entries.push(Entry { offset, size, packed, contents: OnceLock::new() });
            }
            Some(bundle)
        };
        list(rest).ok_or(BundleError::Corrupt)
    }
}

/// Checks that the file at `path` is a readable single-file program.
///
/// # Errors
/// [`BundleError`] if it is not.
pub(crate) fn check(path: &Path) -> Result<(), BundleError> {
    Bundle::open(path).map(|_| ())
}

fn number32(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}

/// A 64-bit signed number; `None` if it is negative.
fn number64(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    u64::try_from(i64::from_le_bytes(*bytes)).ok()
}

/// A text with its length before it, in one or two bytes of seven bits each (`BinaryWriter.Write7BitEncodedInt`).
fn text<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (low, after) = rest.split_first()?;
    let (len, after) = match low & 0x80 {
        0 => (usize::from(*low), after),
        _ => {
            let (high, after) = after.split_first().filter(|(high, _)| **high < 0x80)?;
            (usize::from(low & 0x7f) | usize::from(*high) << 7, after)
        }
    };
    let (text, after) = after.split_at_checked(len).filter(|_| len <= MAX_TEXT)?;
    *rest = after;
    Some(text)
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
