//! Decompresses dumps into an unlinked temporary file or into a file of a cache, and maps the result.

use std::cell::Cell;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "cli")]
use super::sniff::{FileKind, SNIFF_BYTES, sniff};
use super::temp::reason;
use super::{Bytes, Compression, DumpError, OpenOptions};
use crate::base::{Progress, cancel, len64, plural, thousands};

/// Keeps decompressed dumps for later openings of the same file.
pub trait Cache: Debug + Send + Sync {
    /// Looks up the decompressed dump for the contents of a compressed file.
    fn find(&self, compressed: &[u8]) -> Found;
}

/// The result of a look-up in a [`Cache`].
#[derive(Debug)]
pub enum Found {
    /// The file with the decompressed dump.
    Kept(File),
    /// The cache does not have the dump yet. The caller writes the decompressed dump into this draft, and the cache keeps the draft.
    New(Box<dyn Draft>),
    /// The cache does not have the dump and will not keep it.
    None,
}

/// A file of a cache into which a dump is decompressed. The cache keeps it only after [`Draft::keep`].
pub trait Draft: Debug {
    /// The file, empty.
    fn file(&self) -> &File;

    /// Opens the same file for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    fn reader(&self) -> io::Result<File>;

    /// The folder of the file, for messages.
    fn folder(&self) -> PathBuf;

    /// Adds the file to the cache. Called when it contains the whole dump.
    fn keep(self: Box<Self>);
}

/// Size of the buffer for decompressed data, in bytes. When a decoder fails, the output that is still in this buffer is lost.
const BUFFER: usize = 128 << 10;
/// Maximum number of compressed bytes that a decoder is given at once. A reported offset of damage may be wrong by this number of bytes.
const INPUT: usize = 64 << 10;

/// The largest window that libzstd accepts: 2 GiB on 64-bit hosts, as `zstd --long=31` writes.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 64 { 31 } else { 30 };
/// The window that every decoder accepts by default, 128 MiB: all compression levels without `--long` need less.
const WINDOW: u64 = 128 << 20;
/// The largest window of the compression levels without `--ultra`. This window is accepted even if the memory limit is lower.
const SMALL_WINDOW: u64 = 8 << 20;
/// Bytes of window allowed for each compressed byte. Without this limit, a frame of a few bytes could require the largest window.
const WINDOW_FACTOR: u64 = 16;

/// The result of decompression.
#[derive(Debug)]
pub(super) struct Decompressed {
    /// The bytes, mapped.
    pub(super) bytes: Bytes,
    /// Damage that stopped decompression before the end of the file.
    pub(super) damage: Option<Damage>,
}

/// Damage of compressed data, or extra data after it.
#[derive(Debug)]
pub(super) struct Damage {
    pub(super) kind: DamageKind,
    /// A sentence without its full stop. It includes the offset of the damage.
    pub(super) text: String,
    /// The decoder's error.
    source: io::Error,
}

/// Kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DamageKind {
    /// The file ends early. The data decompressed so far is correct.
    Cut,
    /// Bytes are wrong. Decompressed data before the point of detection may be wrong as well.
    Wrong,
    /// The compressed data has ended, and other data follows.
    Trailing,
}

impl Damage {
    /// Damage that the decoder found at byte `at` of the file, after the decoder had returned `written` bytes.
    fn new(source: io::Error, format: Compression, at: u64, written: u64) -> Damage {
        let (name, cause, at_text) = (format.name(), source.to_string(), thousands(at));
        // These error names come from zstd and flate2.
        let no_header = cause == "Unknown frame descriptor" || cause == "invalid gzip header";
        let (kind, text) = if source.kind() == io::ErrorKind::UnexpectedEof {
            (DamageKind::Cut, format!("the {name} data ends early, with the file at byte {at_text}"))
        } else if no_header && written > 0 {
            (DamageKind::Trailing, format!("the data after the {name} data, at byte {at_text} of the file, is not {name} data"))
        } else if cause.contains("checksum") {
            (DamageKind::Wrong, format!("the {name} data is damaged before byte {at_text} of the file: its checksum does not match"))
        } else {
            (DamageKind::Wrong, format!("the {name} data is damaged near byte {at_text} of the file ({cause})"))
        };
        Damage { kind, text, source }
    }

