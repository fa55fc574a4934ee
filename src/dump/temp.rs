//! Large arrays in memory-mapped temporary files, whose pages the system can write back to the disk when memory is short.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use memmap2::MmapMut;

use super::mapping::map_own;
use crate::base::cancel::check;
use crate::base::{Files, NoRoom, Region};

/// Makes temporary files in the system's folder for such files (`TMPDIR`). The files have no name, so they are deleted however the process ends.
#[derive(Debug)]
pub struct TempFiles {
    folder: PathBuf,
}

impl TempFiles {
    /// Uses the folder `TMPDIR` or, if it is not set, the system's folder for temporary files.
    pub fn new() -> TempFiles {
        TempFiles { folder: std::env::temp_dir() }
    }
}

impl Default for TempFiles {
    fn default() -> TempFiles {
        TempFiles::new()
    }
}

impl Files for TempFiles {
    fn region(&self) -> Result<Box<dyn Region>, NoRoom> {
        let failed = |source| no_room(&self.folder, 0, source);
        let file = tempfile::tempfile_in(&self.folder).map_err(|e| failed(reason(e)))?;
        Ok(Box::new(TempFile { map: None, file, len: 0, folder: self.folder.clone() }))
    }
}

/// Removes the random name of the file from an error of the `tempfile` crate.
pub(crate) fn reason(e: io::Error) -> io::Error {
    let text = e.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(e.kind(), reason),
        None => e,
    }
}

fn no_room(folder: &std::path::Path, bytes: u64, source: io::Error) -> NoRoom {
    NoRoom { folder: folder.to_owned(), bytes, source: Arc::new(source) }
}

#[derive(Debug)]
struct TempFile {
    /// `None` while the file is empty.
    map: Option<MmapMut>,
    file: File,
    len: u64,
    folder: PathBuf,
}

impl Region for TempFile {
    fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }

    fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let len = u64::try_from(bytes).unwrap_or(u64::MAX);
        // The mapping is removed first, because Windows cannot grow a mapped file.
        self.map = None;
        let mapped = allocate(&mut self.file, self.len, len).and_then(|()| map_own(&self.file));
        self.map = Some(mapped.map_err(|source| no_room(&self.folder, len, source))?);
        self.len = len;
        Ok(())
    }
}

/// Grows a file from `from` to `to` bytes, and allocates disk blocks for the new part: see [`map_own`].
fn allocate(file: &mut File, from: u64, to: u64) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    loop {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&*file, FallocateFlags::empty(), from, to.saturating_sub(from)) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => check(),
            // The file system does not support `fallocate`.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(e) => return Err(e.into()),
        }
    }
    write_zeros(file, from, to)
}

/// Allocates blocks by writing zeros, which works on every file system.
fn write_zeros(file: &mut File, from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    file.seek(SeekFrom::Start(from))?;
    let mut left = to.saturating_sub(from);
    while left > 0 {
        check();
        let now = usize::try_from(left).unwrap_or(ZEROS.len()).min(ZEROS.len());
        file.write_all(ZEROS.get(..now).unwrap_or_default())?;
        left = left.saturating_sub(u64::try_from(now).unwrap_or(left));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Buffer, Packing, Store};

    fn files() -> Store {
        Store::in_files(Arc::new(TempFiles::new()))
    }

    #[test]
    fn written_bytes_are_read_back() {
        const ITEMS: u32 = 100_000;
        let mut pushed = Buffer::new(&files());
        (0..ITEMS).for_each(|n| pushed.push(n));
        pushed.extend_from_slice(&[7, 8]);
        let mut zeroed = Buffer::<u32>::zeroed(&files(), ITEMS as usize + 10);
        assert!(zeroed.iter().all(|n| *n == 0));
        zeroed.iter_mut().zip(0..).for_each(|(to, n)| *to = n);
        zeroed.truncate(ITEMS as usize);
        assert!(pushed.iter().copied().eq((0..ITEMS).chain([7, 8])));
        assert!(pushed.freeze().iter().copied().eq((0..ITEMS).chain([7, 8])));
        assert!(zeroed.freeze().iter().copied().eq(0..ITEMS));
    }

    #[test]
    fn numbers_are_packed_in_files() {
        let mut packing = crate::base::Packing::<u8>::zeroed(&files(), 100_000);
        (0..100_000u32).rev().for_each(|n| packing.put(n, u64::from(n) << 20));
        assert!(packing.finish().iter().eq((0..100_000u64).map(|n| n << 20)));
        let mut packing = Packing::<u16>::zeroed(&files(), 0);
        (0..100_000u64).for_each(|n| packing.push(n));
        assert!(packing.finish().iter().eq(0..100_000));
    }

    #[test]
    fn blocks_are_allocated_by_writing_zeros() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"kept").unwrap();
        write_zeros(&mut file, 4, 200_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 200_000);
        let map = map_own(&file).unwrap();
        assert!(map.starts_with(b"kept\0\0") && map[4..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_missing_folder_has_no_room() {
        let nowhere = TempFiles { folder: "/nowhere/at/all".into() };
        let store = Store::in_files(Arc::new(nowhere));
        let full = crate::base::store::caught(|| Buffer::<u64>::zeroed(&store, 1 << 20).len()).unwrap_err();
        assert!(full.to_string().contains("/nowhere/at/all"), "{full}");
    }
}
