//! The target's address space. All code above this layer reads the dumped process through [`Memory`].
//!
//! A read of memory that was not captured is an error and never returns zeros, which would look like valid data.
//!
//! | module | provides |
//! | --- | --- |
//! | `mod`, `window`, `words`, `text` | reads of bytes, integers, words and text |
//! | `image`, `image_formats`, `elf_image`, `pe_image`, `pe` | executable images and their exports |
//! | `symbols` | section and nearest export of an address |
//! | `lost` | whether memory that was not captured would be in a complete dump |
//! | `files`, `copies` | pages supplied by matching module files |
//! | `unlisted` | modules of a core that lists no mapped files |
//! | `malloc` | heaps of glibc's `malloc` |
//! | `record` | the ranges that were read, for `gcdump trim` |
//! | `diag_page` | createdump's diagnostics page |

mod copies;
mod diag_page;
mod elf_image;
mod files;
mod image;
mod image_formats;
mod lost;
pub(crate) mod malloc;
mod pe;
mod pe_image;
mod record;
mod symbols;
mod text;
mod unlisted;
mod window;
mod words;

pub(crate) use diag_page::{is_by_createdump, is_diag_page};
#[cfg(feature = "internals")]
pub use files::file_image;
pub use files::{Bundles, DataPages, FileSearch, Filled, LocalFiles, fill_module};
pub(crate) use files::{FileId, ModuleFile, Rejected, framework, framework_packages, hex, is_version, module_id, plain_name, rids, target};
pub use image::{Export, Image, ImageFormat};
pub(crate) use pe::PeHeaders;
pub(crate) use pe_image::Loaded;
pub use record::Recorder;
pub use symbols::{NearestExport, Section};
pub(crate) use text::utf8;
pub(crate) use unlisted::unlisted_modules;
pub(crate) use window::Window;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use crate::base::cancel::tick;
use crate::base::missed::{may_be_mapped, missed, stray};
use crate::base::{Addr, AddrRange, Budget, Endian, Shape, be, len64, plural, ranges};
use crate::dump::{Bytes, DumpFile};

/// A read of memory that was not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} at {address} {} not in the dump", plural(*len, "byte"), be(*len))]
pub struct ReadError {
    /// First address of the read.
    pub address: Addr,
    /// Length of the read in bytes.
    pub len: u64,
}

thread_local! {
    /// Index of the piece that this thread read last, in any [`Memory`].
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// A contiguous part of the address space backed by a contiguous part of one file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    source: usize,
    offset: u64,
    /// Number of captured bytes at lower addresses.
    before: u64,
}

/// The captured address space of the dumped process, with gaps filled from matching module files.
#[derive(Debug)]
pub struct Memory {
    shape: Shape,
    sources: Vec<Arc<Bytes>>,
    /// Sorted and disjoint; adjacent pieces are joined.
    pieces: Vec<Piece>,
    /// The end of each piece. A separate array, because a heap dump has thousands of pieces and each read does a binary search by end.
    ends: Vec<u64>,
    /// Mappings of the executable allocator ([`DumpFile::double_mapped`]) if the writer left out all of them, sorted.
    left_out: Vec<AddrRange>,
    /// Parts of the regions that the dump lists as accessible, of which it has no bytes, sorted.
    uncaptured: Vec<AddrRange>,
    /// Whether the dump is truncated.
    cut: bool,
    /// Whether the dump states that it holds all memory.
    all: bool,
    /// Whether the dump is a trimmed copy, which contains only the memory that gcdump read when it made the copy.
    trimmed: bool,
    /// Ranges that the process may have changed. Bytes of module files in them are initial contents: see [`Memory::is_initial`].
    initial: Vec<AddrRange>,
    /// Record of reads, if enabled. Callers of [`Memory::contiguous`] and [`Memory::stretches`], which return more bytes than are used,
    /// report the used ones through [`Memory::touch`] and [`Memory::scan`].
    recorder: Option<Box<record::Recorder>>,
    /// Whether readers of strings return [`Memory::HIDDEN`] instead of the contents.
    hides_contents: bool,
    /// Budget of searches while the dump is being opened.
    budget: Option<Arc<Budget>>,
}

