//! Allocation contexts, and the items that `GetHeapData` returns.

use super::finalizers::{FillPointers, fault};
use super::{HeapId, Reading, names};
use crate::base::missed::tried;
use crate::base::{Addr, NoteKind};
use crate::clr::threads::{AllocContext, Thread, VmContext};
use crate::data::{self, Field, GCHeap, Inline};
use crate::model::{AllocContextModel, ContextOwner, FinalizeQueueModel, GenerationTableEntry, HeapDetail, NamedCount};

impl Reading<'_> {
    /// Every allocation context that holds memory or has a nonzero total, per thread and per generation. The global one is always
    /// included if it is in the dump.
    pub(super) fn contexts(&self, threads: &[Thread]) -> Vec<AllocContextModel> {
        let row = |owner, owner_id, heap, c: AllocContext| AllocContextModel {
            owner,
            owner_id,
            heap,
            alloc_heap: self.heap_of_instance(c.alloc_heap),
            home_heap: self.heap_of_instance(c.home_heap),
            pointer: c.pointer,
            limit: c.limit,
            allocated_bytes: c.bytes,
            allocated_bytes_uoh: c.bytes_uoh,
        };
        // Damage to segments is reported by the answers that show them.
        let (segments, all) = tried(|| {
            let part = self.part();
            (part.segments(), part.notes.notes().complete() && !self.facts.moves_objects())
        });
        let around = |at: Addr| segments.iter().find(|s| s.start <= at && at < s.reserved).map(|s| s.heap);
        let check = |what: &str, c: &AllocContext| {
            let outside = !c.pointer.is_null() && !segments.iter().any(|s| s.start <= c.pointer && c.pointer <= s.reserved);
            if outside && all {
                let what = format!("the allocation context of {what} is at {}, outside of all segments", c.pointer);
                self.notes.add(NoteKind::Invalid, c.pointer, what);
            }
        };
        // Every collection empties the contexts; the totals remain.
        let used = |c: &AllocContext| !c.pointer.is_null() || [c.bytes, c.bytes_uoh].into_iter().flatten().any(|n| n != 0);
        let of_threads = threads.iter().filter_map(|t| Some((t.id.map(u64::from), t.context.filter(used)?)));
        let of_thread = |(id, c): (Option<u64>, AllocContext)| {
            check(&id.map_or_else(|| "a thread".to_string(), |id| format!("thread {id}")), &c);
            row(ContextOwner::Thread, id, around(c.pointer), c)
        };
        let mut out: Vec<AllocContextModel> = of_threads.map(of_thread).collect();
        for heap in &self.facts.heaps {
            for generation in 0..self.facts.total_generations {
                let context = self.generation_context(*heap, generation);
                if let Some(c) = &context {
                    check(&format!("generation {generation} of heap {}", heap.index), c);
                    if c.pointer.is_null() != c.limit.is_null() && all {
                        let what = format!("heap {}: the allocation context of generation {generation} has only one bound", heap.index);
                        self.notes.add(NoteKind::Invalid, c.pointer, what);
                    }
                }
                out.extend(context.filter(used).map(|c| row(ContextOwner::Generation, Some(generation), Some(heap.index), c)));
            }
        }
        out.extend(self.global_context().map(|c| {
            check("the process", &c);
            row(ContextOwner::Global, None, around(c.pointer), c)
        }));
        out
    }

    /// Index of the heap of the `GCHeap` at `instance`, which points to its `gc_heap`.
    pub(super) fn heap_of_instance(&self, instance: Option<Addr>) -> Option<u64> {
        let heap = data::GCHeapInstance::GCHeap.bind(&self.descriptor).ok()?;
        let instance = instance.filter(|a| !a.is_null())?;
        let heap = tried(|| heap.get(&self.memory, instance))?;
        self.facts.heaps.iter().find(|h| h.address == Some(heap)).map(|h| h.index)
    }

    fn generation_context(&self, heap: HeapId, generation: u64) -> Option<AllocContext> {
        let entry = self.generation_entry(heap, generation)?;
        self.context_at(self.generation.place(entry, data::Generation::AllocationContext)?)
    }

    /// The process-wide context used during startup; nested in the VM's own structure since .NET 10.
    fn global_context(&self) -> Option<AllocContext> {
        let at = self.descriptor.pointer("GlobalAllocContext").ok().filter(|a| !a.is_null())?;
        self.context_at(VmContext::bind(&self.descriptor).of_gc(at))
    }

    fn context_at(&self, at: Addr) -> Option<AllocContext> {
        self.context.as_ref()?.read(&self.memory, at)
    }

    pub(super) fn detail(&self, heap: HeapId) -> HeapDetail {
        for e in self.places.all_unusable() {
            self.notes.add(NoteKind::Invalid, None, e.to_string());
        }
        let pointer = |field, what: &str| self.of_heap(heap, field, what);
        let array = |field: Field<GCHeap, Inline>, length: &str, names: &[&str], what: &str| {
            let length = self.descriptor.number(length).ok()?;
            self.named_counts(self.places.at(heap, field)?, length, names, &format!("heap {}: {what}", heap.index))
        };
        HeapDetail {
            mark_array: pointer(GCHeap::MarkArray, "mark array"),
            next_sweep_object: pointer(GCHeap::NextSweepObj, "next sweep object"),
            background_saved_lowest: pointer(GCHeap::BackgroundMinSavedAddr, "saved lowest address"),
            background_saved_highest: pointer(GCHeap::BackgroundMaxSavedAddr, "saved highest address"),
            alloc_allocated: pointer(GCHeap::AllocAllocated, "end of allocation"),
            ephemeral_segment: pointer(GCHeap::EphemeralHeapSegment, "ephemeral segment"),
            card_table: pointer(GCHeap::CardTable, "card table"),
            saved_sweep_segment: pointer(GCHeap::SavedSweepEphemeralSeg, "saved sweep segment"),
            saved_sweep_start: pointer(GCHeap::SavedSweepEphemeralStart, "saved sweep start"),
            internal_root_array: pointer(GCHeap::InternalRootArray, "internal root array"),
            internal_root_array_index: self.of_heap(heap, GCHeap::InternalRootArrayIndex, "index of the internal root array"),
            heap_analyze_success: self.heap_field(heap, GCHeap::HeapAnalyzeSuccess).map(|n| n != 0),
            generation_table: (0..self.facts.total_generations).map(|g| self.table_entry(heap, g)).collect(),
            finalize_queue: pointer(GCHeap::FinalizeQueue, "finalization queue").and_then(|a| self.finalize_queue(heap, a)),
            interesting_data: array(GCHeap::InterestingData, "InterestingDataLength", names::INTERESTING_DATA, "interesting data"),
            compact_reasons: array(GCHeap::CompactReasons, "CompactReasonsLength", names::COMPACT_REASONS, "compact reasons"),
            expand_mechanisms: array(GCHeap::ExpandMechanisms, "ExpandMechanismsLength", names::EXPAND_MECHANISMS, "expand mechanisms"),
            interesting_mechanism_bits: array(
                GCHeap::InterestingMechanismBits,
                "InterestingMechanismBitsLength",
                names::MECHANISM_BITS,
                "mechanism bits",
            ),
            budgets: None,
        }
    }

    fn table_entry(&self, heap: HeapId, generation: u64) -> GenerationTableEntry {
        let entry = self.generation_entry(heap, generation);
        let ptr = |field| self.generation.get(&self.memory, entry?, field);
        let context = self.generation_context(heap, generation);
        // With segments, the youngest generations share one segment.
        let youngest = tried(|| self.heap_field(heap, GCHeap::EphemeralHeapSegment));
        if let (Some(first), Some(ephemeral)) = (ptr(data::Generation::StartSegment), youngest)
            && !self.facts.regions
            && generation < self.facts.oldest()
            && first != ephemeral
            && !self.facts.moves_objects()
        {
            let what =
                format!("heap {}: generation {generation} starts on segment {first}, not on the ephemeral segment {ephemeral}", heap.index);
            self.notes.add(NoteKind::Invalid, entry, what);
        }
        GenerationTableEntry {
            generation,
            start_segment: ptr(data::Generation::StartSegment),
            allocation_start: ptr(data::Generation::AllocationStart),
            context_pointer: context.map(|c| c.pointer),
            context_limit: context.map(|c| c.limit),
            allocated_bytes: context.and_then(|c| c.bytes),
            allocated_bytes_uoh: context.and_then(|c| c.bytes_uoh),
        }
    }

    fn finalize_queue(&self, heap: HeapId, address: Addr) -> Option<FinalizeQueueModel> {
        let queue = self.described_queue(address)?;
        let what = format!("heap {}: finalization queue", heap.index);
        let length = self.capped(Some(address), &what, (queue.length, self.limits.per_heap_array), "fill pointers");
        let fills = self.fill_pointers(&what, FillPointers { length, ..queue });
        let fault = fault(&fills.pointers).filter(|_| fills.whole && length >= 3);
        if let Some(fault) = fault {
            self.notes.add(NoteKind::Invalid, address, format!("{what}: its fill pointers are {fault}"));
        }
        let entries = |(from, to): (Addr, Addr)| Some(to.since(from)? / self.memory.ptr_bytes());
        let [registered, ready] = fills.lists().map(|list| list.filter(|_| fault.is_none()).and_then(entries));
        Some(FinalizeQueueModel { address, fill_pointers: fills.pointers, registered, ready })
    }

    fn named_counts(&self, at: Addr, length: u64, names: &[&str], what: &str) -> Option<Vec<NamedCount>> {
        let word = self.memory.ptr_bytes();
        let entry = |i: u64| {
            let count = self.needed(what, self.memory.word(at.element(i, word)))?;
            let name = usize::try_from(i).ok().and_then(|i| names.get(i)).map_or_else(|| format!("#{i}"), |n| (*n).to_string());
            Some(NamedCount { name, count })
        };
        let length = self.capped(Some(at), what, (length, self.limits.per_heap_array), "counts");
        (0..length).map(entry).collect()
    }

    /// Process-wide mechanism counts; only in workstation builds with `GC_CONFIG_DRIVEN`.
    pub(super) fn global_mechanisms(&self) -> Option<Vec<NamedCount>> {
        let at = self.descriptor.pointer("GCGlobalMechanisms").ok().filter(|a| !a.is_null())?;
        let length = self.descriptor.number("GlobalMechanismsLength").ok()?;
        let word = self.memory.ptr_bytes();
        // Dumps without the runtime's data section do not have the counts, which does not make the answer partial.
        self.memory.bytes(at, length.min(self.limits.per_heap_array).saturating_mul(word)).ok()?;
        self.named_counts(at, length, names::GLOBAL_MECHANISMS, "global mechanisms")
    }
}
