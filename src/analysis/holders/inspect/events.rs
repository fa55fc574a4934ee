//! Events with many handlers.

use std::cell::OnceCell;
use std::cmp::Reverse;

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, Name, NoteKind, be, len64, plural, thousands, total};
use crate::bcl::delegates::{Call, Delegates};
use crate::gc::{Object, Visitor};
use crate::heapgraph::{DominatorTree, HeapGraph, ObjectSet, Roots};
use crate::model::Stacks;
use crate::session::GraphSource;
use crate::session::roots::RootOptions;

/// Collects the referrers and sizes of the objects in `wanted`.
struct Collected<'r> {
    wanted: &'r Set<Addr>,
    /// The invocation lists of events and their parts.
    of_events: &'r Set<Addr>,
    found: Map<Addr, Referrers>,
    sizes: Vec<(Addr, u64)>,
}

/// Objects that refer to an object, each with the offset of the reference.
#[derive(Debug, Default)]
struct Referrers {
    /// Invocation lists of events and their parts. One event may have thousands of handlers with the same target.
    of_events: Vec<(Addr, u64)>,
    /// The first [`KEPT`] others that the visitor has met.
    others: Vec<(Addr, u64)>,
    /// Whether there are further ones.
    cut: bool,
}

impl Referrers {
    fn add(&mut self, by: (Addr, u64), is_of_event: bool) {
        if is_of_event {
            self.of_events.push(by);
        } else if self.others.len() < KEPT {
            self.others.push(by);
        } else {
            self.cut = true;
        }
    }

    fn merge(&mut self, other: Referrers) {
        self.of_events.extend(other.of_events);
        self.others.extend(other.others);
        self.cut |= other.cut;
    }

    fn iter(&self) -> impl Iterator<Item = &(Addr, u64)> {
        self.of_events.iter().chain(&self.others)
    }

    /// Whether `ignored` is true of all referrers. Of those that were not kept, this is unlikely.
    fn are_all(&self, ignored: impl Fn(Addr) -> bool) -> bool {
        !self.cut && self.iter().all(|(by, _)| ignored(*by))
    }
}

/// For events with at least this many handlers, garbage among the referrers is ignored.
const MANY: usize = 10;

/// Most referrers outside of events that a visitor keeps for each object.
const KEPT: usize = 64;

impl Visitor for Collected<'_> {
    fn object(&mut self, object: &Object<'_>) {
        let (wanted, of_events, found) = (self.wanted, self.of_events, &mut self.found);
        if wanted.contains(&object.address) {
            self.sizes.push((object.address, object.size));
        }
        object.references(|offset, target| {
            if wanted.contains(&target) {
                found.entry(target).or_default().add((object.address, offset), of_events.contains(&object.address));
            }
        });
    }
}

/// The holder of an event.
enum Holder {
    /// A root, by its index.
    Root(usize),
    /// A field: object and offset.
    Object((Addr, u64)),
}

/// A delegate with several targets.
#[derive(Clone, Copy)]
struct Event {
    delegate: Addr,
    /// Its invocation list, which several delegates may share.
    list: Addr,
    /// Number of elements of the list that the delegate uses.
    count: u64,
}

/// Delegate and target of each part of an event.
type Parts = Vec<(Addr, Option<Addr>)>;

/// The events of a heap, and what they call.
#[derive(Default)]
struct Events {
    /// The events, most parts first.
    events: Vec<Event>,
    /// The parts, by invocation list.
    lists: Map<Addr, Parts>,
    /// Events whose lists would take too many steps to read.
    left_out: Vec<Event>,
}

impl Events {
    /// Reads each invocation list once, for the delegate that uses most of it. Adding a handler makes a delegate with all earlier ones, so there are as many
    /// delegates as handlers until the old ones are collected. The longest list is read first: it is the newest one of an event.
    fn read(mut events: Vec<Event>, parts_in: impl Fn(Addr, u64) -> Option<Vec<Call>>) -> Events {
        events.sort_by_key(|event| (Reverse(event.count), event.delegate));
        let mut lists: Map<Addr, Option<Parts>> = Map::default();
        for event in &events {
            let parts = || Some(parts_in(event.list, event.count)?.iter().map(|call| (call.delegate, call.target)).collect());
            lists.entry(event.list).or_insert_with(parts);
        }
        let (events, left_out) = events.into_iter().partition(|event| lists.get(&event.list).is_some_and(Option::is_some));
        Events { events, lists: lists.into_iter().filter_map(|(list, parts)| Some((list, parts?))).collect(), left_out }
    }

