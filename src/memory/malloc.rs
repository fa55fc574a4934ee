//! Heaps of glibc's `malloc`: their ranges, and the chunks in use in them. gcdump calls a chunk a block.
//!
//! | heap | where | how it is recognized |
//! | --- | --- | --- |
//! | main arena, which the kernel grows (`brk`) | first memory after the program's image, at most 1 GiB past the image's end | position |
//! | heaps of thread arenas, 64 MiB of addresses each | at multiples of 64 MiB | `heap_info` (arena.c): arena, size, accessible size |
//! | large blocks, mapped one by one | at the start of a page | block header with `IS_MMAPPED`, and 0 as the size of the block before |
//!
//! A heap consists of blocks (`struct malloc_chunk`, malloc.c). The word before the memory that the program uses contains the block's size
//! and three flags, one of which says whether the *preceding* block is in use. Free blocks that are kept for fast reuse (`tcache`, fast bins)
//! count as in use. The last block of a heap (the top chunk) is unused.

use std::collections::BTreeMap;

use super::Memory;
use crate::base::cancel::tick;
use crate::base::{Addr, AddrRange, Count, PAGE, PtrSize};
use crate::dump::DumpFile;
use crate::model::{MallocBlockSize, MallocHeapKind, MallocUse, Sum};

/// Maximum distance in bytes of the `brk` heap from the end of the program. The kernel chooses the distance at random.
const BRK: u64 = 1 << 30;
/// Maximum number of regions after the program that are tried as the `brk` heap.
const NEAR: usize = 64;
/// Size and alignment in bytes of a heap of a thread arena (`HEAP_MAX_SIZE`).
const HEAP: u64 = 64 << 20;
/// Size in bytes of `heap_info` since glibc 2.35, and in earlier versions. In the first heap of an arena, the arena follows `heap_info`.
const INFO: [u64; 2] = [0x30, 0x20];
/// Maximum size in bytes of `heap_info` and the arena before the first block.
const ARENA: u64 = 0x1000;
/// Flags in the size word of a block: `PREV_INUSE`, `IS_MMAPPED`, and the mask of all three flags.
const IN_USE_BEFORE: u64 = 1;
const MAPPED: u64 = 2;
const FLAGS: u64 = 7;
/// Alignment and minimum size of blocks in bytes. A smaller block is a fencepost, which ends a part of the `brk` heap if `malloc` continued
/// elsewhere.
const ALIGNED: u64 = 16;
const LEAST: u64 = 32;
/// Number of consecutive valid blocks that confirm the start of a heap.
const SURE: u64 = 16;

/// A heap of `malloc`.
#[derive(Clone, Debug)]
pub(crate) struct MallocHeap {
    pub(crate) kind: MallocHeapKind,
    pub(crate) range: AddrRange,
    /// Address of the thread arena that the heap belongs to; `None` for other kinds of heap.
    pub(crate) arena: Option<Addr>,
}

/// The heaps in `memory`, in address order. Ranges in `taken`, which belong to other structures, are skipped. `program` is the end of the
/// program's image. Empty for 32-bit processes, which are not supported.
pub(crate) fn malloc_heaps(dump: &DumpFile, memory: &Memory, program: Option<Addr>, taken: &[AddrRange]) -> Vec<MallocHeap> {
    let mut out = Vec::new();
    if memory.shape().ptr != PtrSize::Eight {
        return out;
    }
    let mut writable: Vec<AddrRange> = dump.regions.iter().filter(|r| r.read && r.write && !r.execute).map(|r| r.range).collect();
    writable.sort_unstable();
    let brk = program.and_then(|end| brk(dump, &writable, end));
    let mut done = Addr::NULL;
    for range in writable {
        if Some(range) == brk {
            out.push(MallocHeap { kind: MallocHeapKind::Brk, range, arena: None });
            continue;
        }
        // Regions of a forged dump may overlap.
        let range = AddrRange::new(range.start.max(done), range.end);
        done = done.max(range.end);
        // Visits only pages that the dump has, because a forged region may have any length.
        let mut at = range.start;
        for stretch in memory.in_dump(range) {
            at = at.max(stretch.start.plus(PAGE - 1).align_down(PAGE));
            while at < stretch.end {
                if let Some(other) = taken.get(taken.partition_point(|r| r.end <= at)).filter(|r| r.contains(at)) {
                    at = other.end.plus(PAGE - 1).align_down(PAGE);
                    continue;
                }
                let heap = arena_heap(memory, at, range.end).or_else(|| mapped(memory, at, range.end));
                at = heap.as_ref().map_or(at.plus(PAGE), |heap| heap.range.end);
                out.extend(heap);
                tick();
            }
        }
    }
    out
}

/// The region that `brk` grows: the first writable region after `end`, the end of the program, that is not a mapped file.
fn brk(dump: &DumpFile, writable: &[AddrRange], end: Addr) -> Option<AddrRange> {
    let of_file = |r: &AddrRange| dump.files.iter().any(|f| f.range.contains(r.start));
    let first = writable.iter().copied().filter(|r| r.start >= end).take(NEAR).find(|r| !of_file(r))?;
    let between = dump.modules.iter().any(|m| m.base >= end && m.base < first.start);
    // `.bss` follows the image without a gap.
    let bss = first.start == end;
    (!between && !bss && first.start < end.plus(BRK)).then_some(first)
}

