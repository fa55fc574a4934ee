//! A call of `Environment.FailFast` on the stack of a thread.

use crate::base::{Addr, Name};
use crate::model::{StackFrameModel, StackRootModel, ThreadStackModel};

/// A process that ended itself.
#[derive(Debug)]
pub(crate) struct FailFast {
    /// The roots of the method's own frames: its message and its exception.
    held: Vec<StackRootModel>,
    /// The innermost method of the program's own that led to the call, or else the caller.
    pub(crate) caller: Option<Name>,
}

impl FailFast {
    /// The string that the innermost frame holds, which is the message.
    pub(crate) fn message(&self) -> Option<Addr> {
        self.held.iter().find(|root| is_string(root)).and_then(|root| root.object)
    }

    /// The other objects that the frames hold. The exception is one of them, if the program passed one.
    pub(crate) fn others(&self) -> impl Iterator<Item = Addr> + '_ {
        self.held.iter().filter(|root| !is_string(root)).filter_map(|root| root.object)
    }
}

fn is_string(root: &StackRootModel) -> bool {
    root.type_name.as_deref() == Some("System.String")
}

/// The call of `Environment.FailFast` on `stack`, which is listed with its roots; `None` if the stack does not end in one. On .NET 8 the call is a
/// runtime frame, later it is several methods.
///
/// Source: `FailFast` in `docs/internals/stacks.md`, read from dumps of .NET 8 to 11.
pub(crate) fn fail_fast(stack: &ThreadStackModel, is_own: impl Fn(&str) -> bool) -> Option<FailFast> {
    let is_it = |f: &StackFrameModel| f.method.as_deref().is_some_and(|name| name.starts_with("System.Environment.FailFast("));
    // Only runtime frames are above the call.
    let first = stack.frames.iter().position(|f| f.method.is_some()).filter(|at| stack.frames.get(*at).is_some_and(is_it))?;
    let (calls, callers): (Vec<_>, Vec<_>) = stack.frames.iter().skip(first).partition(|f| is_it(f));
    let mut named = callers.iter().filter(|f| f.method.is_some());
    let caller = named.clone().find(|f| f.method.as_deref().is_some_and(&is_own)).or_else(|| named.next());
    let held = calls.iter().filter_map(|f| f.roots.as_ref()).flatten().cloned().collect();
    let named = |f: &&&StackFrameModel| Some(Name::shown_as(f.method.as_deref()?, f.display.as_deref().map(String::from)));
    Some(FailFast { held, caller: caller.as_ref().and_then(named) })
}
