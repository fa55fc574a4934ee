//! Explicit frames on the stack, and the state that they save.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `Frame` (frames.h).
    Frame {
        /// Address of the next outer frame; all bits are set in the last frame.
        Next: Addr,
    }

    /// `InlinedCallFrame` (frames.h): a P/Invoke that the JIT inlined into the calling method.
    InlinedCallFrame {
        CallSiteSP: Addr,
        /// Null while no call is active.
        CallerReturnAddress: Addr,
        CalleeSavedFP: Inline,
        /// The called method with flags in the low bits, or another value with bit 0 set.
        Datum: Word,
    }

    /// `FramedMethodFrame` (frames.h): a call that goes through a transition block of the runtime.
    FramedMethodFrame {
        TransitionBlockPtr: Addr,
        MethodDesc = "MethodDesc|MethodDescPtr": Addr,
    }

    /// `TransitionBlock` (callingconvention.h).
    TransitionBlock {
        ReturnAddress: Addr,
        CalleeSavedRegisters: Inline,
        ArgumentRegisters: Inline,
    }

    /// `CalleeSavedRegisters` (cgencpu.h). The fields are registers.
    CalleeSavedRegisters {}

    /// `ArgumentRegisters` (cgencpu.h).
    ArgumentRegisters {}

    /// `SoftwareExceptionFrame` (frames.h): an exception that the runtime throws.
    SoftwareExceptionFrame {
        /// A `CONTEXT`.
        TargetContext: Inline,
        /// Pointers to the saved callee-saved registers, one for each.
        IntegerContextPointers: Inline,
    }

    /// `FaultingExceptionFrame` (frames.h).
    FaultingExceptionFrame {
        /// A `CONTEXT`.
        TargetContext: Inline,
    }

    /// `ResumableFrame` (frames.h): a thread that was redirected at an arbitrary instruction.
    ResumableFrame {
        /// A pointer to a `CONTEXT`.
        TargetContextPtr: Addr,
    }

    /// `HijackFrame` (frames.h): a thread whose return address was hijacked.
    HijackFrame {
        ReturnAddress: Addr,
        /// A pointer to `HijackArgs`.
        HijackArgsPtr: Addr,
    }

    /// `HijackArgs` (cgencpu.h). The fields that are not listed here are registers.
    HijackArgs {
        CalleeSavedRegisters: Inline,
        Rsp: Addr,
    }

    /// .NET 8 and 9: `HelperMethodFrame` (frames.h): a call of a native helper of the runtime (FCall).
    HelperMethodFrame {
        MethodDesc: Addr,
        Attributes: u32,
        /// The entry point of the helper.
        FCallEntry: Addr,
        MachineState: Inline,
        /// Pointers to protected references, or one pointer to an array of protected references.
        Slots: Inline,
        SlotCount: u32,
    }

    /// .NET 8 and 9: `LazyMachState` (gmscpu.h): the registers of the helper's caller, valid once the runtime has unwound to the caller.
    MachineState {
        Rip: Addr,
        Rsp: Addr,
        /// Callee-saved registers at the entry of the helper.
        Captured: Inline,
        /// Pointers to the callee-saved registers.
        Pointers: Inline,
        /// Null until the runtime has unwound to the caller.
        ReturnAddress: Addr,
        /// Values of the registers that have no stack location.
        Unwound: Inline,
        CaptureRip: Addr,
        CaptureRsp: Addr,
    }

    /// .NET 8 and 9: `ECHash` (ecall.h): an FCall, a native function that managed code calls.
    ECHash {
        Next: Addr,
        Implementation: Addr,
        MethodDesc: Addr,
    }
}
