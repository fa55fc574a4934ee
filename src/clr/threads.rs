//! Managed threads.
//!
//! Source: contract `Thread`, with a dereference of `ThreadStore` that its document omits (`docs/internals/gc-structures.md#errata`). State
//! bits: `threads.h`.

mod checks;

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, Collector, Disjoint, Limits, Missing, NoteKind, Notes, flag_names, len64, plural};
use crate::contract::thread_list::ThreadLinks;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::globals::{self, Global};
use crate::data::{self, Bound, Inline, Offset, bind};
use crate::memory::Memory;
use checks::Ids;

/// Layout of an allocation context.
#[derive(Clone, Debug)]
pub(crate) struct ContextLayout {
    fields: Bound<data::GCAllocContext>,
    heaps: Option<Bound<data::GCAllocContextHeaps>>,
}

/// Maximum number of inlined thread statics blocks of a thread.
const MAX_INLINED: usize = 1024;
/// Maximum number of nested exceptions in flight of a thread.
const MAX_NESTED: usize = 64;
/// Minimum size in bytes of an exception in flight, and of a module's block of thread statics. The size of the dump therefore limits the
/// number of exceptions and blocks of all threads.
const NESTED_BYTES: u64 = 64;
const INLINED_BYTES: u64 = 24;

impl ContextLayout {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the range of a context.
    pub(crate) fn bind(d: &Descriptor) -> Result<ContextLayout, ContractError> {
        use data::{GCAllocContext as Context, GCAllocContextHeaps as Heaps};
        Ok(ContextLayout {
            fields: bind!(d, Context { Pointer, Limit, AllocBytes?, AllocBytesLoh? })?,
            heaps: bind!(d, Heaps { AllocHeap, HomeHeap }).ok(),
        })
    }

    /// Reads the context at `at`; `None` if the context is not in the dump.
    pub(crate) fn read(&self, memory: &Memory, at: Addr) -> Option<AllocContext> {
        use data::{GCAllocContext as Context, GCAllocContextHeaps as Heaps};
        let (pointer, limit) = (self.fields.get(memory, at, Context::Pointer)?, self.fields.get(memory, at, Context::Limit)?);
        // The GC adds the size of a range when it hands the range out, and subtracts the unused rest when it takes the range back
        // (`adjust_limit_clr`, `fix_allocation_context` in gc.cpp).
        let handed_out = self.fields.get(memory, at, Context::AllocBytes);
        let bytes = handed_out.and_then(|handed_out| handed_out.checked_sub(limit.since(pointer)?));
        // Descriptors do not contain these offsets, so the values may be wrong. Users of a value ignore it if it does not point to a heap.
        let heap = |field| tried(|| self.heaps.as_ref()?.get(memory, at, field));
        let (alloc_heap, home_heap) = (heap(Heaps::AllocHeap), heap(Heaps::HomeHeap));
        let bytes_uoh = self.fields.get(memory, at, Context::AllocBytesLoh);
        Some(AllocContext { pointer, limit, bytes, bytes_uoh, alloc_heap, home_heap })
    }
}

/// An allocation context: memory that is reserved for a thread and not used up yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocContext {
    /// Next free byte.
    pub pointer: Addr,
    /// End of the memory.
    pub limit: Addr,
    /// Bytes allocated in the small object heap so far. The unused rest of the range is subtracted, so that the number never decreases.
    /// `None` if the runtime does not publish the number, or if the published number is smaller than the rest.
    pub bytes: Option<u64>,
    /// Bytes allocated in the other heaps so far.
    pub bytes_uoh: Option<u64>,
    /// Server GC: the `GCHeap` of the current range.
    pub alloc_heap: Option<Addr>,
    /// Server GC: the `GCHeap` of the processor on which the thread ran when the GC last balanced the thread.
    pub home_heap: Option<Addr>,
}

