//! States of finalizable objects.

use crate::base::named_enum;

named_enum! {
    /// Finalization state of an object.
    pub enum FinalizerState {
        /// Registered for finalization and not yet found dead.
        Registered = "registered",
        /// Found dead and ready for finalization. The queue keeps the object alive until its finalizer has run.
        Ready = "ready",
        /// Like `ready`, for `CriticalFinalizerObject`s, whose finalizers run last.
        Critical = "critical",
    }
}
