//! Holders of the continuations of methods that nothing known resumes.
//!
//! A method gives a delegate to an object with a custom awaiter. Queues of the program may hold the delegate in any way: as an element of
//! a structure, or in a field of type `object`.

use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{MachineAt, Tasks};
use crate::gc::{Object, Visitor};
use crate::heapgraph::Roots;
use crate::model::RootKind;
use crate::session::Heap;
use crate::session::roots::RootOptions;

/// The holder of the continuation of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// An object with this method table.
    Object(Addr),
    /// A root.
    Root(RootKind),
}

/// A method whose continuation is searched for.
#[derive(Clone, Copy)]
struct Method {
    /// Its box.
    own: Addr,
    /// Its state machine, if that is an object.
    machine: Option<Addr>,
}

/// Collects the first referrer of each continuation.
struct Referrers<'r> {
    continuations: &'r Map<Addr, Method>,
    /// The lowest and the highest continuation.
    range: (Addr, Addr),
    found: Map<Addr, (Addr, Addr)>,
}

impl Visitor for Referrers<'_> {
    fn object(&mut self, object: &Object<'_>) {
        let (continuations, (low, high), found) = (self.continuations, self.range, &mut self.found);
        object.references(|_, target| {
            if target < low || target > high {
                return;
            }
            let Some(method) = continuations.get(&target) else { return };
            // The method refers to its own continuation, and a delegate may refer to itself.
            if ![Some(method.own), method.machine, Some(target)].contains(&Some(object.address)) {
                let by = (object.address, object.ty.method_table);
                found.entry(target).and_modify(|known| *known = by.min(*known)).or_insert(by);
            }
        });
    }
}

/// Finds what holds the continuations of `methods`, each the box of an asynchronous method with its method table. A method whose continuation was
/// never given away is not in the result. The heap is walked only if there are continuations.
pub(super) fn held(heap: &Heap, tasks: &Tasks, methods: impl Iterator<Item = (Addr, Addr)>, notes: &Collector) -> Map<Addr, Holder> {
    let library = tasks.library();
    let mut continuations: Map<Addr, Method> = Map::default();
    for (own, mt) in methods {
        // The box has its own delegate where other tasks have their work.
        let Some(continuation) = tasks.action(own) else { continue };
        let machine = match tasks.plan(mt).machine {
            Some(MachineAt::Behind(field)) => library.reference(own, field),
            _ => None,
        };
        continuations.insert(continuation, Method { own, machine });
    }
    let Some(range) = continuations.keys().min().copied().zip(continuations.keys().max().copied()) else { return Map::default() };
    let wanted = heap.types_where(notes, |ty| !ty.is_free && !ty.gc_desc.is_empty());
    let visitors = heap.walk_where(&wanted, || Referrers { continuations: &continuations, range, found: Map::default() });
    let mut objects: Map<Addr, (Addr, Addr)> = Map::default();
    for (continuation, by) in visitors.into_iter().flat_map(|visitor| visitor.found) {
        objects.entry(continuation).and_modify(|known| *known = by.min(*known)).or_insert(by);
    }
    let mut out: Map<Addr, Holder> = Map::default();
    let of = |continuation: &Addr| continuations.get(continuation).map(|method| method.own);
    out.extend(objects.iter().filter_map(|(continuation, (_, mt))| Some((of(continuation)?, Holder::Object(*mt)))));
    if objects.len() < continuations.len() {
        let found = notes.take(Roots::collect(heap, &heap.namer(), &RootOptions::default()));
        let others = found.roots.iter().filter(|root| !objects.contains_key(&root.object));
        out.extend(others.filter_map(|root| Some((of(&root.object)?, Holder::Root(root.kind)))));
    }
    out
}