/// A managed thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Address of the `Thread`.
    pub address: Addr,
    /// Managed id.
    pub id: Option<u32>,
    /// OS thread id as the dump has it; 0 before the thread runs.
    pub os_id: Option<u64>,
    /// OS thread id as the runtime recorded it. Differs from `os_id` if the dump was written from outside the container of the process.
    pub recorded_id: Option<u64>,
    /// State flags.
    pub state: Option<u32>,
    /// Whether the thread is in cooperative mode, so that the GC must wait for it.
    pub cooperative: Option<bool>,
    /// Allocation context. `None` if the thread has no context because it is dead or not started, or if the context is not in the dump.
    pub context: Option<AllocContext>,
    /// The managed `Thread` object.
    pub exposed: Option<Addr>,
    /// The handle of that object.
    pub exposed_handle: Option<Addr>,
    /// The exception in flight.
    pub exception: Option<Addr>,
    /// The other exceptions in flight, innermost first. `exception` was thrown while the first of them was being handled, and each of them was
    /// thrown while the next was being handled.
    pub nested: Vec<Addr>,
    /// The last exception thrown.
    pub last_thrown: Option<Addr>,
    /// The handles of the exceptions in flight, innermost first, with their objects.
    pub exception_handles: Vec<(Addr, Addr)>,
    /// The handle of the last exception thrown.
    pub last_thrown_handle: Option<Addr>,
    /// Base of the stack (highest address). Only .NET 11 and NativeAOT publish the base.
    pub stack_base: Option<Addr>,
    /// Limit of the stack (lowest address). Only .NET 11 and NativeAOT publish the limit.
    pub stack_limit: Option<Addr>,
    /// NativeAOT: the objects with the thread statics, each with the address of the reference to it.
    pub statics: Vec<(Addr, Addr)>,
}

/// Names of the state flags (`Thread::ThreadState`, threads.h; unchanged from .NET 8 to 11).
const STATES: &[(u64, &str)] = &[
    (0x0000_0001, "abort-requested"),
    (0x0000_0002, "gc-suspend-pending"),
    (0x0000_0008, "debug-suspend-pending"),
    (0x0000_0010, "gc-on-transitions"),
    (0x0000_0020, "legal-to-join"),
    (0x0000_0040, "executing-on-alternate-stack"),
    (0x0000_0080, "hijacked"),
    (0x0000_0200, "background"),
    (0x0000_0400, "unstarted"),
    (0x0000_0800, "dead"),
    (0x0000_1000, "we-own-it"),
    (0x0000_2000, "co-initialized"),
    (0x0000_4000, "in-sta"),
    (0x0000_8000, "in-mta"),
    (0x0001_0000, "reported-dead"),
    (0x0002_0000, "fully-initialized"),
    (0x0004_0000, "task-reset"),
    (0x0008_0000, "sync-suspended"),
    (0x0010_0000, "debug-will-sync"),
    (0x0020_0000, "stack-crawl-needed"),
    (0x0100_0000, "threadpool-worker"),
    (0x0200_0000, "wait-sleep-join"),
    (0x0400_0000, "interrupted"),
    (0x1000_0000, "abort-initiated"),
    (0x2000_0000, "finalized"),
    (0x4000_0000, "failed-started"),
    (0x8000_0000, "detached"),
];

/// State flag of a thread that is set up for managed code.
const INITIALIZED: u32 = 0x0002_0000;
/// State flag of a thread that does not keep the process alive.
const BACKGROUND: u32 = 0x0000_0200;
/// State flags of unstarted and of dead threads.
const UNSTARTED: u32 = 0x0000_0400;
const DEAD: u32 = 0x0000_0800;
/// State flags of threads that have not started or are ending: unstarted, dead, reported dead, detached.
const NOT_RUNNING: u32 = UNSTARTED | DEAD | 0x0001_0000 | 0x8000_0000;

/// Whether CoreCLR has set up a thread in this state, and has not begun to tear it down.
pub(crate) fn is_running(state: u32) -> bool {
    state & INITIALIZED != 0 && state & NOT_RUNNING == 0
}

/// State flag of a thread that waits, sleeps or joins.
const WAITS: u32 = 0x0200_0000;
/// State flag of a thread of the thread pool.
const POOL_WORKER: u32 = 0x0100_0000;
/// State flag of a thread that the runtime is suspending or has suspended.
const SUSPEND_PENDING: u32 = 0x0000_0002;

impl Thread {
    /// Whether CoreCLR was suspending the thread or had suspended it.
    pub(crate) fn is_being_suspended(&self) -> bool {
        self.state.is_some_and(|state| state & SUSPEND_PENDING != 0)
    }

