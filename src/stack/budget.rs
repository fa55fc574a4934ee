//! The budget for walking all stacks of a process.

use crate::base::len64;

/// Number of reads for all stacks, in equal shares.
const READS: u64 = 1 << 25;
/// Number of additional reads for each byte of a stack.
const READS_OF_A_BYTE: u64 = 4;
/// Number of frames for all stacks, in equal shares.
const FRAMES: u64 = 1 << 18;
/// Bytes of a stack for each additional frame: calls align the stack pointer to 16 bytes.
const FRAME_BYTES: u64 = 16;
/// Bytes of memory for the references in the frames of all stacks, in equal shares.
const MEMORY: u64 = 16 << 20;
/// Additional bytes of memory for each byte of the dump, in proportion to the sizes of stacks.
const MEMORY_OF_A_BYTE: u64 = 2;
/// Factor on the memory for walks that keep registers as well.
const WITH_REGISTERS: u64 = 3;
/// Bytes of memory for all stacks that are allowed even if the limit is lower.
const FIXED_MEMORY: u64 = 4 << 20;

/// The budget of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Number of reads of code, unwind info, GC info and the stack. Steps that take as long as a read count as reads.
    pub(crate) reads: u64,
    /// Number of frames.
    pub(crate) frames: u64,
    /// Bytes of memory for slots, registers and gaps.
    pub(crate) memory: u64,
}

/// The budget for walking all stacks of a process.
///
/// The part of a stack depends on the number of its bytes in the dump, not on which other stacks are walked. Answers therefore do not depend on
/// the order of walks or on earlier queries. The sum of all parts is proportional to the size of the dump if stacks do not share bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkBudget {
    /// Number of stacks.
    stacks: u64,
    /// Bytes of all stacks.
    bytes: u64,
    memory: u64,
    /// Additional bytes of memory for all stacks, in proportion to their sizes.
    memory_of_bytes: u64,
}

impl WalkBudget {
    /// The budget for stacks of these sizes in a dump of `dump_bytes` bytes. `max_memory` limits the memory in equal shares, and separately the
    /// memory in proportion to sizes. Both together may be twice `max_memory`.
    pub(crate) fn new(dump_bytes: u64, stacks: &[u64], max_memory: Option<u64>) -> WalkBudget {
        let most = max_memory.map_or(u64::MAX, |most| most.max(FIXED_MEMORY));
        WalkBudget {
            stacks: len64(stacks.len()).max(1),
            bytes: stacks.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)).max(1),
            memory: MEMORY.min(most),
            memory_of_bytes: dump_bytes.saturating_mul(MEMORY_OF_A_BYTE).min(most),
        }
    }

    /// The part of a stack of `bytes` bytes. `registers` allows more memory, for a walk that also keeps registers.
    pub(crate) fn part(&self, bytes: u64, registers: bool) -> Allowance {
        let share = |all: u64| all.checked_div(self.stacks).unwrap_or(0);
        let of_bytes = u128::from(self.memory_of_bytes).saturating_mul(u128::from(bytes)).checked_div(u128::from(self.bytes)).unwrap_or(0);
        let memory = share(self.memory).saturating_add(u64::try_from(of_bytes).unwrap_or(u64::MAX));
        Allowance {
            reads: share(READS).saturating_add(bytes.saturating_mul(READS_OF_A_BYTE)),
            frames: share(FRAMES).saturating_add(bytes / FRAME_BYTES),
            memory: if registers { memory.saturating_mul(WITH_REGISTERS) } else { memory },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_parts_is_proportional_to_the_dump() {
        let dump = 20 << 20;
        for (count, bytes) in [(1u64, dump), (100_000, dump / 100_000), (100_000, 0), (1, 0)] {
            let stacks = vec![bytes; usize::try_from(count).unwrap()];
            let part = WalkBudget::new(dump, &stacks, None).part(bytes, false);
            assert!(part.reads * count <= READS + READS_OF_A_BYTE * dump, "{part:?}");
            assert!(part.frames * count <= FRAMES + dump / FRAME_BYTES, "{part:?}");
            assert!(part.memory * count <= MEMORY + MEMORY_OF_A_BYTE * dump, "{part:?}");
        }
    }

    #[test]
    fn the_part_of_an_overflowed_stack_suffices_for_all_of_its_frames() {
        let budget = WalkBudget::new(12 << 20, &[8 << 20, 4096, 4096, 0], None);
        let part = budget.part(8 << 20, false);
        assert!(part.frames > 500_000 && part.reads > 64 * 500_000 && part.memory > 40 * 500_000, "{part:?}");
        assert!(WalkBudget::new(12 << 20, &[8 << 20], Some(1 << 20)).part(8 << 20, false).memory <= 8 << 20);
    }
}
