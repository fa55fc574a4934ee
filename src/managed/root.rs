//! Roots of the garbage collector.

use std::fmt;
use std::sync::Arc;

use crate::base::{Addr, Answer, Collector};
use crate::gc::HandleFilter;
use crate::heapgraph::{Origin, RawRoot, RootFlags, Roots};
use crate::managed::{GcHandle, Object, Thread};
use crate::model::{HandleKind, RootFlag, RootKind};
use crate::session::roots::RootOptions;
use crate::session::{Error, Heap, Namer};

/// A root: a handle, a static field, a reference on a stack, or another place where the garbage collector starts.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// for root in heap.roots()? {
///     println!("{}: {}", root.label(), root.object()?.type_name());
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Root {
    heap: Heap,
    roots: Arc<Roots>,
    root: RawRoot,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({} to {})", self.label(), self.target())
    }
}

impl Heap {
    /// The roots except weak handles, ordered by kind, then by table, queue, thread and address. Notes report roots that could not be read.
    ///
    /// # Errors
    /// None today; later versions may fail if no root can be read.
    pub fn roots(&self) -> Result<Answer<Vec<Root>>, Error> {
        let (notes, namer) = (self.begin(), self.namer());
        let (roots, _) = self.roots_with(&RootOptions::default(), &namer, &notes);
        namer.note(&notes);
        Ok(notes.finish(roots))
    }

    /// The roots that `options` select, in the order of [`Heap::roots`], and what was found besides them.
    pub(crate) fn roots_with(&self, options: &RootOptions, namer: &Namer, notes: &Collector) -> (Vec<Root>, Arc<Roots>) {
        let all = Arc::new(Roots::listed(self, namer, options, notes));
        let handle = |root: &RawRoot| Root { heap: self.clone(), roots: Arc::clone(&all), root: *root };
        (all.roots.iter().map(handle).collect(), all)
    }
}

impl Root {
    /// The kind of the root.
    pub fn kind(&self) -> RootKind {
        self.root.kind
    }

    /// Address of the reference; `None` for registers and code.
    pub fn address(&self) -> Option<Addr> {
        self.root.address
    }

    /// Address of the object that the root holds.
    pub fn target(&self) -> Addr {
        self.root.object
    }

    /// The object that the root holds.
    ///
    /// # Errors
    /// See [`Heap::object`].
    pub fn object(&self) -> Result<Object, Error> {
        self.heap.object(self.target())
    }

    /// The properties of the root: pinned, interior, conservative.
    pub fn flags(&self) -> Vec<RootFlag> {
        self.root.flags.names()
    }

    /// Whether the root is a word of a stack that may be a reference.
    pub fn is_conservative(&self) -> bool {
        self.root.flags.has(RootFlags::CONSERVATIVE)
    }

    /// The origin of the root in words: the kind of a handle, the static field, the method and slot of a frame.
    pub fn label(&self) -> String {
        self.roots.label(&self.root)
    }

    /// The thread to which the stack, the register, the exception or the thread static belongs; `None` for other roots.
    pub fn thread(&self) -> Option<Thread> {
        let thread = self.roots.thread_of(&self.root)?;
        self.heap.runtime().thread_with(thread.managed_id, thread.os_id)
    }

    /// The managed id of [`Root::thread`]; `None` for other roots, and for a thread without a known id.
    pub fn thread_id(&self) -> Option<u32> {
        self.roots.thread_of(&self.root)?.managed_id
    }

    /// The GC handle; `None` for other roots.
    pub fn handle(&self) -> Option<GcHandle> {
        let kind = match self.root.origin {
            Origin::Handle(kind) => kind,
            Origin::HandleFor(_) | Origin::LastThrown(_) | Origin::Exception(_) => HandleKind::Strong,
            _ => return None,
        };
        let address = self.root.address?;
        // A root does not have the second value of its handle. The reference to an exception in flight is not always a handle.
        if kind.has_secondary() || matches!(self.root.origin, Origin::Exception(_)) {
            let filter = HandleFilter { kinds: vec![kind] };
            return self.heap.handles_like(&filter).ok()?.data.into_iter().find(|handle| handle.address() == address);
        }
        Some(GcHandle::new(&self.heap, (address, kind), self.root.object, None))
    }
}
