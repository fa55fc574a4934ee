//! The stack walks that a runtime caches, and the plan that they follow.

use std::sync::{Arc, OnceLock};

use crate::base::missed::Kept;
use crate::base::{Addr, AddrRange};
use crate::stack::WalkBudget;
use crate::stack::walked::Walk;

/// How to walk the stack of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the thread's registers.
    Walk {
        /// The used part of the stack, if this part is in the dump. The used part ends before the next higher stack pointer of another thread.
        /// `None` for a thread on its signal stack.
        stack: Option<AddrRange>,
        /// For a thread on its signal stack: the used part of its original stack.
        own: Option<AddrRange>,
        /// Number of captured bytes of the stack, for the walk's share of the budget. Each byte is counted for one walk only.
        bytes: u64,
    },
    /// Not at all: the stack belongs to the `Thread` at this address and is walked only for that thread.
    Claimed(Addr),
}

/// The plan for walking all stacks.
#[derive(Debug)]
pub(super) struct Plan {
    /// How to walk each stack, by index in the list of threads.
    ways: Vec<Way>,
    budget: WalkBudget,
}

impl Plan {
    /// Creates a plan. `ways` has an entry for each thread in the list.
    pub(super) const fn new(ways: Vec<Way>, budget: WalkBudget) -> Plan {
        Plan { ways, budget }
    }

    /// How to walk the stack of the thread at `index` of the list.
    pub(super) fn way(&self, index: usize) -> Way {
        self.ways.get(index).copied().unwrap_or(Way::Walk { stack: None, own: None, bytes: 0 })
    }

    /// The budget shared by all walks.
    pub(super) const fn budget(&self) -> &WalkBudget {
        &self.budget
    }
}

type KeptWalk = OnceLock<Kept<Arc<Walk>>>;

/// The cached walks of a runtime's threads, by index in the thread list. Most commands request the same walks several times. A stack is walked at
/// most twice: once without and once with the references in its frames. Walks that return registers are not cached.
#[derive(Debug, Default)]
pub(in crate::session) struct KeptWalks {
    pub(super) plan: OnceLock<Plan>,
    pub(super) walks: OnceLock<Vec<[KeptWalk; 2]>>,
}
