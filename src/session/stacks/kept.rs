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
        /// The memory of the stack in use, if known, up to the stack of the next thread.
        stack: Option<AddrRange>,
        /// For a thread on its signal stack: the used part of its original stack.
        own: Option<AddrRange>,
        /// Number of bytes of the stack that the dump has and that no other walk counts.
        bytes: u64,
    },
    /// The stack belongs to the `Thread` at this address and is not walked again.
    Claimed(Addr),
}

/// The plan for walking all stacks.
#[derive(Debug)]
pub(super) struct Plan {
    /// By index in the list of threads.
    ways: Vec<Way>,
    budget: WalkBudget,
}

impl Plan {
    /// A plan with the ways by index in the list of threads, and a budget for all walks.
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

/// The walks of a runtime, by index of their thread in its list. Most commands request the same walks several times, so each stack is
/// walked once with the references in its frames, and once without them.
#[derive(Debug, Default)]
pub(in crate::session) struct KeptWalks {
    pub(super) plan: OnceLock<Plan>,
    pub(super) walks: OnceLock<Vec<[KeptWalk; 2]>>,
}
