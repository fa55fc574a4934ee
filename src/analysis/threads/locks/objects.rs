//! The objects that threads wait for, found by one walk of the heap.

use crate::base::hash::Map;
use crate::base::missed::contradiction;
use crate::base::{Addr, Collector, IndexVec, NoteKind, plural};
use crate::clr::header::{HeaderUse, Headers};
use crate::clr::library::{Classifier, Kinds, library_types};
use crate::clr::type_names::TypeNames;
use crate::gc::{Object, ObjectType, Piece, SegmentIndex, TypeIndex, Visitor, note_walks};
use crate::memory::Window;
use crate::session::Heap;

library_types! {
    /// Types of the objects that threads wait for, and of their parts.
    pub(super) enum LockType {
        in "System.Private.CoreLib" {
            Lock = "System.Threading.Lock",
            Condition = "System.Threading.Condition",
            ConditionWaiter = "System.Threading.Condition+Waiter",
            Event = "System.Threading.ManualResetEventSlim",
            Semaphore = "System.Threading.SemaphoreSlim",
            /// The task of `SemaphoreSlim.WaitAsync`.
            SemaphoreWaiter = "System.Threading.SemaphoreSlim+TaskNode",
            ReaderWriter = "System.Threading.ReaderWriterLockSlim",
            Countdown = "System.Threading.CountdownEvent",
            WaitHandle = "System.Threading.WaitHandle",
            SafeWaitHandle = "Microsoft.Win32.SafeHandles.SafeWaitHandle",
            Thread = "System.Threading.Thread",
            Task = "System.Threading.Tasks.Task",
            OnInvoke = "System.Threading.Tasks.Task+SetOnInvokeMres",
            OnCountdown = "System.Threading.Tasks.Task+SetOnCountdownMres",
            OnAny = "System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise`1",
            ReaderCount = "System.Threading.ReaderWriterCount",
            BlockingInfo = "System.Threading.ThreadBlockingInfo",
            /// NativeAOT, and .NET 11 on Unix.
            WaitInfo = "System.Threading.WaitSubsystem+ThreadWaitInfo",
            Waitable = "System.Threading.WaitSubsystem+WaitableObject",
            Ownership = "System.Threading.WaitSubsystem+WaitableObject+OwnershipInfo",
            NamedMutex = "System.Threading.WaitSubsystem+NamedMutex",
            /// NativeAOT.
            SyncEntry = "System.Threading.SyncTable+Entry",
        }
        in "System.Threading" {
            Barrier = "System.Threading.Barrier",
            OtherCountdown = "System.Threading.CountdownEvent",
            OldReaderWriter = "System.Threading.ReaderWriterLock",
            OldReaderCount = "System.Threading.ReaderWriterLock+ThreadLocalLockEntry",
        }
        in "System.Collections.Concurrent" {
            BlockingCollection = "System.Collections.Concurrent.BlockingCollection`1",
        }
    }
}

impl LockType {
    /// Types whose objects are not listed, because they are found through references.
    const UNLISTED: [LockType; 12] = [
        LockType::ReaderCount,
        LockType::OldReaderCount,
        LockType::BlockingInfo,
        LockType::ConditionWaiter,
        LockType::Task,
        LockType::OnAny,
        LockType::SemaphoreWaiter,
        LockType::WaitInfo,
        LockType::Waitable,
        LockType::Ownership,
        LockType::NamedMutex,
        LockType::SyncEntry,
    ];
}

/// The objects that a walk found.
#[derive(Debug, Default)]
pub(super) struct LockObjects {
    /// The kinds of the object at each address.
    pub(super) kinds: Map<Addr, Kinds<LockType>>,
    /// The objects of each type, in heap order.
    list: Vec<(Addr, Kinds<LockType>)>,
    /// Objects whose header word is a thin lock.
    pub(super) thin: Vec<Addr>,
    /// Ranges of `SafeWaitHandle` arrays.
    pub(super) handle_arrays: Vec<(Addr, Addr)>,
    /// Ranges of the arrays of the table of monitors (NativeAOT).
    pub(super) sync_tables: Vec<(Addr, Addr)>,
}

impl LockObjects {
    /// The objects of a type, in heap order.
    pub(super) fn of(&self, kind: LockType) -> impl Iterator<Item = Addr> {
        self.list.iter().filter(move |(_, kinds)| kinds.is(kind)).map(|(address, _)| *address)
    }
}

/// The handling of the objects of a type.
#[derive(Clone, Copy)]
struct Use {
    kinds: Option<Kinds<LockType>>,
    /// The element type of an array whose range is needed.
    elements: Option<LockType>,
}

impl Use {
    fn of(classifier: &Classifier<LockType>, ty: &ObjectType) -> Use {
        let kinds = classifier.of(ty.method_table);
        let listed = kinds.iter().any(|kind| !LockType::UNLISTED.contains(&kind));
        Use { kinds: listed.then_some(kinds), elements: if ty.is_array { elements(classifier, ty.method_table) } else { None } }
    }

