//! The phase of the GC when the dump was taken.
//!
//! Four sources of evidence, none of which covers every phase:
//!
//! * `StructureInvalidCount` is set during the plan, relocate, compact and sweep phases of blocking collections, not before or after.
//! * `c_gc_state` covers background collections only.
//! * The records of collections: the newest collection is counted when it begins, and recorded when it ends.
//! * `GCThread` is the runtime thread that suspended the others. It is set before a collection begins, and also for purposes other than
//!   collections. Server GC threads are not runtime threads and never appear there, but the threads that they suspend are flagged. A
//!   collection takes away all allocation contexts before it is counted, so no blocking collection is running if a thread has one.
//!
//! Evidence: `docs/internals/gc-structures.md#during-a-collection`.

use super::{Facts, Gc};
use crate::base::{Addr, Collector, NoteKind};
use crate::clr::threads::Thread;
use crate::contract::Descriptor;
use crate::memory::Memory;
use crate::model::{GcPhase, LastCollection};

/// The runtime thread that suspended the others; null if no thread did.
pub(super) fn suspended_by(memory: &Memory, d: &Descriptor) -> Option<Addr> {
    let variable = d.pointer("GCThread").ok().filter(|a| !a.is_null())?;
    memory.ptr(variable).ok()
}

impl Gc {
    /// Determines the phase of the GC from `threads` and from the records of collections, which must have been searched for already.
    pub(super) fn determine_phase(&mut self, threads: &[Thread], notes: &Collector) {
        let blocking = self.collections.as_ref().and_then(|c| c.blocking);
        self.facts.phase = phase(&self.facts, blocking, threads, !self.descriptor.is_native_aot());
        let newest = self.collections.as_ref().and_then(|c| c.process.counts.first().copied());
        if let Some(collections) = &mut self.collections.data {
            let of_phase = self.facts.phase;
            let at_rest = matches!(of_phase, Some(GcPhase::None | GcPhase::Suspending));
            let recorded = &collections.process.recorded;
            let ended = |last: &LastCollection| at_rest || recorded.iter().any(|r| r.index == last.index);
            let last = collections.process.last.take().filter(|last| !(at_rest && is_ahead(last.index, newest)));
            let last = last.map(|last| if ended(&last) { last } else { last.unfinished() });
            collections.process.last = last;
        }
        match self.facts.phase {
            Some(GcPhase::Moving) => notes.add(
                NoteKind::GcMoving,
                None,
                "a garbage collection was compacting or sweeping the heap when the dump was taken: objects may be half moved, so \
                 answers about them may be wrong; take another dump",
            ),
            Some(GcPhase::Marking) => {
                let which = newest.map_or_else(String::new, |n| format!(" (GC #{n})"));
                notes.add(
                    NoteKind::GcInProgress,
                    None,
                    format!(
                        "a blocking garbage collection{which} was running when the dump was taken, but was not moving objects: the heap can \
                         be walked"
                    ),
                );
            }
            Some(GcPhase::Background) => notes.add(
                NoteKind::GcInProgress,
                None,
                "a background garbage collection was running when the dump was taken: the heap can be walked, but includes garbage \
                 that is not swept yet",
            ),
            Some(GcPhase::Suspending | GcPhase::None) | None => {}
        }
    }
}

/// Whether `index` is that of a collection that has begun and is not counted yet. `newest` is the number of collections. While no collection runs, settings
/// with this index are another variable: small numbers are common.
fn is_ahead(index: u64, newest: Option<u64>) -> bool {
    newest.is_some_and(|newest| index > newest)
}

/// The phase of the GC. `blocking`: whether a blocking collection was running according to the records.
fn phase(facts: &Facts, blocking: Option<bool>, threads: &[Thread], coreclr: bool) -> Option<GcPhase> {
    if facts.structures_valid == Some(false) {
        return Some(GcPhase::Moving);
    }
    let suspending = facts.suspended_by.is_some_and(|thread| !thread.is_null());
    let allocating = || threads.iter().any(|t| t.context.is_some_and(|c| !c.pointer.is_null()));
    let at_rest = (facts.suspended_by.is_some() && !suspending && !facts.server) || allocating();
    let blocking = if at_rest { Some(false) } else { blocking };
    match (blocking, facts.background_runs()) {
        (Some(true), _) => facts.structures_valid.map(|_| GcPhase::Marking),
        (_, Some(true)) => Some(GcPhase::Background),
        (None, _) | (_, None) => None,
        (Some(false), Some(false)) if suspending || (coreclr && threads.iter().any(Thread::is_being_suspended)) => {
            Some(GcPhase::Suspending)
        }
        (Some(false), Some(false)) => Some(GcPhase::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(server: bool, valid: Option<bool>, state: Option<u64>, suspended_by: Option<u64>) -> Facts {
        Facts {
            identifiers: Vec::new(),
            server,
            regions: true,
            background: true,
            heaps: Vec::new(),
            heap_count: None,
            max_generation: None,
            total_generations: 5,
            structures_valid: valid,
            suspended_by: suspended_by.map(Addr),
            phase: None,
            state,
            adaptation_mode: None,
            lowest: None,
            highest: None,
        }
    }

    #[test]
    fn a_collection_that_is_not_counted_yet_must_be_running() {
        assert!(is_ahead(2, Some(1)));
        assert!(!is_ahead(1, Some(1)) && !is_ahead(1, Some(3)) && !is_ahead(2, None));
    }

    #[test]
    fn each_source_of_evidence_is_used_for_the_phases_that_it_covers() {
        let of = |server, valid, state, by, blocking| phase(&facts(server, valid, state, by), blocking, &[], true);
        let (ok, free, marks) = (Some(true), Some(2), Some(0));
        // Structures are invalid only during a blocking collection, so this decides before all other evidence.
        assert_eq!(of(false, Some(false), free, Some(0), Some(false)), Some(GcPhase::Moving));
        assert_eq!(of(true, Some(false), marks, None, None), Some(GcPhase::Moving));
        // Workstation GC: if no thread is suspended, no blocking collection is running.
        assert_eq!(of(false, ok, free, Some(0), Some(true)), Some(GcPhase::None));
        assert_eq!(of(false, ok, free, Some(0), None), Some(GcPhase::None));
        assert_eq!(of(false, ok, free, Some(9), Some(true)), Some(GcPhase::Marking));
        assert_eq!(of(false, ok, free, Some(9), Some(false)), Some(GcPhase::Suspending));
        assert_eq!(of(false, ok, free, Some(9), None), None);
        // Server GC threads never appear as the suspending thread.
        assert_eq!(of(true, ok, free, Some(0), Some(true)), Some(GcPhase::Marking));
        assert_eq!(of(true, ok, free, Some(0), None), None);
        assert_eq!(of(true, ok, free, Some(0), Some(false)), Some(GcPhase::None));
        // A blocking collection may run during a background one.
        assert_eq!(of(true, ok, marks, Some(0), Some(true)), Some(GcPhase::Marking));
        assert_eq!(of(true, ok, marks, Some(0), Some(false)), Some(GcPhase::Background));
        // Missing evidence leaves the phase unknown.
        assert_eq!(of(false, ok, None, Some(0), Some(false)), None);
        assert_eq!(of(false, None, free, None, Some(true)), None);
        assert_eq!(of(false, ok, free, None, None), None);
    }
}
