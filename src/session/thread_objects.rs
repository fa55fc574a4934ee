//! Checks that the runtime's threads and their managed `System.Threading.Thread` objects refer to each other.

use super::Runtime;
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Collector, NoteKind};
use crate::clr::fields::CORE;
use crate::clr::threads::Thread;
use crate::contract::ContractError;
use crate::stack::walk::Asked;
use crate::stack::walked::{Frame, Part};

/// A thread's managed object, with the fields that the runtime writes.
struct ThreadObject {
    /// Whether the object is a `System.Threading.Thread`.
    is_thread: bool,
    /// The address of the runtime's thread that the object refers to.
    thread: Option<Addr>,
    /// The managed thread ID in the object.
    id: Option<u32>,
}

impl Runtime {
    /// The managed threads, for answers that show all of them, with notes on what is missing or inconsistent.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the thread list.
    pub(crate) fn noted_threads(&self, notes: &Collector) -> Result<&[Thread], ContractError> {
        let reader = self.thread_reader()?;
        notes.extend(reader.losses());
        let threads = notes.with(self.thread_list()?);
        self.note_thread_ids(notes);
        self.note_thread_objects(notes);
        self.note_in_flight(notes);
        reader.note_modes(threads, notes);
        reader.note_contexts(threads, notes);
        Ok(threads)
    }

    /// Adds notes on managed thread IDs that are inconsistent or differ from the threads' objects, for answers that show the IDs.
    pub(crate) fn note_thread_ids(&self, notes: &Collector) {
        let (Ok(reader), Ok(threads)) = (self.thread_reader(), self.thread_list()) else { return };
        reader.note_ids(threads, notes);
        for (thread, object) in self.thread_objects(threads) {
            if let (Some(id), Some(other), true) = (thread.id, object.id.filter(|id| *id != 0), object.thread == Some(thread.address))
                && id != other
            {
                let what = format!("the thread at {}: its managed id is {id}, but its object has the id {other}", thread.address);
                notes.add(NoteKind::Invalid, thread.address, what);
            }
        }
    }

    /// Adds notes on exceptions in flight without an object, for answers that show these exceptions or use them as roots.
    pub(crate) fn note_in_flight(&self, notes: &Collector) {
        let (Ok(reader), Ok(threads)) = (self.thread_reader(), self.thread_list()) else { return };
        let crashed = self.file().crash.as_ref().and_then(|crash| crash.thread).map(u64::from);
        let is_thrown = |thread: &Thread, info: Addr| crashed.is_some() && thread.os_id == crashed || self.runs_handler(thread, info);
        reader.note_in_flight(threads, is_thrown, notes);
    }

    /// Whether `thread` runs a handler or a filter of the exception in flight at `info`. Such a frame is below the exception, unless the exception is
    /// not on the stack (.NET 8).
    fn runs_handler(&self, thread: &Thread, info: Addr) -> bool {
        let walked = tried(|| self.walk_stacks(Asked::default(), |other| other.address == thread.address, &Collector::new()));
        walked.unwrap_or_default().first().is_some_and(|stack| {
            let on_stack = stack.range.is_some_and(|range| range.contains(info));
            let is_handler = |frame: &Frame| match frame {
                Frame::Managed(frame) => frame.part != Part::Body && (!on_stack || frame.sp < info),
                Frame::Runtime(_) => false,
            };
            stack.walk.frames.iter().any(is_handler)
        })
    }

    /// Adds notes on managed threads with wrong objects, for answers that show the objects or the names in them.
    pub(crate) fn note_thread_objects(&self, notes: &Collector) {
        let (Ok(reader), Ok(threads)) = (self.thread_reader(), self.thread_list()) else { return };
        reader.note_handles(threads, notes);
        self.note_null_objects(notes);
        let mut owners: Map<Addr, Addr> = Map::default();
        for (thread, object) in self.thread_objects(threads) {
            let other = thread.exposed.map_or(thread.address, |object| *owners.entry(object).or_insert(thread.address));
            let what = match object.thread {
                _ if !object.is_thread => "its object is not a System.Threading.Thread".to_string(),
                Some(named) if !named.is_null() && named != thread.address => format!("its object belongs to the thread at {named}"),
                _ if other != thread.address => format!("its object is also the object of the thread at {other}"),
                _ => continue,
            };
            notes.add(NoteKind::Invalid, reader.exposed_at(thread), format!("the thread at {}: {what}", thread.address));
        }
    }

    /// Adds notes on handles of managed threads that hold null although the threads run, for answers about handles and about what they hold.
    pub(crate) fn note_null_objects(&self, notes: &Collector) {
        let (Ok(reader), Ok(threads)) = (self.thread_reader(), self.thread_list()) else { return };
        if !self.moves_objects() {
            reader.note_null_objects(threads, notes);
        }
    }

    /// The managed objects of `threads` that are in the dump. Empty if a collection was moving objects. Also empty for NativeAOT, because there the
    /// checked fields are the only link between a thread and its object.
    fn thread_objects<'t>(&self, threads: &'t [Thread]) -> Vec<(&'t Thread, ThreadObject)> {
        if self.descriptor().is_native_aot() || self.moves_objects() {
            return Vec::new();
        }
        tried(|| {
            let Ok(types) = self.types() else { return Vec::new() };
            let Some(definition) = types.definition_named(CORE, "System.Threading.Thread") else { return Vec::new() };
            let (memory, objects) = (self.memory(), types.objects());
            let read = |thread: &'t Thread| {
                let object = thread.exposed?;
                let mt = objects.method_table(object)?;
                let is_thread = match types.definition(mt) {
                    Some(found) => found == definition,
                    // Only an array type has no definition. If the method table cannot be read, the object is skipped.
                    None if types.names().method_tables().read(mt).is_ok() => false,
                    None => return None,
                };
                let field = |name: &'static str| types.field_at(mt, name).ok().filter(|_| is_thread).map(|f| f.of_object(object));
                let named = field("_DONT_USE_InternalThread").and_then(|at| memory.ptr(at).ok());
                let id = field("_managedThreadId").and_then(|at| memory.u32(at).ok());
                Some((thread, ThreadObject { is_thread, thread: named, id }))
            };
            threads.iter().filter_map(read).collect()
        })
    }
}
