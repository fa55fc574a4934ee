//! Kind and state of the garbage collector.

use super::HeapId;
use crate::base::{Addr, Collector, Limits, Missing, NoteKind};
use crate::contract::{ContractError, Descriptor};
use crate::data::{self, globals};
use crate::memory::Memory;
use crate::model::{GcPhase, GcState};

/// Facts about the garbage collector. A fact is `None` if this runtime does not publish it or it is not in the dump.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Identifiers published by the GC (`GCIdentifiers`).
    pub identifiers: Vec<String>,
    /// Whether the GC is server GC; workstation GC otherwise.
    pub server: bool,
    /// Whether the heap uses regions; segments otherwise.
    pub regions: bool,
    /// Whether the GC was built with background collection.
    pub background: bool,
    /// The heaps.
    pub heaps: Vec<HeapId>,
    /// Heap count reported by the GC; `heaps` may be shorter if parts of the list are not in the dump.
    pub heap_count: Option<u64>,
    /// Oldest generation of the small object heap.
    pub max_generation: Option<u64>,
    /// Entries in the generation table: generations 0 to 2, LOH, POH.
    pub total_generations: u64,
    /// Whether the heap structures were valid; `Some(false)` during the plan phase of a collection.
    pub structures_valid: Option<bool>,
    /// The runtime thread that suspended the others; null if no thread did.
    pub suspended_by: Option<Addr>,
    /// Phase of the GC when the dump was taken.
    pub phase: Option<GcPhase>,
    /// `c_gc_state`: 0 marking, 1 planning, 2 free.
    pub state: Option<u64>,
    /// Dynamic adaptation mode: 0 off, 1 on (DATAS).
    pub adaptation_mode: Option<i32>,
    /// Lowest address of the reserved range.
    pub lowest: Option<Addr>,
    /// Highest address of the reserved range.
    pub highest: Option<Addr>,
}

/// A limit on the memory that the GC commits, as the settings of the process give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetLimit {
    /// A number of bytes.
    Bytes(u64),
    /// The sum of three shares of the physical memory, each in percent.
    Percent {
        /// The shares.
        shares: [u64; 3],
        /// The physical memory in bytes, if that is a setting, too.
        memory: Option<u64>,
    },
}

impl SetLimit {
    /// The limit in bytes if the physical memory is `memory`. Each share is rounded down (`compute_hard_limit` in gc.cpp).
    pub(super) fn of(self, memory: u64) -> Option<u64> {
        match self {
            SetLimit::Bytes(n) => Some(n),
            SetLimit::Percent { shares, .. } => {
                shares.into_iter().map(|share| memory.checked_mul(share).map(|n| n / 100)).try_fold(0, |sum: u64, n| sum.checked_add(n?))
            }
        }
    }
}

/// Returns the limit that the settings of the process give; `None` if they give none. The argument has the properties of the runtime, as in `AppContext`.
pub(crate) type LimitSetting = Box<dyn Fn(&[(String, String)]) -> Option<SetLimit> + Send + Sync>;

/// `c_gc_state` without a background collection.
const FREE: u64 = 2;
/// Oldest generation of the small object heap in every release.
const OLDEST: u64 = 2;

impl Facts {
    /// The facts of the GC of a carved heap, all of them unknown.
    pub(super) fn unknown() -> Facts {
        Facts {
            identifiers: Vec::new(),
            server: false,
            regions: false,
            background: false,
            heaps: vec![HeapId { index: 0, address: None }],
            heap_count: None,
            max_generation: None,
            total_generations: 0,
            structures_valid: None,
            suspended_by: None,
            phase: None,
            state: None,
            adaptation_mode: None,
            lowest: None,
            highest: None,
        }
    }

    /// Oldest generation of the small object heap, or the usual one if the GC does not publish it. At most the number of generations.
    pub(super) fn oldest(&self) -> u64 {
        self.max_generation.unwrap_or(OLDEST).min(self.total_generations)
    }

