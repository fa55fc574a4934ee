//! Asynchronous methods that wait for the same object.
//!
//! Rule: at least `waits` chains of methods wait for the same `TaskCompletionSource`, semaphore, custom awaitable or full channel, or methods wait for each
//! other. Timers, sockets and other channels are left out because idle servers wait for them. Garbage is left out as well.
//!
//! Source: the chains that `async` shows.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Skip};
use super::line::counted;
use super::requests::unanswered;
use crate::analysis::threads::async_chains::is_library;
use crate::analysis::{AsyncChain, AsyncFrame, AsyncRoot, AsyncRootKind, AsyncRootSum, Problem, ProblemId, ProblemSeverity};
use crate::analysis::{PathsQuery, paths};
use crate::base::{Addr, Count, Name, len64, thousands};
use crate::managed::Object;
use crate::model::{RootKind, Stacks};

/// Prefix of the names of the types of channels that have a capacity.
const BOUNDED: &str = "System.Threading.Channels.BoundedChannel<";

/// Most findings.
const MAX_FOUND: usize = 3;
/// Most objects of a crowd that are checked for being garbage.
const MAX_CHECKED: usize = 4;

/// Objects with equal labels that chains with the same innermost method wait for.
struct Crowd<'c> {
    /// The object with the most chains.
    first: &'c AsyncRootSum,
    objects: u64,
    chains: u64,
    methods: u64,
    longest: u64,
}

