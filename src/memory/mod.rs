//! The target's address space. All code above this layer reads the dumped process through [`Memory`].
//!
//! Reading memory that was not captured is an error, never zero: other tools that fill with zeros invent objects.
//!
//! | module | provides |
//! | --- | --- |
//! | `mod`, `window`, `text` | reads of bytes, integers, words and text |
//! | `image`, `elf_image`, `pe_image`, `pe` | executable images and their exports |
//! | `symbols` | section and nearest export of an address |
//! | `files`, `copies` | pages supplied by matching module files |
//! | `unlisted` | modules of a core that lists no mapped files |
//! | `record` | what was read, for `trim` |
//! | `diag_page` | createdump's diagnostics page |

mod copies;
mod diag_page;
mod elf_image;
mod files;
mod image;
mod image_formats;
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
use crate::base::missed::{Missed, may_be_mapped, missed, stray};
use crate::base::{Addr, AddrRange, Budget, Endian, PAGE, Shape, be, len64, plural, ranges};
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
    /// Index of the piece that this thread read last.
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
    /// The ends of the pieces, stored contiguously: a heap dump has thousands of pieces, and each read searches for one.
    ends: Vec<u64>,
    /// Memory of the runtime that the writer left out of the dump, sorted.
    left_out: Vec<AddrRange>,
    /// Whether the dump is truncated.
    cut: bool,
    /// Whether the dump states that it holds all memory.
    all: bool,
    /// Whether the dump is a trimmed copy, which contains only the memory that gcdump read when it made the copy.
    trimmed: bool,
    /// Parts of images for which module files supply only the initial contents.
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
    /// Indexes the captured ranges of `dump`. Where ranges overlap, the one that starts first wins; among equal starts, the first in the
    /// file.
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
            // File order decides among equal starts; overlaps are cut from the later range.
            let mut ordered: Vec<(usize, Piece)> = wanted.drain(..).enumerate().collect();
            ordered.sort_by_key(|(i, p)| (p.start, *i));
            join(without_overlaps(ordered))
        };
        let (cut, all, trimmed) = (dump.facts.truncated_bytes > 0, dump.facts.states_all_memory(), dump.facts.trimmed.is_some());
        let mut memory = Memory { cut, all, trimmed, ..Memory::of(shape, vec![Arc::clone(&dump.bytes)], pieces) };
        // All or nothing: a writer that selects pages leaves out only unused ones.
        let left_out = ranges::union(dump.double_mapped().collect(), 0);
        if left_out.iter().all(|r| memory.captured(*r) == 0) {
            memory.left_out = left_out;
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

    /// Counts the captured bytes before each piece, and lists their ends.
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

    /// Hides text that the program stored: strings, characters, elements of numeric arrays, messages. Each reader of text must check it.
    pub(crate) fn hide_contents(&mut self) {
        self.hides_contents = true;
    }

    /// Whether [`Memory::hide_contents`] was called.
    pub(crate) fn hides_contents(&self) -> bool {
        self.hides_contents
    }

    /// Sets the budget for searches, at the start of the opening.
    pub(crate) fn begin(&mut self, budget: Arc<Budget>) {
        self.budget = Some(budget);
    }

    /// Removes the budget at the end of the opening: later requests have their own limits.
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

    /// Takes `n` bytes of memory of the opening's budget: see [`Budget::memory`].
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

    /// Backs the gaps of `range` with `source` from `offset` on. Returns the number of bytes added.
    pub fn fill_gaps(&mut self, range: AddrRange, source: &Arc<Bytes>, offset: u64) -> u64 {
        let file_len = u64::try_from(source.len()).unwrap_or(u64::MAX);
        let range = AddrRange::new(range.start, range.start.plus(range.len().min(file_len.saturating_sub(offset))));
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

    /// Adds absent ranges, each with the offset of its bytes in `source`. Returns the number of bytes added.
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
        // Most reads are close to the previous one. The index may belong to another dump, so the piece is checked.
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

    /// The bytes from `address` to the end of its contiguous piece, without copying.
    pub(crate) fn contiguous(&self, address: Addr) -> Option<&[u8]> {
        let p = self.piece(address)?;
        let skip = usize::try_from(address.0.checked_sub(p.start)?).ok()?;
        self.piece_bytes(p)?.get(skip..)
    }

    /// Releases the pages of `range` from this process; they can be read again. See [`Bytes::release`].
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
        // Only successful reads are recorded: absent memory stays absent in a trimmed copy.
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
        if let Some(slice) = self.slice(address, len) {
            return Ok(Cow::Borrowed(slice));
        }
        let error = ReadError { address, len };
        // Allocate only for captured bytes: a hostile length must not become a hostile allocation.
        if self.captured(AddrRange::new(address, address.plus(len))) < len {
            missed(address, len);
            return Err(error);
        }
        let mut buffer = vec![0; usize::try_from(len).map_err(|_| error)?];
        self.read(address, &mut buffer)?;
        Ok(Cow::Owned(buffer))
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

    /// A little-endian integer of `N` bytes, independent of the target's byte order: for files mapped into the target.
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

    /// Reads a runtime pointer that is about to be dereferenced. `None` if it is null or not in the dump, or if it is not a valid address.
    /// An invalid pointer is reported, because failed reads through it are not.
    pub(crate) fn link(&self, address: Addr) -> Option<Addr> {
        self.link_or_null(address).filter(|to| !to.is_null())
    }

    /// Like [`Memory::link`], but returns null, for pointers where null has a meaning.
    pub(crate) fn link_or_null(&self, address: Addr) -> Option<Addr> {
        self.followed(address, self.ptr(address).ok()?)
    }

    /// Checks `to`, which was decoded from the word at `address`, as [`Memory::link_or_null`] does.
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

    /// Reports a failed read unless all of `range` was captured: for code that looks at its [words](Memory::words).
    pub(crate) fn need(&self, range: AddrRange) {
        if self.captured(range) < range.len()
            && let Some(gap) = self.gaps(range).first()
        {
            missed(gap.start, gap.len());
        }
    }

    /// Whether `address`, which was not captured, may have been memory: it is close to captured memory or in memory of the runtime that was
    /// left out, or the dump is truncated. Other addresses are unused address space.
    pub(crate) fn is_beside(&self, address: Addr) -> bool {
        const CLOSE: u64 = 1 << 16;
        let i = self.at_or_behind(address);
        let before = i.checked_sub(1).and_then(|i| self.pieces.get(i)).map(|p| address.0.saturating_sub(p.end));
        let behind = self.pieces.get(i).map(|p| p.start.saturating_sub(address.0));
        let left_out = || self.left_out.get(self.left_out.partition_point(|r| r.end <= address)).is_some_and(|r| r.contains(address));
        behind != Some(0) && (self.cut || left_out() || [before, behind].into_iter().flatten().any(|distance| distance < CLOSE))
    }

    /// Whether the dump is truncated.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether the dump is a trimmed copy, which contains only the memory that gcdump read when it made the copy.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.trimmed
    }

    /// Whether the page at `address` is only partly captured by the dump itself, which no writer does. A page that module files supply a
    /// part of is not torn, because a segment of a file may end within it.
    pub(crate) fn is_torn(&self, address: Addr) -> bool {
        let page = AddrRange::new(address.align_down(PAGE), address.align_down(PAGE).plus(PAGE));
        self.captured(page) < PAGE && self.in_dump(page).any(|r| !r.is_empty())
    }

    /// Whether `range`, a part of which was not captured, would be in a complete dump of this kind: the dump is truncated, states that it
    /// holds all memory, or has a part of the pages.
    pub(crate) fn is_lost(&self, range: AddrRange) -> bool {
        self.cut || self.all || self.is_torn(range.start) || range.end.minus(1).is_some_and(|last| self.is_torn(last))
    }

    /// Whether one of the failed reads `missed` would succeed in a complete dump of this kind.
    pub(crate) fn has_lost(&self, missed: &Missed) -> bool {
        missed.find(|at, len| self.is_lost(AddrRange::new(at, at.plus(len)))).is_some()
    }

    /// The lowest captured address, and the end of the highest one.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.pieces.first().map_or(0, |p| p.start), self.pieces.last().map_or(0, |p| p.end))
    }

    /// Size of the (decompressed) dump in bytes, which is an upper bound of the memory in a genuine dump.
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

    /// The captured parts of `range` with their bytes, in address order.
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

    /// Marks ranges for which module files supply the initial contents, which the process may have changed.
    fn mark_initial(&mut self, ranges: Vec<AddrRange>) {
        self.initial.extend(ranges);
    }

    /// Whether the byte at `address` comes from a module file although the process may have changed it. Such bytes are never process state.
    pub(crate) fn is_initial(&self, address: Addr) -> bool {
        self.initial.iter().any(|r| r.contains(address)) && !self.is_from_dump(address)
    }

    /// Whether the byte at `address` comes from the dump itself rather than from a module file.
    pub(crate) fn is_from_dump(&self, address: Addr) -> bool {
        self.piece(address).is_some_and(|p| p.source == 0)
    }
}

/// Removes overlaps from the later pieces. `ordered` is sorted by start.
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
