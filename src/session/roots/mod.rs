//! GC roots, and how complete each kind of root is in the dump.

pub(crate) mod dangling;
mod mono;
mod options;
mod resolvers;
mod scans;
mod stacks;
mod statics;

use std::collections::BTreeMap;

pub use options::RootOptions;
use options::enumerated;

use super::{HandleUses, Heap, Namer, Runtime, Startup, Strength};
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, Answer, Budget, Collector, Count, Missing, NoteKind, Notes, plural};
use crate::clr::threads::Thread;
use crate::gc::{Gc, HandleFilter};
use crate::heapgraph::{Origin, RawRoot, RootFlags, RootThread, Roots, ThreadIndex};
use crate::model::{CoverageKind, FinalizerState, HandleKind, HandleModel, RootKind, Stacks};

impl Roots {
    /// Collects the roots of `heap` for an answer that lists them, with notes on all that is missing or uncertain.
    pub(crate) fn listed(heap: &Heap, namer: &Namer, options: &RootOptions, notes: &Collector) -> Roots {
        let roots = notes.take(Roots::collect(heap, namer, options));
        roots.stack_notes(options.stacks).into_iter().for_each(|of_stacks| notes.extend(of_stacks));
        roots.note_doubts(options.stacks, "the roots include stack words that may be stale", notes);
        roots
    }

    /// Collects the roots of `heap`. Losses on stacks are in [`Roots::stack_notes`](Roots::stack_notes), not in the answer's notes.
    pub(crate) fn collect(heap: &Heap, namer: &Namer, options: &RootOptions) -> Answer<Roots> {
        let notes = Collector::new();
        let roots = collect(heap, namer, options, &notes);
        notes.finish(roots)
    }
}

fn collect(heap: &Heap, namer: &Namer, options: &RootOptions, notes: &Collector) -> Roots {
    let (runtime, gc) = (heap.runtime(), heap.gc());
    let threads = runtime.thread_list().map(|list| notes.with(list)).map_err(|e| e.to_string());
    match runtime.thread_reader() {
        Ok(reader) => notes.extend(reader.losses()),
        Err(e) => notes.add(Missing::Threads, None, format!("threads cannot be read: {e}")),
    }
    let trouble = runtime.thread_list().ok().and_then(|list| first_loss(&list.notes));
    let list = threads.clone().map_or(&[][..], Vec::as_slice);
    let budget = Budget::of_types(heap.memory().dump_bytes(), runtime.limits().max_memory);
    let mut roots = Roots {
        threads: list.iter().map(|t| RootThread { managed_id: t.id, os_id: t.os_id.filter(|id| *id != 0) }).collect(),
        arch: Some(runtime.file().facts.arch),
        ..Roots::default()
    };
    handle_roots((runtime, gc, namer), (list, options), notes, &mut roots);
    if options.wants(RootKind::Exception) {
        match &threads {
            Ok(list) if list.is_empty() => {
                let why = trouble.unwrap_or_else(|| "the runtime has no threads".into());
                roots.cover(RootKind::Exception, CoverageKind::Unavailable, Some(why));
            }
            Ok(_) if trouble.is_some() => roots.cover(RootKind::Exception, CoverageKind::Partial, trouble),
            Ok(_) => roots.cover(RootKind::Exception, CoverageKind::Complete, None),
            Err(e) => roots.cover(RootKind::Exception, CoverageKind::Unavailable, Some(e.clone())),
        }
    }
    if options.wants(RootKind::FinalizerReady) {
        finalizer_roots(gc, notes, &mut roots);
    }
    if runtime.descriptor().is_mono() {
        mono::registered((runtime, gc, namer), options, (notes, &budget), &mut roots);
    } else if options.wants(RootKind::Static) || options.wants(RootKind::ThreadStatic) {
        statics::static_roots(runtime, namer, options, (notes, &budget), &mut roots);
    }
    if options.wants(RootKind::ExternalMemory) {
        external_memory(runtime, notes, &mut roots);
    }
    if options.needs_index() {
        on_stacks(heap, namer, (list, &budget), options, &mut roots);
    }
    let limits = runtime.limits();
    budget.note("collecting roots", notes);
    if roots.roots.len() > limits.roots {
        notes.add(NoteKind::LimitHit, None, format!("more than {} roots: the rest are left out", limits.roots));
        roots.roots.truncate(limits.roots);
    }
    let order = |kind: RootKind| RootKind::ALL.iter().position(|k| *k == kind);
    // Sorts without a second list of roots, because there may be millions of roots.
    roots.roots.sort_by_cached_key(|r| order(r.kind).and_then(|place| u8::try_from(place).ok()));
    roots.roots.shrink_to_fit();
    roots.exact.sort_by_key(|c| order(c.kind));
    roots
}