    fn is_any(&self) -> bool {
        self.kinds.is_some() || self.elements.is_some()
    }
}

struct Finder<'h> {
    classifier: &'h Classifier<LockType>,
    known: IndexVec<TypeIndex, Option<Use>>,
    headers: Option<(&'h Headers, Window<'h>)>,
    /// The first unused index of the sync table.
    sync_end: Option<u32>,
    segment: SegmentIndex,
    found: Vec<(SegmentIndex, Addr, Kinds<LockType>)>,
    thin: Vec<Addr>,
    /// Objects with a sync block index at or past `sync_end`: the first one, and their number.
    past: Option<(Addr, u64)>,
    arrays: Vec<(LockType, Addr, Addr)>,
}

impl Visitor for Finder<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        // A free block keeps the header word of a former object.
        if object.ty.is_free {
            return;
        }
        if let Some((headers, window)) = &mut self.headers
            && let Some(word) = object.address.minus(headers.before()).and_then(|at| window.u32(at))
        {
            match HeaderUse::of(word) {
                HeaderUse::ThinLock(_) => self.thin.push(object.address),
                HeaderUse::None if !HeaderUse::is_possible(word) => {
                    contradiction(object.address, "an object's header counts recursions of a lock that no thread holds");
                }
                HeaderUse::SyncBlock(index) if self.sync_end.is_some_and(|end| index >= end) => {
                    self.past = earlier(self.past, Some((object.address, 1)));
                }
                HeaderUse::SyncBlock(index) => headers.check_named(index, object.address),
                _ => {}
            }
        }
        let classifier = self.classifier;
        let Some(slot) = self.known.slot(object.ty.index) else { return };
        let used = *slot.get_or_insert_with(|| Use::of(classifier, object.ty));
        if let Some(kinds) = used.kinds {
            self.found.push((self.segment, object.address, kinds));
        }
        if let Some(elements) = used.elements {
            self.arrays.push((elements, object.address, object.address.plus(object.size)));
        }
    }
}

/// Returns the lower of two addresses, and the sum of the counts.
fn earlier(a: Option<(Addr, u64)>, b: Option<(Addr, u64)>) -> Option<(Addr, u64)> {
    match (a, b) {
        (Some((x, m)), Some((y, n))) => Some((x.min(y), m.saturating_add(n))),
        (one, other) => one.or(other),
    }
}

fn elements(classifier: &Classifier<LockType>, array: Addr) -> Option<LockType> {
    let element = classifier.types().names().method_tables().element_type(array).ok();
    let kinds = classifier.of(element.and_then(TypeNames::method_table_of)?);
    [LockType::SafeWaitHandle, LockType::SyncEntry].into_iter().find(|kind| kinds.is(*kind))
}

/// Walks the heap; without `headers`, only the segments with objects of lock types.
pub(super) fn find(heap: &Heap, classifier: &Classifier<LockType>, headers: Option<&Headers>, notes: &Collector) -> LockObjects {
    let sync_end = headers.and_then(Headers::sync_end);
    let visitor = || Finder {
        classifier,
        known: IndexVec::new(),
        headers: headers.map(|h| (h, Window::new(heap.memory()))),
        sync_end,
        segment: SegmentIndex::default(),
        found: Vec::new(),
        thin: Vec::new(),
        past: None,
        arrays: Vec::new(),
    };
    let visitors = if headers.is_some() {
        let walked = heap.walker().walk_once(heap.progress(), visitor);
        note_walks(heap.walker(), &walked.segments, notes);
        walked.visitors
    } else {
        let wanted = heap.types_where(notes, |ty| !ty.is_free && Use::of(classifier, ty).is_any());
        heap.walk_where(&wanted, visitor)
    };
    let (mut out, mut found, mut past) = (LockObjects::default(), Vec::new(), None);
    for visitor in visitors {
        found.extend(visitor.found);
        out.thin.extend(visitor.thin);
        past = earlier(past, visitor.past);
        for (elements, start, end) in visitor.arrays {
            let list = if elements == LockType::SyncEntry { &mut out.sync_tables } else { &mut out.handle_arrays };
            list.push((start, end));
        }
    }
    if let (Some((object, count)), Some(end)) = (past, sync_end) {
        let what = format!(
            "the headers of {}, the first at {object}, name sync blocks past the end of the table, which is {end}",
            plural(count, "object")
        );
        notes.add(NoteKind::Invalid, object, what);
    }
    found.sort_unstable_by_key(|(segment, address, _)| (*segment, *address));
    out.thin.sort_unstable();
    out.handle_arrays.sort_unstable();
    out.sync_tables.sort_unstable();
    out.kinds = found.iter().map(|(_, address, kinds)| (*address, *kinds)).collect();
    out.list = found.into_iter().map(|(_, address, kinds)| (address, kinds)).collect();
    out
}