impl<'c> Crowd<'c> {
    /// The crowd of all objects in `sums`, the one with the most chains first. A method that several objects resume counts once.
    fn of(sums: &[&'c AsyncRootSum]) -> Option<Crowd<'c>> {
        let mut crowd = Crowd { first: sums.first()?, objects: 0, chains: 0, methods: 0, longest: 0 };
        let mut known: BTreeSet<u32> = BTreeSet::new();
        for sum in sums {
            let before = len64(known.len());
            known.extend(&sum.members);
            let added = len64(known.len()).saturating_sub(before);
            crowd.objects.bump();
            // Chains of known methods are known too.
            crowd.chains.grow(if added == len64(sum.members.len()) { sum.chains } else { sum.chains.min(added) });
            crowd.longest = crowd.longest.max(sum.longest);
        }
        crowd.methods = len64(known.len());
        Some(crowd)
    }

    /// The place in the list of findings: cycles, which never end, come before larger crowds.
    fn rank(&self) -> (bool, std::cmp::Reverse<u64>, Option<Addr>) {
        (self.first.root.kind != AsyncRootKind::Cycle, std::cmp::Reverse(self.methods), self.first.root.object)
    }
}

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let least = answers.thresholds().waits;
    let mut crowds: BTreeMap<(AsyncRootKind, &Name, Option<&Name>), Vec<&AsyncRootSum>> = BTreeMap::new();
    for sum in answers.chains()?.roots.iter().filter(|sum| sum.methods > 0) {
        let crowded = || is_shared(sum.root.kind) || sum.root.kind == AsyncRootKind::Channel && full(answers, &sum.root).is_some();
        if sum.chains >= least && crowded() || sum.root.kind == AsyncRootKind::Cycle {
            let key = (sum.root.kind, &sum.root.label, sum.innermost.as_ref());
            crowds.entry(key).or_default().push(sum);
        }
    }
    let mut crowds: Vec<(Crowd<'_>, Vec<&AsyncRootSum>)> =
        crowds.into_values().filter_map(|sums| Some((Crowd::of(&sums)?, sums))).collect();
    crowds.sort_by_key(|(crowd, _)| crowd.rank());
    Ok(crowds.into_iter().filter_map(|(_, sums)| finding(answers, sums)).take(MAX_FOUND).collect())
}

/// Returns the finding for the objects in `sums` that are not garbage.
fn finding(answers: &Answers<'_>, mut sums: Vec<&AsyncRootSum>) -> Option<Problem> {
    let mut checked: BTreeMap<Addr, Held> = BTreeMap::new();
    checked.extend(sums.iter().filter_map(|sum| sum.root.object).take(MAX_CHECKED).map(|at| (at, held(answers, at))));
    sums.retain(|sum| !sum.root.object.is_some_and(|at| matches!(checked.get(&at), Some(Held::Garbage))));
    let crowd = &Crowd::of(&sums)?;
    let root = &crowd.first.root;
    let cycle = root.kind == AsyncRootKind::Cycle;
    let by = match root.object.and_then(|at| checked.get(&at)) {
        Some(Held::By(label)) if crowd.objects == 1 && !cycle => format!(" in {label}"),
        _ => String::new(),
    };
    let what = awaited(root.kind).unwrap_or("awaitable");
    let on = match (cycle, crowd.objects) {
        (true, _) => "each other".into(),
        (false, 1) => format!("one {what}{by}"),
        (false, n) => counted(n, what),
    };
    // Only full channels have crowds.
    let full = if root.kind == AsyncRootKind::Channel { full(answers, root) } else { None };
    let on = match full {
        Some(capacity) if crowd.objects == 1 => format!("{on}, which is full ({})", counted(capacity, "element")),
        Some(_) => format!("{on}, which are full"),
        None => on,
    };
    let holder = likely_holder(answers, crowd).map(|holder| format!("; {holder}")).unwrap_or_default();
    let from = crowd.first.innermost.as_ref().map(|m| format!(", innermost {m}")).unwrap_or_default();
    let object = root.object.map(|at| format!(" {at}")).unwrap_or_default();
    let object = root.type_name.as_ref().map(|name| format!("; {name}{object}")).unwrap_or_default();
    let title = format!(
        "{} for {on}: {} of up to {}{from}{holder}{object}",
        if crowd.methods == 1 {
            "1 asynchronous method waits".into()
        } else {
            format!("{} asynchronous methods wait", thousands(crowd.methods))
        },
        counted(crowd.chains, "chain"),
        counted(crowd.longest, "method"),
    );
    let stuck = || {
        let unanswered = || unanswered(answers).is_ok_and(|requests| !requests.is_empty());
        answers.locks().is_ok_and(|l| !l.deadlocks.is_empty()) || answers.pool().is_ok_and(|p| p.starved) || unanswered()
    };
    let severity = if cycle || stuck() { ProblemSeverity::Warning } else { ProblemSeverity::Info };
    let at = root.object.map(|at| at.to_string());
    let command: Vec<&str> = match &at {
        Some(at) => vec!["async", "--object", at],
        None => vec!["async"],
    };
    Some(Problem {
        count: Some(crowd.methods),
        object: root.object,
        type_name: root.type_name.clone(),
        method: crowd.first.innermost.clone(),
        ..answers.finding(ProblemId::AsyncWaits, severity, title, &command)
    })
}

/// Returns a root for each thread that runs a part of a chain or waits for one, by managed id.
pub(super) fn roots_of_threads<'a>(answers: &'a Answers<'_>) -> Option<&'a BTreeMap<u32, AsyncRoot>> {
    answers.chains().ok().map(|chains| &chains.threads)
}

/// The threads with one root, by the root's object: their number, and one of the roots.
type ByObject<'a> = BTreeMap<Option<Addr>, (u64, &'a AsyncRoot)>;

/// Returns the root with the object that most of `roots` have, among those with the most common label.
pub(super) fn most_common<'a>(roots: impl Iterator<Item = &'a AsyncRoot>) -> Option<&'a AsyncRoot> {
    let mut labels: BTreeMap<(AsyncRootKind, &Name), (u64, ByObject<'_>)> = BTreeMap::new();
    for root in roots {
        let (count, objects) = labels.entry((root.kind, &root.label)).or_default();
        count.bump();
        objects.entry(root.object).or_insert((0, root)).0.bump();
    }
    let (_, objects) = labels.into_values().max_by_key(|(count, _)| *count)?;
    objects.into_values().rev().max_by_key(|(count, _)| *count).map(|(_, root)| root)
}