    /// Whether the runtime knows that the thread waits, sleeps or joins.
    pub(crate) fn waits(&self) -> bool {
        self.state.is_some_and(|state| state & WAITS != 0)
    }

    /// Whether the thread pool of CoreCLR has started the thread.
    pub(crate) fn is_pool_worker(&self) -> bool {
        self.state.is_some_and(|state| state & POOL_WORKER != 0)
    }
}

/// Names of the state flags of NativeAOT (`thread.h`).
const NATIVE_AOT_STATES: &[(u64, &str)] =
    &[(0x1, "attached"), (0x2, "detached"), (0x4, "suppress-gc-stress"), (0x8, "do-not-trigger-gc"), (0x10, "gc-special")];

/// Names of the flags set in a thread's state; unknown bits as `0x…`.
pub fn state_names(state: u32, native_aot: bool) -> Vec<String> {
    flag_names(if native_aot { NATIVE_AOT_STATES } else { STATES }, u64::from(state))
}

/// The GC's allocation context inside the context of the VM. .NET 10 and later embed it; before, the VM has only the GC's context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VmContext(Option<Offset<data::EEAllocContext, Inline>>);

impl VmContext {
    pub(crate) fn bind(d: &Descriptor) -> VmContext {
        VmContext(data::EEAllocContext::GCAllocationContext.bind(d).ok())
    }

    /// The address of the GC's context in the VM's context at `at`.
    pub(crate) fn of_gc(self, at: Addr) -> Addr {
        self.0.map_or(at, |inner| inner.place(at))
    }
}

/// Location of a thread's allocation context.
#[derive(Clone, Copy, Debug)]
enum ContextPlace {
    /// .NET 8 and NativeAOT: in the `Thread`.
    Thread(Offset<data::Thread, Inline>, VmContext),
    /// In the thread locals.
    Locals {
        /// .NET 9 and later: the pointer to the thread locals. `None` in NativeAOT, where the `Thread` consists of them.
        pointer: Option<Offset<data::Thread, Addr>>,
        context: Offset<data::RuntimeThreadLocals, Inline>,
        inner: VmContext,
    },
}

impl ContextPlace {
    fn bind(d: &Descriptor) -> Option<ContextPlace> {
        let inner = VmContext::bind(d);
        let of_thread = data::Thread::AllocContext.bind(d).ok();
        let of_locals = || data::RuntimeThreadLocals::AllocContext.bind(d).ok();
        match of_thread {
            Some(context) if d.is_native_aot() => Some(ContextPlace::Thread(context, inner)),
            Some(context) => Some(ContextPlace::Thread(context, VmContext(None))),
            None if d.is_native_aot() => Some(ContextPlace::Locals { pointer: None, context: of_locals()?, inner }),
            None => {
                let pointer = Some(data::Thread::RuntimeThreadLocals.bind(d).ok()?);
                Some(ContextPlace::Locals { pointer, context: of_locals()?, inner })
            }
        }
    }
}

/// Upper limit of the size of a thread and its allocation context, in bytes.
const THREAD_BYTES: u64 = 1024;

/// Reader of the thread list.
#[derive(Debug)]
pub struct Threads {
    memory: Arc<Memory>,
    thread: Bound<data::Thread>,
    /// The list's link in a thread.
    link: Offset<data::Thread, Addr>,
    /// The layout of the OS id. It is bound separately, because answers that are not about threads show OS ids too.
    identity: Bound<data::Thread>,
    store: Bound<data::ThreadStore>,
    context: Option<(ContextPlace, ContextLayout)>,
    exception: Option<Bound<data::ExceptionInfo>>,
    /// NativeAOT: the layout of thread statics.
    statics: Option<(Bound<data::Thread>, Option<Bound<data::InlinedThreadStaticRoot>>)>,
    store_at: Addr,
    finalizer_at: Option<Addr>,
    descriptor: Arc<Descriptor>,
    /// The bounds of the heap, which contain every object that can be thrown.
    heap: Option<AddrRange>,
    limit: usize,
    /// Notes about fields of threads that the descriptor defines in an unusable form. The notes about allocation contexts are also in
    /// `context_losses`, and the notes about OS ids in `identity_losses`.
    losses: Notes,
    context_losses: Notes,
    identity_losses: Notes,
    ids: Option<Ids>,
}

