//! The call targets of delegates.

use serde::Serialize;

use crate::base::{Addr, Name};

/// The call target of a delegate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DelegateModel {
    /// The object on which the method is called, or its first argument; `null` for a static method or an open delegate. For a multicast
    /// delegate, the target of the last part, as in `Delegate.Target`.
    pub target: Option<Addr>,
    /// Type of the target.
    pub target_type: Option<Name>,
    /// The method, as the compiler named it; `null` if it was not found. For a multicast delegate, the method of the last part, as in
    /// `Delegate.Method`.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of the `MethodDesc` of the method.
    pub method_desc: Option<Addr>,
    /// Number of delegates that a multicast delegate calls; 0 for other delegates.
    pub part_count: u64,
    /// The first of these delegates in the order of the calls, up to the requested number; empty for other delegates.
    pub parts: Vec<DelegatePart>,
}

/// A part of a multicast delegate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DelegatePart {
    /// The part, a delegate itself.
    pub object: Addr,
    /// The object on which the method is called, or its first argument.
    pub target: Option<Addr>,
    /// Type of the target.
    pub target_type: Option<Name>,
    /// The method, as the compiler named it; `null` if it could not be found.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of the `MethodDesc` of the method.
    pub method_desc: Option<Addr>,
}
