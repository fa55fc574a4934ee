use std::sync::Arc;

use serde::Serialize;

use super::{ExceptionModel, FaultModel, FieldValue, ThreadWait};
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// How completely the references of a stack are known.
    pub enum StackCoverage {
        /// Every frame, and what each holds.
        Precise = "precise",
        /// Some frames, or what some hold, are not known: parts of the stack count word by word.
        Partial = "partial",
        /// No frame is known: the whole stack counts word by word.
        Conservative = "conservative",
        /// Neither frames nor stack are in the dump.
        Unavailable = "unavailable",
    }
}

named_enum! {
    /// Kinds of frames.
    pub enum StackFrameKind {
        /// A method.
        Managed = "managed",
        /// A frame that the runtime left where managed code calls into it or into native code.
        Runtime = "runtime",
    }
}

named_enum! {
    /// What a managed frame executes.
    pub enum FramePart {
        /// The method itself.
        Body = "body",
        /// A catch, finally or fault block, which the runtime calls while it handles an exception.
        Handler = "handler",
        /// The filter of an exception handler.
        Filter = "filter",
    }
}

named_enum! {
    /// What made the code of a method.
    pub enum CodeKind {
        /// The JIT, in the process.
        Jit = "jit",
        /// Compiled ahead of time, in the module's image.
        ReadyToRun = "ready-to-run",
    }
}

named_enum! {
    /// How far the JIT optimized a method's code, in the terms of tiered compilation; in brackets those of SOS.
    pub enum CodeTier {
        /// Compiled quickly, hardly optimized; replaced once it runs often (`QuickJitted`).
        Tier0 = "tier0",
        /// The same, and counts how often each part runs (`QuickJittedInstrumented`).
        Tier0Instrumented = "tier0-instrumented",
        /// Fully optimized, after it ran often (`OptimizedTier1`).
        Tier1 = "tier1",
        /// Fully optimized while it ran in a loop: on-stack replacement (`OptimizedTier1OSR`).
        Tier1Osr = "tier1-osr",
        /// Optimized, and counts how often each part runs: follows ReadyToRun code (`OptimizedTier1Instrumented`).
        Tier1Instrumented = "tier1-instrumented",
        /// Optimized at once and never replaced: takes no part in tiering (`Optimized`).
        Optimized = "optimized",
        /// Not optimized and never replaced: `MethodImplOptions.NoOptimization`, or an assembly built for debugging (`MinOptJitted`).
        MinOpts = "min-opts",
    }
}

/// `stacks`: what the managed threads were doing.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StacksReport {
    /// Number of managed threads with a stack.
    pub total: u64,
    /// The crashed thread first, then in the order of the runtime's list; `null` with `--merge`.
    pub threads: Option<Vec<ThreadStackModel>>,
    /// With `--top`: number of threads that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Where the crashed thread was, with its native frames: those above its managed ones, or all of a native thread. `null` without a
    /// crash, and where that thread was not asked for.
    pub fault: Option<FaultModel>,
    /// With `--merge`: threads with equal frames folded, outermost frame first, most threads first.
    pub merged: Option<Vec<MergedFrame>>,
    /// Whether screens show the frames of the framework that only lead through (`--framework`).
    #[serde(skip)]
    pub framework: bool,
}

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
    /// Whether this thread crashed.
    pub crashed: bool,
    /// How completely its references are known.
    pub coverage: StackCoverage,
    /// Why they are not known precisely, where they are not.
    pub gaps: Vec<StackGap>,
    /// What it waits for; `null` if it is not blocked, or unless asked for (`--waits`).
    pub waits_for: Option<Box<ThreadWait>>,
    /// Exception in flight.
    pub exception: Option<Arc<ExceptionModel>>,
    /// Its frames, innermost first.
    pub frames: Vec<StackFrameModel>,
    /// Recursion: cycles among the frames that follow each other ten times or more, innermost first.
    pub repeats: Vec<StackRepeat>,
}

/// Frames that repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackRepeat {
    /// Place of the innermost one in `frames`, from 0.
    pub first: u64,
    /// Frames of the cycle.
    pub frames: u64,
    /// How often they follow each other.
    pub times: u64,
    /// The methods of the cycle, callers first: `Lab.Tree.Visit → Lab.Tree.Each`.
    pub cycle: Name,
}

/// A part of a stack whose references are not known precisely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackGap {
    /// Its start.
    pub from: Option<Addr>,
    /// Its end; `null` for the end of the stack.
    pub to: Option<Addr>,
    /// Whether frames may be missing there; if not, only what a listed frame holds is not known.
    pub loses_frames: bool,
    /// Why.
    pub reason: String,
    /// The module whose file would help (`--modules`).
    pub module: Option<String>,
}