/// The bounds of the heap, from the runtime's variables; `None` if the dump or the descriptor does not have them.
fn bounds(memory: &Memory, d: &Descriptor) -> Option<AddrRange> {
    let bound = |global: Global<Addr>| memory.ptr(global.of(d).ok()?).ok();
    Some(AddrRange::new(bound(globals::GCLowestAddress)?, bound(globals::GCHighestAddress)?)).filter(|heap| heap.start < heap.end)
}

impl Threads {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("Thread", &["1", "n1", "1001"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have the thread list.
    pub fn bind(memory: &Arc<Memory>, descriptor: &Arc<Descriptor>, limits: &Limits) -> Result<Threads, ContractError> {
        use data::{ExceptionInfo as Exception, InlinedThreadStaticRoot as Inlined, Thread, ThreadStore};
        let (d, of_contexts, of_identity) = (descriptor.scope(), descriptor.scope(), descriptor.scope());
        Self::CONTRACT.require(&d)?;
        if !d.is_native_aot() {
            Thread::Id.bind(&d)?;
        }
        let statics = bind!(&d, Thread { ThreadLocalStatics, InlinedThreadLocalStatics? });
        let mut threads = Threads {
            memory: Arc::clone(memory),
            thread: bind!(&d, Thread {
                LinkNext, Id?, State?, PreemptiveGCDisabled?, ExposedObject?, LastThrownObject?, ExceptionTracker?, CachedStackBase?,
                CachedStackLimit?
            })?,
            link: Thread::LinkNext.bind(&d)?,
            identity: bind!(&of_identity, Thread { OSId? })?,
            store: bind!(&d, ThreadStore { FirstThreadLink, ThreadCount? })?,
            context: ContextPlace::bind(&of_contexts).zip(ContextLayout::bind(&of_contexts).ok()),
            exception: bind!(&d, Exception { ThrownObject, PreviousNestedInfo? }).ok(),
            statics: statics.ok().map(|s| (s, bind!(&d, Inlined { Statics, Next }).ok())),
            store_at: globals::ThreadStore.of(&d)?,
            descriptor: Arc::clone(descriptor),
            heap: bounds(memory, descriptor),
            finalizer_at: d.pointer("FinalizerThread").ok(),
            limit: limits.threads,
            losses: d.losses(),
            context_losses: of_contexts.losses(),
            identity_losses: of_identity.losses(),
            ids: Ids::bind(memory, &d),
        };
        if threads.context.is_none() && threads.context_losses.is_empty() {
            let what = "the descriptor does not describe the allocation contexts of threads";
            threads.context_losses.add(Missing::Threads, None, what);
        }
        threads.losses.extend(&threads.context_losses);
        threads.losses.extend(&threads.identity_losses);
        Ok(threads)
    }

    /// Notes about data of threads that is missing because the descriptor's fields are unusable.
    pub fn losses(&self) -> &Notes {
        &self.losses
    }

    /// Notes about ids of threads that are missing because the descriptor's fields are unusable.
    pub fn identity_losses(&self) -> &Notes {
        &self.identity_losses
    }

    /// Notes about allocation contexts that are missing because the descriptor's fields are missing or unusable.
    pub fn context_losses(&self) -> &Notes {
        &self.context_losses
    }

    /// The `Thread` of the finalizer thread, which must be one of `threads`. A runtime that has threads always has a finalizer thread.
    pub fn finalizer(&self, threads: &Answer<Vec<Thread>>, notes: &Collector) -> Option<Addr> {
        let at = self.finalizer_at?;
        let address = self.memory.ptr(at).ok()?;
        // If the list was cut off, the thread may be in the rest.
        if threads.complete() && !threads.iter().any(|t| t.address == address) {
            notes.add(NoteKind::Invalid, at, format!("the finalizer thread, at {address}, is not in the thread list"));
            return None;
        }
        Some(address).filter(|a| !a.is_null())
    }

    /// Whether `threads` are the complete list. The list is complete if the last thread has a null link, and if the number of threads equals
    /// the runtime's count.
    pub fn are_all(&self, threads: &[Thread]) -> bool {
        let Some(last) = threads.last() else { return false };
        let ends = self.thread.read(&self.memory, last.address, data::Thread::LinkNext).is_ok_and(Addr::is_null);
        let counted = data::ThreadStore::ThreadCount;
        let count = || self.store.get(&self.memory, self.memory.ptr(self.store_at).ok()?, counted);
        ends && (!self.store.has(counted) || count().is_some_and(|n| usize::try_from(n) == Ok(threads.len())))
    }

    /// All threads of the list. If a link is invalid, only the threads before it are returned, with a note.
    pub fn list(&self) -> Answer<Vec<Thread>> {
        let notes = Collector::new();
        let mut list = self.read_list(&notes);
        list.shrink_to_fit();
        notes.finish(list)
    }

    fn read_list(&self, notes: &Collector) -> Vec<Thread> {
        let mut out = Vec::new();
        let mut seen = HashSet::new();
        let head = self.memory.ptr(self.store_at).and_then(|store| {
            let first = self.store.read(&self.memory, store, data::ThreadStore::FirstThreadLink)?;
            Ok((store, first))
        });
        let (store, mut link) = match head {
            Ok(head) => head,
            Err(e) => {
                notes.add(Missing::Threads, e.address, format!("the thread list cannot be read: {e}"));
                return out;
            }
        };
        let links = ThreadLinks::of(&self.descriptor, &self.memory, link, self.link);
        let room = |bytes: u64| Disjoint::new(self.memory.dump_bytes(), bytes);
        let shares = [room(NESTED_BYTES), room(INLINED_BYTES)];
        while !link.is_null() {
            if !seen.insert(link) || out.len() >= self.limit {
                notes.add(NoteKind::LimitHit, link, "the thread list has a cycle or exceeds its limit");
                break;
            }
            let Some(address) = links.thread(link) else {
                notes.add(NoteKind::Invalid, link, "the thread list has an invalid link");
                break;
            };
            out.push(self.thread(address, &shares, notes));
            link = match self.memory.ptr(links.next(address)) {
                Ok(next) => next,
                Err(e) => {
                    notes.add(Missing::Threads, link, format!("the thread list stops after {}: {e}", plural(len64(out.len()), "thread")));
                    // The thread with the broken link cannot be read either.
                    out.pop();
                    return out;
                }
            };
        }
        if !link.is_null() {
            return out;
        }
        let counted = self.store.get(&self.memory, store, data::ThreadStore::ThreadCount);
        match counted.filter(|n| usize::try_from(*n) != Ok(out.len())) {
            Some(n) => {
                let what = format!("the thread list has {}, but the runtime counts {n}", plural(len64(out.len()), "thread"));
                notes.add(NoteKind::Invalid, store, what);
            }
            // A runtime that has run managed code has at least two threads, so an empty list is reported.
            None if out.is_empty() => notes.add(Missing::Threads, store, "the thread list is empty"),
            None => {}
        }
        out
    }

    fn thread(&self, address: Addr, [nested_room, inlined_room]: &[Disjoint; 2], notes: &Collector) -> Thread {
        use data::Thread as Fields;
        let (m, thread) = (&self.memory, &self.thread);
        let pointer = |field: data::Field<Fields, Addr>| thread.get(m, address, field).filter(|at| !at.is_null());
        // The `Thread` of a NativeAOT program is in the storage of the OS thread.
        m.spare(AddrRange::new(address, address.plus(THREAD_BYTES)));
        let thrown = self.in_flight(address, nested_room, notes);
        let exception_handles = thrown.iter().filter_map(|(handle, object)| (*handle).zip(*object)).collect();
        let mut thrown = thrown.into_iter().map(|(_, object)| object);
        // The innermost tracker belongs to the exception in flight, even if the object of this exception cannot be read.
        let exception = thrown.next().flatten();
        let statics = self.statics_of(address, inlined_room, notes);
        let nested = thrown.flatten().filter(|o| Some(*o) != exception).collect();
        // The field is a `size_t`, but ids have 32 bits on every system.
        let os_id = self.identity.get(m, address, Fields::OSId).map(|id| id & 0xffff_ffff);
        Thread {
            address,
            id: thread.get(m, address, Fields::Id),
            os_id,
            recorded_id: os_id,
            state: thread.get(m, address, Fields::State),
            cooperative: self.mode(address).filter(|n| *n <= 1).map(|n| n != 0),
            context: self.context_of(address),
            exposed: self.handle(thread.place(address, Fields::ExposedObject)),
            exposed_handle: pointer(Fields::ExposedObject),
            exception,
            nested,
            last_thrown: self.handle(thread.place(address, Fields::LastThrownObject)),
            exception_handles,
            last_thrown_handle: pointer(Fields::LastThrownObject),
            stack_base: pointer(Fields::CachedStackBase),
            statics,
            stack_limit: pointer(Fields::CachedStackLimit),
        }
    }

    /// The objects with the thread statics of a NativeAOT thread.
    fn statics_of(&self, thread: Addr, room: &Disjoint, notes: &Collector) -> Vec<(Addr, Addr)> {
        use data::{InlinedThreadStaticRoot as Inlined, Thread};
        let Some((of_thread, inlined)) = &self.statics else { return Vec::new() };
        let object = |at: Option<Addr>| Some((at?, self.memory.link(at?)?));
        let mut out: Vec<_> = object(of_thread.place(thread, Thread::ThreadLocalStatics)).into_iter().collect();
        let Some(inlined) = inlined else { return out };
        let mut next = of_thread.link(&self.memory, thread, Thread::InlinedThreadLocalStatics);
        let mut seen = HashSet::new();
        while let Some(at) = next {
            if !seen.insert(at) || out.len() >= MAX_INLINED {
                let what = format!("thread {thread}: the list of thread statics has a cycle or exceeds its limit");
                notes.add(NoteKind::LimitHit, at, what);
                break;
            }
            if !room.take(1) {
                room.note("reading the blocks of thread statics", notes);
                break;
            }
            out.extend(object(inlined.place(at, Inlined::Statics)));
            next = inlined.link(&self.memory, at, Inlined::Next);
        }
        out
    }

    /// The exceptions in flight of a thread, innermost first, as handles and objects.
    fn in_flight(&self, thread: Addr, room: &Disjoint, notes: &Collector) -> Vec<(Option<Addr>, Option<Addr>)> {
        let mut out = Vec::new();
        use data::ExceptionInfo as Exception;
        let Some(exception) = &self.exception else { return out };
        let mut at = self.thread.link(&self.memory, thread, data::Thread::ExceptionTracker);
        let mut seen = HashSet::new();
        while let Some(info) = at {
            if !seen.insert(info) || out.len() >= MAX_NESTED {
                let what = format!("thread {thread}: the list of exceptions in flight has a cycle or exceeds its limit");
                notes.add(NoteKind::LimitHit, info, what);
                break;
            }
            if !room.take(1) {
                room.note("reading exceptions in flight", notes);
                break;
            }
            out.push(self.thrown(exception, info));
            at = exception.link(&self.memory, info, Exception::PreviousNestedInfo);
        }
        out
    }

    /// The handle and the object of the exception in flight at `info`.
    fn thrown(&self, exception: &Bound<data::ExceptionInfo>, info: Addr) -> (Option<Addr>, Option<Addr>) {
        use data::ExceptionInfo as Exception;
        let thrown = exception.link(&self.memory, info, Exception::ThrownObject);
        let is_object = |at: Addr| self.descriptor.is_native_aot() || self.heap.is_some_and(|heap| heap.contains(at));
        match thrown {
            Some(object) if is_object(object) => (exception.place(info, Exception::ThrownObject), thrown),
            handle => (handle, handle.and_then(|h| self.memory.link(h))),
        }
    }

    /// The object of the handle stored at `address`.
    fn handle(&self, address: Option<Addr>) -> Option<Addr> {
        self.memory.link(self.memory.link(address?)?)
    }

    /// The GC mode of a thread.
    fn mode(&self, thread: Addr) -> Option<u32> {
        self.thread.get(&self.memory, thread, data::Thread::PreemptiveGCDisabled)
    }

    fn context_of(&self, thread: Addr) -> Option<AllocContext> {
        let (place, layout) = self.context.as_ref()?;
        let at = match place {
            ContextPlace::Thread(context, inner) => inner.of_gc(context.place(thread)),
            ContextPlace::Locals { pointer, context, inner } => {
                // The pointer is null in dead and unstarted threads.
                let locals = pointer.map_or(Some(thread), |pointer| pointer.link(&self.memory, thread))?;
                inner.of_gc(context.place(locals))
            }
        };
        self.memory.spare(AddrRange::new(at, at.plus(THREAD_BYTES)));
        layout.read(&self.memory, at)
    }
}
