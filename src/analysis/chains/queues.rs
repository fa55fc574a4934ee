//! What lies in the queues of the thread pool.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, NoteKind};
use crate::clr::library::{FieldAt, NoSuchField, fields_of, noted};
use crate::session::tasks::{AsyncType, Tasks, Waiter};

fields_of! {
    /// Fields of `ThreadPoolWorkQueue`.
    struct WorkQueue {
        normal: req "workItems",
        high: opt "highPriorityWorkItems",
        low: opt "lowPriorityWorkItems",
        assignable: opt "_assignableWorkItemQueues",
    }
}

fields_of! {
    /// Fields of `ThreadPoolWorkQueue+WorkStealingQueue`.
    struct LocalQueue {
        array: req "m_array",
    }
}

fields_of! {
    /// Fields of `ConcurrentQueue<T>`.
    struct Queue {
        head: req "_head",
    }
}

fields_of! {
    /// Fields of `ConcurrentQueueSegment<T>`.
    struct Segment {
        slots: req "_slots",
        next: req "_nextSegment",
    }
}

/// The tasks and methods in the pool's queues. `queues` are the objects that hold them.
pub(super) fn queued(tasks: &Tasks, queues: &[(Addr, Addr)], notes: &Collector) -> Set<Addr> {
    let mut reader = Reader { tasks, notes, items: Vec::new(), states: Map::default() };
    for (object, mt) in queues {
        if let Err(lacking) = reader.queue(*object, *mt) {
            noted::<()>(Err(lacking), "queues of the thread pool", notes);
        }
    }
    let items = std::mem::take(&mut reader.items);
    items.into_iter().filter_map(|item| reader.node(item)).collect()
}

struct Reader<'t> {
    tasks: &'t Tasks,
    notes: &'t Collector,
    items: Vec<Addr>,
    /// The state of a callback's item, by type.
    states: Map<Addr, Option<FieldAt>>,
}

impl Reader<'_> {
    fn queue(&mut self, object: Addr, mt: Addr) -> Result<(), NoSuchField> {
        let library = self.tasks.library();
        let types = library.types();
        if self.tasks.kinds(mt).is(AsyncType::LocalQueue) {
            let array = library.reference(object, LocalQueue::bind(types, mt)?.array);
            // What was taken leaves null.
            let items = array.map(|a| self.tasks.elements(a, u64::MAX)).unwrap_or_default();
            self.items.extend(items.into_iter().map(|(_, item)| item));
            return Ok(());
        }
        let fields = WorkQueue::bind(types, mt)?;
        let assignable = fields.assignable.and_then(|f| library.reference(object, f));
        let mut queues: Vec<Addr> = assignable.map(|a| self.tasks.elements(a, u64::MAX)).into_iter().flatten().map(|(_, q)| q).collect();
        let own = [Some(fields.normal), fields.high, fields.low].into_iter().flatten();
        queues.extend(own.filter_map(|f| library.reference(object, f)));
        queues.into_iter().try_for_each(|q| self.concurrent(q))
    }

    /// The items of a `ConcurrentQueue<object>`. What was taken leaves null.
    fn concurrent(&mut self, queue: Addr) -> Result<(), NoSuchField> {
        let library = self.tasks.library();
        let types = library.types();
        let Some(mt) = library.method_table(queue) else { return Ok(()) };
        let mut at = library.reference(queue, Queue::bind(types, mt)?.head);
        let mut fields = None;
        let mut seen = Set::default();
        while let Some(segment) = at {
            if !seen.insert(segment) {
                self.notes.add(NoteKind::LimitHit, segment, "a queue of the thread pool has a cycle");
                break;
            }
            let known = match fields {
                Some(known) => known,
                None => {
                    let Some(mt) = library.method_table(segment) else { break };
                    *fields.insert(Segment::bind(types, mt)?)
                }
            };
            if let Some(slots) = library.reference(segment, known.slots) {
                self.slots(slots)?;
            }
            at = library.reference(segment, known.next);
        }
        Ok(())
    }

    fn slots(&mut self, slots: Addr) -> Result<(), NoSuchField> {
        let library = self.tasks.library();
        let types = library.types();
        let Some(shape) = library.array(slots).filter(|s| self.tasks.afford(s.length.max(1))) else { return Ok(()) };
        let item = types.field_at(shape.element, "Item")?;
        // Offsets within a structure are those of its box.
        let within = item.offset.saturating_sub(types.pointer_bytes());
        let items = (0..shape.length).map(|i| shape.data.element(i, shape.element_bytes).plus(within));
        self.items.extend(items.filter_map(|slot| library.reference_at(slot)));
        Ok(())
    }

    /// The task or method that an item goes on with.
    fn node(&mut self, item: Addr) -> Option<Addr> {
        let of = |to: Addr| match self.tasks.resolve(to) {
            Some(Waiter::Node(at)) => Some(at),
            _ => None,
        };
        if let Some(found) = of(item) {
            return Some(found);
        }
        let library = self.tasks.library();
        let mt = library.method_table(item)?;
        let state = *self.states.entry(mt).or_insert_with(|| library.types().field_at(mt, "_state|_callback").ok());
        of(library.reference(item, state?)?)
    }
}
