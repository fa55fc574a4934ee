//! Claims about the use of ranges. Their sources are the container, the GC, and the runtime's lists of code and images.

use std::collections::BTreeMap;

use super::process::Process;
use super::sweep::Span;
use crate::analysis::MemoryKind;
use crate::base::missed::{tried, watched};
use crate::base::reads;
use crate::base::{Addr, AddrRange, Collector, Missing, PAGE, ranges};
use crate::clr::loader_heaps::LoaderHeaps;
use crate::dump::{DumpFile, FileMapping, Module, ThreadStacks};
use crate::memory::malloc::MallocHeap;
use crate::memory::{Image, ImageFormat, is_diag_page};
use crate::model::{Generation, LoaderHeapKind, RegionListModel, SegmentModel};
use crate::session::{Images, Namer, Runtime};
use crate::stack::code::CodeUse;

/// Maximum number of reads of the code map.
const READS: u64 = 1 << 24;

/// Precedence of overlapping claims: the variant that is declared first wins, so more specific ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Memory committed by the GC. It precedes `Image`, because frozen segments of NativeAOT are inside the image.
    Heap,
    FreeRegion,
    HandleTable,
    Bookkeeping,
    Stack,
    /// Mappings of an image, and images in the runtime's list.
    Image,
    /// Named loader heaps. Some contain stubs.
    Loader,
    /// Code heaps and stubs, which are mapped by the runtime's executable allocator.
    Code,
    /// Mapped files, including the double mappings of the executable allocator.
    File,
    /// Heaps of `malloc`.
    Malloc,
    /// Memory between the mappings of an image or after the last one: `.bss`, and copied sections.
    Extent,
    /// Memory reserved by the GC. It surrounds the memory that the GC uses.
    Reserve,
}

/// A claim about a range.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) range: AddrRange,
    rank: Rank,
    pub(super) kind: MemoryKind,
    pub(super) generation: Option<Generation>,
    pub(super) loader_heap: Option<LoaderHeapKind>,
    pub(super) heap: Option<u64>,
    pub(super) os_id: Option<u32>,
    pub(super) name: Option<String>,
}

impl Claim {
    fn new(range: AddrRange, rank: Rank, kind: MemoryKind) -> Claim {
        Claim { range, rank, kind, generation: None, loader_heap: None, heap: None, os_id: None, name: None }
    }

    /// Extends the claim to the end of its last page: images are mapped in whole pages.
    fn paged(self) -> Claim {
        let end = self.range.end.plus(PAGE.saturating_sub(1)).align_down(PAGE);
        Claim { range: AddrRange::new(self.range.start, end), ..self }
    }

    fn named(self, name: &str) -> Claim {
        Claim { name: Some(name.to_owned()), ..self }
    }

    fn of_heap(self, heap: Option<u64>) -> Claim {
        Claim { heap, ..self }
    }

    /// Returns the range and the rank of the claim.
    pub(super) fn span(&self) -> Span {
        Span { range: self.range, rank: self.rank as u8 }
    }
}

/// Adds the claims of the container: images, files, stacks.
pub(super) fn of_container(process: Process<'_>, runtime: Option<&Runtime>, notes: &Collector, out: &mut Vec<Claim>) {
    let Process { file, memory } = process;
    let images = Images::of(file, memory, runtime);
    for module in &images.lost {
        let what = format!("{} may be an image: its headers are not in the dump", module.path);
        notes.add(Missing::NativeMemory, module.base, what);
    }
    let mut by_path: BTreeMap<&str, Vec<&Module>> = BTreeMap::new();
    for module in &images.modules {
        by_path.entry(&module.path).or_default().push(module);
    }
    by_path.values_mut().for_each(|list| list.sort_by_key(|m| m.base));
    out.extend(file.files.iter().map(|mapping| {
        let start = mapping.range.start;
        let list = by_path.get(mapping.path.as_str()).map_or(&[][..], Vec::as_slice);
        let below = list.partition_point(|m| m.base <= start).checked_sub(1).and_then(|i| list.get(i));
        of_file(mapping, below.is_some_and(|m| start < m.base.plus(m.size)))
    }));
    for module in &images.modules {
        let listed = module.range();
        // Modules of a minidump are images. Modules of an ELF core are made from the mappings in NT_FILE, so their extent may contain other memory.
        let rank = if file.files.is_empty() { Rank::Image } else { Rank::Extent };
        out.push(Claim::new(listed, rank, MemoryKind::Module).named(&module.path).paged());
        let (image, missed) = watched(|| Image::at(memory, module.base));
        if image.is_none() && memory.has_lost(&missed) {
            let what = format!("the end of {} is unknown: its headers are not in the dump", module.file_name());
            notes.add(Missing::NativeMemory, module.base, what);
        }
        out.extend(
            image
                .filter(|i| i.format == ImageFormat::Elf)
                .map(|i| Claim::new(i.range, Rank::Extent, MemoryKind::Module).named(&module.path).paged()),
        );
    }
    out.extend(file.kernel_library().map(|range| Claim::new(range, Rank::Image, MemoryKind::Module).named("[vdso]")));
    let page = file.regions.iter().filter(|r| is_diag_page(memory, r.range.start));
    out.extend(page.map(|r| Claim::new(r.range, Rank::File, MemoryKind::DumpWriter)));
    stacks(file, runtime, notes, out);
}

