//! GC handles.

use std::fmt;

use crate::base::{Addr, Answer};
use crate::gc::HandleFilter;
use crate::managed::Object;
use crate::model::HandleKind;
use crate::session::{Error, Heap};

/// A GC handle, such as the handle of a `GCHandle` or a `WeakReference`.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let pinned = heap.gc_handles()?.into_iter().filter(|handle| handle.kind() == gcdump::model::HandleKind::Pinned);
/// for handle in pinned {
///     println!("{} pins {}", handle.address(), handle.object()?.type_name());
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct GcHandle {
    heap: Heap,
    address: Addr,
    kind: HandleKind,
    target: Addr,
    secondary: Option<Addr>,
}

impl fmt::Debug for GcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GcHandle({} {} to {})", self.address, self.kind, self.target)
    }
}

impl Heap {
    /// The GC handles of all handle tables, except those without an object.
    ///
    /// # Errors
    /// [`Error::Contract`] if the GC's structures are not described.
    pub fn gc_handles(&self) -> Result<Answer<Vec<GcHandle>>, Error> {
        self.handles_like(&HandleFilter::default())
    }

    /// The handles of [`Heap::gc_handles`] that `filter` selects.
    ///
    /// # Errors
    /// See [`Heap::gc_handles`].
    pub(super) fn handles_like(&self, filter: &HandleFilter) -> Result<Answer<Vec<GcHandle>>, Error> {
        let (notes, mut list) = (self.runtime().begin(), Vec::new());
        let gc = notes.with(self.runtime().gc()?);
        let walked = gc.walk_handles(filter, |handle| {
            list.push(GcHandle::new(self, (handle.address, handle.kind), handle.object, handle.secondary));
        });
        notes.take(walked);
        Ok(notes.finish(list))
    }
}

impl GcHandle {
    pub(super) fn new(heap: &Heap, (address, kind): (Addr, HandleKind), target: Addr, secondary: Option<Addr>) -> GcHandle {
        GcHandle { heap: heap.clone(), address, kind, target, secondary }
    }

    /// Address of the handle: the value of a `GCHandle`.
    pub fn address(&self) -> Addr {
        self.address
    }

    /// The type of the handle.
    pub fn kind(&self) -> HandleKind {
        self.kind
    }

    /// Address of the object that the handle refers to.
    pub fn target(&self) -> Addr {
        self.target
    }

    /// The object that the handle refers to.
    ///
    /// # Errors
    /// See [`Heap::object`].
    pub fn object(&self) -> Result<Object, Error> {
        self.heap.object(self.target)
    }

    /// For dependent handles, the address of the dependent object; for weak interior pointers, the address of the pointer; for cross
    /// references, the native context. `None` for all others.
    pub fn secondary(&self) -> Option<Addr> {
        self.secondary
    }
}
