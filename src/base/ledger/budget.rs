//! What the searches of one opening, and what is read of types, may cost.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::tick;
use crate::base::{Collector, NoteKind};

/// Bounds on all searches of one opening together, so that many short searches cost no more than a long one; and on all types or
/// modules of an answer.
///
/// They follow the size of the dump. The fixed part alone is fifty times what opening any dump of the corpus takes, so only a
/// forged one meets them. A search that does ends with what it has, and the opening has a note.
#[derive(Debug)]
pub struct Budget {
    steps: Allowance,
    bytes: Allowance,
    memory: Allowance,
}

/// One kind of cost.
#[derive(Debug)]
struct Allowance {
    total: u64,
    left: AtomicU64,
    /// What the first search that met the bound asked for, or 0.
    refused: AtomicU64,
}

impl Allowance {
    fn new(total: u64) -> Allowance {
        Allowance { total, left: AtomicU64::new(total), refused: AtomicU64::new(0) }
    }

    fn take(&self, n: u64) -> bool {
        tick();
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(n)).is_ok();
        if !taken {
            let _ = self.refused.compare_exchange(0, n.max(1), Ordering::Relaxed, Ordering::Relaxed);
        }
        taken
    }

    fn met(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > 0
    }
}

/// Steps, bytes and memory that every dump may cost. A step takes some 50 ns, reading a byte a tenth.
const STEPS: u64 = 1 << 22;
const BYTES: u64 = 1 << 30;
const MEMORY: u64 = 64 << 20;
/// The same for what is kept of the types, or of the modules, of an answer.
const MEMORY_OF_TYPES: u64 = 32 << 20;
/// Memory without which no dump can be opened.
const FIXED_MEMORY: u64 = 4 << 20;

impl Budget {
    /// The budget for a dump of `captured` bytes. Memory is bounded by `max_memory` as well, but for the fixed part.
    pub fn new(captured: u64, max_memory: Option<u64>) -> Budget {
        Budget::with(MEMORY, captured, max_memory)
    }

    /// The budget of names, fields and modules, for a dump of `captured` bytes.
    pub fn of_types(captured: u64, max_memory: Option<u64>) -> Budget {
        Budget::with(MEMORY_OF_TYPES, captured, max_memory)
    }

    fn with(memory: u64, captured: u64, max_memory: Option<u64>) -> Budget {
        let memory = memory.saturating_add(captured).min(max_memory.map_or(u64::MAX, |most| most.max(FIXED_MEMORY)));
        Budget {
            steps: Allowance::new(STEPS.saturating_add(captured / 32)),
            bytes: Allowance::new(BYTES.saturating_add(captured.saturating_mul(4))),
            memory: Allowance::new(memory),
        }
    }

    /// The same budget, with nothing spent.
    pub fn renewed(&self) -> Budget {
        let again = |part: &Allowance| Allowance::new(part.total);
        Budget { steps: again(&self.steps), bytes: again(&self.bytes), memory: again(&self.memory) }
    }

    /// Takes `n` steps: entries of tables and lists that are looked at one by one. Returns whether they were left; once they
    /// are not, no search goes on.
    pub fn steps(&self, n: u64) -> bool {
        !self.steps.met() && self.steps.take(n)
    }

    /// Takes `n` bytes to scan. Returns whether they were left; once they are not, no search goes on.
    pub fn bytes(&self, n: u64) -> bool {
        !self.bytes.met() && self.bytes.take(n)
    }

    /// Takes `n` bytes of this process's memory. Returns whether they were left; a smaller request may still succeed.
    pub fn memory(&self, n: u64) -> bool {
        self.memory.take(n)
    }

    /// Whether any bound was met.
    pub fn met(&self) -> bool {
        self.steps.met() || self.bytes.met() || self.memory.met()
    }

    /// Adds a note for each bound that `what` met.
    pub fn note(&self, what: &str, notes: &Collector) {
        for (part, of) in [
            (&self.steps, "steps: tables and lists in the dump are longer, or lead to the same place more often, than in a genuine one"),
            (&self.bytes, "bytes read: the dump shows the same bytes at more places than a genuine one"),
            (&self.memory, "bytes of memory, which follows the size of the dump and --max-memory: what is left out would take more"),
        ] {
            if part.met() {
                notes.add(NoteKind::LimitHit, None, format!("{what} ended at its limit of {} {of}", part.total));
            }
        }
    }
}

/// Entries that one answer may read of structures that share no memory: all together are no larger than the dump, unless it is forged
/// and shows the same bytes at many addresses.
#[derive(Debug)]
pub struct Disjoint(Allowance);

impl Disjoint {
    /// For entries of `entry_bytes` in a dump of `dump_bytes`.
    pub fn new(dump_bytes: u64, entry_bytes: u64) -> Disjoint {
        Disjoint(Allowance::new(dump_bytes.checked_div(entry_bytes).unwrap_or(0)))
    }

    /// Takes `n` entries. Returns whether they were left; once they are not, no search goes on.
    pub fn take(&self, n: u64) -> bool {
        !self.0.met() && self.0.take(n)
    }

    /// Adds a note if `what` has more entries than that.
    pub fn note(&self, what: &str, notes: &Collector) {
        if self.0.met() {
            let text = format!(
                "{what} ended at the limit of {} words or entries, which fill the dump: it shows the same bytes at many addresses",
                self.0.total
            );
            notes.add(NoteKind::LimitHit, None, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_spent_for_all_and_noted_once() {
        let budget = Budget::new(3200, Some(8 << 20));
        assert!(budget.steps(STEPS) && budget.steps(100) && !budget.steps(1) && !budget.steps(0));
        assert!(budget.bytes(BYTES) && !budget.bytes(u64::MAX) && !budget.bytes(1));
        assert!(!budget.memory((8 << 20) + 1) && budget.memory(8 << 20));
        let notes = Collector::new();
        budget.note("it", &notes);
        budget.note("it", &notes);
        let notes = notes.into_notes();
        assert!(notes.iter().len() == 3 && !notes.complete());
        let untouched = Collector::new();
        Budget::new(0, None).note("it", &untouched);
        assert!(untouched.into_notes().is_empty());
    }

    #[test]
    fn entries_are_no_more_than_fit_into_the_dump() {
        let entries = Disjoint::new(100, 16);
        assert!(entries.take(6));
        let notes = Collector::new();
        entries.note("it", &notes);
        assert!(notes.notes().complete());
        assert!(!entries.take(1) && !entries.take(0));
        entries.note("it", &notes);
        assert!(!notes.notes().complete());
    }
}
