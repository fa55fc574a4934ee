//! Events with many handlers.

use std::cell::OnceCell;

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, Name, be, len64, plural, thousands, total};
use crate::bcl::delegates::Delegates;
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
struct Event {
    delegate: Addr,
    list: Set<Addr>,
    /// Delegate and target of each part.
    parts: Vec<(Addr, Option<Addr>)>,
}

impl Inspector<'_> {
    pub(super) fn event_leaks(&self) -> Findings<'_> {
        let delegates = Delegates::bind(self.heap.runtime(), self.library.types(), self.notes);
        let mut events = Vec::new();
        for delegate in self.swept.of(Inspected::MulticastDelegate) {
            let Some((parts, complete)) = delegates.parts(delegate).filter(|(parts, _)| parts.len() > 1) else { continue };
            if !complete {
                self.notes.add(Missing::Objects, delegate, "a part of a multicast delegate is not in the dump");
            }
            let list = delegates.list_of(delegate).into_iter().collect();
            events.push(Event { delegate, list, parts: parts.iter().map(|c| (c.delegate, c.target)).collect() });
        }
        if self.swept.of(Inspected::MulticastDelegate).next().is_some() {
            delegates.note_lists(self.notes);
        }
        if events.is_empty() {
            return Findings::plain(Vec::new());
        }
        let targets = events.iter().flat_map(|e| &e.parts).flat_map(|(part, target)| [Some(*part), *target]).flatten();
        let wanted: Set<Addr> = targets.chain(events.iter().map(|e| e.delegate)).collect();
        let parts = events.iter().flat_map(|e| e.parts.iter().map(|(part, _)| *part));
        let of_events: Set<Addr> = parts.chain(events.iter().flat_map(|e| e.list.iter().copied())).collect();
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
        let leak = |event: Event| {
            // Few events have many handlers, and only these are worth building a graph for.
            let holds_it = |by: Addr| event.parts.len() < MANY || is_live(by);
            let holders = referrers.get(&event.delegate).unwrap_or(&none);
            // A delegate that is in no static or field is an old list of handlers. The delegate's reference to itself is ignored.
            let holder = match rooted.get(&event.delegate) {
                Some(root) => Holder::Root(*root),
                None => Holder::Object(*holders.iter().filter(|(by, _)| *by != event.delegate && holds_it(*by)).min()?),
            };
            holds.insert(event.delegate, holder);
            let own: Set<Addr> = event.parts.iter().map(|(part, _)| *part).collect();
            let only = |(part, target): &&(Addr, Option<Addr>)| {
                let Some(target) = target else { return false };
                let of_target = referrers.get(target).unwrap_or(&none);
                let of_part = referrers.get(part).unwrap_or(&none);
                let directly = !rooted.contains_key(target)
                    && !rooted.contains_key(part)
                    && of_target.are_all(|by| own.contains(&by) || !holds_it(by))
                    && of_part.are_all(|by| event.list.contains(&by) || !holds_it(by));
                directly || event.parts.len() >= MANY && keeps(&event, *target)
            };
            if event.parts.len() >= MANY {
                let others = event.parts.iter().filter(|part| !only(part)).filter_map(|(_, target)| *target);
                let mut others = others.filter(|target| !rooted.contains_key(target)).peekable();
                if others.peek().is_some() && tree.get_or_init(|| self.dominators()).is_none() {
                    unknown.extend(others);
                }
            }
            let here: Vec<Addr> = event.parts.iter().filter(only).filter_map(|(_, target)| *target).collect();
            let (held, count) = (len64(here.len()), len64(event.parts.len()));
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
        let rows = events.into_iter().filter_map(leak).collect();
        if !unknown.is_empty() {
            let what = format!(
                "whether {} of events {} held by anything else is unknown without the graph of the heap",
                plural(len64(unknown.len()), "target"),
                be(len64(unknown.len()))
            );
            self.notes.add(Missing::Answer, None, what);
        }
        Findings::plain(rows).with_detail(move |row| {
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
}