/// Describes the likely holder of a semaphore. Another call of the method that waits for the semaphore may hold it, if this call has come further in the
/// method. This is a guess, because a semaphore does not record its owner.
fn likely_holder(answers: &Answers<'_>, crowd: &Crowd<'_>) -> Option<String> {
    let method = crowd.first.innermost.as_ref().filter(|_| crowd.first.root.kind == AsyncRootKind::Semaphore)?;
    let (past, word) = calls_past(&answers.chains().ok()?.chains, method);
    let call = match past.len() {
        1 => "another call".to_owned(),
        n => format!("one of {n} other calls"),
    };
    let root = most_common(past.into_iter())?;
    Some(format!("{word} taken by {call} of {method}, which {}", clause(root, answers)))
}

/// Returns what those calls of `method` wait for that have passed the `await` in which other calls wait for a semaphore, and how certain that is: the
/// compiler numbers each `await` of a method in the order of the source. Without the numbers, returns all calls that wait for something else.
fn calls_past<'c>(chains: &'c [AsyncChain], method: &Name) -> (Vec<&'c AsyncRoot>, &'static str) {
    let call = |chain: &'c AsyncChain| chain.frames.iter().find(|f| f.method.as_ref().is_some_and(|m| m.shown() == method.shown()));
    let (waiting, others): (Vec<&AsyncChain>, Vec<_>) = chains.iter().partition(|chain| chain.root.kind == AsyncRootKind::Semaphore);
    let latest = waiting.into_iter().filter_map(|chain| call(chain)?.state).max();
    let is_past = |frame: &AsyncFrame| latest.is_none_or(|latest| frame.state.is_some_and(|at| at > latest));
    let past = others.into_iter().filter(|chain| call(chain).is_some_and(is_past)).map(|chain| &chain.root).collect();
    (past, if latest.is_some() { "likely" } else { "perhaps" })
}

/// Returns a clause about a method or task with this root: `waits for the TaskCompletionSource in Lab.Waits.Never`.
pub(super) fn clause(root: &AsyncRoot, answers: &Answers<'_>) -> String {
    let Some(what) = awaited(root.kind) else {
        return match root.kind {
            AsyncRootKind::Queue => "is ready and waits for a thread of the thread pool".into(),
            AsyncRootKind::Context => {
                let context = root.type_name.as_ref().map_or("context", Name::shown);
                format!("is ready and waits for the {context} to run it")
            }
            AsyncRootKind::Running | AsyncRootKind::Thread => "runs on a thread".into(),
            AsyncRootKind::Abandoned => "nothing can complete".into(),
            _ => format!("waits for {}", root.label),
        };
    };
    match root.object.and_then(|at| held_by(answers, at)) {
        Some(place) => format!("waits for the {what} in {place}"),
        None => format!("waits for {} ({})", with_article(what), root.label),
    }
}

/// Whether many chains that wait for one object of this kind are suspicious. Idle servers wait for timers, sockets and channels; of channels, only those
/// that are full are suspicious.
pub(super) fn is_shared(kind: AsyncRootKind) -> bool {
    matches!(kind, AsyncRootKind::Promise | AsyncRootKind::Semaphore | AsyncRootKind::Source)
}

/// Returns the capacity of a bounded channel that is full. Only methods that write wait for such a channel: those that read find an element.
fn full(answers: &Answers<'_>, root: &AsyncRoot) -> Option<u64> {
    let channel = answers.heap().ok()?.object(root.object?).ok()?;
    let (elements, capacity) = fill(&channel)?;
    (capacity > 0 && elements >= capacity).then_some(capacity)
}

/// Returns the number of elements of a bounded channel, and its capacity. `None` for other channels, and if a part is not in the dump.
fn fill(channel: &Object) -> Option<(u64, u64)> {
    let number = |of: &Object, name: &str| u64::try_from(of.field(name).ok()?.read::<i32>().ok()?).ok();
    channel.type_name().starts_with(BOUNDED).then_some(())?;
    let items: Object = channel.field("_items").ok()?.read().ok()?;
    Some((number(&items, "_size")?, number(channel, "_bufferedCapacity")?))
}