/// Why frames are not used for roots although they are known.
const CONSERVATIVE_GC: &str =
    "the process runs with conservative GC (gcConservative), for which every word on a stack that points to an object is a root";

/// Whether the collector scans stacks conservatively, as when the setting `gcConservative` is on. Frames then do not show what is alive:
/// `ScanStackRoots` in gcenv.ee.cpp reports every word of the stacks.
fn has_conservative_gc(runtime: &Runtime) -> bool {
    tried(|| Startup::of(runtime.file(), runtime.memory())).is_some_and(|startup| startup.is_on("gcConservative"))
}

/// Adds the roots on stacks and in registers.
fn on_stacks(heap: &Heap, namer: &Namer, (threads, budget): (&[Thread], &Budget), options: &RootOptions, roots: &mut Roots) {
    if heap.runtime().descriptor().is_mono() {
        roots.framed = scans::native_roots((heap, budget), options, roots);
        roots.scanned = roots.framed.clone();
        return;
    }
    if options.any_stacks || options.stacks == Stacks::Precise {
        let scans = has_conservative_gc(heap.runtime());
        let framed = if scans {
            Err(CONSERVATIVE_GC.to_string())
        } else {
            let framed = stacks::frame_roots((heap, budget), namer, threads, options, roots);
            framed.map_err(|e| format!("the references in frames are unknown: {e}"))
        };
        roots.framed = framed.unwrap_or_else(|why| {
            // Only words that point to objects are left as possible roots.
            let first = roots.roots.len();
            let mut scanned = scans::scanned_roots((heap, budget), threads, options, roots);
            roots.roots.iter_mut().skip(first).for_each(|r| r.flags = r.flags.without(RootFlags::SCANNED));
            for c in &mut scanned.coverage {
                // For a collector that scans, no word is stale.
                let more = c.reason.take().filter(|_| !(scans && c.coverage == CoverageKind::Conservative));
                let more = more.map_or_else(String::new, |r| format!("; {r}"));
                c.reason = Some(format!("{why}{more}"));
            }
            scanned
        });
        roots.framed.notes.extend(heap.runtime().stack_losses());
    }
    if options.any_stacks || options.stacks == Stacks::Conservative {
        roots.scanned = scans::scanned_roots((heap, budget), threads, options, roots);
    }
}

/// Reports the coverage of memory outside of the heap that holds references, if the runtime supports such memory. The global
/// `ExternalMemoryHandles` is the address of the head of the list of such memory. The references there are not read, so the answer is partial
/// unless the list is empty.
fn external_memory(runtime: &Runtime, notes: &Collector, roots: &mut Roots) {
    const NAME: &str = "ExternalMemoryHandles";
    let d = runtime.descriptor();
    if !d.contracts.contains_key(NAME) && !d.globals.contains_key(NAME) {
        return;
    }
    let why = match d.pointer(NAME).map(|at| runtime.memory().ptr(at)) {
        Ok(Ok(head)) if head.is_null() => {
            roots.cover(RootKind::ExternalMemory, CoverageKind::Complete, None);
            return;
        }
        Ok(Ok(_)) => "the runtime registered memory outside of the heap that holds references, which gcdump does not read".to_string(),
        Ok(Err(e)) => format!("memory outside of the heap that holds references cannot be read: {e}"),
        Err(e) => format!("memory outside of the heap that holds references cannot be read: {e}"),
    };
    notes.add(Missing::Heap, None, why.clone());
    roots.cover(RootKind::ExternalMemory, CoverageKind::Unavailable, Some(why));
}

/// The message of the first note that reports a loss.
fn first_loss(notes: &Notes) -> Option<String> {
    notes.first_loss().map(|n| n.message.clone())
}