    /// The damage as an error, if too little was decompressed to open the dump.
    pub(super) fn into_error(self) -> io::Error {
        io::Error::new(self.source.kind(), self.text)
    }

    /// A sentence about the damage and the `bytes` bytes that were decompressed.
    pub(super) fn consequence(&self, bytes: u64) -> String {
        let bytes = plural(bytes, "byte");
        match self.kind {
            DamageKind::Cut => format!("{}; {bytes} were decompressed", self.text),
            DamageKind::Wrong => format!("{}; {bytes} were decompressed, and some of them may be wrong", self.text),
            DamageKind::Trailing => format!("{}, and is ignored; {bytes} were decompressed", self.text),
        }
    }
}

/// Decompresses `compressed`, the contents of `path`, into a temporary file in `TMPDIR`, or takes the result from the cache.
pub(super) fn decompress(compressed: &[u8], format: Compression, path: &Path, options: &OpenOptions) -> Result<Decompressed, DumpError> {
    let limit = options.limits.decompressed_bytes;
    let too_large = || DumpError::DecompressedTooLarge { path: path.to_owned(), limit };
    if declared_size(compressed, format).is_some_and(|size| size > limit) {
        return Err(too_large());
    }
    let mut draft = None;
    match options.cache.as_ref().map_or(Found::None, |cache| cache.find(compressed)) {
        Found::Kept(file) => {
            let bytes = Bytes::map_file(&file).map_err(|source| DumpError::Io { path: path.to_owned(), source })?;
            let fits = u64::try_from(bytes.len()).is_ok_and(|len| len <= limit);
            return if fits { Ok(Decompressed { bytes, damage: None }) } else { Err(too_large()) };
        }
        Found::New(new) => draft = Some(new),
        Found::None => {}
    }
    let done = unpack(compressed, format, path, options, draft.as_deref())?;
    if let Some(draft) = draft.filter(|_| done.damage.is_none()) {
        draft.keep();
    }
    Ok(done)
}

fn unpack(
    compressed: &[u8],
    format: Compression,
    path: &Path,
    options: &OpenOptions,
    draft: Option<&dyn Draft>,
) -> Result<Decompressed, DumpError> {
    let limit = options.limits.decompressed_bytes;
    let progress = Reporting::start(options.progress.as_deref(), compressed.len());
    let allowed = u64::try_from(compressed.len()).unwrap_or(u64::MAX).saturating_mul(WINDOW_FACTOR).max(WINDOW);
    let window = options.limits.max_memory.map_or(allowed, |most| most.max(SMALL_WINDOW));
    let small = Decoding { compressed, format, path, progress: &progress, limit, draft, window_log: window.checked_ilog2().unwrap_or(0) };
    let first = small.run()?;
    if !first.damage.as_ref().is_some_and(|damage| wants_window(&damage.source)) {
        return Ok(first);
    }
    drop(first);
    // The second attempt accepts any window, because a small dump may declare a large window. The decoder needs no more memory for the window
    // than for the decompressed data, so a limit on the decompressed data limits the memory.
    let whole = Decoding { limit: window.min(limit), window_log: WINDOW_LOG_MAX, ..small }.run();
    whole.map_err(|e| match e {
        DumpError::DecompressedTooLarge { path, .. } if window < limit => DumpError::WindowTooLarge { path, limit: window },
        e => e,
    })
}

/// Whether the decoder stopped at a frame whose window is larger than allowed (an error message of libzstd).
fn wants_window(e: &io::Error) -> bool {
    e.to_string().contains("requires too much memory")
}

/// A decompression and its settings.
struct Decoding<'a> {
    compressed: &'a [u8],
    format: Compression,
    path: &'a Path,
    progress: &'a Reporting<'a>,
    /// Maximum number of bytes to write.
    limit: u64,
    /// The file to write to; `None` for a temporary file.
    draft: Option<&'a dyn Draft>,
    /// Base 2 logarithm of the largest window.
    window_log: u32,
}

