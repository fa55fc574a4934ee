//! Consistency checks of threads.
//!
//! Every rule held for the 1,162 threads of 141 real dumps, among them dumps taken during collections, crashes, and thread start and end.
//! Threads that are being set up or torn down are not checked, because their words change one after another.

use std::sync::Arc;

use super::{ContextPlace, Thread, Threads, is_running};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Collector, NoteKind};
use crate::contract::Descriptor;
use crate::data::{self, IdDispenser, bind, globals};
use crate::memory::Memory;

/// The runtime's table of managed ids.
#[derive(Debug)]
pub(super) struct Ids {
    memory: Arc<Memory>,
    /// Array of the threads by id.
    threads: Addr,
    /// The highest id that was assigned.
    pub(super) highest: u32,
}

impl Ids {
    /// Binds to a runtime. The table may be missing from the dump, because it only confirms the ids in threads.
    pub(super) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Option<Ids> {
        let dispenser = bind!(d, IdDispenser { IdToThread, HighestId }).ok()?;
        let variable = globals::ThinlockThreadIdDispenser.of(d).ok()?;
        tried(|| {
            let at = memory.ptr(variable).ok().filter(|at| !at.is_null())?;
            let threads = dispenser.get(memory, at, IdDispenser::IdToThread).filter(|at| !at.is_null())?;
            Some(Ids { memory: Arc::clone(memory), threads, highest: dispenser.get(memory, at, IdDispenser::HighestId)? })
        })
    }

    /// The thread with the id; null if absent, `None` if the entry is not in the dump.
    fn owner(&self, id: u32) -> Option<Addr> {
        if id > self.highest {
            return Some(Addr::NULL);
        }
        tried(|| self.memory.ptr(self.threads.element(u64::from(id), self.memory.ptr_bytes())).ok())
    }
}

impl Thread {
    /// Whether the runtime has set the thread up, and has not begun to tear it down.
    fn runs(&self) -> bool {
        self.state.is_some_and(is_running)
    }
}

impl Threads {
    /// The highest managed id that the runtime assigned; `None` if it is not in the dump.
    pub(crate) fn highest_id(&self) -> Option<u32> {
        self.ids.as_ref().map(|ids| ids.highest)
    }

