//! Explicit frames of the stack, and what they keep.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `Frame` (frames.h).
    Frame {
        /// All ones in the last one.
        Next: Addr,
    }

    /// `InlinedCallFrame` (frames.h): a call of native code, made by the method around it.
    InlinedCallFrame {
        CallSiteSP: Addr,
        /// Null between calls.
        CallerReturnAddress: Addr,
        CalleeSavedFP: Inline,
        /// The method called, with marks in its low bits, or something else with bit 0 set.
        Datum: Word,
    }

    /// `FramedMethodFrame` (frames.h): a call that the runtime prepares.
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

    /// `CalleeSavedRegisters` (cgencpu.h): its fields are registers.
    CalleeSavedRegisters {}

    /// `ArgumentRegisters` (cgencpu.h).
    ArgumentRegisters {}

    /// `SoftwareExceptionFrame` (frames.h): an exception that the runtime throws.
    SoftwareExceptionFrame {
        /// `CONTEXT`.
        TargetContext: Inline,
        /// Pointers to the callee-saved registers, one for each.
        IntegerContextPointers: Inline,
    }

    /// `FaultingExceptionFrame` (frames.h).
    FaultingExceptionFrame {
        /// `CONTEXT`.
        TargetContext: Inline,
    }

    /// `ResumableFrame` (frames.h): a thread stopped at any instruction.
    ResumableFrame {
        /// `CONTEXT`.
        TargetContextPtr: Addr,
    }

    /// `HijackFrame` (frames.h): a thread whose return was diverted.
    HijackFrame {
        ReturnAddress: Addr,
        /// `HijackArgs`.
        HijackArgsPtr: Addr,
    }

    /// `HijackArgs` (cgencpu.h). Further fields are registers.
    HijackArgs {
        CalleeSavedRegisters: Inline,
        Rsp: Addr,
    }

    /// .NET 8 and 9: `HelperMethodFrame` (frames.h), a call of a native helper of the runtime.
    HelperMethodFrame {
        MethodDesc: Addr,
        Attributes: u32,
        /// The helper.
        FCallEntry: Addr,
        MachineState: Inline,
        /// Pointers to protected references, or one to an array of them.
        Slots: Inline,
        SlotCount: u32,
    }

    /// .NET 8 and 9: `LazyMachState` (gmscpu.h), the registers of the helper's caller, once they are known.
    MachineState {
        Rip: Addr,
        Rsp: Addr,
        /// Callee-saved registers when the helper began.
        Captured: Inline,
        /// Pointers to the callee-saved registers.
        Pointers: Inline,
        /// Null as long as the registers are not known.
        ReturnAddress: Addr,
        /// Values of the registers without a place.
        Unwound: Inline,
        CaptureRip: Addr,
        CaptureRsp: Addr,
    }

    /// .NET 8 and 9: `ECHash` (ecall.h), a native function that managed code calls.
    ECHash {
        Next: Addr,
        Implementation: Addr,
        MethodDesc: Addr,
    }
}