    /// Delegate and target of each part of an event.
    fn parts(&self, event: &Event) -> &[(Addr, Option<Addr>)] {
        let parts = self.lists.get(&event.list).map(Vec::as_slice).unwrap_or_default();
        usize::try_from(event.count).ok().and_then(|count| parts.get(..count)).unwrap_or(parts)
    }
}

impl Inspector<'_> {
    pub(super) fn event_leaks(&self) -> Findings<'_> {
        let delegates = Delegates::bind(self.heap.runtime(), self.library.types(), self.notes);
        let listed = |delegate: Addr| {
            let (list, count) = delegates.list(delegate)?;
            (count > 1).then_some(Event { delegate, list, count })
        };
        let events = Events::read(self.swept.of(Inspected::MulticastDelegate).filter_map(listed).collect(), |list, count| {
            delegates.parts_in(list, count)
        });
        for event in events.events.iter().filter(|event| len64(events.parts(event).len()) < event.count) {
            self.notes.add(Missing::Objects, event.delegate, "a part of a multicast delegate is not in the dump");
        }
        if self.swept.of(Inspected::MulticastDelegate).next().is_some() {
            delegates.note_fields(self.notes);
        }
        let Events { events: listed, lists, left_out } = &events;
        if listed.is_empty() && left_out.is_empty() {
            return Findings::plain(Vec::new());
        }
        let targets = lists.values().flatten().flat_map(|(part, target)| [Some(*part), *target]).flatten();
        let wanted: Set<Addr> = targets.chain(listed.iter().chain(left_out).map(|e| e.delegate)).collect();
        let of_events: Set<Addr> = lists.values().flatten().map(|(part, _)| *part).chain(lists.keys().copied()).collect();
        let visitor = || Collected { wanted: &wanted, of_events: &of_events, found: Map::default(), sizes: Vec::new() };
        let walked = self.heap.walker().walk_once(self.heap.progress(), visitor);
        let mut referrers: Map<Addr, Referrers> = Map::default();
        let mut sizes: Map<Addr, u64> = Map::default();
        for visitor in walked.visitors {
            sizes.extend(visitor.sizes);
            visitor.found.into_iter().for_each(|(object, found)| referrers.entry(object).or_default().merge(found));
        }
        // A reference from a stack is temporary.
        let options = RootOptions { stacks: Stacks::None, ..RootOptions::default() };
        let mut roots = self.notes.take(Roots::collect(self.heap, self.namer, &options));
        roots.roots.retain(|root| wanted.contains(&root.object));
        roots.roots.shrink_to_fit();
        let rooted: Map<Addr, usize> = roots.roots.iter().enumerate().map(|(i, r)| (r.object, i)).collect();
        let mut holds: Map<Addr, Holder> = Map::default();
        let none = Referrers::default();
        let live: OnceCell<Option<(&HeapGraph, ObjectSet)>> = OnceCell::new();
        let is_live = |object: Addr| match live.get_or_init(|| self.live()) {
            Some((graph, set)) => graph.index.id_of(object).is_some_and(|id| set.contains(id)),
            None => true,
        };
        let tree: OnceCell<Option<(&HeapGraph, &DominatorTree)>> = OnceCell::new();
        // Another referrer holds a target only if the event does not keep this referrer alive as well, as it does with the parts of the target.
        let keeps = |event: &Event, object: Addr| {
            let Some((graph, tree)) = tree.get_or_init(|| self.dominators()) else { return false };
            let (delegate, object) = (graph.index.id_of(event.delegate), graph.index.id_of(object));
            delegate.zip(object).is_some_and(|(delegate, object)| tree.dominates(delegate, object))
        };
        let mut kinds: Map<Addr, Name> = Map::default();
        // Targets that other objects refer to, which only the graph shows to be garbage or kept by the event.
        let mut unknown: Set<Addr> = Set::default();
        // Lists of events that were found. Of the events that share a list, the others have fewer of the same targets.
        let mut found: Set<Addr> = Set::default();
        let mut left_out = left_out.clone();
        let mut leak = |event: &Event| {
            let parts = Some(events.parts(event)).filter(|parts| parts.len() > 1)?;
            let is_large = parts.len() >= MANY;
            if is_large && found.contains(&event.list) {
                return None;
            }
            // Few events have many handlers, and only these are worth building a graph for.
            let holds_it = |by: Addr| !is_large || is_live(by);
            let holders = referrers.get(&event.delegate).unwrap_or(&none);
            // A delegate that is in no static or field is an old list of handlers. The delegate's reference to itself is ignored.
            let holder = match rooted.get(&event.delegate) {
                Some(root) => Holder::Root(*root),
                None => Holder::Object(*holders.iter().filter(|(by, _)| *by != event.delegate && holds_it(*by)).min()?),
            };
            if !delegates.afford(len64(parts.len())) {
                left_out.push(*event);
                return None;
            }
            // Without the graph, garbage may hold a longer delegate.
            if is_large && (matches!(holder, Holder::Root(_)) || live.get().is_some_and(Option::is_some)) {
                found.insert(event.list);
            }
            holds.insert(event.delegate, holder);
            let own: Set<Addr> = parts.iter().map(|(part, _)| *part).collect();
            let only = |(part, target): &&(Addr, Option<Addr>)| {
                let Some(target) = target else { return false };
                let of_target = referrers.get(target).unwrap_or(&none);
                let of_part = referrers.get(part).unwrap_or(&none);
                let directly = !rooted.contains_key(target)
                    && !rooted.contains_key(part)
                    && of_target.are_all(|by| own.contains(&by) || !holds_it(by))
                    && of_part.are_all(|by| by == event.list || !holds_it(by));
                directly || is_large && keeps(event, *target)
            };
            if is_large {
                let others = parts.iter().filter(|part| !only(part)).filter_map(|(_, target)| *target);
                let mut others = others.filter(|target| !rooted.contains_key(target)).peekable();
                if others.peek().is_some() && tree.get_or_init(|| self.dominators()).is_none() {
                    unknown.extend(others);
                }
            }
            let here: Vec<Addr> = parts.iter().filter(only).filter_map(|(_, target)| *target).collect();
            let (held, count) = (len64(here.len()), len64(parts.len()));
            // One target may have several handlers.
            let here: Set<Addr> = here.into_iter().collect();
            if let Some(kind) = self.most_common(here.iter().copied()) {
                kinds.insert(event.delegate, kind);
            }
            let bytes = total(here.iter().filter_map(|target| sizes.get(target).copied()));
            let mut distinct: Vec<Addr> = here.into_iter().collect();
            distinct.sort_unstable();
            Some(InspectionRow { held_here: Some(held), held: distinct, ..row(event.delegate, count, bytes) })
        };
        let rows = listed.iter().filter_map(&mut leak).collect();
        // Garbage is left out anyway.
        let is_held = |by: Addr, delegate: Addr| by != delegate && is_live(by);
        left_out.retain(|event| {
            let holders = referrers.get(&event.delegate);
            rooted.contains_key(&event.delegate)
                || holders.is_some_and(|of| of.cut || of.iter().any(|(by, _)| is_held(*by, event.delegate)))
        });
        let alone = left_out.first().map(|first| {
            let (n, most) = (len64(left_out.len()), thousands(first.count));
            let text = format!(
                "{} with up to {most} handlers {} left out: reading the lists of all handlers takes more steps than the limit for a dump of this size",
                plural(n, "delegate"),
                if n == 1 { "was" } else { "were" }
            );
            self.notes.add(NoteKind::LimitHit, first.delegate, text.clone());
            text
        });
        if !unknown.is_empty() {
            let what = format!(
                "whether {} of events {} held by anything else is unknown without the graph of the heap",
                plural(len64(unknown.len()), "target"),
                be(len64(unknown.len()))
            );
            self.notes.add(Missing::Answer, None, what);
        }
        Findings::plain(rows).partial(alone).with_detail(move |row| {
            let holder = match holds.get(&row.object?)? {
                Holder::Root(root) => roots.label(roots.roots.get(*root)?),
                Holder::Object(field) => self.holder(*field),
            };
            let kind = kinds.get(&row.object?).map(|kind| format!(", mostly {kind},")).unwrap_or_default();
            Some(format!("{holder}: {} of {} targets{kind} are held by nothing else", thousands(row.held_here?), thousands(row.count)))
        })
    }

    /// The objects that are not garbage; `None` if the graph may not be built, or does not fit in memory.
    fn live(&self) -> Option<(&HeapGraph, ObjectSet)> {
        let graph = self.graph.then(|| self.heap.graph(false).ok()).flatten()?;
        self.heap.graph_notes(false, self.notes);
        Some((graph, self.heap.live(graph, Stacks::default())))
    }

    /// The dominators of the graph; `None` if the graph may not be built, or does not fit in memory.
    fn dominators(&self) -> Option<(&HeapGraph, &DominatorTree)> {
        let graph: &HeapGraph = self.graph.then(|| self.heap.graph(false).ok()).flatten()?;
        self.heap.graph_notes(false, self.notes);
        Some((graph, self.heap.dominators(Stacks::default()).ok()?))
    }

    /// The most common type of `objects`.
    fn most_common(&self, objects: impl Iterator<Item = Addr>) -> Option<Name> {
        let mut counts: Map<Addr, u64> = Map::default();
        objects.filter_map(|object| self.library.method_table(object)).for_each(|mt| counts.entry(mt).or_default().bump());
        self.name(counts.into_iter().max_by_key(|(mt, n)| (*n, *mt))?.0)
    }

    /// Names the field at an offset of an object: `Changed of Lab.Publisher at 0x7f…`.
    fn holder(&self, (object, offset): (Addr, u64)) -> String {
        let ty = self.library.method_table(object);
        let field = ty.and_then(|mt| self.namer.path_at(mt, offset)).unwrap_or_else(|| "?".into());
        format!("{field} of {} at {object}", ty.and_then(|mt| self.name(mt)).unwrap_or_else(|| "?".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_with_many_handlers_that_is_held_elsewhere_is_not_held_by_the_event_alone() {
        let mut target = Referrers::default();
        (0..1000).for_each(|part| target.add((Addr(part), 8), true));
        assert!(target.are_all(|by| by < Addr(1000)));
        target.add((Addr(5000), 16), false);
        assert!(!target.are_all(|by| by < Addr(1000)));
        assert_eq!(target.iter().count(), 1001);
    }

    #[test]
    fn referrers_that_were_not_kept_hold_an_object() {
        let mut target = Referrers::default();
        (0..64).for_each(|by| target.add((Addr(by), 8), false));
        assert!(target.are_all(|by| by < Addr(1000)));
        target.add((Addr(64), 8), false);
        assert!(!target.are_all(|by| by < Addr(1000)));
        let mut merged = Referrers::default();
        merged.merge(target);
        assert!(merged.cut && merged.iter().count() == 64);
    }

    #[test]
    fn a_list_that_delegates_share_is_read_once_for_the_longest() {
        let event = |delegate: u64, list: u64, count: u64| Event { delegate: Addr(delegate), list: Addr(list), count };
        let asked = std::cell::RefCell::new(Vec::new());
        let parts_in = |list: Addr, count: u64| {
            asked.borrow_mut().push((list.0, count));
            let call = |n| Call { delegate: Addr(list.0 + n), target: Some(Addr(n)), entry: Addr(1) };
            (list != Addr(900)).then(|| (0..count).map(call).collect())
        };
        // Three delegates of one event, whose list has grown once, and two with a list that exceeds the limit.
        let events = vec![event(10, 500, 2), event(20, 600, 3), event(30, 600, 4), event(40, 900, 3), event(50, 900, 2)];
        let found = Events::read(events, parts_in);
        assert_eq!(asked.into_inner(), [(600, 4), (900, 3), (500, 2)]);
        let sizes: Vec<_> = found.events.iter().map(|e| (e.delegate.0, found.parts(e).len())).collect();
        assert_eq!(sizes, [(30, 4), (20, 3), (10, 2)]);
        assert_eq!(found.left_out.iter().map(|e| e.delegate.0).collect::<Vec<_>>(), [40, 50]);
        assert_eq!(found.parts(&event(20, 600, 3)).last(), Some(&(Addr(602), Some(Addr(2)))));
    }
}
