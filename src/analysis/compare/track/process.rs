//! Checks that two dumps are of one process, the earlier one first.
//!
//! The process id is not sufficient: in containers, all processes may have the same. Dumps are refused if any fact in `marks` is in both and differs.
//! They are also refused if no fact that distinguishes processes is in both. Such facts are the start time, the kernel's random bytes, the finalizer
//! thread, and the address range of regions.

use rustc_hash::FxHashMap;

use crate::base::{Addr, Collector, thousands, total};
use crate::memory::hex;
use crate::model::NamedCount;
use crate::session::{Error, Heap, Runtime};

/// Type of the auxiliary vector entry that has the address of 16 random bytes (`AT_RANDOM`, elf.h).
const AT_RANDOM: u64 = 25;
/// Number of random bytes.
const RANDOM_BYTES: u64 = 16;

/// A fact that is the same in all dumps of a process.
struct Mark {
    what: &'static str,
    /// Whether two processes on one machine are unlikely to have the same value.
    own: bool,
    before: Option<String>,
    after: Option<String>,
}

/// Checks that both dumps are of one process.
///
/// # Errors
/// [`Error::Unrelated`] if they are of two processes, if nothing shows that they are of one, or if they are in the wrong order.
pub(super) fn check(before: &Heap, after: &Heap) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Unrelated(why));
    let marks = marks(before, after);
    if let Some(m) = marks.iter().find(|m| m.before.is_some() && m.after.is_some() && m.before != m.after) {
        let (b, a) = (m.before.as_deref().unwrap_or_default(), m.after.as_deref().unwrap_or_default());
        return refuse(format!("the dumps are from two processes: {} was {b} in the first and {a} in the second", m.what));
    }
    if !marks.iter().any(|m| m.own && m.before.is_some() && m.before == m.after) {
        return refuse("nothing in the dumps shows that they are from one process".into());
    }
    if let Some(what) = backwards(before, after) {
        return refuse(format!("{what}: the first dump was taken last; name it second"));
    }
    Ok(())
}

/// Returns a description of the evidence that the first dump was taken after the other.
fn backwards(before: &Heap, after: &Heap) -> Option<String> {
    let (old, new) = (before.runtime(), after.runtime());
    went_down(before, after).or_else(|| dated(old, new)).or_else(|| allocated_less(old, new))
}

/// Returns a description of the evidence that the first dump was taken after the other; `None` if the dumps may be of two processes.
pub(in crate::analysis) fn in_wrong_order(before: &Heap, after: &Heap) -> Option<String> {
    let marks = marks(before, after);
    let known = || marks.iter().filter(|m| m.before.is_some() && m.after.is_some());
    let is_one = known().any(|m| m.own) && known().all(|m| m.before == m.after);
    if is_one { backwards(before, after) } else { None }
}

fn marks(before: &Heap, after: &Heap) -> Vec<Mark> {
    let (old, new) = (before.runtime(), after.runtime());
    let of =
        |what: &'static str, own: bool, get: &dyn Fn(&Heap) -> Option<String>| Mark { what, own, before: get(before), after: get(after) };
    let regions = before.gc().facts().regions && after.gc().facts().regions;
    let mut out = vec![
        of("the operating system", false, &|h| Some(h.runtime().file().facts.os.to_string())),
        of("the architecture", false, &|h| Some(h.runtime().file().facts.arch.to_string())),
        of("the process id", false, &|h| h.runtime().file().facts.pid.map(|p| p.to_string())),
        of("the start of the process", true, &|h| h.runtime().file().facts.started.map(|t| t.to_string())),
        of("the build of the runtime", false, &|h| {
            h.runtime().description().site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex)
        }),
        of("the address of the runtime", false, &|h| h.runtime().description().site.module.as_ref().map(|m| m.base.to_string())),
        of("the address of the program", false, &|h| h.runtime().file().modules.first().map(|m| m.base.to_string())),
        of("the process's random number", true, &|h| random(h.runtime())),
        of("the finalizer thread", true, &|h| finalizer(h.runtime())),
    ];
    // With regions, the range of the heap is reserved at startup and never changes. Segments are reserved one by one, so the range grows.
    if regions {
        out.push(of("the address range of the heap", true, &|h| {
            Some(format!("{} to {}", h.gc().facts().lowest?, h.gc().facts().highest?))
        }));
    }
    // The auxiliary vector has addresses in the main thread's stack, which differ between processes. An entry that only one of the dumps has is not
    // evidence.
    let auxv = |r: &Runtime| -> FxHashMap<u64, u64> { r.file().auxv.iter().copied().collect() };
    let (a, b) = (auxv(old), auxv(new));
    if a.iter().any(|(key, value)| b.get(key).is_some_and(|other| other != value)) {
        out.push(Mark { what: "the auxiliary vector", own: false, before: Some("one".into()), after: Some("another".into()) });
    }
    out
}

