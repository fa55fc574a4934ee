//! Threads, exceptions, locks, tasks and requests: the commands under "Threads and exceptions" in `help`.

pub(super) mod async_chains;
mod contexts;
pub(super) mod continuation;
pub(super) mod exceptions;
mod held;
pub(super) mod list;
pub(super) mod locks;
pub(super) mod pool;
mod referrers;
pub(super) mod requests;
pub(super) mod stack_words;
pub(super) mod stacks;
pub(super) mod suspension;
pub(super) mod task_names;
pub(super) mod tiers;
