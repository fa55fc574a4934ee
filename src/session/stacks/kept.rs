//! The walks of stacks that a runtime keeps, and the plan that they follow.

use std::sync::{Arc, OnceLock};

use crate::base::missed::Kept;
use crate::base::{Addr, AddrRange};
use crate::stack::WalkBudget;
use crate::stack::walked::Walk;

/// How the stack of a thread is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the thread's registers.
    Walk {
        /// The memory of the stack in use, as far as known: up to where that of another thread begins.
        stack: Option<AddrRange>,
        /// For a thread on its signal stack: the used part of the stack that it has left.
        own: Option<AddrRange>,
        /// Bytes of it that the dump has and no other walk counts.
        bytes: u64,
    },
    /// Not: it is the stack of the `Thread` at this address.
    Claimed(Addr),
}

/// The walks of all stacks.
#[derive(Debug)]
pub(super) struct Plan {
    /// By place in the list of threads.
    ways: Vec<Way>,
    budget: WalkBudget,
}

impl Plan {
    /// By place in the list of threads, with a budget for all of them.
    pub(super) const fn new(ways: Vec<Way>, budget: WalkBudget) -> Plan {
        Plan { ways, budget }
    }

    /// How the stack of the thread at `index` of the list is walked.
    pub(super) fn way(&self, index: usize) -> Way {
        self.ways.get(index).copied().unwrap_or(Way::Walk { stack: None, own: None, bytes: 0 })
    }

    /// The budget of all walks.
    pub(super) const fn budget(&self) -> &WalkBudget {
        &self.budget
    }
}

type KeptWalk = OnceLock<Kept<Arc<Walk>>>;

/// The walks of a runtime, by place of their thread in its list. Most commands ask several times for the same: each stack is walked once
/// with what its frames hold, and once without.
#[derive(Debug, Default)]
pub(in crate::session) struct KeptWalks {
    pub(super) plan: OnceLock<Plan>,
    pub(super) walks: OnceLock<Vec<[KeptWalk; 2]>>,
}