    /// Adds notes about impossible ids of `threads`.
    pub(crate) fn note_ids(&self, threads: &[Thread], notes: &Collector) {
        let add = |at: Option<Addr>, thread: &Thread, what: &str| {
            notes.add(NoteKind::Invalid, at.unwrap_or(thread.address), format!("the thread at {}: {what}", thread.address));
        };
        let (mut by_id, mut by_os): (Map<u32, Addr>, Map<u64, Addr>) = (Map::default(), Map::default());
        for thread in threads.iter().filter(|_| !self.descriptor.is_native_aot()) {
            let at = self.thread.place(thread.address, data::Thread::Id);
            if let Some(id) = thread.id {
                let other = *by_id.entry(id).or_insert(thread.address);
                match self.ids.as_ref().and_then(|ids| ids.owner(id)).filter(|owner| *owner != thread.address) {
                    _ if id == 0 => add(at, thread, "its managed id is 0, which no thread has"),
                    _ if other != thread.address => add(at, thread, &format!("its managed id {id} is also that of the thread at {other}")),
                    Some(owner) if owner.is_null() => {
                        add(at, thread, &format!("its managed id is {id}, which is not assigned to a thread"))
                    }
                    Some(owner) => add(at, thread, &format!("its managed id is {id}, which is assigned to the thread at {owner}")),
                    None => {}
                }
            }
            let at = self.identity.place(thread.address, data::Thread::OSId);
            match (thread.recorded_id, thread.state) {
                (Some(0), Some(state)) if is_running(state) => add(at, thread, "it runs but has no OS thread id"),
                (Some(os), state) if os != 0 => {
                    let other = *by_os.entry(os).or_insert(thread.address);
                    if other != thread.address {
                        add(at, thread, &format!("its OS thread id {os} is also that of the thread at {other}"));
                    }
                    if state.is_some_and(|state| state & (super::UNSTARTED | super::DEAD) != 0) {
                        add(
                            self.thread.place(thread.address, data::Thread::State),
                            thread,
                            &format!("it has not started or has ended, but has the OS thread id {os}"),
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds notes about threads whose GC mode is unknown because it has an impossible value.
    pub(crate) fn note_modes(&self, threads: &[Thread], notes: &Collector) {
        for thread in threads {
            if let Some(mode) = self.mode(thread.address).filter(|mode| *mode > 1) {
                let at = self.thread.place(thread.address, data::Thread::PreemptiveGCDisabled);
                notes.add(NoteKind::Invalid, at, format!("the thread at {}: its GC mode is {mode}, neither 0 nor 1", thread.address));
            }
        }
    }

    /// Adds notes about impossible allocation contexts of `threads`.
    pub(crate) fn note_contexts(&self, threads: &[Thread], notes: &Collector) {
        let Some((ContextPlace::Locals { pointer: Some(locals), .. }, _)) = &self.context else { return };
        let mut owners: Map<Addr, Addr> = Map::default();
        for thread in threads {
            let at = locals.place(thread.address);
            let Ok(locals) = tried(|| self.memory.ptr(at)) else { continue };
            let other = if locals.is_null() { thread.address } else { *owners.entry(locals).or_insert(thread.address) };
            if locals.is_null() && thread.runs() {
                let what = format!("the thread at {}: it runs but has no allocation context", thread.address);
                notes.add(NoteKind::Invalid, at, what);
            } else if other != thread.address {
                let what = format!("the thread at {}: its allocation context is also that of the thread at {other}", thread.address);
                notes.add(NoteKind::Invalid, at, what);
            }
        }
    }

    /// Adds notes about exceptions in flight of `threads` without an object. The runtime enters an exception in the thread's list before the object
    /// exists: for a hardware fault, managed code creates the object (`RhThrowHwEx`), and may block meanwhile. So this is an error only if
    /// `is_thrown`, called with the thread and the address of the exception in flight, returns true.
    pub(crate) fn note_in_flight(&self, threads: &[Thread], is_thrown: impl Fn(&Thread, Addr) -> bool, notes: &Collector) {
        use data::ExceptionInfo as Exception;
        let Some(fields) = &self.exception else { return };
        let list = |thread: Addr| {
            let first = self.thread.link(&self.memory, thread, data::Thread::ExceptionTracker);
            std::iter::successors(first, |info| fields.link(&self.memory, *info, Exception::PreviousNestedInfo)).take(super::MAX_NESTED)
        };
        for thread in threads {
            for (index, info) in list(thread.address).enumerate() {
                // Memory that is not in the dump is a failed read, which the answer reports.
                let is_null = |at: Option<Addr>| at.is_some_and(|at| tried(|| self.memory.ptr(at)).is_ok_and(|to| to.is_null()));
                let slot = fields.place(info, Exception::ThrownObject);
                let (handle, object) = self.thrown(fields, info);
                if object.is_none() && (is_null(slot) || is_null(handle)) && is_thrown(thread, info) {
                    let which = if index == 0 { "the exception in flight" } else { "a nested exception in flight" };
                    let what = format!("the thread at {}: {which}, at {info}, has no object", thread.address);
                    notes.add(NoteKind::Invalid, slot, what);
                }
            }
        }
    }

    /// The handle of the managed object of `thread`, or null; `None` if the dump does not have it.
    pub(crate) fn exposed_handle(&self, thread: &Thread) -> Option<Addr> {
        self.thread.get(&self.memory, thread.address, data::Thread::ExposedObject)
    }

    /// Address of the handle to the managed object of `thread`.
    pub(crate) fn exposed_at(&self, thread: &Thread) -> Option<Addr> {
        self.thread.place(thread.address, data::Thread::ExposedObject)
    }

    /// Adds notes about impossible handles to the managed objects of `threads`.
    pub(crate) fn note_handles(&self, threads: &[Thread], notes: &Collector) {
        let mut owners: Map<Addr, Addr> = Map::default();
        for thread in threads.iter().filter(|_| !self.descriptor.is_native_aot()) {
            let Some(handle) = tried(|| self.exposed_handle(thread)) else { continue };
            let other = if handle.is_null() { thread.address } else { *owners.entry(handle).or_insert(thread.address) };
            if handle.is_null() && thread.runs() {
                let what = format!("the thread at {}: it runs but has no handle to its managed object", thread.address);
                notes.add(NoteKind::Invalid, self.exposed_at(thread), what);
            } else if other != thread.address {
                let what =
                    format!("the thread at {}: the handle to its managed object is also that of the thread at {other}", thread.address);
                notes.add(NoteKind::Invalid, self.exposed_at(thread), what);
            }
        }
    }

    /// Adds notes about foreground threads that run but whose handle holds no managed object, which `Thread.Start` creates. The main thread (id 1) and
    /// background threads that native code started may have none. Handles around such a handle may be lost as well, so this is for answers about
    /// handles too.
    pub(crate) fn note_null_objects(&self, threads: &[Thread], notes: &Collector) {
        let is_started = |thread: &&Thread| {
            thread.runs() && thread.id.is_some_and(|id| id > 1) && thread.state.is_some_and(|state| state & super::BACKGROUND == 0)
        };
        for thread in threads.iter().filter(|_| !self.descriptor.is_native_aot()).filter(is_started) {
            let Some(handle) = tried(|| self.exposed_handle(thread)).filter(|handle| !handle.is_null()) else { continue };
            if tried(|| self.memory.ptr(handle)).is_ok_and(|object| object.is_null()) {
                let what = format!("the thread at {}: it runs, but the handle of its managed object holds null", thread.address);
                notes.add(NoteKind::Invalid, handle, what);
            }
        }
    }
}