/// Creates the claim of a file mapping. `module`: whether the mapping belongs to an image. The runtime's executable allocator maps its memory twice,
/// from a file named `doublemapper`.
fn of_file(mapping: &FileMapping, module: bool) -> Claim {
    let (rank, kind) = match () {
        () if module => (Rank::Image, MemoryKind::Module),
        () if mapping.path.starts_with("/memfd:doublemapper") => (Rank::File, MemoryKind::DoubleMapped),
        () => (Rank::File, MemoryKind::File),
    };
    Claim::new(mapping.range, rank, kind).named(&mapping.path)
}

fn stacks(file: &DumpFile, runtime: Option<&Runtime>, notes: &Collector, out: &mut Vec<Claim>) {
    let stacks = ThreadStacks::new(file);
    let managed = runtime.map_or(&[][..], |r| r.threads_if_any(notes));
    let bases: BTreeMap<u64, Addr> = managed.iter().filter_map(|t| Some((t.os_id?, t.stack_base?))).collect();
    let allocations = Allocations::of(file);
    for thread in &file.threads {
        let claim = |range: AddrRange| {
            let claim = Claim::new(range, Rank::Stack, MemoryKind::Stack);
            Claim { os_id: Some(thread.id), name: thread.name.clone(), ..claim }
        };
        let pointer = thread.stack_pointer.or(thread.stack.map(|s| s.start));
        match pointer.and_then(|at| allocations.around(at)) {
            Some(parts) => out.extend(parts.iter().copied().map(claim)),
            None => out.extend(stacks.whole(thread, bases.get(&u64::from(thread.id)).copied()).map(claim)),
        }
    }
}

/// The allocations listed by a minidump. A stack is an allocation with a reserve, guard pages, and a part in use.
struct Allocations {
    /// Committed parts in the order of addresses, each with the start of its allocation.
    committed: Vec<(AddrRange, Addr)>,
    parts: BTreeMap<Addr, Vec<AddrRange>>,
}

impl Allocations {
    fn of(file: &DumpFile) -> Allocations {
        let mut parts: BTreeMap<Addr, Vec<AddrRange>> = BTreeMap::new();
        for (range, at) in file.regions.iter().chain(&file.reserved).filter_map(|r| Some((r.range, r.allocation?))) {
            parts.entry(at).or_default().push(range);
        }
        let mut committed: Vec<(AddrRange, Addr)> = file.regions.iter().filter_map(|r| Some((r.range, r.allocation?))).collect();
        committed.sort_unstable();
        Allocations { committed, parts }
    }

    /// Returns all parts of the allocation around `address`.
    fn around(&self, address: Addr) -> Option<&[AddrRange]> {
        let below = self.committed.partition_point(|(range, _)| range.start <= address).checked_sub(1)?;
        let (_, at) = self.committed.get(below).filter(|(range, _)| range.contains(address))?;
        self.parts.get(at).map(Vec::as_slice)
    }
}

/// Adds the heaps of the C library.
pub(super) fn of_malloc(heaps: &[MallocHeap], out: &mut Vec<Claim>) {
    out.extend(heaps.iter().map(|heap| Claim::new(heap.range, Rank::Malloc, MemoryKind::Malloc).named(heap.kind.name())));
}

/// Returns the memory that the GC uses or reserves, without handle tables, in the order of addresses.
pub(super) fn of_gc_alone(claims: &[Claim]) -> Vec<AddrRange> {
    let is_of_gc = |kind| matches!(kind, MemoryKind::GcHeap | MemoryKind::GcFree | MemoryKind::GcReserved | MemoryKind::GcBookkeeping);
    ranges::union(claims.iter().filter(|claim| is_of_gc(claim.kind)).map(|claim| claim.range).collect(), 0)
}