/// Returns the random bytes that the kernel gives to each new process.
fn random(runtime: &Runtime) -> Option<String> {
    let at = runtime.file().auxv.iter().find(|(key, _)| *key == AT_RANDOM).map(|(_, at)| Addr(*at))?;
    let bytes = runtime.memory().bytes(at, RANDOM_BYTES).ok()?;
    Some(hex(&bytes))
}

/// Returns the structure and the id of the finalizer thread, which lives as long as the runtime.
fn finalizer(runtime: &Runtime) -> Option<String> {
    let threads = runtime.thread_list().ok()?;
    // Notes are dropped here, because other answers report damaged threads.
    let at = runtime.thread_reader().ok()?.finalizer(threads, &Collector::new())?;
    let thread = threads.iter().find(|t| t.address == at)?;
    Some(format!("{at} (os {})", thread.os_id?))
}

/// Returns a description of a collection count that is lower in the second dump.
fn went_down(before: &Heap, after: &Heap) -> Option<String> {
    let down = |was: u64, is: u64| (is < was).then(|| format!("the count of collections falls from {was} to {is}"));
    let (was, is) = (collections(before), collections(after));
    // Builds without statistics, such as all standalone GCs, count collections by generation.
    let counts = |heap: &Heap| heap.runtime().collections(&Collector::new()).map(|c| c.process.counts);
    let by_generation = || counts(before)?.into_iter().zip(counts(after)?).find_map(|(was, is)| down(was, is));
    was.zip(is).and_then(|(was, is)| down(was, is)).or_else(by_generation)
}

/// Returns the sum of the statistics that grow with collections; `None` if the runtime does not publish any.
fn collections(heap: &Heap) -> Option<u64> {
    let gc = heap.gc();
    let counts = gc.facts().heaps.iter().filter_map(|h| {
        let detail = gc.detail(*h).data;
        let sum = |list: Option<Vec<NamedCount>>| list.map(|l| total(l.iter().map(|c| c.count)));
        Some(sum(detail.compact_reasons)?.saturating_add(sum(detail.interesting_data).unwrap_or(0)))
    });
    counts.reduce(u64::saturating_add)
}

/// Returns the number of compacting collections, if the runtime counts them.
pub(super) fn compactions(heap: &Heap) -> Option<u64> {
    let gc = heap.gc();
    let counts = gc.facts().heaps.iter().map(|h| Some(total(gc.detail(*h).data.compact_reasons?.iter().map(|c| c.count))));
    counts.reduce(|a, b| Some(a?.saturating_add(b?))).flatten()
}

fn dated(old: &Runtime, new: &Runtime) -> Option<String> {
    let (was, is) = (old.file().facts.time?, new.file().facts.time?);
    (is < was).then(|| format!("the time of the dump goes back from {was} to {is}"))
}

/// Returns a description of a thread that has allocated fewer bytes in the second dump than in the first.
fn allocated_less(old: &Runtime, new: &Runtime) -> Option<String> {
    let allocated = |r: &Runtime| -> FxHashMap<(Addr, Option<u32>, Option<u64>), u64> {
        let rows =
            r.thread_list().into_iter().flat_map(|list| list.iter()).filter_map(|t| Some(((t.address, t.id, t.os_id), t.context?.bytes?)));
        rows.collect()
    };
    let is = allocated(new);
    let mut less: Vec<(Addr, u64, u64)> = allocated(old)
        .into_iter()
        .filter_map(|(thread, was)| Some((thread.0, was, *is.get(&thread)?)))
        .filter(|(_, was, is)| is < was)
        .collect();
    less.sort_unstable();
    less.first().map(|(thread, was, is)| {
        format!("what the thread at {thread} allocated falls from {} to {} bytes", thousands(*was), thousands(*is))
    })
}
