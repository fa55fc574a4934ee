//! Finds a call of `Environment.FailFast` on the stack of a thread.

use crate::analysis::{StackFrameModel, StackRootModel, ThreadStackModel};
use crate::base::{Addr, Name};

/// A call of `Environment.FailFast`, which ended the process.
#[derive(Debug)]
pub(crate) struct FailFast {
    /// The roots of the frames of `FailFast`: the message and the exception.
    held: Vec<StackRootModel>,
    /// The innermost method of the program among the callers, or else the direct caller.
    pub(crate) caller: Option<Name>,
}

impl FailFast {
    /// Returns the message: the first string that the frames hold.
    pub(crate) fn message(&self) -> Option<Addr> {
        self.held.iter().find(|root| is_string(root)).and_then(|root| root.object)
    }

    /// Returns the other objects that the frames hold. If the program passed an exception, it is one of them.
    pub(crate) fn others(&self) -> impl Iterator<Item = Addr> + '_ {
        self.held.iter().filter(|root| !is_string(root)).filter_map(|root| root.object)
    }
}

fn is_string(root: &StackRootModel) -> bool {
    root.type_name.as_deref() == Some("System.String")
}

/// Finds the call of `Environment.FailFast` on `stack`, which must have its roots; `None` if the innermost method is another one. In .NET 8, the call
/// is one runtime frame; later versions have several methods.
///
/// Source: `FailFast` in `docs/internals/stacks.md`, read from dumps of .NET 8 to 11.
pub(crate) fn fail_fast(stack: &ThreadStackModel, is_own: impl Fn(&str) -> bool) -> Option<FailFast> {
    let is_it = |f: &StackFrameModel| f.method.as_deref().is_some_and(|name| name.starts_with("System.Environment.FailFast("));
    // Only runtime frames without a method are further inside than the call.
    let first = stack.frames.iter().position(|f| f.method.is_some()).filter(|at| stack.frames.get(*at).is_some_and(is_it))?;
    let (calls, callers): (Vec<_>, Vec<_>) = stack.frames.iter().skip(first).partition(|f| is_it(f));
    let mut named = callers.iter().filter(|f| f.method.is_some());
    let caller = named.clone().find(|f| f.method.as_deref().is_some_and(&is_own)).or_else(|| named.next());
    let held = calls.iter().filter_map(|f| f.roots.as_ref()).flatten().cloned().collect();
    let named = |f: &&&StackFrameModel| Some(Name::shown_as(f.method.as_deref()?, f.display.as_deref().map(String::from)));
    Some(FailFast { held, caller: caller.as_ref().and_then(named) })
}
