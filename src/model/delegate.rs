use serde::Serialize;

use crate::base::{Addr, Name};

/// What a delegate calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DelegateModel {
    /// The object that the method is called on, or its first argument; `null` for a static method or an open delegate. Of a multicast
    /// delegate, that of the last part, as `Delegate.Target` says.
    pub target: Option<Addr>,
    /// Type of the target.
    pub target_type: Option<Name>,
    /// The method, as the compiler named it; `null` if it could not be found. Of a multicast delegate, that of the last part, as `Delegate.Method` says.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// The runtime's description of the method (MethodDesc).
    pub method_desc: Option<Addr>,
    /// How many delegates a multicast delegate calls; 0 for others.
    pub part_count: u64,
    /// The first of them, in the order in which they are called, as many as were asked for; empty for others.
    pub parts: Vec<DelegatePart>,
}

/// A part of a multicast delegate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DelegatePart {
    /// The part: a delegate of its own.
    pub object: Addr,
    /// The object that the method is called on, or its first argument.
    pub target: Option<Addr>,
    /// Type of the target.
    pub target_type: Option<Name>,
    /// The method, as the compiler named it; `null` if it could not be found.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// The runtime's description of the method (MethodDesc).
    pub method_desc: Option<Addr>,
}
