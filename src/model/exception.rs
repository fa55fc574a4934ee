use serde::Serialize;

use crate::base::Addr;

/// An exception object with its stack trace and its inner exceptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExceptionModel {
    /// The exception object.
    pub address: Addr,
    /// Its type name; `null` where it cannot be told.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table.
    pub method_table: Option<Addr>,
    /// Whether it is in flight (exception tracker), not just the last one thrown. Of inner exceptions always `false`.
    pub current: bool,
    /// Its message; `null` where the program gave none, so that `Exception.Message` would compose one, and where the object is
    /// not in the dump.
    pub message: Option<String>,
    /// Its HRESULT; `null` where the object is not in the dump.
    pub hresult: Option<i32>,
    /// Frames that it passed through, innermost first; empty for one that was not thrown.
    pub stack: Vec<FrameModel>,
    /// The exception that led to it.
    pub inner: Option<Box<ExceptionModel>>,
    /// Further inner exceptions of an `AggregateException`, from the second on: the first is `inner`.
    pub inners: Vec<ExceptionModel>,
    /// The trace as text, where the program had asked for it.
    pub stack_text: Option<String>,
    /// Text that `Exception.StackTrace` prints in front of the frames: a trace of another process or one that was set.
    pub remote_stack_text: Option<String>,
}

/// A frame of an exception's stack trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FrameModel {
    /// Instruction pointer, as the exception keeps it.
    pub ip: Addr,
    /// Stack pointer.
    pub sp: Addr,
    /// The method: `Lab.Program.Main(System.String[])`, or `lab!0x06000001` without metadata; `null` where it cannot be told.
    pub method: Option<String>,
    /// The runtime's `MethodDesc`.
    pub method_desc: Addr,
    /// File name of the module that declares the method.
    pub module: Option<String>,
    /// Whether this frame and those before it were thrown elsewhere, stored, and thrown again.
    pub last_of_foreign: bool,
}

/// `exceptions`: every exception object of the heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ExceptionsReport {
    /// Number of exception objects.
    pub total: u64,
    /// Exceptions of the same type and message together, most frequent first.
    pub groups: Vec<ExceptionGroup>,
    /// The exceptions in the order of the heap; `null` with `--stat`.
    pub exceptions: Option<Vec<HeapExceptionModel>>,
}

/// Exceptions of the same type and message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExceptionGroup {
    /// Type name.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Message.
    pub message: Option<String>,
    /// How many.
    pub count: u64,
    /// How many of them have a stack trace, which means that they were thrown.
    pub thrown: u64,
    /// The first of them.
    pub example: Addr,
}

/// An exception object of the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HeapExceptionModel {
    /// The object.
    pub address: Addr,
    /// Its type name.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table.
    pub method_table: Addr,
    /// Its message; `null` where the program gave none.
    pub message: Option<String>,
    /// Its HRESULT.
    pub hresult: Option<i32>,
    /// The exception that led to it.
    pub inner: Option<Addr>,
    /// Further inner exceptions of an `AggregateException`, from the second on.
    pub inners: Vec<Addr>,
    /// Frames that it passed through, innermost first.
    pub stack: Vec<FrameModel>,
    /// Managed id of the thread that has it.
    pub thread: Option<u32>,
    /// How that thread has it: `in-flight`, `nested` (in flight, beneath another one) or `last-thrown`.
    pub thread_role: Option<String>,
}
