//! Loader heaps: memory for method tables, MethodDescs and FieldDescs, dictionaries, statics, stubs.
//!
//! Each loader allocator has several heaps. In a collectible assembly, one heap serves several purposes. A heap is a list of reserved
//! blocks. The beginning of each block is committed.
//!
//! Source: contract `Loader`, `loaderheap.h`, `loaderallocator.hpp`, `virtualcallstub.h`; `docs/internals/containers.md#loader-heaps`.

use std::sync::Arc;

use crate::base::hash::Set;
use crate::base::missed::watched;
use crate::base::{Addr, AddrRange, Answer, Collector, Missing, NoteKind, NoteReason, PAGE};
use crate::contract::Descriptor;
use crate::data::{Bound, Field, LoaderAllocator, LoaderHeap, LoaderHeapBlock, Module, VirtualCallStubManager, bind, globals};
use crate::memory::Memory;
use crate::model::LoaderHeapKind;

/// Maximum number of blocks of all heaps: 64 GiB in blocks of 64 KiB.
const MAX_BLOCKS: usize = 1 << 20;
/// Maximum size of a block in bytes. A large request, such as a table of a module, gets a block of the same size.
const MAX_BLOCK: u64 = 1 << 32;

/// A block of a loader heap: reserved memory whose beginning is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoaderBlock {
    /// Address range of the block.
    pub(crate) range: AddrRange,
    /// Purpose of the heap.
    pub(crate) heap: LoaderHeapKind,
}

/// Reader of loader heaps.
#[derive(Debug)]
pub(crate) struct LoaderHeaps {
    memory: Arc<Memory>,
    module: Bound<Module>,
    allocator: Bound<LoaderAllocator>,
    manager: Bound<VirtualCallStubManager>,
    heap: Bound<LoaderHeap>,
    block: Bound<LoaderHeapBlock>,
    /// Variables that point to method tables which are in a loader heap of every process.
    known: Vec<Addr>,
}