impl Memory {
    /// Indexes the captured ranges of `dump`. Where ranges overlap, the range with the lowest start is used; of ranges with equal starts, the
    /// first in the file.
    pub fn new(dump: &DumpFile, shape: Shape) -> Memory {
        let mut wanted: Vec<Piece> = dump
            .ranges
            .iter()
            .filter(|r| r.len > 0)
            .map(|r| Piece { start: r.start.0, end: r.start.0.saturating_add(r.len), source: 0, offset: r.offset, before: 0 })
            .collect();
        let sorted = wanted.windows(2).all(|w| matches!(w, [a, b] if a.end <= b.start));
        let pieces = if sorted {
            join(wanted)
        } else {
            // Ranges with equal starts keep their file order.
            let mut ordered: Vec<(usize, Piece)> = wanted.drain(..).enumerate().collect();
            ordered.sort_by_key(|(i, p)| (p.start, *i));
            join(without_overlaps(ordered))
        };
        let (cut, all, trimmed) = (dump.facts.lacks_memory(), dump.facts.states_all_memory(), dump.facts.trimmed.is_some());
        let mut memory = Memory { cut, all, trimmed, ..Memory::of(shape, vec![Arc::clone(&dump.bytes)], pieces) };
        // If any byte of these mappings was captured, the writer selected pages, and the missing pages were unused rather than left out.
        let left_out = ranges::union(dump.double_mapped().collect(), 0);
        if left_out.iter().all(|r| memory.captured(*r) == 0) {
            memory.left_out = left_out;
        }
        let mapped = ranges::union(dump.regions.iter().filter(|r| r.is_accessible()).map(|r| r.range).collect(), 0);
        if !mapped.is_empty() {
            let captured: Vec<AddrRange> = memory.pieces.iter().map(|p| AddrRange::new(Addr(p.start), Addr(p.end))).collect();
            memory.uncaptured = ranges::subtract(&mapped, &captured);
        }
        memory
    }

    /// Memory consisting of `pieces`, which are sorted and disjoint.
    fn of(shape: Shape, sources: Vec<Arc<Bytes>>, pieces: Vec<Piece>) -> Memory {
        let mut memory = Memory {
            shape,
            sources,
            pieces,
            ends: Vec::new(),
            left_out: Vec::new(),
            uncaptured: Vec::new(),
            cut: false,
            all: false,
            trimmed: false,
            initial: Vec::new(),
            recorder: None,
            hides_contents: false,
            budget: None,
        };
        memory.index();
        memory
    }

    /// Memory without captured bytes, to be filled from a file.
    pub(crate) fn empty(shape: Shape) -> Memory {
        Memory::of(shape, Vec::new(), Vec::new())
    }

    /// Computes [`Piece::before`] of each piece and `ends`. Must follow each change of `pieces`.
    fn index(&mut self) {
        let mut before = 0u64;
        for p in &mut self.pieces {
            p.before = before;
            before = before.saturating_add(p.end.saturating_sub(p.start));
        }
        self.ends = self.pieces.iter().map(|p| p.end).collect();
    }

    /// The text that replaces hidden contents.
    pub(crate) const HIDDEN: &str = "(hidden)";

    /// Hides the data of the program: strings, characters, elements of numeric arrays, messages. Readers must check `hides_contents`.
    pub(crate) fn hide_contents(&mut self) {
        self.hides_contents = true;
    }

    /// Whether [`Memory::hide_contents`] was called.
    pub(crate) fn hides_contents(&self) -> bool {
        self.hides_contents
    }

