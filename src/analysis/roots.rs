//! Roots and finalization queues as answers: named, counted, cut.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{Namer, TypePattern};
use super::{Root, RootOptions, Roots};
use crate::base::{Addr, SharedNotes};
use crate::clr::threads::Threads;
use crate::contract::{Process, Runtime};
use crate::gc::{FinalizerEntry, Gc};
use crate::model::{
    DependentModel, FinalizerGeneration, FinalizerHeap, FinalizerObject, FinalizerState, FinalizerThread, FinalizerType, FinalizersReport,
    Generation, RootCount, RootKind, RootModel, RootType, RootsReport,
};

/// What is to be listed.
#[derive(Clone, Debug, Default)]
pub struct RootsQuery {
    /// Only roots that lead to objects of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Types instead of roots.
    pub stat: bool,
    /// Rows to list, 0 for all.
    pub top: usize,
}

/// Method tables of objects, and their names; each looked at once.
struct Objects<'n, 'g, 'p> {
    gc: &'n Gc,
    namer: &'n Namer,
    names: FxHashMap<Addr, String>,
}

impl Objects<'_, '_, '_> {
    fn method_table(&self, object: Addr) -> Option<Addr> {
        self.gc.method_table(object)
    }

    fn name(&mut self, method_table: Addr) -> String {
        let namer = self.namer;
        self.names.entry(method_table).or_insert_with(|| namer.name_or_address(method_table)).clone()
    }

    fn of(&mut self, object: Addr) -> Option<String> {
        let mt = self.method_table(object)?;
        Some(self.name(mt))
    }
}

#[derive(Default)]
struct Tally {
    count: u64,
    objects: FxHashSet<Addr>,
}

impl Tally {
    fn add(&mut self, object: Addr) {
        self.count = self.count.saturating_add(1);
        self.objects.insert(object);
    }
}

fn number(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The roots as an answer.
pub fn roots_report(roots: &Roots, gc: &Gc, namer: &Namer, options: &RootOptions, query: &RootsQuery) -> RootsReport {
    let mut objects = Objects { gc, namer, names: FxHashMap::default() };
    let mut known: FxHashMap<Option<Addr>, bool> = FxHashMap::default();
    let mut picked: Vec<(&Root, Option<Addr>)> = Vec::new();
    let mut kinds: BTreeMap<usize, Tally> = BTreeMap::new();
    for root in &roots.roots {
        let mt = objects.method_table(root.object);
        let wanted = query.types.is_empty()
            || *known.entry(mt).or_insert_with(|| mt.is_some_and(|mt| query.types.iter().any(|t| t.matches(mt, || objects.name(mt)))));
        if wanted {
            picked.push((root, mt));
            let order = RootKind::ALL.iter().position(|k| *k == root.kind).unwrap_or(usize::MAX);
            kinds.entry(order).or_default().add(root.object);
        }
    }
    let counts = kinds
        .into_iter()
        .filter_map(|(i, t)| Some(RootCount { kind: *RootKind::ALL.get(i)?, count: t.count, objects: number(t.objects.len()) }));
    let mut report = RootsReport {
        total: number(picked.len()),
        counts: counts.collect(),
        coverage: roots.coverage.clone(),
        roots: None,
        types: None,
        shown: None,
        dependents: None,
    };
    let most = if query.top == 0 { usize::MAX } else { query.top };
    if query.stat {
        let mut types: FxHashMap<Option<Addr>, Tally> = FxHashMap::default();
        for (root, mt) in &picked {
            types.entry(*mt).or_default().add(root.object);
        }
        let row = |(mt, t): (Option<Addr>, Tally)| RootType {
            type_name: mt.map(|mt| objects.name(mt)),
            method_table: mt,
            count: t.count,
            objects: number(t.objects.len()),
        };
        let mut rows: Vec<RootType> = types.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.type_name, a.method_table).cmp(&(&b.type_name, b.method_table))));
        report.shown = (rows.len() > most).then(|| number(most));
        rows.truncate(most);
        report.types = Some(rows);
        return report;
    }
    report.shown = (picked.len() > most).then(|| number(most));
    let row = |(root, mt): &(&Root, Option<Addr>)| RootModel {
        kind: root.kind,
        address: root.address,
        object: root.object,
        type_name: mt.map(|mt| objects.name(mt)),
        method_table: *mt,
        flags: root.flags.names(),
        label: roots.label(root),
        thread: roots.thread_of(root).and_then(|t| t.managed_id),
    };
    report.roots = Some(picked.iter().take(most).map(row).collect());
    if options.kinds.is_empty() && query.types.is_empty() {
        let dependent = |(primary, secondary): &(Addr, Addr)| DependentModel {
            primary: *primary,
            primary_type: objects.of(*primary),
            secondary: *secondary,
            secondary_type: objects.of(*secondary),
        };
        report.dependents = Some(roots.dependents.iter().map(dependent).collect());
    }
    report
}