impl Decoding<'_> {
    /// An empty file to write to.
    fn file(&self) -> io::Result<File> {
        let Some(draft) = self.draft else { return tempfile::tempfile().map_err(reason) };
        let mut file = draft.file().try_clone()?;
        // The file has data if this is the second attempt.
        file.set_len(0)?;
        file.rewind()?;
        Ok(file)
    }

    fn run(&self) -> Result<Decompressed, DumpError> {
        let done = Cell::new(0);
        let input = Counting { rest: self.compressed, done: &done, progress: self.progress };
        let broken = |source| DumpError::Decompress { path: self.path.to_owned(), source };
        let mut decoder: Box<dyn Read + '_> = match self.format {
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(broken)?;
                decoder.window_log_max(self.window_log.clamp(10, WINDOW_LOG_MAX)).map_err(broken)?;
                Box::new(decoder)
            }
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        };

        let mut written = 0u64;
        let out_failed = |source: io::Error, written: u64| {
            let directory = self.draft.map_or_else(std::env::temp_dir, Draft::folder);
            DumpError::not_written(self.path.to_owned(), directory, written, source)
        };
        let mut file = self.file().map_err(|e| out_failed(e, 0))?;
        let mut buffer = vec![0u8; BUFFER];
        let damage = loop {
            cancel::check();
            let got = match decoder.read(&mut buffer) {
                Ok(0) => break None,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => break Some(Damage::new(e, self.format, done.get(), written)),
            };
            let next = written.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
            if next > self.limit {
                return Err(DumpError::DecompressedTooLarge { path: self.path.to_owned(), limit: self.limit });
            }
            file.write_all(buffer.get(..got).unwrap_or(&[])).map_err(|e| out_failed(e, written))?;
            written = next;
        };
        // The draft is mapped through a read-only handle: on Windows, a mapping through a writable handle is writable, and Wine cannot rename
        // the file while such a mapping exists.
        let kept = self.draft.map(Draft::reader).transpose().map_err(|e| out_failed(e, written))?;
        let bytes = Bytes::map_file(kept.as_ref().unwrap_or(&file)).map_err(|e| out_failed(e, written))?;
        Ok(Decompressed { bytes, damage })
    }
}

/// Detects the format of the file inside a compressed file from its first bytes. `None` if they cannot be decompressed.
#[cfg(feature = "cli")]
pub(crate) fn sniff_inside(compressed: impl Read, format: Compression) -> Option<FileKind> {
    let mut first = Vec::new();
    let most = len64(SNIFF_BYTES);
    match format {
        Compression::Zstd => zstd::stream::read::Decoder::new(compressed).ok()?.take(most).read_to_end(&mut first),
        Compression::Gzip => flate2::read::MultiGzDecoder::new(compressed).take(most).read_to_end(&mut first),
    }
    .ok()?;
    Some(sniff(&first, len64(first.len())))
}

/// The decompressed size that the first zstd frame declares. Used to refuse an oversized dump before it fills the disk.
fn declared_size(compressed: &[u8], format: Compression) -> Option<u64> {
    match format {
        Compression::Zstd => zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten(),
        Compression::Gzip => None,
    }
}

/// Reports the end of decompression when dropped, also after errors and cancellation.
struct Reporting<'a>(Option<&'a dyn Progress>);

impl<'a> Reporting<'a> {
    fn start(progress: Option<&'a dyn Progress>, total: usize) -> Reporting<'a> {
        if let Some(progress) = progress {
            progress.start("decompressing", u64::try_from(total).ok());
        }
        Reporting(progress)
    }
}

impl Drop for Reporting<'_> {
    fn drop(&mut self) {
        if let Some(progress) = self.0 {
            progress.finish();
        }
    }
}

/// The compressed input. Reports how much of it was consumed.
struct Counting<'a> {
    rest: &'a [u8],
    done: &'a Cell<u64>,
    progress: &'a Reporting<'a>,
}

impl BufRead for Counting<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        cancel::check();
        Ok(self.rest.get(..INPUT).unwrap_or(self.rest))
    }

    fn consume(&mut self, amount: usize) {
        self.rest = self.rest.get(amount..).unwrap_or_default();
        self.done.set(self.done.get().saturating_add(len64(amount)));
        if let Some(progress) = self.progress.0.filter(|_| amount > 0) {
            progress.advance(self.done.get());
        }
    }
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.fill_buf()?.read(buffer)?;
        self.consume(got);
        Ok(got)
    }
}
