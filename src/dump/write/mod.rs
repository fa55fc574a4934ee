//! Writes dumps: everything of a container but the memory itself, laid out for a choice of ranges.
//!
//! The container stays what it was. Of its notes or streams only those are written that the readers of this floor read.

mod elf;
mod minidump;

use super::{CapturedRange, Container, DumpError, DumpFile};
use crate::base::{AddrRange, Endian, PtrSize};

/// Which register values may stay in a redacted dump: addresses. Whatever else lies in registers may be a piece of text.
pub type RedactRegisters<'a> = &'a dyn Fn(u64) -> bool;

/// A dump that is about to be written: first the head, then the bytes of the ranges, one behind the other.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Headers, notes or streams, and the tables of the ranges.
    pub head: Vec<u8>,
    /// The ranges in the order in which their bytes follow the head, with their places in the file.
    pub ranges: Vec<CapturedRange>,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// Why a dump could not be laid out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The dump that is to be copied cannot be read any more.
    #[error(transparent)]
    Source(#[from] DumpError),
    /// The tables of the new dump would be larger than the format allows.
    #[error("{0} do not fit into a dump of this format")]
    TooLarge(&'static str),
}

/// Lays a dump out that holds `ranges` of `dump`'s memory: sorted, not overlapping. With `redact` it is marked as redacted,
/// and names of threads, command line and registers are overwritten.
///
/// # Errors
/// [`WriteError`].
pub fn lay_out(dump: &DumpFile, ranges: &[AddrRange], redact: Option<RedactRegisters<'_>>) -> Result<Layout, WriteError> {
    match dump.facts.container {
        Container::ElfCore => elf::lay_out(dump, ranges, redact),
        Container::Minidump => minidump::lay_out(dump, ranges, redact),
    }
}

/// Bytes that are being put together, in the byte order of the dump.
struct Out {
    bytes: Vec<u8>,
    endian: Endian,
}

impl Out {
    fn new(endian: Endian) -> Out {
        Out { bytes: Vec::new(), endian }
    }

    /// Where the next byte goes.
    fn at(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// The same as a 32-bit offset.
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

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    /// Overwrites what stands at `at`, which was left empty before.
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

/// The ranges, their bytes one behind the other from `offset` on, and the end of the file.
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

/// Overwrites the words of `bytes` that are no addresses, those that begin in `keep` excepted.
fn redact_words(bytes: &mut [u8], size: usize, endian: Endian, keep: std::ops::Range<usize>, address: RedactRegisters<'_>) {
    for (word, at) in bytes.chunks_mut(size.max(1)).zip((0usize..).step_by(size.max(1))) {
        let push = |n: u64, b: &u8| (n << 8) | u64::from(*b);
        let value = if endian == Endian::Little { word.iter().rev().fold(0, push) } else { word.iter().fold(0, push) };
        if !keep.contains(&at) && !address(value) {
            word.fill(0);
        }
    }
}
