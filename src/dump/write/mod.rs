//! Lays out trimmed dumps with a given set of memory ranges: produces headers and tables, not the memory itself.
//!
//! The trimmed dump has the container format of the original, and only the notes and streams that gcdump reads.

mod elf;
#[cfg(feature = "minidump")]
mod minidump;

use super::losses::Original;
use super::{CapturedRange, Container, DumpError, DumpFile};
use crate::base::{AddrRange, Endian, PtrSize, Shape};

/// Whether a register value is an address and may stay in a redacted dump. Other values may be parts of strings.
pub type RedactRegisters<'a> = &'a dyn Fn(u64) -> bool;

/// A dump ready to be written: the head, followed by the bytes of the ranges.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Headers, notes or streams, and range tables.
    pub head: Vec<u8>,
    /// The ranges, in the order in which their bytes follow the head, with their file offsets.
    pub ranges: Vec<CapturedRange>,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
}

/// Why a dump could not be laid out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The original dump could not be read.
    #[error(transparent)]
    Source(#[from] DumpError),
    /// Records of the original refer to the same bytes so often that copying each would take more than the size of the original.
    #[error("{0} overlap in the dump, so they are not copied; in a genuine dump they do not overlap")]
    Overlapping(&'static str),
    /// The new dump's tables would exceed the limits of the format.
    #[error("{0} do not fit into a dump of this format")]
    TooLarge(&'static str),
}

/// Limits of a container format on ranges of memory.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    /// Approximate size in bytes of a range's table entry. Including a shorter gap between two ranges takes less space than a second entry.
    pub entry_bytes: u64,
    /// The maximum number of ranges that other tools read.
    pub most: usize,
}

impl Ranges {
    /// The limits of `container`.
    pub fn of(container: Container) -> Ranges {
        match container {
            // Some readers do not support `PN_XNUM`, which is needed for more than 65,534 program headers.
            Container::ElfCore => Ranges { entry_bytes: 64, most: 60_000 },
            Container::Minidump | Container::Gcdump => Ranges { entry_bytes: 16, most: usize::MAX },
        }
    }
}

/// Lays out a dump with the memory `ranges` of `dump`, which must be sorted and disjoint. With `redact`, the dump is marked as redacted,
/// and thread names, the command line and registers are overwritten.
///
/// # Errors
/// Fails if the original's headers cannot be read again, or if the new tables exceed the limits of the format.
pub fn lay_out(dump: &DumpFile, ranges: &[AddrRange], redact: Option<RedactRegisters<'_>>) -> Result<Layout, WriteError> {
    match dump.facts.container {
        Container::Gcdump => Err(DumpError::NotADump { path: dump.facts.path.clone(), kind: super::FileKind::GcdumpTrace }.into()),
        Container::ElfCore => elf::lay_out(dump, ranges, redact),
        #[cfg(feature = "minidump")]
        Container::Minidump => minidump::lay_out(dump, ranges, redact),
        #[cfg(not(feature = "minidump"))]
        Container::Minidump => Err(DumpError::NotADump { path: dump.facts.path.clone(), kind: super::FileKind::Minidump }.into()),
    }
}

/// An output buffer in the byte order of the dump.
struct Out {
    bytes: Vec<u8>,
    endian: Endian,
}

impl Out {
    fn new(endian: Endian) -> Out {
        Out { bytes: Vec::new(), endian }
    }

    /// Offset of the next byte.
    fn at(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// Offset of the next byte, if it fits into 32 bits.
    fn at32(&self) -> Result<u32, WriteError> {
        u32::try_from(self.bytes.len()).map_err(|_| WriteError::TooLarge("its tables"))
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn u16(&mut self, n: u16) {
        let bytes = if self.endian == Endian::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        self.raw(&bytes);
    }

    fn u32(&mut self, n: u32) {
        let bytes = if self.endian == Endian::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        self.raw(&bytes);
    }

    fn u64(&mut self, n: u64) {
        let bytes = if self.endian == Endian::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        self.raw(&bytes);
    }

    fn word(&mut self, n: u64, size: PtrSize) -> Result<(), WriteError> {
        match size {
            PtrSize::Eight => self.u64(n),
            PtrSize::Four => self.u32(u32::try_from(n).map_err(|_| WriteError::TooLarge("addresses or offsets"))?),
        }
        Ok(())
    }

    /// Writes the losses of the original, as [`Original::read`] reads it.
    fn losses(&mut self, original: &Original) {
        original.numbers().into_iter().for_each(|n| self.u64(n));
        self.raw(&original.texts());
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    /// Overwrites the placeholder at `at`.
    fn patch(&mut self, at: u64, with: &[u8]) {
        let place = usize::try_from(at).ok().and_then(|at| self.bytes.get_mut(at..)).and_then(|p| p.get_mut(..with.len()));
        if let Some(place) = place {
            place.copy_from_slice(with);
        }
    }

    fn patch32(&mut self, at: u64, n: u32) {
        let bytes = if self.endian == Endian::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        self.patch(at, &bytes);
    }
}

/// Assigns contiguous file offsets to `ranges`, starting at `offset`. Also returns the end of the file.
fn place(ranges: &[AddrRange], offset: u64) -> (Vec<CapturedRange>, u64) {
    let mut at = offset;
    let placed = ranges.iter().map(|r| {
        let range = CapturedRange { start: r.start, len: r.len(), offset: at };
        at = at.saturating_add(r.len());
        range
    });
    let placed = placed.collect();
    (placed, at)
}

/// Whether a word that is not an address may stay in a redacted copy, because at most one of its bytes could be a character. Examples are frame
/// identifiers, counts, flags and list terminators.
pub fn has_no_text(word: u64) -> bool {
    word.to_le_bytes().into_iter().filter(|byte| (0x20..0xff).contains(byte)).count() <= 1
}

/// Zeroes `bytes` except for the parts in `keep`, given by offset and length.
fn blank_but(bytes: &mut [u8], keep: &[(u64, u64)]) {
    for (byte, at) in bytes.iter_mut().zip(0u64..) {
        if !keep.iter().any(|(from, len)| at.checked_sub(*from).is_some_and(|n| n < *len)) {
            *byte = 0;
        }
    }
}

/// Zeroes the words of `bytes`, `size` bytes each, for which `address` returns false.
fn redact_words(bytes: &mut [u8], size: usize, endian: Endian, address: RedactRegisters<'_>) {
    for word in bytes.chunks_mut(size.max(1)) {
        if !address(Shape { endian, ..Shape::LE64 }.number(word)) {
            word.fill(0);
        }
    }
}
