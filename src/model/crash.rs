//! The report that a NativeAOT program leaves in its memory when it ends itself.

use serde::Serialize;

use crate::base::Addr;

/// What a NativeAOT program said of its own end, in its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CrashReport {
    /// Version of its runtime.
    pub runtime_version: Option<String>,
    /// Why it ended: `unhandled exception`, `fail fast`, `internal error`; `null` for other reasons.
    pub reason: Option<String>,
    /// OS id of the thread that ended it.
    pub thread: Option<u64>,
    /// Its message.
    pub message: Option<String>,
    /// The exception that was not handled.
    pub exception: Option<CrashException>,
}

/// An exception in a [`CrashReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CrashException {
    /// Address of the object.
    pub address: Option<Addr>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its HRESULT.
    pub hresult: Option<i32>,
    /// Its message.
    pub message: Option<String>,
    /// Frames, innermost first.
    pub stack: Vec<CrashFrame>,
    /// Inner exceptions.
    pub inner: Vec<CrashException>,
}

/// A frame in a [`CrashReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CrashFrame {
    /// Code address.
    pub ip: Option<Addr>,
    /// Method with its parameters; `null` where the program has no name for it.
    pub method: Option<String>,
}