#[derive(Clone, Copy, Default)]
struct States {
    registered: u64,
    ready: u64,
    critical: u64,
}

impl States {
    fn add(&mut self, state: FinalizerState) {
        let n = match state {
            FinalizerState::Registered => &mut self.registered,
            FinalizerState::Ready => &mut self.ready,
            FinalizerState::Critical => &mut self.critical,
        };
        *n = n.saturating_add(1);
    }
}

/// The finalization queues as an answer. `types` picks objects, `top` cuts the list of types (0: all).
pub fn finalizers(
    process: &Process,
    runtime: &Runtime,
    gc: &Gc,
    namer: &Namer,
    types: &[TypePattern],
    with_objects: bool,
    top: usize,
) -> FinalizersReport {
    let mut objects = Objects { gc, namer, names: FxHashMap::default() };
    let mut by_type: FxHashMap<Option<Addr>, States> = FxHashMap::default();
    let mut known: FxHashMap<Option<Addr>, bool> = FxHashMap::default();
    let mut all = States::default();
    let (mut heaps, mut list) = (Vec::new(), Vec::new());
    for queue in gc.finalizer_queues() {
        let mut own = States::default();
        let mut generations: BTreeMap<Generation, u64> = BTreeMap::new();
        for FinalizerEntry { object, state, generation, .. } in queue.entries {
            let mt = objects.method_table(object);
            let wanted = types.is_empty()
                || *known.entry(mt).or_insert_with(|| mt.is_some_and(|mt| types.iter().any(|t| t.matches(mt, || objects.name(mt)))));
            if !wanted {
                continue;
            }
            own.add(state);
            all.add(state);
            by_type.entry(mt).or_default().add(state);
            if let Some(generation) = generation {
                let n = generations.entry(generation).or_default();
                *n = n.saturating_add(1);
            }
            if with_objects {
                let type_name = mt.map(|mt| objects.name(mt));
                list.push(FinalizerObject { object, type_name, method_table: mt, state, generation, heap: queue.heap });
            }
        }
        let States { registered, ready, critical } = own;
        let generations = generations.into_iter().map(|(generation, count)| FinalizerGeneration { generation, count }).collect();
        heaps.push(FinalizerHeap { heap: queue.heap, registered, ready, critical, generations });
    }
    let row = |(mt, s): (Option<Addr>, States)| FinalizerType {
        type_name: mt.map(|mt| objects.name(mt)),
        method_table: mt,
        registered: s.registered,
        ready: s.ready,
        critical: s.critical,
    };
    let mut types: Vec<FinalizerType> = by_type.into_iter().map(row).collect();
    let sum = |t: &FinalizerType| t.registered.saturating_add(t.ready).saturating_add(t.critical);
    types.sort_by(|a, b| sum(b).cmp(&sum(a)).then_with(|| (&a.type_name, a.method_table).cmp(&(&b.type_name, b.method_table))));
    let shown = (top > 0 && types.len() > top).then(|| number(top));
    types.truncate(if top == 0 { usize::MAX } else { top });
    FinalizersReport {
        registered: all.registered,
        ready: all.ready,
        critical: all.critical,
        heaps,
        thread: finalizer_thread(process, runtime),
        types,
        shown,
        objects: with_objects.then_some(list),
    }
}

fn finalizer_thread(process: &Process, runtime: &Runtime) -> Option<FinalizerThread> {
    // The queues are the answer; a broken thread list is no reason to call it partial.
    let quiet = SharedNotes::new();
    let threads = Threads::bind(&process.memory, &runtime.descriptor, &quiet, &process.limits).ok()?;
    let address = threads.finalizer()?;
    let thread = threads.list().into_iter().find(|t| t.address == address);
    Some(FinalizerThread {
        managed_id: thread.as_ref().and_then(|t| t.id),
        os_id: thread.and_then(|t| t.os_id).filter(|id| *id != 0),
        address,
    })
}
