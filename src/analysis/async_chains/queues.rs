//! Tasks and methods in the queues of the thread pool.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{AsyncType, Tasks, Waiter};
use crate::clr::library::{FieldAt, noted};

/// The tasks and methods in the pool's queues. `queues` are the objects that hold them, with their method tables.
pub(super) fn queued(tasks: &Tasks, queues: &[(Addr, Addr)], notes: &Collector) -> Set<Addr> {
    let mut items = Vec::new();
    for (object, mt) in queues {
        if tasks.kinds(*mt).is(AsyncType::LocalQueue) {
            let own = noted(tasks.queued_locally(*object, *mt, notes), "local queues of the thread pool", notes).flatten();
            items.extend(own.into_iter().flatten());
        } else {
            let shared = tasks.shared_queues(*object, notes).into_iter();
            items.extend(shared.filter_map(|(_, queue)| tasks.queued(queue, notes)).flatten());
        }
    }
    let mut reader = Reader { tasks, states: Map::default() };
    items.into_iter().filter_map(|item| reader.node(item)).collect()
}

struct Reader<'t> {
    tasks: &'t Tasks,
    /// The state of a callback's item, by type.
    states: Map<Addr, Option<FieldAt>>,
}

impl Reader<'_> {
    /// The task or method that an item runs or resumes.
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
        let state = *self.states.entry(mt).or_insert_with(|| library.types().field_at(mt, "_state|_callback|m_action").ok());
        of(library.reference(item, state?)?)
    }
}