impl LoaderHeaps {
    /// Binds to a runtime; `None` if its descriptor does not have the layouts.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Option<LoaderHeaps> {
        Some(LoaderHeaps {
            memory: Arc::clone(memory),
            module: bind!(d, Module { LoaderAllocator }).ok()?,
            allocator: bind!(d, LoaderAllocator {
                HighFrequencyHeap?, LowFrequencyHeap?, StaticsHeap?, StubHeap?, ExecutableHeap?, FixupPrecodeHeap?, NewStubPrecodeHeap?,
                DynamicHelpersStubHeap?, VirtualCallStubManager?
            })
            .ok()?,
            manager: bind!(d, VirtualCallStubManager { IndcellHeap?, CacheEntryHeap? }).ok()?,
            heap: bind!(d, LoaderHeap { FirstBlock }).ok()?,
            block: bind!(d, LoaderHeapBlock { Next, VirtualAddress, VirtualSize }).ok()?,
            known: [globals::ObjectMethodTable, globals::StringMethodTable].iter().filter_map(|global| global.of(d).ok()).collect(),
        })
    }

    /// The blocks of the loader allocators of `modules`, by address. Empty, with a note, if the blocks cannot be loader heaps, which shows that the
    /// layout is wrong. `mapped` is the sorted list of all memory of the process, if the dump has that list.
    pub(crate) fn blocks(&self, modules: &[Addr], mapped: Option<&[AddrRange]>) -> Answer<Vec<LoaderBlock>> {
        let notes = Collector::new();
        let (mut out, missed) = watched(|| self.listed(modules, &notes));
        out.sort_by_key(|b| (b.range, b.heap));
        match self.refuted(&out, mapped).filter(|_| !modules.is_empty()) {
            None => missed.tell(),
            // If the lists are not in the dump, a contradiction proves nothing.
            Some(why) => {
                let cut = missed.first().is_some();
                let (reason, why): (NoteReason, String) = match cut {
                    true => (Missing::NativeMemory.into(), "their lists are not in the dump".into()),
                    false => (NoteKind::Invalid.into(), why),
                };
                notes.add(reason, None, format!("loader heaps cannot be identified: {why}"));
                out.clear();
            }
        }
        notes.finish(out)
    }

    fn listed(&self, modules: &[Addr], notes: &Collector) -> Vec<LoaderBlock> {
        let (mut out, mut seen, mut allocators) = (Vec::new(), Set::default(), Set::default());
        for module in modules {
            if let Some(allocator) = self.module.pointer(&self.memory, *module, Module::LoaderAllocator).filter(|a| allocators.insert(*a)) {
                self.of_allocator(allocator, &mut seen, &mut out, notes);
            }
        }
        out
    }

    fn pointer(&self, at: Addr) -> Option<Addr> {
        self.memory.ptr(at).ok().filter(|p| !p.is_null())
    }

    fn of_allocator(&self, allocator: Addr, seen: &mut Set<Addr>, out: &mut Vec<LoaderBlock>, notes: &Collector) {
        let manager = self.allocator.pointer(&self.memory, allocator, LoaderAllocator::VirtualCallStubManager);
        let of_manager = |field| manager.and_then(|at| self.manager.place(at, field));
        let own = |field: Field<LoaderAllocator, Addr>| self.allocator.place(allocator, field);
        // The order matters, because one heap of a collectible assembly serves as the first three heaps, and is listed as the first of them.
        let heaps = [
            (LoaderHeapKind::HighFrequency, own(LoaderAllocator::HighFrequencyHeap)),
            (LoaderHeapKind::LowFrequency, own(LoaderAllocator::LowFrequencyHeap)),
            (LoaderHeapKind::Statics, own(LoaderAllocator::StaticsHeap)),
            (LoaderHeapKind::Stub, own(LoaderAllocator::StubHeap)),
            (LoaderHeapKind::Executable, own(LoaderAllocator::ExecutableHeap)),
            (LoaderHeapKind::FixupPrecode, own(LoaderAllocator::FixupPrecodeHeap)),
            (LoaderHeapKind::StubPrecode, own(LoaderAllocator::NewStubPrecodeHeap)),
            (LoaderHeapKind::DynamicHelpers, own(LoaderAllocator::DynamicHelpersStubHeap)),
            (LoaderHeapKind::IndirectionCells, of_manager(VirtualCallStubManager::IndcellHeap)),
            (LoaderHeapKind::CacheEntries, of_manager(VirtualCallStubManager::CacheEntryHeap)),
        ];
        for (kind, at) in heaps {
            if let Some(heap) = at.and_then(|at| self.pointer(at)).filter(|heap| seen.insert(*heap)) {
                self.of_heap(kind, heap, seen, out, notes);
            }
        }
    }

    fn of_heap(&self, heap: LoaderHeapKind, at: Addr, seen: &mut Set<Addr>, out: &mut Vec<LoaderBlock>, notes: &Collector) {
        let mut next = self.heap.pointer(&self.memory, at, LoaderHeap::FirstBlock);
        while let Some(block) = next {
            if out.len() >= MAX_BLOCKS || !seen.insert(block) {
                return notes.add(NoteKind::LimitHit, block, format!("the block list of a {heap} loader heap has a cycle or is too long"));
            }
            let start = self.block.get(&self.memory, block, LoaderHeapBlock::VirtualAddress);
            let size = self.block.get(&self.memory, block, LoaderHeapBlock::VirtualSize);
            let Some((start, size)) = start.zip(size) else { return };
            let range = AddrRange::new(start, start.plus(size));
            // Blocks are reserved in whole pages with mmap or VirtualAlloc.
            if start.is_null()
                || !start.is_aligned(PAGE)
                || !Addr(size).is_aligned(PAGE)
                || size == 0
                || size > MAX_BLOCK
                || range.len() != size
            {
                return notes.add(NoteKind::Invalid, block, format!("the block list of a {heap} loader heap has an invalid block"));
            }
            out.push(LoaderBlock { range, heap });
            next = self.block.pointer(&self.memory, block, LoaderHeapBlock::Next);
        }
    }

    /// The reason why `blocks`, sorted, cannot be loader heaps.
    fn refuted(&self, blocks: &[LoaderBlock], mapped: Option<&[AddrRange]>) -> Option<String> {
        for (a, b) in blocks.iter().zip(blocks.iter().skip(1)) {
            if a.range.end > b.range.start {
                return Some(format!("blocks of the {} and the {} heap overlap at {}", a.heap, b.heap, b.range.start));
            }
        }
        // The first page of each block is committed.
        let is_mapped =
            |at: Addr| mapped.is_none_or(|list| list.get(list.partition_point(|r| r.end <= at)).is_some_and(|r| r.contains(at)));
        if let Some(block) = blocks.iter().find(|b| !is_mapped(b.range.start)) {
            return Some(format!("a block of the {} heap begins at {}, which was not mapped", block.heap, block.range.start));
        }
        let mut tables = self.known.iter().filter_map(|variable| self.pointer(*variable));
        let around = |at: Addr| blocks.partition_point(|b| b.range.start <= at).checked_sub(1).and_then(|i| blocks.get(i));
        let lost = |at: &Addr| !around(*at).is_some_and(|b| b.range.contains(*at));
        tables.find(lost).map(|at| format!("the method table at {at} is in none of them"))
    }
}
