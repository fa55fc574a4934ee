//! Assigns waiters to their semaphores and channels.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{AsyncType, Tasks};
use crate::clr::library::{fields_of, noted};
use crate::clr::type_names::TypeNames;
use crate::gc::GcDesc;

fields_of! {
    /// Fields of `SemaphoreSlim`.
    pub(super) struct Semaphore {
        head: req "m_asyncHead",
        count: req "m_currentCount",
    }
}

/// The owners of waiters.
pub(super) struct Owners {
    /// Owners by waiter.
    pub(super) by_waiter: Map<Addr, Addr>,
    pub(super) semaphore: Option<Semaphore>,
}

/// Finds the waiters of the semaphores and channels in `owners`. An object that a channel refers to is a waiter if `wanted` holds for it.
pub(super) fn owners(tasks: &Tasks, owners: &[(Addr, Addr)], wanted: impl Fn(Addr) -> bool, notes: &Collector) -> Owners {
    let types = tasks.library().types();
    let bind = || noted(Semaphore::bind(types, tasks.table(AsyncType::Semaphore)?), "semaphores", notes);
    let next = || noted(types.field_at(tasks.table(AsyncType::SemaphoreWaiter)?, "Next"), "semaphores", notes);
    let (semaphore, next) = (bind(), next());
    let mut by_waiter = Map::default();
    for (owner, mt) in owners {
        if !tasks.kinds(*mt).is(AsyncType::Semaphore) {
            channel(tasks, (*owner, *mt), &wanted, &mut by_waiter);
        } else if let (Some(fields), Some(next)) = (semaphore, next) {
            tasks.library().semaphore_waiters(*owner, (fields.head, next), &mut by_waiter, notes);
        }
    }
    Owners { by_waiter, semaphore }
}

/// Adds the waiting operations that a channel refers to, directly or through other objects whose types are in the same module.
fn channel(tasks: &Tasks, channel: (Addr, Addr), wanted: &impl Fn(Addr) -> bool, out: &mut Map<Addr, Addr>) {
    let library = tasks.library();
    let types = library.types();
    let tables = types.names().method_tables();
    let home = types.definition(channel.1).map(|d| d.module);
    let mut layouts: Map<Addr, Option<GcDesc>> = Map::default();
    let mut seen = Set::from_iter([channel.0]);
    let mut ready = vec![channel.0];
    while let Some(object) = ready.pop() {
        if object != channel.0 && wanted(object) {
            out.insert(object, channel.0);
        }
        let Some(mt) = library.method_table(object) else { continue };
        let Ok(info) = tables.read(mt) else { continue };
        let layout = layouts.entry(mt).or_insert_with(|| {
            let element = || tables.element_type(mt).ok().and_then(TypeNames::method_table_of);
            let kept = if info.is_array { element() } else { Some(mt) };
            let own = kept.and_then(|of| types.definition(of)).is_some_and(|d| Some(d.module) == home);
            (own && info.contains_pointers).then(|| GcDesc::read(types.memory(), mt, info.base_size.into()))
        });
        let Some(layout) = layout else { continue };
        let size = if info.is_array {
            let Some(shape) = library.array(object) else { continue };
            shape.length.saturating_mul(shape.element_bytes).saturating_add(info.base_size.into())
        } else {
            info.base_size.into()
        };
        layout.captured(types.memory(), object, size, |offset| {
            if tasks.afford(1)
                && let Some(to) = library.reference_at(object.plus(offset))
                && seen.insert(to)
            {
                ready.push(to);
            }
        });
    }
}
