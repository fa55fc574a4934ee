//! Self-checks that a descriptor matches the process. They are applied to every overlay, bundled or user-supplied.
//!
//! Source: `docs/internals/descriptors.md#self-checks`. The Free and String method table checks reject the overlay of .NET 8 for a .NET 9
//! process and vice versa (measured).

use std::collections::BTreeSet;

use super::descriptor::Descriptor;
use super::thread_list::ThreadLinks;
use crate::base::{Addr, Limits, PAGE, len64, plural};
use crate::data::globals::{self, Global};
use crate::data::{EEClass, MethodTable, Thread, ThreadStore, bind, component_size};
use crate::memory::Memory;

/// Minimum size of the address range that the GC reserves, in bytes.
const LEAST_RESERVED: u64 = 1 << 16;

/// A check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Outcome of the check.
    pub outcome: Outcome,
}

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The data is as expected. Contains the compared values.
    Passed(String),
    /// The data is not as expected. Contains the compared values.
    Failed(String),
    /// A list begins as expected and breaks off. The rest is missing from the dump or overwritten, or the offsets are wrong. Contains the place.
    BrokenOff(String),
    /// The dump or the descriptor does not have the data to check.
    Unknown(String),
}

impl Check {
    /// Whether the check rejects a descriptor that nothing else identifies.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_) | Outcome::BrokenOff(_))
    }

    /// Whether the check rejects a descriptor, given the outcome of all `checks` of it. If `is_exact`, because its size or number of entries is that
    /// of the runtime, a list that breaks off does not reject it if two other checks confirm it, and one wrong structure does not if all others do.
    pub fn rejects(&self, checks: &[Check], is_exact: bool) -> bool {
        let passed = checks.iter().filter(|c| c.passed()).count();
        let is_damage = match self.outcome {
            Outcome::BrokenOff(_) => passed >= 2,
            _ => passed >= 4 && checks.iter().filter(|c| c.failed()).count() == 1,
        };
        self.failed() && !(is_exact && is_damage)
    }

    /// Whether the check confirms the descriptor.
    pub fn passed(&self) -> bool {
        matches!(self.outcome, Outcome::Passed(_))
    }
}

/// Runs all checks.
pub fn run(descriptor: &Descriptor, memory: &Memory, limits: &Limits) -> Vec<Check> {
    let word = memory.ptr_bytes();
    // Base sizes include the header word and, for strings, the length and the terminating NUL.
    let string_base = word * 2 + 4 + 2;
    vec![
        method_table(descriptor, memory, "free-method-table", globals::FreeObjectMethodTable, word * 3, Some(1)),
        method_table(descriptor, memory, "string-method-table", globals::StringMethodTable, string_base, Some(2)),
        method_table(descriptor, memory, "object-method-table", globals::ObjectMethodTable, word * 3, None),
        round_trip(descriptor, memory),
        threads(descriptor, memory, limits),
        bounds(descriptor, memory),
    ]
}

fn check(name: &'static str, result: Result<Outcome, String>) -> Check {
    Check { name, outcome: result.unwrap_or_else(Outcome::Unknown) }
}

fn judge(passed: bool, facts: String) -> Outcome {
    if passed { Outcome::Passed(facts) } else { Outcome::Failed(facts) }
}

fn well_known(descriptor: &Descriptor, memory: &Memory, global: Global<Addr>) -> Result<Addr, String> {
    let variable = global.of(descriptor).map_err(|e| e.to_string())?;
    let global = global.name();
    let mt = memory.ptr(variable).map_err(|e| format!("{global}: {e}"))?;
    if mt.is_null() {
        return Err(format!("{global} is not set yet"));
    }
    Ok(mt)
}

fn method_table(
    descriptor: &Descriptor,
    memory: &Memory,
    name: &'static str,
    global: Global<Addr>,
    base_size: u64,
    component: Option<u32>,
) -> Check {
    let result = || {
        let mt = well_known(descriptor, memory, global)?;
        // In NativeAOT the flags field is different, but this flag has the same bit.
        let flags = MethodTable::MTFlags.bind(descriptor).or_else(|_| MethodTable::Flags.bind(descriptor)).map_err(|e| e.to_string())?;
        let base = MethodTable::BaseSize.bind(descriptor).map_err(|e| e.to_string())?;
        let (Ok(flags), Ok(base)) = (flags.read(memory, mt), base.read(memory, mt)) else {
            return Err(format!("{} points to {mt}, which is not in the dump", global.name()));
        };
        let has = component_size(flags);
        let facts = format!("{mt}: base size {base}, component size {}", has.unwrap_or(0));
        Ok(judge(u64::from(base) == base_size && has == component, facts))
    };
    check(name, result())
}

