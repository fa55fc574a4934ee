//! The format of an index file: a head, arrays in native byte order that are aligned to 64 bytes each, and a description of the arrays as JSON.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use crate::base::{Array, Packed, len64};
use crate::dump::Bytes;
use crate::graph::{Offsets, Rows};

/// The first bytes of the file. The digits are the version of the format.
const MAGIC: &[u8; 16] = b"gcdump-index 03\n";
/// Bytes of the head: the magic, and the offset, length and checksum of the description.
const HEAD: usize = 40;
const ALIGNMENT: u64 = 64;
/// The longest description that is accepted, in bytes.
const LONGEST: u64 = 256 << 20;
/// Bytes that one checksum covers.
const CHUNK: u64 = 1 << 20;
/// Minimum number of chunks that are checked when a file is opened. If a file has fewer chunks, all are checked. At most twice this number of
/// chunks is checked. The last chunk is always checked, because truncation damages it.
const CHECKED: u64 = 8;

/// A checksum of bytes: like FNV-1a, but of eight bytes at a time and with a rotation. The checksum detects damage but not forgery, because anyone
/// can compute it.
pub fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    digest(words.iter().map(|word| u64::from_le_bytes(*word)).chain(rest.iter().map(|byte| u64::from(*byte))))
}

/// The checksum function over numbers instead of bytes.
pub(super) fn digest(numbers: impl Iterator<Item = u64>) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(PRIME).rotate_left(23))
}

/// Name and location of an array in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Section {
    name: String,
    offset: u64,
    bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Description<K> {
    sections: Vec<Section>,
    /// Checksums of the chunks between the head and the description.
    checksums: Vec<u64>,
    kept: K,
}

/// An index being written.
pub(super) struct Writer<'f> {
    file: BufWriter<&'f File>,
    at: u64,
    sections: Vec<Section>,
    /// The bytes already written of the current chunk.
    chunk: Vec<u8>,
    checksums: Vec<u64>,
}

impl<'f> Writer<'f> {
    pub(super) fn new(file: &'f File) -> io::Result<Writer<'f>> {
        let mut writer =
            Writer { file: BufWriter::with_capacity(1 << 20, file), at: 0, sections: Vec::new(), chunk: Vec::new(), checksums: Vec::new() };
        // Reserves space for the head, which is written last, so that an unfinished file is not a valid index.
        writer.file.write_all(&[0; HEAD])?;
        writer.at = len64(HEAD);
        Ok(writer)
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.at = self.at.saturating_add(len64(bytes.len()));
        while !bytes.is_empty() {
            let room = usize::try_from(CHUNK).unwrap_or(usize::MAX).saturating_sub(self.chunk.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if len64(self.chunk.len()) == CHUNK {
                self.end_chunk();
            }
        }
        Ok(())
    }

    fn end_chunk(&mut self) {
        self.checksums.push(checksum(&self.chunk));
        self.chunk.clear();
    }

    pub(super) fn put<T: Pod>(&mut self, name: &str, items: &[T]) -> io::Result<()> {
        let padding = self.at.next_multiple_of(ALIGNMENT).saturating_sub(self.at);
        self.write(&vec![0; usize::try_from(padding).unwrap_or(0)])?;
        let bytes: &[u8] = bytemuck::cast_slice(items);
        self.sections.push(Section { name: name.into(), offset: self.at, bytes: len64(bytes.len()) });
        self.write(bytes)
    }

    pub(super) fn put_rows(&mut self, name: &str, rows: &Rows) -> io::Result<()> {
        let (offsets, items) = rows.parts();
        let (blocks, long, count) = offsets.parts();
        self.put(&format!("{name}.blocks"), blocks)?;
        self.put(&format!("{name}.long"), long)?;
        self.put(&format!("{name}.count"), &[count])?;
        self.put(&format!("{name}.items"), items)
    }

    pub(super) fn put_packed<S: crate::base::Small>(&mut self, name: &str, packed: &Packed<S>) -> io::Result<()> {
        let (small, before, large) = packed.parts();
        self.put(&format!("{name}.small"), small)?;
        self.put(&format!("{name}.before"), before)?;
        self.put(&format!("{name}.large"), large)
    }

    /// Writes the description and the head. Returns the length of the file in bytes.
    pub(super) fn finish<K: Serialize>(mut self, kept: &K) -> io::Result<u64> {
        self.end_chunk();
        let description = Description { sections: self.sections, checksums: self.checksums, kept };
        let text = serde_json::to_vec(&description)?;
        self.file.write_all(&text)?;
        let (at, len) = (self.at, len64(text.len()));
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(MAGIC)?;
        for number in [at, len, checksum(&text)] {
            file.write_all(&number.to_le_bytes())?;
        }
        Ok(at.saturating_add(len))
    }
}

/// The reason why a file cannot be used as an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not an index, or has another version of the format.
    #[error("it is not an index of this version of gcdump")]
    Format,
    /// The file is damaged.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The index belongs to another dump, or was created with other options.
    #[error("it is of another dump, or was made with other options: {0}")]
    Other(String),
}

/// The arrays of an index.
#[derive(Debug)]
pub(super) struct Sections {
    bytes: Arc<Bytes>,
    list: Vec<Section>,
    checksums: Vec<u64>,
    /// Offset of the description.
    end: u64,
}

impl Sections {
    /// Opens an index file, and checks the description and a few chunks against their checksums.
    ///
    /// # Errors
    /// [`IndexError`] if the file is damaged or has another format, and on big-endian machines.
    pub(super) fn open<K: for<'d> Deserialize<'d>>(file: &File) -> Result<(Sections, K), IndexError> {
        if cfg!(target_endian = "big") {
            return Err(IndexError::Format);
        }
        let bytes = Arc::new(Bytes::map_file(file)?);
        let head = bytes.range(0, len64(HEAD)).and_then(|head| head.split_first_chunk::<16>()).ok_or(IndexError::Format)?;
        let (MAGIC, numbers) = head else { return Err(IndexError::Format) };
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let mut next = || numbers.next().unwrap_or(0);
        let (end, len, sum) = (next(), next(), next());
        let text = Some(len).filter(|len| *len <= LONGEST).and_then(|len| bytes.range(end, len));
        let text = text.filter(|text| checksum(text) == sum).ok_or_else(|| IndexError::Damaged("its description is cut off".into()))?;
        let description: Description<K> = serde_json::from_slice(text).map_err(|_| IndexError::Format)?;
        let sections = Sections { bytes, list: description.sections, checksums: description.checksums, end };
        let chunks = len64(sections.checksums.len());
        let step = (chunks / CHECKED).max(1);
        (0..chunks).rev().step_by(usize::try_from(step).unwrap_or(1)).try_for_each(|chunk| sections.check(chunk))?;
        Ok((sections, description.kept))
    }

