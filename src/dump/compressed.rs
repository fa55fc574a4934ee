//! Compressed dumps: decompressed once into an unlinked temporary file, which is then mapped.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::{Bytes, Compression, DumpError, OpenOptions};
use crate::base::Progress;

/// I/O buffer size in bytes.
const BUFFER: usize = 1 << 20;

/// The largest window that libzstd accepts: 2 GiB on 64-bit hosts, as `zstd --long=31` writes. A frame that merely
/// declares such a window costs address space, not memory.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 64 { 31 } else { 30 };

/// The result of decompression.
#[derive(Debug)]
pub(super) struct Decompressed {
    /// The bytes, mapped.
    pub(super) bytes: Bytes,
    /// Error that stopped decompression early, if any.
    pub(super) damage: Option<io::Error>,
}

/// Decompresses `compressed`, the contents of `path`, into a temporary file in `TMPDIR`.
pub(super) fn decompress(compressed: &[u8], format: Compression, path: &Path, options: &OpenOptions) -> Result<Decompressed, DumpError> {
    let limit = options.limits.decompressed_bytes;
    let too_large = || DumpError::DecompressedTooLarge { path: path.to_owned(), limit };
    if declared_size(compressed, format).is_some_and(|size| size > limit) {
        return Err(too_large());
    }
    let progress = Reporting::start(options.progress.as_deref(), compressed.len());
    let input = BufReader::with_capacity(BUFFER, Counting { rest: compressed, done: 0, progress: &progress });
    let broken = |source| DumpError::Decompress { path: path.to_owned(), source };
    let mut decoder: Box<dyn Read + '_> = match format {
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(broken)?;
            decoder.window_log_max(WINDOW_LOG_MAX).map_err(broken)?;
            Box::new(decoder)
        }
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
    };

    let mut written = 0u64;
    let out_failed = |source: io::Error, written: u64| {
        let directory = std::env::temp_dir();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DumpError::NoSpace { path: path.to_owned(), directory, written, source }
            }
            _ => DumpError::Io { path: directory, source },
        }
    };
    let mut file = tempfile::tempfile().map_err(|e| out_failed(e, 0))?;
    let mut buffer = vec![0u8; BUFFER];
    let damage = loop {
        let got = match decoder.read(&mut buffer) {
            Ok(0) => break None,
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => break Some(e),
        };
        let next = written.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
        if next > limit {
            return Err(too_large());
        }
        file.write_all(buffer.get(..got).unwrap_or(&[])).map_err(|e| out_failed(e, written))?;
        written = next;
    };
    let bytes = Bytes::map_file(&file).map_err(|e| out_failed(e, written))?;
    Ok(Decompressed { bytes, damage })
}

/// Size declared by the first zstd frame. Allows refusing an oversized dump before it fills the disk.
fn declared_size(compressed: &[u8], format: Compression) -> Option<u64> {
    match format {
        Compression::Zstd => zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten(),
        Compression::Gzip => None,
    }
}

/// Reports `finish` on drop, however decompression ends.
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

/// A reader that reports how much compressed input was consumed.
struct Counting<'a> {
    rest: &'a [u8],
    done: u64,
    progress: &'a Reporting<'a>,
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.rest.read(buffer)?;
        self.done = self.done.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
        if let Some(progress) = self.progress.0 {
            progress.advance(self.done);
        }
        Ok(got)
    }
}