fn round_trip(descriptor: &Descriptor, memory: &Memory) -> Check {
    let result = || {
        let mt = well_known(descriptor, memory, globals::ObjectMethodTable)?;
        let table = bind!(descriptor, MethodTable { EEClassOrCanonMT }).map_err(|e| e.to_string())?;
        let of_class = bind!(descriptor, EEClass { MethodTable }).map_err(|e| e.to_string())?;
        let class = table.read(memory, mt, MethodTable::EEClassOrCanonMT).map_err(|e| e.to_string())?;
        let back = of_class.read(memory, class, EEClass::MethodTable).map_err(|e| format!("{mt} has its EEClass at {class}: {e}"))?;
        Ok(judge(back == mt, format!("{mt} → EEClass {class} → {back}")))
    };
    check("eeclass-round-trip", result())
}

fn threads(descriptor: &Descriptor, memory: &Memory, limits: &Limits) -> Check {
    /// Ids are numbers from 1 that are used again. Larger numbers are other data.
    const MOST_ID: u64 = 1 << 20;
    let result = || {
        let store = well_known(descriptor, memory, globals::ThreadStore)?;
        let of_store = bind!(descriptor, ThreadStore { FirstThreadLink, ThreadCount? }).map_err(|e| e.to_string())?;
        let of_thread = Thread::LinkNext.bind(descriptor).map_err(|e| e.to_string())?;
        // The descriptor of a NativeAOT program has no managed thread ids. The address of a thread serves as its id.
        let id = if descriptor.is_native_aot() { None } else { Some(bind!(descriptor, Thread { Id }).map_err(|e| e.to_string())?) };
        let mut link = of_store.read(memory, store, ThreadStore::FirstThreadLink).map_err(|e| format!("thread store: {e}"))?;
        let links = ThreadLinks::of(descriptor, memory, link, of_thread);
        let mut ids = BTreeSet::new();
        // The place of the first thread must be one that the process may have.
        let broken = |ids: &BTreeSet<u64>, at: Addr, what: String| {
            let is_sound = ids.iter().all(|id| descriptor.is_native_aot() || (1..MOST_ID).contains(id));
            let is_list = is_sound && (!ids.is_empty() || at.is_null() || memory.is_beside(at));
            Ok(if is_list { Outcome::BrokenOff(what) } else { Outcome::Failed(what) })
        };
        while !link.is_null() {
            let thread = links.thread(link).ok_or("the thread list links to the null page")?;
            let id = id.as_ref().map_or(Ok(thread.0), |of_thread| of_thread.read(memory, thread, Thread::Id).map(u64::from));
            let Ok(id) = id else {
                return broken(&ids, thread, format!("thread {thread} is not in the dump"));
            };
            if !memory.afford_steps(2) {
                return Err("opening the dump has reached its limits".into());
            }
            if !ids.insert(id) || ids.len() > limits.threads {
                return broken(&ids, thread, format!("the thread list repeats id {id}"));
            }
            let Ok(next) = memory.ptr(links.next(thread)) else {
                return broken(&ids, links.next(thread), format!("the thread list breaks at {link}"));
            };
            link = next;
        }
        let count = of_store.get(memory, store, ThreadStore::ThreadCount);
        let fits = count.is_none_or(|n| usize::try_from(n).is_ok_and(|n| n == ids.len())) && !ids.is_empty();
        let facts = format!("{} in the list, {} counted", plural(len64(ids.len()), "thread"), count.map_or("?".into(), |n| n.to_string()));
        if fits { Ok(Outcome::Passed(facts)) } else { broken(&ids, link, facts) }
    };
    check("thread-list", result())
}

/// Whether the runtime has no managed threads: the thread store pointer is null, or the thread list is empty and its count is 0. Such a
/// runtime has not been started, because the thread that starts it is a managed thread itself.
pub fn has_no_threads(descriptor: &Descriptor, memory: &Memory) -> bool {
    let Ok(store) = globals::ThreadStore.of(descriptor).map(|variable| memory.ptr(variable)) else { return false };
    let Ok(store) = store else { return false };
    let Ok(of_store) = bind!(descriptor, ThreadStore { FirstThreadLink?, ThreadCount? }) else { return false };
    let is_empty = || of_store.get(memory, store, ThreadStore::FirstThreadLink).is_some_and(Addr::is_null);
    let counts_none = || of_store.read_optional(memory, store, ThreadStore::ThreadCount).is_ok_and(|count| count.is_none_or(|n| n == 0));
    store.is_null() || is_empty() && counts_none()
}

fn bounds(descriptor: &Descriptor, memory: &Memory) -> Check {
    let result = || {
        let bound = |global: Global<Addr>| {
            let variable = global.of(descriptor).map_err(|e| e.to_string())?;
            memory.ptr(variable).map_err(|e| format!("{}: {e}", global.name()))
        };
        let (low, high) = (bound(globals::GCLowestAddress)?, bound(globals::GCHighestAddress)?);
        // The GC reserves whole pages, and a far larger range than this minimum.
        let plausible = low.is_aligned(PAGE) && high.is_aligned(PAGE) && high.since(low).is_some_and(|bytes| bytes >= LEAST_RESERVED);
        Ok(judge(plausible && !low.is_null(), format!("{low} to {high}")))
    };
    check("gc-bounds", result())
}
