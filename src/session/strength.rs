//! Which GC handles keep their objects alive, decided in one place for lists of handles and for roots.

use std::sync::Arc;

use super::{Namer, Runtime};
use crate::base::Notes;
use crate::clr::header::Headers;
use crate::clr::wrappers::Wrappers;
use crate::contract::Descriptor;
use crate::gc::Gc;
use crate::model::{HandleKind, HandleModel};

/// Decides which handles of a runtime keep their objects alive.
pub(crate) struct Strength {
    wrappers: Wrappers,
    /// The descriptor scope for what is read here.
    asked: Arc<Descriptor>,
    /// Whether any ref-counted handle was found.
    met: bool,
}

impl Strength {
    pub(crate) fn bind(runtime: &Runtime) -> Strength {
        let asked = runtime.descriptor().scope();
        let headers = Headers::bind(runtime.memory(), &asked, runtime.limits()).ok();
        Strength { wrappers: Wrappers::bind(runtime.memory(), &asked, headers), asked, met: false }
    }

    /// Sets the reference count of a ref-counted handle, and whether it keeps its object alive. For all others, the handle type decides.
    pub(crate) fn decide(&mut self, handle: &mut HandleModel, gc: &Gc, namer: &Namer) {
        if handle.kind != HandleKind::RefCounted {
            return;
        }
        self.met = true;
        let Some((mt, types)) = handle.method_table.or_else(|| gc.method_table(handle.object)).zip(namer.types().ok()) else { return };
        if let Some(found) = self.wrappers.ref_count(handle.address, handle.object, mt, types) {
            (handle.ref_count, handle.strong) = (Some(found.count), found.strong);
        }
    }

    /// Notes on items of the descriptor that could not be used, if any ref-counted handle was found.
    pub(crate) fn losses(&self) -> Notes {
        if self.met { self.asked.losses() } else { Notes::new() }
    }
}