    /// Sets the budget of searches. Called when the opening of the dump begins.
    pub(crate) fn begin(&mut self, budget: Arc<Budget>) {
        self.budget = Some(budget);
    }

    /// Removes the budget. Called when the dump is open: later requests have their own limits.
    pub(crate) fn opened(&mut self) {
        self.budget = None;
    }

    /// Takes `n` steps of the opening's budget: see [`Budget::steps`].
    pub(crate) fn afford_steps(&self, n: u64) -> bool {
        self.budget.as_ref().is_none_or(|b| b.steps(n))
    }

    /// Takes `n` bytes of the opening's budget: see [`Budget::bytes`].
    pub(crate) fn afford_bytes(&self, n: u64) -> bool {
        self.budget.as_ref().is_none_or(|b| b.bytes(n))
    }

    /// Takes `n` bytes of allocated memory of the opening's budget: see [`Budget::memory`].
    pub(crate) fn afford_memory(&self, n: u64) -> bool {
        self.budget.as_ref().is_none_or(|b| b.memory(n))
    }

    /// Pointer size and byte order of the process.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Size of a pointer in bytes.
    pub fn ptr_bytes(&self) -> u64 {
        self.shape.ptr.bytes()
    }

    /// Backs the gaps of `range` with `source`; the byte at `offset` belongs to the start of `range`. Returns the number of bytes added.
    pub fn fill_gaps(&mut self, range: AddrRange, source: &Arc<Bytes>, offset: u64) -> u64 {
        let file_len = u64::try_from(source.len()).unwrap_or(u64::MAX);
        let range = AddrRange::of(range.start, range.len().min(file_len.saturating_sub(offset)));
        let parts = self.gaps(range).into_iter().map(|gap| (gap, offset.saturating_add(gap.start.0.saturating_sub(range.start.0))));
        self.add(parts.collect(), source)
    }

    /// The parts of `range` that are absent, in address order.
    fn gaps(&self, range: AddrRange) -> Vec<AddrRange> {
        let mut gaps = Vec::new();
        let mut at = range.start.0;
        let first = self.at_or_behind(range.start);
        for p in self.pieces.iter().skip(first).take_while(|p| p.start < range.end.0) {
            if p.start > at {
                gaps.push(AddrRange::new(Addr(at), Addr(p.start)));
            }
            at = at.max(p.end);
        }
        if at < range.end.0 {
            gaps.push(AddrRange::new(Addr(at), range.end));
        }
        gaps
    }

    /// Adds absent ranges, each with the offset of its bytes in `source`. Returns the number of bytes added: 0 if the budget is used up.
    fn add(&mut self, parts: Vec<(AddrRange, u64)>, source: &Arc<Bytes>) -> u64 {
        let bytes = parts.iter().fold(0u64, |n, (range, _)| n.saturating_add(range.len()));
        // Each call sorts all pieces, which costs steps.
        if bytes == 0 || !self.afford_steps((len64(self.pieces.len()) / 16).saturating_add(1)) {
            return 0;
        }
        let index = self.sources.iter().position(|s| Arc::ptr_eq(s, source)).unwrap_or_else(|| {
            self.sources.push(Arc::clone(source));
            self.sources.len().saturating_sub(1)
        });
        self.pieces.extend(parts.iter().map(|(r, offset)| Piece {
            start: r.start.0,
            end: r.end.0,
            source: index,
            offset: *offset,
            before: 0,
        }));
        self.pieces.sort_unstable_by_key(|p| p.start);
        self.index();
        bytes
    }

    /// Index of the first piece that ends after `address`.
    fn at_or_behind(&self, address: Addr) -> usize {
        self.ends.partition_point(|end| *end <= address.0)
    }

