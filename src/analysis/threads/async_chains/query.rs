//! Arguments of `async`.

use crate::analysis::AsyncRootKind;
use crate::base::Addr;
use crate::session::TypePattern;

/// Arguments of `async`.
#[derive(Clone, Debug, Default)]
pub struct AsyncQuery {
    /// Fold equal chains.
    pub merge: bool,
    /// Only chains with an object, or a root, of one of these types; all if empty.
    pub types: Vec<TypePattern>,
    /// Only chains with one of these methods: globs, or parts of names; all if empty.
    pub methods: Vec<String>,
    /// Only chains with roots of these kinds; all if empty.
    pub roots: Vec<AsyncRootKind>,
    /// Only chains with this object.
    pub object: Option<Addr>,
    /// List tasks.
    pub tasks: bool,
    /// List completed tasks only.
    pub completed: bool,
    /// List faulted tasks only.
    pub faulted: bool,
    /// Maximum number of merged trees; 0 for all.
    pub top: usize,
}

impl AsyncQuery {
    pub(super) fn lists_tasks(&self) -> bool {
        self.tasks || self.completed || self.faulted
    }
}
