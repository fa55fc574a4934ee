//! Finalization queues by heap, generation and type.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use crate::analysis::holders::roots::ObjectTypes;
use crate::analysis::sort::{self, Key};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Collector, Count, Missing, cut, total};
use crate::contract::ContractError;
use crate::gc::FinalizerEntry;
use crate::model::{FinalizerSort, FinalizerState, Generation, Order};
use crate::session::roots::dangling::Pointed;
use crate::session::{Error, NamedTypes, Runtime, TypeFilter, TypePattern};

#[derive(Clone, Copy, Default)]
struct States {
    registered: u64,
    ready: u64,
    critical: u64,
}

impl States {
    fn add(&mut self, state: FinalizerState, objects: u64) {
        match state {
            FinalizerState::Registered => self.registered.grow(objects),
            FinalizerState::Ready => self.ready.grow(objects),
            FinalizerState::Critical => self.critical.grow(objects),
        }
    }
}

/// Arguments of `finalizers`.
#[derive(Clone, Debug, Default)]
pub struct FinalizersQuery {
    /// Only objects of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Whether to list every object as well.
    pub objects: bool,
    /// Order of the objects if they are listed, or else of the types. `None` for objects in queue order, and types with the most objects first.
    pub sort: Option<Order<FinalizerSort>>,
    /// Maximum number of types to list, and of objects if they are listed; 0 for all.
    pub top: usize,
}

/// Reads the finalization queue of each heap.
///
/// # Errors
/// [`Error::Contract`] if the GC's structures are not described, [`Error::Query`] for a column that the list does not have.
pub fn finalizers(runtime: &Runtime, query: &FinalizersQuery) -> Result<Answer<FinalizersReport>, Error> {
    use FinalizerSort::{Critical, Generation as Gen, Heap, Object, Ready, Registered, State, Type};
    let FinalizersQuery { types, objects: with_objects, sort, top } = query;
    let (with_objects, sort, top) = (*with_objects, *sort, *top);
    let (has, what): (&[FinalizerSort], &str) =
        if with_objects { (&[Type, Object, State, Gen, Heap], "objects") } else { (&[Type, Registered, Ready, Critical], "types") };
    sort::check(sort.as_ref(), has, what)?;
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    match runtime.thread_reader() {
        Ok(reader) => {
            notes.extend(reader.losses());
            runtime.note_thread_ids(&notes);
        }
        Err(e @ ContractError::Unusable { .. }) => notes.add(Missing::Threads, None, format!("the finalizer thread cannot be read: {e}")),
        // The answer does not depend on the finalizer thread.
        Err(_) => {}
    }
    let namer = runtime.namer();
    let mut objects = ObjectTypes::new(gc, &namer);
    let mut by_type: Map<Option<Addr>, States> = Map::default();
    let mut known: Map<Option<Addr>, bool> = Map::default();
    let mut all = States::default();
    let (mut heaps, mut list) = (Vec::new(), Vec::new());
    let queues = notes.take(gc.finalizer_queues());
    let heap = runtime.heap().ok();
    let mut pointed = Pointed::new(heap.as_ref());
    queues.iter().flat_map(|q| &q.entries).for_each(|e| pointed.check(Some(e.address), e.object));
    pointed.note("queued reference", &notes);
    let tables: Set<Addr> = if types.is_empty() {
        Set::default()
    } else {
        queues.iter().flat_map(|q| &q.entries).filter_map(|e| objects.method_table(e.object)).collect()
    };
    let types = TypeFilter::of(types, &NamedTypes { namer: &namer, tables: || tables.iter().copied().collect() }, &notes);
    let is_counted = queues.iter().all(|queue| queue.counted);
    for queue in queues {
        let mut own = States::default();
        let mut generations: BTreeMap<Generation, u64> = BTreeMap::new();
        for FinalizerEntry { object, state, generation, .. } in queue.entries {
            let mt = objects.method_table(object);
            let wanted =
                types.is_empty() || *known.entry(mt).or_insert_with(|| mt.is_some_and(|mt| types.matches(mt, || objects.name(mt))));
            if !wanted {
                continue;
            }
            own.add(state, 1);
            all.add(state, 1);
            by_type.entry(mt).or_default().add(state, 1);
            if let Some(generation) = generation {
                generations.entry(generation).or_default().bump();
            }
            if with_objects {
                let type_name = mt.map(|mt| objects.name(mt));
                list.push(FinalizerObject { object, type_name, method_table: mt, state, generation, heap: queue.heap });
            }
        }
        // The fill pointers show how many objects are in the queue, but not of which types.
        for (state, generation, objects) in queue.unread.into_iter().filter(|_| types.is_empty()) {
            own.add(state, objects);
            all.add(state, objects);
            generation.into_iter().for_each(|generation| generations.entry(generation).or_default().grow(objects));
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
    let sum = |t: &FinalizerType| total([t.registered, t.ready, t.critical]);
    types.sort_by(|a, b| sum(b).cmp(&sum(a)).then_with(|| (&a.type_name, a.method_table).cmp(&(&b.type_name, b.method_table))));
    if let Some(Order { by, direction }) = sort {
        match with_objects {
            true => sort::sort(&mut list, direction, |o| object_key(o, by)),
            false => sort::sort(&mut types, direction, |t| type_key(t, by)),
        }
    }
    let (shown, objects_shown) = (cut(&mut types, top), cut(&mut list, top));
    namer.note(&notes);
    let thread = finalizer_thread(runtime, &notes);
    Ok(notes.finish(FinalizersReport {
        registered: all.registered,
        ready: all.ready,
        critical: all.critical,
        heaps,
        thread,
        types,
        shown,
        objects: with_objects.then_some(list),
        objects_shown,
        is_counted,
    }))
}

fn object_key(o: &FinalizerObject, by: FinalizerSort) -> Option<Key<'_>> {
    match by {
        FinalizerSort::Type => Key::text(o.type_name.as_deref()),
        FinalizerSort::State => Key::text(o.state.name()),
        FinalizerSort::Generation => o.generation.and_then(|g| Key::place(&Generation::ALL, &g)),
        FinalizerSort::Heap => Key::least(Some(o.heap)),
        _ => Key::at(o.object),
    }
}

fn type_key(t: &FinalizerType, by: FinalizerSort) -> Option<Key<'_>> {
    match by {
        FinalizerSort::Registered => Key::most(t.registered),
        FinalizerSort::Ready => Key::most(t.ready),
        FinalizerSort::Critical => Key::most(t.critical),
        _ => Key::text(t.type_name.as_deref()),
    }
}

fn finalizer_thread(runtime: &Runtime, notes: &Collector) -> Option<FinalizerThread> {
    let address = runtime.thread_reader().ok()?.finalizer(runtime.thread_list().ok()?, notes)?;
    let thread = runtime.threads_if_any(notes).iter().find(|t| t.address == address);
    Some(FinalizerThread { managed_id: thread.and_then(|t| t.id), os_id: thread.and_then(|t| t.os_id).filter(|id| *id != 0), address })
}