    /// The piece that holds `address`.
    #[inline]
    fn piece(&self, address: Addr) -> Option<&Piece> {
        tick();
        // Most reads are close to the previous one. `LAST` may be an index of another `Memory`, so the piece is checked.
        if let Some(p) = self.pieces.get(LAST.get()).filter(|p| (p.start..p.end).contains(&address.0)) {
            return Some(p);
        }
        let index = self.at_or_behind(address);
        let found = self.pieces.get(index).filter(|p| p.start <= address.0)?;
        LAST.set(index);
        Some(found)
    }

    fn piece_bytes(&self, p: &Piece) -> Option<&[u8]> {
        self.sources.get(p.source)?.range(p.offset, p.end.saturating_sub(p.start))
    }

    /// The bytes from `address` to the end of the piece that contains it, without copying. The read is not recorded.
    pub(crate) fn contiguous(&self, address: Addr) -> Option<&[u8]> {
        let p = self.piece(address)?;
        let skip = usize::try_from(address.0.checked_sub(p.start)?).ok()?;
        self.piece_bytes(p)?.get(skip..)
    }

    /// Drops the pages of `range`, up to the end of the first piece, from gcdump's resident set: see [`Bytes::release`].
    pub(crate) fn release(&self, range: AddrRange) {
        if let Some(p) = self.piece(range.start) {
            let skip = range.start.0.saturating_sub(p.start);
            let len = range.len().min(p.end.saturating_sub(range.start.0));
            if let Some(source) = self.sources.get(p.source) {
                source.release(p.offset.saturating_add(skip), len);
            }
        }
    }

    /// The `len` bytes at `address` without copying; `None` if they are absent or span pieces.
    pub fn slice(&self, address: Addr, len: u64) -> Option<&[u8]> {
        let slice = self.contiguous(address)?.get(..usize::try_from(len).ok()?)?;
        self.record(address, len);
        Some(slice)
    }

    /// Fills `buffer` from `address`, across adjacent pieces.
    ///
    /// # Errors
    /// Fails if any of the bytes is absent.
    pub fn read(&self, address: Addr, buffer: &mut [u8]) -> Result<(), ReadError> {
        let len = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        self.fill(address, buffer).ok_or_else(|| {
            missed(address, len);
            ReadError { address, len }
        })?;
        // Only successful reads are recorded, because absent memory stays absent in a trimmed copy.
        self.record(address, len);
        Ok(())
    }

    fn fill(&self, address: Addr, buffer: &mut [u8]) -> Option<()> {
        let mut at = address;
        let mut rest = buffer;
        while !rest.is_empty() {
            let have = self.contiguous(at)?;
            let n = have.len().min(rest.len());
            let (now, later) = rest.split_at_mut_checked(n)?;
            now.copy_from_slice(have.get(..n)?);
            rest = later;
            at = at.plus(u64::try_from(n).unwrap_or(u64::MAX));
            if n == 0 {
                return None;
            }
        }
        Some(())
    }

    /// The `len` bytes at `address`, borrowed unless they span pieces.
    ///
    /// # Errors
    /// Fails if any of the bytes is absent.
    pub fn bytes(&self, address: Addr, len: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        let bytes = self.unrecorded(address, len)?;
        self.record(address, len);
        Ok(bytes)
    }

    /// [`Memory::bytes`] without the record of the read, for reads that are recorded in another way.
    fn unrecorded(&self, address: Addr, len: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        let all = usize::try_from(len).ok();
        if let Some(slice) = all.and_then(|n| self.contiguous(address)?.get(..n)) {
            return Ok(Cow::Borrowed(slice));
        }
        // Memory is allocated only for captured bytes, because a forged length must not cause a large allocation.
        let buffer = all.filter(|_| self.captured(AddrRange::of(address, len)) >= len).map(|n| vec![0; n]);
        let filled = buffer.and_then(|mut buffer| self.fill(address, &mut buffer).map(|()| buffer));
        filled.map(Cow::Owned).ok_or_else(|| {
            missed(address, len);
            ReadError { address, len }
        })
    }