/// Adds the article: `a semaphore`, `an awaitable`.
pub(super) fn with_article(what: &str) -> String {
    format!("{} {what}", if what.starts_with('a') { "an" } else { "a" })
}

/// The noun for an awaited object; `None` for other kinds of roots.
pub(super) fn awaited(kind: AsyncRootKind) -> Option<&'static str> {
    Some(match kind {
        AsyncRootKind::Promise => "TaskCompletionSource",
        AsyncRootKind::Timer => "timer",
        AsyncRootKind::Semaphore => "semaphore",
        AsyncRootKind::Channel => "channel",
        AsyncRootKind::Socket => "socket",
        AsyncRootKind::Source => "awaitable",
        _ => return None,
    })
}

/// The holder of an object.
enum Held {
    By(String),
    Garbage,
    Unknown,
}

/// The name of the holder of an object, if it can be determined.
pub(super) fn held_by(answers: &Answers<'_>, at: Addr) -> Option<String> {
    match held(answers, at) {
        Held::By(label) => Some(label),
        Held::Garbage | Held::Unknown => None,
    }
}

fn held(answers: &Answers<'_>, at: Addr) -> Held {
    let Some(heap) = answers.heap().ok().filter(|_| answers.query.graph) else { return Held::Unknown };
    let stacks = Stacks::default();
    let query = PathsQuery { object: Some(at), types: Vec::new(), paths: 1, weak: false, stacks, depth: 1, lines: 1, full: false };
    // Without paths, the finding does not name a holder.
    let Ok(answer) = paths(heap, &query) else { return Held::Unknown };
    let Some(path) = answer.data.paths.first() else {
        return if answer.data.reachable == 0 && answer.notes.complete() { Held::Garbage } else { Held::Unknown };
    };
    // The field nearest to the object whose type belongs to the program, or else the static field.
    let own = path.steps.iter().zip(path.steps.iter().skip(1)).rev().find_map(|(holder, step)| {
        let name = holder.type_name.shown();
        let field = step.field.as_deref().filter(|field| is_word(field))?;
        (!is_library(name)).then(|| format!("{name}.{field}"))
    });
    let fixed = || path.roots.iter().find(|r| r.kind == RootKind::Static && r.label.contains('.')).map(|r| r.label.clone());
    own.or_else(fixed).map_or(Held::Unknown, Held::By)
}

