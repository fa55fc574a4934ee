//! A dump from standard input: `kubectl exec POD -- cat core | gcdump stat -`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::exit::UsageError;
use super::write::Workshop;
use crate::base::cancel;
use crate::dump::DumpError;

/// Number of bytes to read at a time.
const BUFFER: usize = 1 << 20;

/// Name of the temporary file.
const NAME: &str = "stdin";

/// The contents of standard input, in a temporary file that only this user can access. Dropping the `Spool` removes the file.
pub(super) struct Spool {
    folder: Workshop,
}

impl Spool {
    /// Reads standard input to its end, up to `limit` bytes.
    ///
    /// # Errors
    /// [`UsageError`] for a terminal; errors of reading and writing.
    pub(super) fn of_standard_input(limit: u64) -> Result<Spool> {
        let input = io::stdin();
        if input.is_terminal() {
            return Err(UsageError(
                "the dump is read from standard input (-), which is a terminal: pipe a dump into it, or use ./- for a file named -".into(),
            )
            .into());
        }
        Spool::of(&mut input.lock(), limit)
    }

    fn of(input: &mut dyn Read, limit: u64) -> Result<Spool> {
        let temporary = std::env::temp_dir();
        let of_input = || PathBuf::from(super::line::STANDARD_INPUT);
        let no_file = |source| DumpError::not_written(of_input(), std::env::temp_dir(), 0, source);
        let folder = Workshop::beside(&temporary).map_err(no_file)?;
        let mut file = folder.create(Path::new(NAME)).map_err(no_file)?;
        let written = copy(input, &mut file, limit)?;
        if written == 0 {
            return Err(UsageError("standard input is empty: a dump was expected from there".into()).into());
        }
        Ok(Spool { folder })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }
}

/// Copies `input` to `file` and returns the number of bytes.
fn copy(input: &mut dyn Read, file: &mut File, limit: u64) -> Result<u64, DumpError> {
    let path = || PathBuf::from(super::line::STANDARD_INPUT);
    let mut buffer = vec![0u8; BUFFER];
    let mut written = 0u64;
    loop {
        cancel::check();
        let got = match input.read(&mut buffer) {
            Ok(0) => return Ok(written),
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(DumpError::Io { path: path(), source }),
        };
        let next = written.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
        if next > limit {
            return Err(DumpError::DecompressedTooLarge { path: path(), limit });
        }
        let failed = |source| DumpError::not_written(path(), std::env::temp_dir(), written, source);
        file.write_all(buffer.get(..got).unwrap_or(&[])).map_err(failed)?;
        written = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_limited_and_its_file_removed() {
        let spool = Spool::of(&mut &b"MDMP and more"[..], 100).unwrap();
        let path = spool.path();
        assert_eq!(std::fs::read(&path).unwrap(), b"MDMP and more");
        drop(spool);
        assert!(!path.exists() && !path.parent().unwrap().exists());
        let refused = Spool::of(&mut &b"MDMP and more"[..], 5).err().unwrap();
        assert!(matches!(refused.downcast_ref(), Some(DumpError::DecompressedTooLarge { limit: 5, .. })), "{refused}");
        assert!(Spool::of(&mut io::empty(), 5).is_err());
    }
}