    /// `N` bytes at `address`.
    #[inline]
    fn chunk<const N: usize>(&self, address: Addr) -> Result<[u8; N], ReadError> {
        if let Some(p) = self.piece(address)
            && let Some(source) = self.sources.get(p.source)
            && let Some(chunk) = source.range(p.offset.saturating_add(address.0.saturating_sub(p.start)), len64(N))
            && len64(N) <= p.end.saturating_sub(address.0)
            && let Some(chunk) = chunk.first_chunk()
        {
            self.record(address, len64(N));
            return Ok(*chunk);
        }
        let mut buffer = [0; N];
        self.read(address, &mut buffer)?;
        Ok(buffer)
    }

    /// An unsigned integer of `N` bytes in the target's byte order.
    pub(crate) fn uint<const N: usize>(&self, address: Addr) -> Result<u64, ReadError> {
        self.chunk::<N>(address).map(|chunk| self.shape.number(&chunk))
    }

    /// A little-endian integer of `N` bytes, whatever the byte order of the target: for formats such as PE and metadata.
    pub(crate) fn little<const N: usize>(&self, address: Addr) -> Result<u64, ReadError> {
        self.chunk::<N>(address).map(|chunk| Shape { endian: Endian::Little, ..self.shape }.number(&chunk))
    }

    /// The byte at `address`.
    ///
    /// # Errors
    /// Fails if it is absent.
    pub fn u8(&self, address: Addr) -> Result<u8, ReadError> {
        self.uint::<1>(address).map(|n| u8::try_from(n).unwrap_or(u8::MAX))
    }