/// Whether a field has a name, not an index.
fn is_word(field: &str) -> bool {
    field.starts_with(|c: char| c.is_alphabetic() || "_<".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Program: `AsyncMix` of the lab, in which a method reads from an empty channel.
    #[test]
    fn a_channel_that_methods_read_from_is_not_full() {
        for name in ["net10-wks-asyncmix-heap", "net11-wks-asyncmixrt-heap"] {
            let heap = crate::open(format!("dumps/corpus/{name}.dmp.zst")).unwrap().runtime().unwrap().heap().unwrap();
            let channels: Vec<Object> = heap.objects_of(&format!("{BOUNDED}System.Int32>")).unwrap().collect();
            assert_eq!(channels.iter().map(fill).collect::<Vec<_>>(), [Some((0, 2))], "{name}");
            let array = heap.objects_of("System.Int32[]").unwrap().next().unwrap();
            assert_eq!(fill(&array), None);
        }
    }

    #[test]
    fn a_call_that_has_not_reached_the_semaphore_does_not_hold_it() {
        let chain = |kind, label: &str, state| AsyncChain {
            root: AsyncRoot { kind, object: None, node: None, type_name: None, label: label.into() },
            count: 1,
            frames: vec![AsyncFrame {
                method: Some("Lab.Guarded.Load".into()),
                display: None,
                label: "Lab.Guarded.Load".into(),
                file: None,
                state,
                object: Addr(0x1000),
                type_name: None,
                status: None,
                async_void: false,
                thread: None,
                visited: false,
                framework: false,
            }],
        };
        let waiting = chain(AsyncRootKind::Semaphore, "gate", Some(1));
        let early = chain(AsyncRootKind::Promise, "remote", Some(0));
        let late = chain(AsyncRootKind::Promise, "db", Some(2));
        let unknown = chain(AsyncRootKind::Promise, "unknown", None);
        let of = |chains: &[AsyncChain], method: &str| {
            calls_past(chains, &method.into()).0.iter().map(|root| root.label.to_string()).collect::<Vec<_>>()
        };
        let all = [waiting.clone(), early.clone(), late, unknown];
        assert_eq!(of(&all, "Lab.Guarded.Load"), ["db"]);
        assert_eq!(of(&[waiting, early.clone()], "Lab.Guarded.Load"), [""; 0]);
        let unnumbered = chain(AsyncRootKind::Semaphore, "gate", None);
        assert_eq!(calls_past(&[unnumbered, early], &"Lab.Guarded.Load".into()).1, "perhaps");
        assert_eq!(of(&all, "Lab.Other.Load"), [""; 0]);
    }

    #[test]
    fn a_cycle_is_found_before_larger_crowds() {
        let sum = |kind, at: u64| AsyncRootSum {
            root: AsyncRoot { kind, object: Some(Addr(at)), node: None, type_name: None, label: "".into() },
            chains: 1,
            methods: 1,
            longest: 1,
            innermost: None,
            members: vec![1],
        };
        let sums = [sum(AsyncRootKind::Promise, 1), sum(AsyncRootKind::Cycle, 2), sum(AsyncRootKind::Semaphore, 3)];
        let crowd = |(first, methods)| Crowd { first, objects: 1, chains: 1, methods, longest: 1 };
        let mut crowds: Vec<Crowd<'_>> = sums.iter().zip([40, 2, 900]).map(crowd).collect();
        crowds.sort_by_key(Crowd::rank);
        let order: Vec<u64> = crowds.iter().map(|c| c.first.root.object.unwrap().0).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn a_method_that_several_objects_resume_counts_once() {
        let sum = |members: std::ops::Range<u32>| AsyncRootSum {
            root: AsyncRoot { kind: AsyncRootKind::Source, object: None, node: None, type_name: None, label: "".into() },
            chains: u64::from(members.end - members.start),
            methods: u64::from(members.end - members.start),
            longest: 1,
            innermost: None,
            members: members.collect(),
        };
        let count = |sums: &[AsyncRootSum]| {
            let crowd = Crowd::of(&sums.iter().collect::<Vec<_>>()).unwrap();
            (crowd.objects, crowd.chains, crowd.methods)
        };
        // A list of 300 delegates, and two arrays that it has outgrown.
        assert_eq!(count(&[sum(0..300), sum(0..256), sum(0..128)]), (3, 300, 300));
        assert_eq!(count(&[sum(0..20), sum(20..30), sum(25..35)]), (3, 35, 35));
        assert!(Crowd::of(&[]).is_none());
    }

    #[test]
    fn the_most_common_root_is_that_of_most_threads() {
        let root = |label: &str, at: u64| AsyncRoot {
            kind: AsyncRootKind::Promise,
            object: Some(Addr(at)),
            node: Some(Addr(at)),
            type_name: None,
            label: label.into(),
        };
        // One label has most threads, and another one the object with most threads. The lowest object is not that of most threads.
        let objects = [1, 7, 7, 9].map(|at| root("Task<int>", at));
        let others = [0x10, 0x10, 0x10].map(|at| root("Task<bool>", at));
        let most = most_common(objects.iter().chain(&others)).unwrap();
        assert_eq!((&*most.label, most.object), ("Task<int>", Some(Addr(7))));
        assert!(most_common(std::iter::empty()).is_none());
    }
}
