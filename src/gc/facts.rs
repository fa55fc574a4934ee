//! What kind of garbage collector, and in which state.

use super::HeapId;
use crate::base::{Addr, Collector, Limits, NoteKind};
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
use crate::model::GcState;

/// Facts about the garbage collector. `None` means not published by this runtime or not in the dump.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Identifiers as the GC publishes them.
    pub identifiers: Vec<String>,
    /// Server GC; workstation otherwise.
    pub server: bool,
    /// Regions; segments otherwise.
    pub regions: bool,
    /// Built with background collection.
    pub background: bool,
    /// The heaps.
    pub heaps: Vec<HeapId>,
    /// Number of heaps as the GC says. The list may be shorter where it is not in the dump.
    pub heap_count: Option<u64>,
    /// Oldest generation of the small object heap.
    pub max_generation: Option<u64>,
    /// Entries of the generation table: generations 0 to 2, LOH, POH.
    pub total_generations: u64,
    /// Whether the heap's structures were valid; `Some(false)` in the plan phase of a collection.
    pub structures_valid: Option<bool>,
    /// `c_gc_state`: 0 marking, 1 planning, 2 free.
    pub state: Option<u64>,
    /// Dynamic adaptation mode: 0 off, 1 on (DATAS).
    pub adaptation_mode: Option<i32>,
    /// Lowest and highest address of the reserved range.
    pub lowest: Option<Addr>,
    /// See `lowest`.
    pub highest: Option<Addr>,
}

impl Facts {
    pub(super) fn read(memory: &Memory, d: &Descriptor, notes: &Collector, limits: &Limits) -> Result<Facts, ContractError> {
        // The source joins with ", " and may leave a dangling comma: empty items are dropped.
        let text = d.text("GCIdentifiers")?;
        let identifiers: Vec<String> = text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Into::into).collect();
        let is = |name: &str| identifiers.iter().any(|i| i == name);
        let server = is("server");
        if !server && !is("workstation") {
            notes.add(
                NoteKind::Invalid,
                None,
                format!("the GC calls itself {text:?}: neither workstation nor server; read as workstation"),
            );
        }
        let regions = is("regions") || (!is("segments") && d.offset("Generation", "AllocationStart").is_err());
        let through = |name: &str| d.pointer(name).ok().filter(|a| !a.is_null());
        let background = is("background");
        let total = d.number("TotalGenerationCount").unwrap_or(5).min(limits.generations);
        let heap_count =
            if server { through("NumHeaps").and_then(|a| memory.i32(a).ok()).and_then(|n| u64::try_from(n).ok()) } else { Some(1) };
        let structures_valid = through("StructureInvalidCount").and_then(|a| memory.i32(a).ok()).map(|n| n == 0);
        let mut facts = Facts {
            server,
            regions,
            background,
            heaps: vec![HeapId { index: 0, address: None }],
            heap_count,
            max_generation: through("MaxGeneration").and_then(|a| memory.u32(a).ok()).map(u64::from),
            total_generations: total,
            structures_valid,
            // Published only by builds with background collection.
            state: through("CurrentGCState").filter(|_| background).and_then(|a| memory.u32(a).ok()).map(u64::from),
            adaptation_mode: through("DynamicAdaptationMode").filter(|_| is("dynamic_heap")).and_then(|a| memory.i32(a).ok()),
            lowest: through("GCLowestAddress").and_then(|a| memory.ptr(a).ok()),
            highest: through("GCHighestAddress").and_then(|a| memory.ptr(a).ok()),
            identifiers,
        };
        if server {
            facts.heaps = heaps(memory, d, notes, limits, heap_count)?;
        }
        if structures_valid == Some(false) {
            notes.add(
                NoteKind::GcInProgress,
                None,
                "a garbage collection was rearranging the heap when the dump was taken: objects may be half moved, and any answer \
                 about them may be wrong",
            );
        } else if facts.state.is_some_and(|s| s < 2) {
            notes.add(
                NoteKind::GcInProgress,
                None,
                "a background garbage collection was running when the dump was taken: the heap can be walked, dead objects included",
            );
        }
        Ok(facts)
    }

    /// Whether a collection was in progress; `None` where neither sign of it can be read.
    pub fn gc_in_progress(&self) -> Option<bool> {
        match (self.structures_valid, self.state) {
            (Some(false), _) => Some(true),
            (_, Some(s)) => Some(s < 2),
            (Some(true), None) => Some(false),
            (None, None) => None,
        }
    }

    /// The background collection's state by its name.
    pub fn state_name(&self) -> Option<GcState> {
        Some(match self.state? {
            0 => GcState::Marking,
            1 => GcState::Planning,
            2 => GcState::Free,
            n => GcState::Unknown(n),
        })
    }
}

fn heaps(memory: &Memory, d: &Descriptor, notes: &Collector, limits: &Limits, count: Option<u64>) -> Result<Vec<HeapId>, ContractError> {
    let variable = d.pointer("Heaps")?;
    let Some(count) = count else {
        notes.add(NoteKind::Missing, d.pointer("NumHeaps").ok(), "the number of GC heaps is not in the dump");
        return Ok(Vec::new());
    };
    if count > limits.gc_heaps {
        notes.add(NoteKind::LimitHit, None, format!("the GC claims {count} heaps; the first {} are read", limits.gc_heaps));
    }
    let mut out = Vec::new();
    let array = match memory.ptr(variable) {
        Ok(a) => a,
        Err(e) => {
            notes.add(NoteKind::Missing, e.address, format!("the list of GC heaps: {e}"));
            return Ok(out);
        }
    };
    for index in 0..count.min(limits.gc_heaps) {
        match memory.ptr(array.element(index, memory.ptr_bytes())) {
            Ok(a) if a.is_null() => {
                notes.add(NoteKind::Invalid, array.element(index, memory.ptr_bytes()), format!("GC heap {index} has no address"));
            }
            Ok(a) => out.push(HeapId { index, address: Some(a) }),
            Err(e) => {
                notes.add(NoteKind::Missing, e.address, format!("the list of GC heaps stops before heap {index}: {e}"));
                break;
            }
        }
    }
    Ok(out)
}
