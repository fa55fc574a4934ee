//! Tasks and boxes of async methods in the queues of the thread pool.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{AsyncType, Tasks, Waiter};
use crate::clr::library::{FieldAt, noted};

/// Returns the tasks and the boxes of async methods in the thread pool's queues. Each of `queues` is an object with its method table: a local queue,
/// or a `ThreadPoolWorkQueue`, whose fields refer to the shared queues.
pub(super) fn queued(tasks: &Tasks, queues: &[(Addr, Addr)], notes: &Collector) -> Set<Addr> {
    let mut items = Vec::new();
    for (object, mt) in queues {
        if tasks.kinds(*mt).is(AsyncType::LocalQueue) {
            let own = noted(tasks.queued_locally(*object, *mt, notes), "local thread pool queues", notes).flatten();
            items.extend(own.into_iter().flatten());
        } else {
            let shared = tasks.shared_queues(*object, notes).into_iter();
            items.extend(shared.filter_map(|(_, queue)| tasks.queued(queue, notes)).flatten());
        }
    }
    let mut reader = Reader { tasks, targets: Map::default() };
    items.into_iter().filter_map(|item| reader.node(item)).collect()
}

struct Reader<'t> {
    tasks: &'t Tasks,
    /// By the type of an item: the fields that may refer to the task, box or delegate that the item runs.
    targets: Map<Addr, Vec<FieldAt>>,
}

impl Reader<'_> {
    /// Returns the task, or the box of the async method, that a queued item runs or resumes.
    fn node(&mut self, item: Addr) -> Option<Addr> {
        let resolve = |to: Addr| match self.tasks.resolve(to) {
            Some(Waiter::Node(at)) => Some(at),
            _ => None,
        };
        if let Some(found) = resolve(item) {
            return Some(found);
        }
        let library = self.tasks.library();
        let mt = library.method_table(item)?;
        let fields =
            || ["_state", "_callback", "m_action"].into_iter().filter_map(|name| library.types().field_at(mt, name).ok()).collect();
        let targets = self.targets.entry(mt).or_insert_with(fields);
        // The state object of a callback is often null or an object of the program; the callback itself may then lead to the task.
        targets.iter().find_map(|target| resolve(library.reference(item, *target)?))
    }
}