/// The root kind and flags of a handle, given whether it keeps its object alive; `None` for dependent handles, which are edges.
fn root_of_handle(kind: HandleKind, strong: Option<bool>) -> Option<(RootKind, RootFlags)> {
    Some(match kind {
        HandleKind::Strong | HandleKind::Variable => (RootKind::StrongHandle, RootFlags::NONE),
        HandleKind::Pinned => (RootKind::PinnedHandle, RootFlags::PINNED),
        HandleKind::AsyncPinned => (RootKind::AsyncPinnedHandle, RootFlags::PINNED),
        HandleKind::SizedRef => (RootKind::SizedRefHandle, RootFlags::NONE),
        HandleKind::RefCounted => match strong {
            Some(true) => (RootKind::RefCountedHandle, RootFlags::NONE),
            Some(false) => (RootKind::WeakHandle, RootFlags::WEAK),
            None => (RootKind::RefCountedHandle, RootFlags::REF_COUNTED),
        },
        // The collector of the other runtime decides whether the handle keeps its object alive, and its state is not in the dump.
        HandleKind::CrossReference => (RootKind::CrossReferenceHandle, RootFlags::REF_COUNTED),
        HandleKind::Unknown => (RootKind::UnknownHandle, RootFlags::REF_COUNTED),
        HandleKind::WeakShort | HandleKind::WeakLong | HandleKind::WeakNativeCom | HandleKind::WeakInteriorPointer => {
            (RootKind::WeakHandle, RootFlags::WEAK)
        }
        HandleKind::Dependent => return None,
    })
}

/// The root kinds that handles of this type may have.
fn roots_of_handle(kind: HandleKind) -> impl Iterator<Item = RootKind> {
    let strengths: &[Option<bool>] = if kind == HandleKind::RefCounted { &[None, Some(false)] } else { &[None] };
    strengths.iter().filter_map(move |strong| Some(root_of_handle(kind, *strong)?.0))
}

fn handle_roots(
    (runtime, gc, namer): (&Runtime, &Gc, &Namer),
    (threads, options): (&[Thread], &RootOptions),
    notes: &Collector,
    roots: &mut Roots,
) {
    let indexed = || enumerated(threads);
    let last: Map<Addr, ThreadIndex> = indexed().filter_map(|(t, i)| Some((t.last_thrown_handle?, i))).collect();
    let in_flight: Map<Addr, ThreadIndex> = indexed().flat_map(|(t, i)| t.exception_handles.iter().map(move |(h, _)| (*h, i))).collect();
    // Exceptions are read from the threads, because small dumps do not have the handle tables.
    if options.wants(RootKind::Exception) {
        runtime.note_in_flight(notes);
        let mut seen = Set::default();
        for (thread, i) in indexed() {
            let new = thread.exception_handles.iter().filter(|(handle, _)| seen.insert(*handle));
            roots.roots.extend(new.map(|(handle, object)| RawRoot {
                kind: RootKind::Exception,
                address: Some(*handle),
                object: *object,
                flags: RootFlags::NONE,
                origin: Origin::Exception(i),
            }));
        }
    }
    let wanted: Vec<HandleKind> = HandleKind::ALL
        .into_iter()
        .filter(|kind| match kind {
            HandleKind::Dependent => options.kinds.is_empty(),
            kind => roots_of_handle(*kind).any(|root| options.wants(root)),
        })
        .collect();
    if wanted.is_empty() {
        return;
    }
    runtime.note_null_objects(notes);
    let most = runtime.limits().roots;
    let (mut skipped, mut found) = (0u64, 0u64);
    let mut strength = Strength::bind(runtime);
    let uses = HandleUses::bind(runtime, namer, notes);
    // By kind: the number of handles, and the number of handles for which it is unknown whether they keep their objects alive.
    let mut decided: BTreeMap<RootKind, (u64, u64)> = BTreeMap::new();
    let walked = gc.walk_handles(&HandleFilter { kinds: wanted.clone() }, |mut h: HandleModel| {
        found.bump();
        if roots.roots.len().max(roots.dependents.len()) >= most {
            skipped.bump();
            return;
        }
        strength.decide(&mut h, gc, namer);
        let Some((kind, flags)) = root_of_handle(h.kind, h.strong) else {
            roots.dependents.extend(h.secondary.filter(|s| !s.is_null()).map(|s| (h.object, s)));
            return;
        };
        if in_flight.contains_key(&h.address) || !options.wants(kind) {
            return;
        }
        let (all, unknown) = decided.entry(kind).or_default();
        all.bump();
        unknown.grow(u64::from(flags.has(RootFlags::REF_COUNTED)));
        uses.decide(&mut h, gc);
        let of_handle = h.used_for.map_or(Origin::Handle(h.kind), Origin::HandleFor);
        let origin = last.get(&h.address).map_or(of_handle, |i| Origin::LastThrown(*i));
        roots.roots.push(RawRoot { kind, address: Some(h.address), object: h.object, flags, origin });
    });
    notes.extend(&strength.losses());
    let mut trouble = first_loss(&walked.notes);
    let tables = notes.take(walked);
    if skipped > 0 {
        let what = format!("{} left out: there are more than {most} roots", plural(skipped, "handle"));
        trouble = trouble.or_else(|| Some(what.clone()));
        notes.add(NoteKind::LimitHit, None, what);
    }
    let mut supported = gc.handle_types().data;
    // Handle tables reserve space for Java bridge handles even in builds without the bridge.
    if !decided.contains_key(&RootKind::CrossReferenceHandle) && !gc.supported_handles().data.0.contains(&HandleKind::CrossReference) {
        supported.retain(|kind| *kind != HandleKind::CrossReference);
    }
    let mut kinds: Vec<RootKind> = Vec::new();
    for (kind, handle) in wanted.iter().flat_map(|h| roots_of_handle(*h).map(|kind| (kind, *h))) {
        if !kinds.contains(&kind) && options.wants(kind) && (supported.contains(&handle) || supported.is_empty()) {
            kinds.push(kind);
        }
    }
    for kind in kinds {
        match (&trouble, tables) {
            (Some(why), _) if tables == 0 || found == 0 => roots.cover(kind, CoverageKind::Unavailable, Some(why.clone())),
            (None, 0) => roots.cover(kind, CoverageKind::Unavailable, Some("the dump has no handle table".into())),
            (Some(why), _) => roots.cover(kind, CoverageKind::Partial, Some(why.clone())),
            (None, _) => match decided.get(&kind) {
                Some((all, unknown @ 1..)) => roots.cover(kind, CoverageKind::Conservative, Some(undecided(kind, *unknown, *all))),
                _ => roots.cover(kind, CoverageKind::Complete, None),
            },
        }
    }
}