    /// The 16-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn u16(&self, address: Addr) -> Result<u16, ReadError> {
        self.uint::<2>(address).map(|n| u16::try_from(n).unwrap_or(u16::MAX))
    }

    /// The 32-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn u32(&self, address: Addr) -> Result<u32, ReadError> {
        self.uint::<4>(address).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// The signed 32-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn i32(&self, address: Addr) -> Result<i32, ReadError> {
        self.u32(address).map(u32::cast_signed)
    }

    /// The 64-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn u64(&self, address: Addr) -> Result<u64, ReadError> {
        self.uint::<8>(address)
    }

    /// The pointer-sized integer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn word(&self, address: Addr) -> Result<u64, ReadError> {
        match self.shape.ptr {
            crate::base::PtrSize::Four => self.uint::<4>(address),
            crate::base::PtrSize::Eight => self.uint::<8>(address),
        }
    }

    /// The pointer at `address`.
    ///
    /// # Errors
    /// Fails if any of its bytes is absent.
    pub fn ptr(&self, address: Addr) -> Result<Addr, ReadError> {
        self.word(address).map(Addr)
    }

    /// Reads the runtime pointer at `address`, to follow it. `None` if the pointer is absent from the dump, null, or not a valid address.
    /// Reports an invalid pointer, because later reads at an address that cannot be mapped are not reported as missing memory.
    pub(crate) fn link(&self, address: Addr) -> Option<Addr> {
        self.link_or_null(address).filter(|to| !to.is_null())
    }

    /// Like [`Memory::link`], but returns a null pointer as such, for pointers where null has a meaning.
    pub(crate) fn link_or_null(&self, address: Addr) -> Option<Addr> {
        self.followed(address, self.ptr(address).ok()?)
    }

    /// Checks a pointer as [`Memory::link_or_null`] does. `to` was decoded from the word at `address`.
    pub(crate) fn followed(&self, address: Addr, to: Addr) -> Option<Addr> {
        let followed = to.is_null() || may_be_mapped(to);
        if !followed {
            stray(address, to);
        }
        followed.then_some(to)
    }

    /// Whether the byte at `address` was captured.
    pub fn has(&self, address: Addr) -> bool {
        let found = self.piece(address).is_some();
        if found {
            self.record(address, 1);
        }
        found
    }

    /// Reports a failed read unless all of `range` was captured. For code that uses [`Memory::words`], which skips gaps.
    pub(crate) fn need(&self, range: AddrRange) {
        if self.captured(range) < range.len()
            && let Some(gap) = self.gaps(range).first()
        {
            missed(gap.start, gap.len());
        }
    }

    /// Size of the (decompressed) dump in bytes, an upper bound of the captured memory unless ranges share bytes of the file.
    pub(crate) fn dump_bytes(&self) -> u64 {
        self.sources.first().and_then(|s| u64::try_from(s.len()).ok()).unwrap_or(0)
    }

    /// Number of captured bytes in `range`.
    pub fn captured(&self, range: AddrRange) -> u64 {
        self.captured_below(range.end).saturating_sub(self.captured_below(range.start))
    }

    /// Number of captured bytes below `address`.
    fn captured_below(&self, address: Addr) -> u64 {
        let last = self.pieces.partition_point(|p| p.start < address.0).checked_sub(1).and_then(|i| self.pieces.get(i));
        last.map_or(0, |p| p.before.saturating_add(p.end.min(address.0).saturating_sub(p.start)))
    }

    /// The captured parts of `range` with their bytes, in address order. The reads are not recorded.
    pub fn stretches(&self, range: AddrRange) -> impl Iterator<Item = (Addr, &[u8])> {
        let first = self.at_or_behind(range.start);
        self.pieces.iter().skip(first).take_while(move |p| p.start < range.end.0).filter_map(move |p| {
            let from = p.start.max(range.start.0);
            let to = p.end.min(range.end.0);
            let bytes = self.piece_bytes(p)?;
            let skip = usize::try_from(from.saturating_sub(p.start)).ok()?;
            let len = usize::try_from(to.saturating_sub(from)).ok()?;
            Some((Addr(from), bytes.get(skip..)?.get(..len)?))
        })
    }

    /// The parts of `range` that the dump itself captured, in address order.
    pub fn in_dump(&self, range: AddrRange) -> impl Iterator<Item = AddrRange> {
        let first = self.at_or_behind(range.start);
        let cut = move |p: &Piece| AddrRange::new(Addr(p.start).max(range.start), Addr(p.end).min(range.end));
        self.pieces.iter().skip(first).take_while(move |p| p.start < range.end.0).filter(|p| p.source == 0).map(cut)
    }

    /// Marks ranges that the process may have changed, so that bytes of module files in them are only initial contents.
    fn mark_initial(&mut self, ranges: Vec<AddrRange>) {
        self.initial.extend(ranges);
    }

    /// Whether the byte at `address` comes from a module file although the process may have changed it.
    pub(crate) fn is_initial(&self, address: Addr) -> bool {
        self.initial.iter().any(|r| r.contains(address)) && !self.is_from_dump(address)
    }

    /// Whether the byte at `address` comes from the dump itself rather than from a module file.
    pub(crate) fn is_from_dump(&self, address: Addr) -> bool {
        self.piece(address).is_some_and(|p| p.source == 0)
    }
}

/// Cuts each piece where an earlier piece overlaps it. `ordered` is sorted by start.
fn without_overlaps(ordered: Vec<(usize, Piece)>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(ordered.len());
    for (_, mut p) in ordered {
        if let Some(last) = out.last() {
            if p.end <= last.end {
                continue;
            }
            if p.start < last.end {
                p.offset = p.offset.saturating_add(last.end.saturating_sub(p.start));
                p.start = last.end;
            }
        }
        out.push(p);
    }
    out
}

/// Joins pieces that are adjacent both in the address space and in the file.
fn join(sorted: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(sorted.len());
    for p in sorted {
        match out.last_mut() {
            Some(last)
                if last.end == p.start
                    && last.source == p.source
                    && last.offset.saturating_add(last.end.saturating_sub(last.start)) == p.offset =>
            {
                last.end = p.end;
            }
            _ => out.push(p),
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