    pub(super) fn read(memory: &Memory, d: &Descriptor, notes: &Collector, limits: &Limits) -> Result<Facts, ContractError> {
        // The runtime joins with ", " and may leave a trailing comma: drop empty items.
        let text = d.text("GCIdentifiers")?;
        let identifiers: Vec<String> = text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Into::into).collect();
        let is = |name: &str| identifiers.iter().any(|i| i == name);
        let server = is("server");
        if !server && !is("workstation") {
            notes.add(
                NoteKind::Invalid,
                None,
                format!("GC identifiers {text:?} name neither workstation nor server; assuming workstation"),
            );
        }
        let regions = is("regions") || (!is("segments") && !data::Generation::AllocationStart.is_in(d));
        let through = |name: &str| d.pointer(name).ok().filter(|a| !a.is_null());
        let background = is("background");
        let total = d.number("TotalGenerationCount").unwrap_or(5).min(limits.generations);
        let reported = through("NumHeaps").filter(|_| server).and_then(|a| memory.i32(a).ok());
        let heap_count = if server { reported.and_then(|n| u64::try_from(n).ok()) } else { Some(1) };
        let structures_valid = through("StructureInvalidCount").and_then(|a| memory.i32(a).ok()).map(|n| n == 0);
        let max_generation = through("MaxGeneration").and_then(|a| Some((a, memory.u32(a).ok().map(u64::from)?)));
        if let Some((at, n)) = max_generation.filter(|(_, n)| *n >= total) {
            notes.add(
                NoteKind::Invalid,
                at,
                format!("the GC reports {n} as its oldest generation, but has only {total}; assuming {OLDEST}"),
            );
        }
        let mut facts = Facts {
            server,
            regions,
            background,
            heaps: vec![HeapId { index: 0, address: None }],
            heap_count,
            max_generation: max_generation.map(|(_, n)| n).filter(|n| *n < total),
            total_generations: total,
            structures_valid,
            suspended_by: None,
            phase: None,
            // Published only by builds with background collection.
            state: through("CurrentGCState").filter(|_| background).and_then(|a| memory.u32(a).ok()).map(u64::from),
            adaptation_mode: through("DynamicAdaptationMode").filter(|_| is("dynamic_heap")).and_then(|a| memory.i32(a).ok()),
            lowest: through(globals::GCLowestAddress.name()).and_then(|a| memory.ptr(a).ok()),
            highest: through(globals::GCHighestAddress.name()).and_then(|a| memory.ptr(a).ok()),
            identifiers,
        };
        if server {
            facts.heaps = heaps(memory, d, notes, limits, reported)?;
        }
        Ok(facts)
    }

    /// Whether a collection was in progress; `None` if that cannot be determined.
    pub fn gc_in_progress(&self) -> Option<bool> {
        self.phase.map(|phase| matches!(phase, GcPhase::Marking | GcPhase::Moving | GcPhase::Background))
    }

    /// Whether a collection was moving objects, or may have been.
    pub fn moves_objects(&self) -> bool {
        self.phase == Some(GcPhase::Moving)
    }

    /// Whether a background collection was running.
    pub fn background_runs(&self) -> Option<bool> {
        if self.background { self.state.map(|s| s < FREE) } else { Some(false) }
    }

    /// State of the background collection.
    pub fn state_name(&self) -> Option<GcState> {
        Some(match self.state? {
            0 => GcState::Marking,
            1 => GcState::Planning,
            2 => GcState::Free,
            n => GcState::Unknown(n),
        })
    }
}

/// Number of null entries of the heap list that get separate notes; if there are more, they share one.
const FEW_HEAPS: usize = 8;

/// The heaps of server GC. `count` is the number that the runtime reports.
fn heaps(memory: &Memory, d: &Descriptor, notes: &Collector, limits: &Limits, count: Option<i32>) -> Result<Vec<HeapId>, ContractError> {
    let variable = d.pointer("Heaps")?;
    let reported_at = d.pointer("NumHeaps").ok();
    let Some(reported) = count else {
        notes.add(Missing::Heap, reported_at, "the GC heap count is not in the dump");
        return Ok(Vec::new());
    };
    let Some(count) = u64::try_from(reported).ok().filter(|n| *n > 0) else {
        notes.add(NoteKind::Invalid, reported_at, format!("the GC reports an invalid number of heaps: {reported}"));
        return Ok(Vec::new());
    };
    let array = match memory.ptr(variable) {
        Ok(a) => a,
        Err(e) => {
            notes.add(Missing::Heap, e.address, format!("the GC heap list cannot be read: {e}"));
            return Ok(Vec::new());
        }
    };
    // An impossible count does not say where the list ends, so entries are read as long as they lead to heaps.
    let possible = count <= limits.gc_heaps;
    if !possible {
        let what = format!(
            "the GC reports {count} heaps; at most the first {} are read, up to the first one that is null or not in the dump",
            limits.gc_heaps
        );
        notes.add(NoteKind::LimitHit, reported_at, what);
    }
    let (mut out, mut null) = (Vec::new(), Vec::new());
    for index in 0..count.min(limits.gc_heaps) {
        let at = array.element(index, memory.ptr_bytes());
        match memory.ptr(at) {
            Ok(a) if !possible && !memory.has(a) => break,
            Ok(a) if a.is_null() => null.push((index, at)),
            Ok(a) => out.push(HeapId { index, address: Some(a) }),
            Err(e) => {
                notes.add(Missing::Heap, e.address, format!("the GC heap list ends before heap {index}: {e}"));
                break;
            }
        }
    }
    if null.len() > FEW_HEAPS {
        let first = null.first().copied().unwrap_or_default();
        notes.add(
            NoteKind::Invalid,
            first.1,
            format!("{} of {count} GC heaps have a null address; the first is heap {}", null.len(), first.0),
        );
    } else {
        null.iter().for_each(|(index, at)| notes.add(NoteKind::Invalid, *at, format!("GC heap {index} has a null address")));
    }
    Ok(out)
}