/// Why handles of this kind may not be roots: for `unknown` of `all` handles, it is unknown whether they keep their objects alive.
fn undecided(kind: RootKind, unknown: u64, all: u64) -> String {
    match kind {
        RootKind::UnknownHandle => format!("the kinds of {} are not known: some may be weak", plural(unknown, "handle")),
        RootKind::CrossReferenceHandle => {
            format!("the collector of the other runtime decides whether {} keep objects alive", plural(unknown, "handle"))
        }
        _ => format!("whether {unknown} of {} keep their objects alive is unknown", plural(all, "handle")),
    }
}

fn finalizer_roots(gc: &Gc, notes: &Collector, roots: &mut Roots) {
    let queues = notes.take(gc.finalizer_queues());
    let complete = queues.iter().filter(|q| q.complete).count();
    for entry in queues.iter().flat_map(|q| &q.entries).filter(|e| e.state != FinalizerState::Registered) {
        roots.roots.push(RawRoot {
            kind: RootKind::FinalizerReady,
            address: Some(entry.address),
            object: entry.object,
            flags: RootFlags::NONE,
            origin: Origin::Finalizer(entry.state),
        });
    }
    let reason = |n: usize| match queues.len() {
        0 => "no finalization queue was found".into(),
        all => format!("the finalization queues of {n} of {all} heaps are not completely in the dump"),
    };
    match queues.len().saturating_sub(complete) {
        0 if !queues.is_empty() => roots.cover(RootKind::FinalizerReady, CoverageKind::Complete, None),
        n if complete == 0 && roots.roots.iter().all(|r| r.kind != RootKind::FinalizerReady) => {
            roots.cover(RootKind::FinalizerReady, CoverageKind::Unavailable, Some(reason(n)));
        }
        n => roots.cover(RootKind::FinalizerReady, CoverageKind::Partial, Some(reason(n))),
    }
}