/// The heap of a thread arena that begins at `at`, if there is one. The region ends at `end`.
fn arena_heap(memory: &Memory, at: Addr, end: Addr) -> Option<MallocHeap> {
    at.is_aligned(HEAP).then_some(())?;
    let bytes = peek::<32>(memory, at)?;
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| memory.shape().number(word));
    let (arena, before, size, accessible) = (Addr(words.next()?), Addr(words.next()?), words.next()?, words.next()?);
    let sound =
        (1..=HEAP).contains(&size) && (size..=HEAP).contains(&accessible) && size.is_multiple_of(PAGE) && at.plus(accessible) <= end;
    let of = Addr(arena.0 & !(HEAP.saturating_sub(1)));
    let is_arena = INFO.iter().any(|info| arena == of.plus(*info)) && (of == at) == before.is_null() && before.is_aligned(HEAP);
    if sound && is_arena {
        memory.touch(AddrRange::of(at, 32));
    }
    (sound && is_arena).then(|| MallocHeap { kind: MallocHeapKind::Arena, range: AddrRange::of(at, accessible), arena: Some(arena) })
}

/// The `N` bytes at `at`. The read is not recorded, because the bytes may not belong to a heap.
fn peek<const N: usize>(memory: &Memory, at: Addr) -> Option<&[u8; N]> {
    memory.contiguous(at)?.first_chunk()
}

/// The large block mapped at `at`, if there is one. The region ends at `end`.
fn mapped(memory: &Memory, at: Addr, end: Addr) -> Option<MallocHeap> {
    let bytes = peek::<16>(memory, at)?;
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| memory.shape().number(word));
    let (before, head) = (words.next()?, words.next()?);
    let size = head & !FLAGS;
    let sound = before == 0 && head & FLAGS == MAPPED && size.is_multiple_of(PAGE) && size > 0 && at.plus(size) <= end;
    if sound {
        memory.touch(AddrRange::of(at, 16));
    }
    sound.then(|| MallocHeap { kind: MallocHeapKind::Mapped, range: AddrRange::of(at, size), arena: None })
}

/// Number of blocks in use, by size.
pub(crate) type Sizes = BTreeMap<u64, u64>;

/// The `most` block sizes whose blocks take the most bytes in all.
pub(crate) fn most_common(sizes: Sizes, most: usize) -> Vec<MallocBlockSize> {
    let mut all: Vec<MallocBlockSize> =
        sizes.into_iter().map(|(size, count)| MallocBlockSize { size, count, bytes: size.saturating_mul(count) }).collect();
    all.sort_by_key(|s| std::cmp::Reverse((s.bytes, s.size)));
    all.truncate(most);
    all
}

impl MallocHeap {
    /// How much of the heap is used. Adds the blocks in use to `sizes`. `None` if the dump does not have all block headers, or if they contradict
    /// each other.
    pub(crate) fn used(&self, memory: &Memory, sizes: &mut Sizes) -> Option<MallocUse> {
        let (start, end) = (self.range.start, self.range.end);
        if self.kind == MallocHeapKind::Mapped {
            *sizes.entry(self.range.len()).or_default() += 1;
            return Some(MallocUse { used: Sum { count: 1, bytes: self.range.len() }, free: Sum::default(), left_bytes: 0 });
        }
        let mut blocks = Blocks { memory, at: Addr::NULL, bytes: &[] };
        let first = if self.kind == MallocHeapKind::Brk {
            start
        } else {
            (1..ARENA / ALIGNED).map(|n| start.plus(n * ALIGNED)).find(|at| blocks.is_start(*at, end))?
        };
        let mut found = MallocUse { used: Sum::default(), free: Sum::default(), left_bytes: 0 };
        let (mut at, mut head) = (first, blocks.head(first)?);
        // If the accessible part is larger than the heap, zeros follow the top chunk. `PREV_INUSE` is not set in the zeros, so the top chunk is
        // counted as free. At most a page of zeros is accepted and counted in `left_bytes`.
        loop {
            let size = head & !FLAGS;
            let next = at.plus(size);
            if size < LEAST || next >= end {
                found.left_bytes.grow(end.since(at).unwrap_or(0));
                let ends = next == end || size < LEAST && end.since(at).is_some_and(|left| left <= PAGE);
                return ends.then_some(found);
            }
            let after = blocks.head(next)?;
            if after & IN_USE_BEFORE == 0 {
                found.free.add(size);
            } else {
                found.used.add(size);
                sizes.entry(size).or_default().bump();
            }
            (at, head) = (next, after);
        }
    }
}

/// Reads the headers of blocks. Keeps the last contiguous piece of memory.
struct Blocks<'m> {
    memory: &'m Memory,
    /// Address of `bytes`.
    at: Addr,
    bytes: &'m [u8],
}

impl Blocks<'_> {
    /// The size word of the block at `block`: size and flags.
    fn head(&mut self, block: Addr) -> Option<u64> {
        let word = block.plus(8);
        let here = |blocks: &Self| {
            let skip = usize::try_from(word.since(blocks.at)?).ok()?;
            blocks.bytes.get(skip..)?.first_chunk::<8>().map(|bytes| blocks.memory.shape().number(bytes))
        };
        tick();
        here(self).or_else(|| {
            (self.at, self.bytes) = (word, self.memory.contiguous(word)?);
            here(self)
        })
    }

    /// Whether `first` is the start of a chain of valid blocks. The chain has [`SURE`] blocks, or fewer if the last block ends exactly at `end`.
    fn is_start(&mut self, first: Addr, end: Addr) -> bool {
        let mut at = first;
        for _ in 0..SURE {
            let Some(size) = self.head(at).map(|head| head & !FLAGS).filter(|n| *n >= LEAST && n.is_multiple_of(ALIGNED)) else {
                return false;
            };
            at = at.plus(size);
            if at >= end {
                return at == end;
            }
        }
        true
    }
}
