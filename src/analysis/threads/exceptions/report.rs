//! The report of `exceptions`.

use serde::Serialize;

use crate::base::{Addr, Name, views};

/// An exception with its stack trace and inner exceptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExceptionModel {
    /// The exception object.
    pub address: Addr,
    /// Type name; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table.
    pub method_table: Option<Addr>,
    /// Whether the exception is in flight; otherwise it is only the last one that was thrown. Always `false` for inner exceptions.
    pub current: bool,
    /// Message; `null` if unset (`Exception.Message` would then return a default text) or not in the dump.
    pub message: Option<String>,
    /// HRESULT; `null` if the object is not in the dump.
    pub hresult: Option<i32>,
    /// Stack trace, innermost frame first; empty if the exception was never thrown.
    pub stack: Vec<FrameModel>,
    /// Inner exception.
    pub inner: Option<Box<ExceptionModel>>,
    /// Further inner exceptions of an `AggregateException`; the first one is `inner`.
    pub inners: Vec<ExceptionModel>,
    /// Text of the stack trace; `null` unless the program requested it.
    pub stack_text: Option<String>,
    /// Text printed by `Exception.StackTrace` before the frames: a remote or explicitly set trace.
    pub remote_stack_text: Option<String>,
}

/// A frame of an exception's stack trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FrameModel {
    /// Instruction pointer as stored in the exception.
    pub ip: Addr,
    /// Stack pointer; `null` if the runtime does not publish it (.NET 11).
    pub sp: Option<Addr>,
    /// Method, as the compiler named it: `Lab.Program.Main(System.String[])`, or `lab!0x06000001` without metadata; `null` if unknown.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of the `MethodDesc`; `null` in NativeAOT programs, which have none.
    pub method_desc: Option<Addr>,
    /// File name of the declaring module.
    pub module: Option<Name>,
    /// Offset of `ip` in the method's code, in bytes; `null` if the code is not found, and in NativeAOT programs.
    pub offset: Option<u64>,
    /// Path of the source file at compile time; `null` without a PDB that has the line.
    pub file: Option<Name>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// Whether this is the last frame of an earlier throw, after which the exception was captured and rethrown.
    pub last_of_foreign: bool,
}

impl FrameModel {
    /// A frame for which only the instruction pointer is known.
    pub(crate) fn bare(ip: Addr, last_of_foreign: bool) -> FrameModel {
        FrameModel {
            ip,
            sp: None,
            method: None,
            display: None,
            method_desc: None,
            module: None,
            offset: None,
            file: None,
            line: None,
            last_of_foreign,
        }
    }
}

views! {
    /// The exceptions that `exceptions` lists.
    pub enum ExceptionsRows as ExceptionsFields {
        /// Each exception.
        Exceptions {
            /// Exceptions in heap order.
            exceptions: Vec<HeapExceptionModel>,
        },
        /// With `stat`: only the groups.
        Groups,
    }
}

/// `exceptions`: the exception objects on the heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExceptionsReport {
    /// Number of exception objects; `null` if exceptions cannot be read.
    pub total: Option<u64>,
    /// Number of never thrown exceptions that the runtime created at startup, for use when memory or stack run out.
    pub preallocated: u64,
    /// Groups of exceptions of one type thrown by one method, most frequent first.
    pub groups: Vec<ExceptionGroup>,
    /// The exceptions, unless only groups were requested.
    #[serde(flatten)]
    pub rows: ExceptionsRows,
    /// Number of exceptions (with `stat`, of groups) that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
}

/// All exception objects on the heap: see [`Heap::exceptions`](crate::Heap::exceptions).
#[derive(Clone, Debug)]
pub struct HeapExceptions {
    /// Number of exception objects; `None` if exceptions cannot be read.
    pub total: Option<u64>,
    /// Number of never thrown exceptions that the runtime created at startup, for use when memory or stack run out.
    pub preallocated: u64,
    /// Groups of exceptions of one type thrown by one method, most frequent first.
    pub groups: Vec<ExceptionGroup>,
    /// Exceptions in heap order.
    pub exceptions: Vec<HeapExceptionModel>,
}

/// Exceptions of one type thrown by one method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExceptionGroup {
    /// Type name.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The method that threw the exceptions, as the compiler named it; `null` if they were not thrown or the method is unknown.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Message of the first one.
    pub message: Option<String>,
    /// Number of exceptions.
    pub count: u64,
    /// Number of thrown exceptions: those with stack frames or a stack trace text.
    pub thrown: u64,
    /// Address of the first one.
    pub example: Addr,
}

/// An exception object on the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapExceptionModel {
    /// The object.
    pub address: Addr,
    /// Type name.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table.
    pub method_table: Addr,
    /// Message; `null` if unset.
    pub message: Option<String>,
    /// HRESULT.
    pub hresult: Option<i32>,
    /// Inner exception.
    pub inner: Option<Addr>,
    /// Further inner exceptions of an `AggregateException`.
    pub inners: Vec<Addr>,
    /// Stack trace, innermost frame first.
    pub stack: Vec<FrameModel>,
    /// Text printed by `Exception.StackTrace` before the frames: a remote or explicitly set trace. It may be the only trace.
    pub remote_stack_text: Option<String>,
    /// Managed id of the associated thread.
    pub thread: Option<u32>,
    /// Relation to the thread: `in-flight`, `nested` (also in flight, while another exception is handled) or `last-thrown`. `preallocated`
    /// for an exception that the runtime created at startup.
    pub thread_role: Option<String>,
    /// The inner exceptions with their stack traces. `null` unless the exception is in flight or was requested by its address; the inner
    /// exceptions are then rows of the list.
    pub inner_exceptions: Option<Vec<ExceptionModel>>,
}
