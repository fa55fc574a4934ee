//! A call of `Environment.FailFast` on the stack of a thread.

use crate::base::{Addr, Name};
use crate::model::{StackFrameModel, StackRootModel, ThreadStackModel};

/// A process that ended itself.
#[derive(Debug)]
pub(crate) struct FailFast {
    /// The frames of the method itself: what they hold is its message and its exception.
    held: Vec<StackRootModel>,
    /// The innermost method of the program's own that led there, else the caller.
    pub(crate) caller: Option<Name>,
}

impl FailFast {
    /// The string that the innermost frame holds: the message.
    pub(crate) fn message(&self) -> Option<Addr> {
        self.held.iter().find(|root| is_string(root)).and_then(|root| root.object)
    }

    /// The other objects that the frames hold: the exception among them, if the program named one.
    pub(crate) fn others(&self) -> impl Iterator<Item = Addr> + '_ {
        self.held.iter().filter(|root| !is_string(root)).filter_map(|root| root.object)
    }
}

fn is_string(root: &StackRootModel) -> bool {
    root.type_name.as_deref() == Some("System.String")
}

/// What `stack`, listed with what frames hold, tells of a call of `Environment.FailFast`; `None` if it does not end in one. On .NET 8 it is a
/// frame of the runtime, later several methods.
///
/// Source: `FailFast` in `docs/internals/stacks.md`, read from dumps of .NET 8 to 11.
pub(crate) fn fail_fast(stack: &ThreadStackModel, is_own: impl Fn(&str) -> bool) -> Option<FailFast> {
    let is_it = |f: &StackFrameModel| f.method.as_deref().is_some_and(|name| name.starts_with("System.Environment.FailFast("));
    // Above it there are frames of the runtime only.
    let first = stack.frames.iter().position(|f| f.method.is_some()).filter(|at| stack.frames.get(*at).is_some_and(is_it))?;
    let (calls, callers): (Vec<_>, Vec<_>) = stack.frames.iter().skip(first).partition(|f| is_it(f));
    let mut named = callers.iter().filter(|f| f.method.is_some());
    let caller = named.clone().find(|f| f.method.as_deref().is_some_and(&is_own)).or_else(|| named.next());
    let held = calls.iter().filter_map(|f| f.roots.as_ref()).flatten().cloned().collect();
    let named = |f: &&&StackFrameModel| Some(Name::shown_as(f.method.as_deref()?, f.display.as_deref().map(String::from)));
    Some(FailFast { held, caller: caller.as_ref().and_then(named) })
}
