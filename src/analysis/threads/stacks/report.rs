//! The report of `stacks`.

use std::sync::Arc;

use serde::Serialize;

use crate::analysis::{ExceptionModel, ThreadWait};
use crate::base::{Addr, Name, Remedy, named_enum, written_as};
use crate::model::{ArgumentModel, CodeTier, FaultModel, StackFrameKind};

named_enum! {
    /// How precisely the references of a stack are known.
    pub enum StackCoverage {
        /// All frames and their references are known.
        Precise = "precise",
        /// Some frames, or the references of some frames, are not known. These parts of the stack are scanned word by word.
        Partial = "partial",
        /// No frame is known: the whole stack is scanned word by word.
        Conservative = "conservative",
        /// Neither the frames nor the stack are in the dump.
        Unavailable = "unavailable",
    }
}

named_enum! {
    /// Part of a method that a frame executes.
    pub enum FramePart {
        /// The method itself.
        Body = "body",
        /// A catch, finally or fault block that runs as a separate function (funclet).
        Handler = "handler",
        /// The filter of an exception handler.
        Filter = "filter",
    }
}

named_enum! {
    /// Origin of a method's code.
    pub enum CodeKind {
        /// Compiled by the JIT, in the process.
        Jit = "jit",
        /// Compiled ahead of time, in the module's image.
        ReadyToRun = "ready-to-run",
    }
}

/// `stacks`: the stacks of the managed threads.
#[derive(Clone, Debug)]
pub struct StacksReport {
    /// Number of managed threads with a stack.
    pub total: u64,
    /// The stacks.
    pub rows: StacksRows,
    /// Location of the crash with native frames; on a managed thread, only the frames below its managed code. `None` without a crash, and
    /// if that thread was not selected.
    pub fault: Option<FaultModel>,
}

/// The rows that `stacks` lists.
#[derive(Clone, Debug)]
pub enum StacksRows {
    /// The stack of each thread.
    Threads {
        /// The threads: the crashed one first, the others in the order of the runtime's list.
        threads: Vec<ThreadStackModel>,
        /// Number of threads that are not listed, if there are any.
        not_listed: Option<u64>,
    },
    /// With `merge`: stacks with equal frames merged.
    Merged {
        /// The frames, outermost first, most threads first.
        merged: Vec<MergedFrame>,
    },
}

impl StacksRows {
    /// The threads; empty if their stacks are merged.
    pub fn threads(&self) -> &[ThreadStackModel] {
        if let StacksRows::Threads { threads, .. } = self { threads } else { &[] }
    }
}

/// `stacks`: the stacks of the managed threads.
#[derive(Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
struct StacksJson<'r> {
    /// Number of managed threads with a stack.
    total: u64,
    /// The threads: the crashed one first, the others in the order of the runtime's list. `null` with `merge`.
    threads: Option<&'r [ThreadStackModel]>,
    /// Number of threads that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_listed: Option<u64>,
    /// Location of the crash with native frames; on a managed thread, only the frames below its managed code. `null` without a crash, and
    /// if that thread was not selected.
    fault: Option<&'r FaultModel>,
    /// With `merge`: stacks with equal frames merged, outermost frame first, most threads first.
    merged: Option<&'r [MergedFrame]>,
}

impl StacksReport {
    fn json(&self) -> StacksJson<'_> {
        let (threads, not_listed, merged) = match &self.rows {
            StacksRows::Threads { threads, not_listed } => (Some(threads.as_slice()), *not_listed, None),
            StacksRows::Merged { merged } => (None, None, Some(merged.as_slice())),
        };
        StacksJson { total: self.total, threads, not_listed, fault: self.fault.as_ref(), merged }
    }
}

written_as!(StacksReport as StacksJson, json);

/// The stack of a managed thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadStackModel {
    /// Managed id; `null` if it cannot be read.
    pub managed_id: Option<u32>,
    /// OS id.
    pub os_id: Option<u64>,
    /// Name.
    pub name: Option<Name>,
    /// Whether the thread crashed.
    pub crashed: bool,
    /// How precisely the references of the stack are known.
    pub coverage: StackCoverage,
    /// Parts of the stack that are scanned conservatively.
    pub gaps: Vec<StackGap>,
    /// The wait that blocks the thread; `null` if it is not blocked, or without `waits`.
    pub waits_for: Option<Box<ThreadWait>>,
    /// Exception in flight.
    pub exception: Option<Arc<ExceptionModel>>,
    /// Frames, innermost first.
    pub frames: Vec<StackFrameModel>,
    /// Recursion: cycles of frames that occur ten times or more in a row, innermost first.
    pub repeats: Vec<StackRepeat>,
}

/// Frames that repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackRepeat {
    /// Index of the innermost frame in `frames`, from 0.
    pub first: u64,
    /// Number of frames in the cycle.
    pub frames: u64,
    /// Number of repetitions in a row.
    pub times: u64,
    /// The methods of the cycle, callers first: `Lab.Tree.Visit → Lab.Tree.Each`.
    pub cycle: Name,
}

