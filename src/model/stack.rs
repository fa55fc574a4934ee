//! Kinds of stack frames, tiers of code, and arguments of methods.

use serde::Serialize;

use super::FieldValue;
use crate::base::named_enum;

named_enum! {
    /// Kinds of frames.
    pub enum StackFrameKind {
        /// A frame of a managed method.
        Managed = "managed",
        /// A `Frame` structure of the runtime, which marks a call from managed code into the runtime or into native code.
        Runtime = "runtime",
    }
}

named_enum! {
    /// Optimization tier of a method's code, in the terms of tiered compilation; in parentheses SOS's terms.
    pub enum CodeTier {
        /// Compiled quickly with few optimizations; replaced when the method is called often (`QuickJitted`).
        Tier0 = "tier0",
        /// Like `tier0`, but the code also counts how often each part runs (`QuickJittedInstrumented`).
        Tier0Instrumented = "tier0-instrumented",
        /// Fully optimized, for a method that is called often (`OptimizedTier1`).
        Tier1 = "tier1",
        /// Fully optimized, and replaced while a loop ran: on-stack replacement (`OptimizedTier1OSR`).
        Tier1Osr = "tier1-osr",
        /// Optimized code that also counts how often each part runs; it replaces ReadyToRun code (`OptimizedTier1Instrumented`).
        Tier1Instrumented = "tier1-instrumented",
        /// Optimized at the first call and never replaced (`Optimized`).
        Optimized = "optimized",
        /// Not optimized and never replaced: `MethodImplOptions.NoOptimization`, or an assembly built for debugging (`MinOptJitted`).
        MinOpts = "min-opts",
    }
}

/// An argument or a local variable of a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ArgumentModel {
    /// Name, or `this`; `null` if the metadata has none. For a local variable, the name in the PDB, or else `local_` and its slot.
    pub name: Option<String>,
    /// Declared type, followed by `&` for the address of a value.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Location at this instruction according to the method's debug info, written as in a disassembly: `[rbp-0x8]`, `rdi`; `null` if absent.
    pub location: Option<String>,
    /// Value at that location; `null` if it cannot be determined.
    pub value: Option<FieldValue>,
    /// Why the value cannot be determined.
    pub reason: Option<String>,
}
