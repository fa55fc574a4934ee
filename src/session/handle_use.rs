//! The purpose of strong GC handles that the runtime and its library created for themselves, decided in one place for lists of handles and
//! for roots.

use super::{Namer, Runtime};
use crate::base::hash::Set;
use crate::base::{Addr, Collector};
use crate::clr::fields::CORE;
use crate::gc::Gc;
use crate::model::{HandleKind, HandleModel, HandleUse};

/// The purposes of handles that a runtime created for itself.
#[derive(Debug)]
pub(crate) struct HandleUses {
    /// Handles of sync blocks to their locks (.NET 11).
    locks: Set<Addr>,
    /// The method table of the object that a wait handle refers to, where the library implements wait handles (NativeAOT, and .NET 11 on
    /// Unix).
    waitable: Option<Addr>,
}

impl HandleUses {
    pub(crate) fn bind(runtime: &Runtime, namer: &Namer, notes: &Collector) -> HandleUses {
        let locks = runtime.headers(notes).map(|headers| headers.lock_handles(notes)).unwrap_or_default();
        let waitable = namer
            .types()
            .ok()
            .and_then(|types| types.loaded(types.definition_named(CORE, "System.Threading.WaitSubsystem+WaitableObject")?));
        HandleUses { locks: locks.into_iter().collect(), waitable }
    }

    /// Sets the purpose of the handle.
    pub(crate) fn decide(&self, handle: &mut HandleModel, gc: &Gc) {
        if handle.kind != HandleKind::Strong {
            return;
        }
        let type_of = || handle.method_table.or_else(|| gc.method_table(handle.object));
        handle.used_for = if self.locks.contains(&handle.address) {
            Some(HandleUse::SyncBlockLock)
        } else if self.waitable.is_some() && type_of() == self.waitable {
            Some(HandleUse::WaitHandle)
        } else {
            None
        };
    }
}