/// Adds the claims of the GC.
pub(super) fn of_gc(runtime: &Runtime, notes: &Collector, out: &mut Vec<Claim>) {
    let gc = match runtime.gc() {
        Ok(gc) => notes.with(gc),
        Err(e) => return notes.add(Missing::NativeMemory, None, format!("memory of the GC cannot be identified: {e}")),
    };
    let reserve = |from: Addr, to: Addr| Claim::new(AddrRange::new(from, to), Rank::Reserve, MemoryKind::GcReserved);
    for s in notes.take(gc.segments()) {
        out.push(of_segment(&s));
        out.push(reserve(s.committed, s.reserved).of_heap(Some(s.heap)));
    }
    for r in notes.take(gc.regions()) {
        let (rank, kind) = match r.list {
            RegionListModel::Bookkeeping => (Rank::Bookkeeping, MemoryKind::GcBookkeeping),
            RegionListModel::HandleTable => (Rank::HandleTable, MemoryKind::HandleTable),
            _ => (Rank::FreeRegion, MemoryKind::GcFree),
        };
        out.push(Claim::new(r.range, rank, kind).of_heap(r.heap));
        out.extend(r.segment.map(|s| reserve(s.committed, s.reserved).of_heap(r.heap)));
    }
    // All regions are in one reserved range. Segments are reserved one by one, with other memory between them.
    let facts = gc.facts();
    if let (true, Some(lowest), Some(highest)) = (facts.regions, facts.lowest, facts.highest) {
        out.push(reserve(lowest, highest));
    }
}

fn of_segment(s: &SegmentModel) -> Claim {
    let start = s.committed.minus(s.committed_bytes).unwrap_or(s.committed);
    let claim = Claim::new(AddrRange::new(start, s.committed), Rank::Heap, MemoryKind::GcHeap);
    Claim { generation: Some(s.generation), heap: Some(s.heap), ..claim }
}

/// Adds the claims of the runtime's lists of code, images and loader heaps. `mapped` is all memory of the process, if the dump lists it.
pub(super) fn of_code(runtime: &Runtime, mapped: Option<&[AddrRange]>, notes: &Collector, out: &mut Vec<Claim>) {
    if !runtime.descriptor().has_jit() {
        return;
    }
    match runtime.stack_walker() {
        Ok(walker) => {
            let found = tried(|| reads::bounded(READS, || walker.code().ranges()));
            if let Some(e) = &found.error {
                notes.add(Missing::NativeMemory, e.address(), format!("some code heaps are unknown: {e}"));
            }
            for (range, used) in found.ranges {
                let kind = match used {
                    CodeUse::Jitted => MemoryKind::CodeHeap,
                    CodeUse::Stubs => MemoryKind::StubHeap,
                    CodeUse::Image => continue,
                };
                out.push(Claim::new(range, Rank::Code, kind));
            }
        }
        Err(e) => notes.add(Missing::NativeMemory, None, format!("code heaps cannot be identified: {e}")),
    }
    let namer = runtime.namer();
    images(&namer, notes, out);
    loader_heaps(runtime, &namer, mapped, notes, out);
    namer.note(notes);
}

/// Adds the loader heaps, if the runtime's layout is known.
fn loader_heaps(runtime: &Runtime, namer: &Namer, mapped: Option<&[AddrRange]>, notes: &Collector, out: &mut Vec<Claim>) {
    let Ok(types) = namer.types() else { return };
    let Some(heaps) = runtime.scoped(notes, |d| LoaderHeaps::bind(runtime.memory(), d)) else { return };
    out.extend(notes.take(heaps.blocks(types.modules(), mapped)).into_iter().map(|block| {
        let kind = if block.heap.is_code() { MemoryKind::StubHeap } else { MemoryKind::LoaderHeap };
        Claim { loader_heap: Some(block.heap), ..Claim::new(block.range, Rank::Loader, kind) }
    }));
}

/// Adds the images of loaded assemblies. On Linux, some are copied to anonymous memory, so the container does not list them.
fn images(namer: &Namer, notes: &Collector, out: &mut Vec<Claim>) {
    let (names, types) = match (namer.names(), namer.types()) {
        (Some(names), Ok(types)) => (names, types),
        _ => {
            return notes.add(Missing::NativeMemory, None, "images of assemblies cannot be identified: the runtime does not describe them");
        }
    };
    if let Some(why) = types.lacks() {
        notes.add(Missing::NativeMemory, None, format!("{why}: some images of assemblies are unknown"));
    }
    for module in types.modules() {
        let image = names.modules().image_range(*module);
        out.extend(
            image.map(|range| Claim { name: names.modules().path(*module), ..Claim::new(range, Rank::Image, MemoryKind::Module).paged() }),
        );
    }
}
