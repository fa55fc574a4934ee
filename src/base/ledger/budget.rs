//! Budgets for the searches while a dump is opened, and for reading the types and lists of one answer.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::tick;
use crate::base::{Collector, NoteKind, Remedy, thousands};

/// Limits on steps, bytes and memory. All searches of one opening share a budget, so that many short searches cost no more than a long one.
/// Other budgets are shared by all types, modules or lists of an answer.
///
/// The limits grow with the size of the dump. The fixed part of a limit is fifty times what opening any dump of the corpus takes, so only a
/// forged dump should reach a limit. A search that reaches a limit ends with the results so far, and [`Budget::note`] adds a note.
#[derive(Debug)]
pub struct Budget {
    steps: Allowance,
    bytes: Allowance,
    memory: Allowance,
    /// Whether the user's limit on memory is the lower one.
    lowered: bool,
}

/// The limit on one kind of cost.
#[derive(Debug)]
struct Allowance {
    total: u64,
    left: AtomicU64,
    /// Size of the first request that was refused; 0 if none was.
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

/// Fixed parts of the limits, independent of the size of the dump: steps, bytes read, and bytes of memory. A step takes about 50 ns;
/// reading a byte takes a tenth of that.
const STEPS: u64 = 1 << 22;
const BYTES: u64 = 1 << 30;
const MEMORY: u64 = 64 << 20;
/// Fixed part of the memory for the types, or the modules, of an answer, in bytes.
const MEMORY_OF_TYPES: u64 = 32 << 20;
/// Lower bound in bytes of the memory limit. With less memory, a dump cannot be opened.
const FIXED_MEMORY: u64 = 4 << 20;

impl Budget {
    /// The budget for a dump of `captured` bytes. `max_memory` additionally limits the memory, but to no less than 4 MiB.
    pub fn new(captured: u64, max_memory: Option<u64>) -> Budget {
        Budget::with(MEMORY, captured, max_memory)
    }

    /// The budget for names, fields and modules of one answer, for a dump of `captured` bytes.
    pub fn of_types(captured: u64, max_memory: Option<u64>) -> Budget {
        Budget::with(MEMORY_OF_TYPES, captured, max_memory)
    }

    fn with(memory: u64, captured: u64, max_memory: Option<u64>) -> Budget {
        let genuine = memory.saturating_add(captured);
        let memory = genuine.min(max_memory.map_or(u64::MAX, |most| most.max(FIXED_MEMORY)));
        Budget {
            lowered: memory < genuine,
            steps: Allowance::new(STEPS.saturating_add(captured / 32)),
            bytes: Allowance::new(BYTES.saturating_add(captured.saturating_mul(4))),
            memory: Allowance::new(memory),
        }
    }

    /// An unspent budget with the same limits.
    pub fn renewed(&self) -> Budget {
        let again = |part: &Allowance| Allowance::new(part.total);
        Budget { steps: again(&self.steps), bytes: again(&self.bytes), memory: again(&self.memory), lowered: self.lowered }
    }

    /// Charges `n` steps: entries of tables and lists that are visited one by one. Returns false if fewer steps are left. After the first
    /// refusal, all requests are refused, so that all searches end.
    pub fn steps(&self, n: u64) -> bool {
        !self.steps.met() && self.steps.take(n)
    }

    /// Charges `n` bytes to scan. Returns false if fewer bytes are left. After the first refusal, all requests are refused.
    pub fn bytes(&self, n: u64) -> bool {
        !self.bytes.met() && self.bytes.take(n)
    }

    /// Charges `n` bytes of this process's memory. Returns false if fewer bytes are left. After a refusal, a smaller request may still succeed.
    pub fn memory(&self, n: u64) -> bool {
        self.memory.take(n)
    }

    /// Whether any limit was reached.
    pub fn met(&self) -> bool {
        self.steps.met() || self.bytes.met() || self.memory.met()
    }

    /// Adds a note for each limit that was reached. `what` is the activity, and begins the note: `reading tasks`.
    pub fn note(&self, what: &str, notes: &Collector) {
        let more = self.lowered.then_some(Remedy::MoreMemory);
        for (part, remedy, of) in [
            (
                &self.steps,
                None,
                "steps: tables and lists in the dump are longer, or lead to the same place more often, than in a genuine dump; the rest is left out",
            ),
            (&self.bytes, None, "bytes read: the dump maps the same bytes at more addresses than a genuine dump; the rest is left out"),
            (
                &self.memory,
                more,
                "bytes of memory, which depends on the size of the dump and on the limit for memory; the rest is left out",
            ),
        ] {
            if part.met() {
                let text = format!("{what} ended at its limit of {} {of}", thousands(part.total));
                notes.add(NoteKind::LimitHit.supplied_by(remedy), None, text);
            }
        }
    }
}

/// The limit on the number of entries that one answer reads from structures that do not share memory. All such entries together fit into
/// the dump, unless it is forged and maps the same bytes at many addresses.
#[derive(Debug)]
pub struct Disjoint(Allowance);

impl Disjoint {
    /// The limit for entries of `entry_bytes` in a dump of `dump_bytes`.
    pub fn new(dump_bytes: u64, entry_bytes: u64) -> Disjoint {
        Disjoint(Allowance::new(dump_bytes.checked_div(entry_bytes).unwrap_or(0)))
    }

    /// Charges `n` entries. Returns false if fewer entries are left. After the first refusal, all requests are refused.
    pub fn take(&self, n: u64) -> bool {
        !self.0.met() && self.0.take(n)
    }

    /// Adds a note if the limit was exceeded. `what` is the activity, and begins the note.
    pub fn note(&self, what: &str, notes: &Collector) {
        if self.0.met() {
            let text = format!(
                "{what} ended at the limit of {} words or entries, which would fill the dump: it maps the same bytes at many addresses; the rest is left out",
                thousands(self.0.total)
            );
            notes.add(NoteKind::LimitHit, None, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_and_noted_once() {
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
    fn entries_are_limited_by_the_size_of_the_dump() {
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