/// A part of a stack that is scanned conservatively.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackGap {
    /// Start.
    pub from: Option<Addr>,
    /// End; `null` for the end of the stack.
    pub to: Option<Addr>,
    /// Whether frames may be missing in this part; otherwise only the references of a listed frame are unknown.
    pub loses_frames: bool,
    /// Why this part is scanned conservatively.
    pub reason: String,
    /// The module whose file would help.
    pub module: Option<String>,
    /// The source of the missing data, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// A frame.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackFrameModel {
    /// Kind.
    pub kind: StackFrameKind,
    /// Instruction pointer: a return address, except in the innermost frame. For a runtime frame, the instruction pointer at which the
    /// stack walk met the frame.
    pub ip: Option<Addr>,
    /// Stack pointer; for a runtime frame, the address of the frame.
    pub sp: Addr,
    /// The method, with the name that the runtime's debugging interface and ClrMD use: ``Lab.Gen`1[[System.__Canon,
    /// System.Private.CoreLib]].Add(System.Span`1<Byte>)``. For a runtime frame, the called method: a P/Invoke, a method that the runtime
    /// implements, or a method that is about to run. `null` if unknown.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Gen<System.String>.Add(System.Span<Byte>)`. It has exact type arguments if the frame has
    /// them, and the method's name in the source instead of one that the compiler made.
    pub display: Option<Name>,
    /// Address of the `MethodDesc`.
    pub method_desc: Option<Addr>,
    /// File name of the declaring module.
    pub module: Option<Name>,
    /// Offset of the instruction pointer in the method's code, in bytes.
    pub offset: Option<u64>,
    /// Path of the source file at compile time; `null` without a PDB that has the line.
    pub file: Option<Name>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// Part of the method that the frame executes. `null` for a runtime frame, and for a handler or filter whose method's clauses are not in the dump.
    pub part: Option<FramePart>,
    /// Origin of the code. `null` for a runtime frame.
    pub code: Option<CodeKind>,
    /// Optimization tier of the code; `null` for code that the JIT did not compile, and if the tier cannot be
    /// determined.
    pub tier: Option<CodeTier>,
    /// Type of a runtime frame: `InlinedCallFrame`.
    pub frame_type: Option<Name>,
    /// Address of a runtime frame.
    pub address: Option<Addr>,
    /// Whether the frame holds no references: an exception has passed it, or a running handler of its method reports them.
    pub unwound: bool,
    /// References of the frame; `null` if not requested.
    pub roots: Option<Vec<StackRootModel>>,
    /// Arguments, starting with `this`; `null` if not requested, for a runtime frame, and if the method's signature cannot be read.
    pub arguments: Option<Vec<ArgumentModel>>,
    /// Local variables, by slot; with a PDB, only those that have a name at the instruction. `null` if not requested, for a runtime frame,
    /// and if the signature of the locals cannot be read.
    pub locals: Option<Vec<ArgumentModel>>,
}

impl StackFrameModel {
    /// Returns a frame with all other values unknown.
    pub(crate) const fn new(kind: StackFrameKind, sp: Addr) -> StackFrameModel {
        StackFrameModel {
            kind,
            ip: None,
            sp,
            method: None,
            display: None,
            method_desc: None,
            module: None,
            offset: None,
            file: None,
            line: None,
            part: None,
            code: None,
            tier: None,
            frame_type: None,
            address: None,
            unwound: false,
            roots: None,
            arguments: None,
            locals: None,
        }
    }
}

/// A reference in a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackRootModel {
    /// Location, written as in a disassembly: `[rbp-0x48]`, `rbx`.
    pub location: String,
    /// Address of the stack slot. For a register, the slot in which a callee saved it; `null` if no callee did.
    pub slot: Option<Addr>,
    /// The object; `null` if the slot is not in the dump.
    pub object: Option<Addr>,
    /// Type name of the object; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Whether the slot points into the object.
    pub interior: bool,
    /// Whether the reference pins the object.
    pub pinned: bool,
    /// Whether the slot is known to be a reference, rather than a word that looks like one.
    pub precise: bool,
}

/// Number of repetitions of a cycle on the stacks of several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RepeatTimes {
    /// Smallest number on a thread.
    pub least: u64,
    /// Largest number on a thread.
    pub most: u64,
}

/// A frame of merged stacks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MergedFrame {
    /// Depth, from 0.
    pub depth: u32,
    /// Number of threads at or below the frame.
    pub threads: u64,
    /// Managed ids of the threads for which this is the innermost frame.
    pub managed_ids: Vec<u32>,
    /// Name for people: of a frame, the method; of a runtime frame, its type and the method, if any; of a cycle, its methods, callers
    /// first.
    pub frame: Name,
    /// Number of repetitions of a cycle; `null` for a single frame.
    pub times: Option<RepeatTimes>,
    /// The method as in the frames of `threads`; `null` for a cycle, and for a runtime frame without a method.
    pub method: Option<Name>,
    /// Address of the `MethodDesc`; `null` as for `method`.
    pub method_desc: Option<Addr>,
    /// Module of the method.
    pub module: Option<Name>,
    /// Path of the source file at compile time; `null` without a PDB that has the line, and if the threads are at different lines.
    pub file: Option<Name>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_fields_of_all_views_in_order() {
        let json = |rows| serde_json::to_string(&StacksReport { total: 2, rows, fault: None }).unwrap();
        let threads = |not_listed| StacksRows::Threads { threads: Vec::new(), not_listed };
        assert_eq!(json(threads(None)), r#"{"total":2,"threads":[],"fault":null,"merged":null}"#);
        assert_eq!(json(threads(Some(3))), r#"{"total":2,"threads":[],"not_listed":3,"fault":null,"merged":null}"#);
        assert_eq!(json(StacksRows::Merged { merged: Vec::new() }), r#"{"total":2,"threads":null,"fault":null,"merged":[]}"#);
    }
}