    /// Checks all chunks against their checksums.
    pub(super) fn check_all(&self) -> Result<(), IndexError> {
        (0..len64(self.checksums.len())).try_for_each(|chunk| self.check(chunk))
    }

    fn check(&self, chunk: u64) -> Result<(), IndexError> {
        let start = chunk.saturating_mul(CHUNK).saturating_add(len64(HEAD));
        let bytes = self.bytes.range(start, self.end.saturating_sub(start).min(CHUNK));
        let expected = usize::try_from(chunk).ok().and_then(|i| self.checksums.get(i));
        match bytes.map(checksum).as_ref() == expected {
            true => Ok(()),
            false => Err(IndexError::Damaged(format!("its bytes from {start:#x} on were changed"))),
        }
    }

    pub(super) fn array<T: Pod + Send + Sync>(&self, name: &str) -> Result<Array<T>, IndexError> {
        let section = self.list.iter().find(|section| section.name == name);
        let range = section.and_then(|s| Some(usize::try_from(s.offset).ok()?..usize::try_from(s.offset.checked_add(s.bytes)?).ok()?));
        range
            .and_then(|range| Array::of_bytes(Arc::clone(&self.bytes), range))
            .ok_or_else(|| IndexError::Damaged(format!("it has no {name}")))
    }

    pub(super) fn rows(&self, name: &str) -> Result<Rows, IndexError> {
        let count: Array<u32> = self.array(&format!("{name}.count"))?;
        let (blocks, long) = (self.array(&format!("{name}.blocks"))?, self.array(&format!("{name}.long"))?);
        let offsets = Offsets::of_parts(blocks, long, count.first().copied().unwrap_or(0));
        Ok(Rows::of_parts(offsets, self.array(&format!("{name}.items"))?))
    }

    pub(super) fn packed<S: crate::base::Small>(&self, name: &str) -> Result<Packed<S>, IndexError> {
        let (small, before) = (self.array(&format!("{name}.small"))?, self.array(&format!("{name}.before"))?);
        Ok(Packed::of_parts(small, before, self.array(&format!("{name}.large"))?))
    }
}