/// A frame.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackFrameModel {
    /// Kind.
    pub kind: StackFrameKind,
    /// Instruction pointer: a return address, but for the innermost frame. Of a runtime frame, that of the code which called it
    /// last.
    pub ip: Option<Addr>,
    /// Stack pointer; of a runtime frame, its address.
    pub sp: Addr,
    /// Method, as the runtime's debugging interface writes it, and ClrMD after it:
    /// ``Lab.Gen`1[[System.__Canon, System.Private.CoreLib]].Add(System.Span`1<Byte>)``; of a runtime frame, the one that it is about
    /// to call, or whose native code runs: an import, or a method that the runtime implements. `null` if unknown.
    pub method: Option<Name>,
    /// The method for people: `Lab.Gen<System.String>.Add(System.Span<Byte>)`. Exact instances where the frame tells them;
    /// compiler-made names are led back to the method in the source.
    pub display: Option<Name>,
    /// Address of the `MethodDesc`.
    pub method_desc: Option<Addr>,
    /// File name of the declaring module.
    pub module: Option<Name>,
    /// Offset of the instruction pointer in the method's code, in bytes.
    pub offset: Option<u64>,
    /// Path of the source file when it was compiled; `null` without a PDB that tells it.
    pub file: Option<Name>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// What the frame executes. `null` for a runtime frame.
    pub part: Option<FramePart>,
    /// What made the code. `null` for a runtime frame.
    pub code: Option<CodeKind>,
    /// How far the JIT optimized the code; `null` for other code, and if it cannot be told.
    pub tier: Option<CodeTier>,
    /// Type of a runtime frame: `InlinedCallFrame`.
    pub frame_type: Option<Name>,
    /// Address of a runtime frame.
    pub address: Option<Addr>,
    /// Whether an exception has left the frame, or a handler of the method reports what it holds.
    pub unwound: bool,
    /// The references that it holds; `null` unless asked for.
    pub roots: Option<Vec<StackRootModel>>,
    /// Its arguments, `this` first; `null` unless asked for, for a runtime frame, and where the method's signature cannot be read.
    pub arguments: Option<Vec<ArgumentModel>>,
    /// Its local variables, by slot; `null` unless asked for, for a runtime frame, and where the signature of the locals cannot be read. With a
    /// PDB, those that have a name at the instruction.
    pub locals: Option<Vec<ArgumentModel>>,
}

impl StackFrameModel {
    /// A frame of which nothing else is known.
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

/// An argument or a local variable of a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ArgumentModel {
    /// Name, or `this`; `null` where the metadata has none. Of a local variable, that in the PDB, or `local_` and its slot without one.
    pub name: Option<String>,
    /// Declared type; with `&`, an address of such a value.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Where the method's debug info says that it is at this instruction, as in a disassembly: `[rbp-0x8]`, `rdi`; `null` if it says
    /// nothing.
    pub location: Option<String>,
    /// Its value there; `null` if it cannot be told.
    pub value: Option<FieldValue>,
    /// Why it cannot be told.
    pub reason: Option<String>,
}

/// A reference that a frame holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StackRootModel {
    /// Where, as in a disassembly: `[rbp-0x48]`, `rbx`.
    pub location: String,
    /// The stack slot: for a register, where a callee saved it. `null` if it still is in the thread's register.
    pub slot: Option<Addr>,
    /// The object; `null` if the slot is not in the dump.
    pub object: Option<Addr>,
    /// Name of its type; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Whether the slot points into the object.
    pub interior: bool,
    /// Whether it keeps the object from being moved.
    pub pinned: bool,
    /// Whether it is known to be a reference, rather than a word that looks like one.
    pub precise: bool,
}

/// How often a cycle is repeated on the stacks of several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RepeatTimes {
    /// The fewest times of a thread.
    pub least: u64,
    /// The most times of a thread.
    pub most: u64,
}

/// A frame of folded stacks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MergedFrame {
    /// Its depth, from 0.
    pub depth: u32,
    /// Number of threads below.
    pub threads: u64,
    /// Managed ids of the threads for which this is the innermost frame.
    pub managed_ids: Vec<u32>,
    /// The method for people; of a runtime frame its type and the method, if it has one; of a cycle its methods, callers first.
    pub frame: Name,
    /// How often the cycle is repeated; `null` for a frame.
    pub times: Option<RepeatTimes>,
    /// The method as in the frames of `threads`; `null` for a cycle, and for a runtime frame without one.
    pub method: Option<Name>,
    /// Address of the `MethodDesc`; `null` likewise.
    pub method_desc: Option<Addr>,
    /// Module of the method.
    pub module: Option<Name>,
    /// Path of the source file when it was compiled; `null` without a PDB that has the line, and where the threads are at several lines.
    pub file: Option<Name>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
}
