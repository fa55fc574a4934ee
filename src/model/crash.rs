//! Location of a crash, and the report that a NativeAOT program writes into its memory when it ends itself.

use serde::Serialize;

use crate::base::{Addr, Name};

/// The report that a NativeAOT program writes into its memory when it ends itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CrashReport {
    /// Version of the runtime.
    pub runtime_version: Option<String>,
    /// Why the program ended: `unhandled exception`, `fail fast`, `internal error`; `null` for other reasons.
    pub reason: Option<String>,
    /// OS id of the thread that ended the program.
    pub thread: Option<u64>,
    /// Message.
    pub message: Option<String>,
    /// The unhandled exception.
    pub exception: Option<CrashException>,
}

/// An exception in a [`CrashReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CrashException {
    /// Address of the object.
    pub address: Option<Addr>,
    /// Type.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// HRESULT.
    pub hresult: Option<i32>,
    /// Message.
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
    /// Method with its parameters; `null` if the program does not have its name.
    pub method: Option<String>,
}

/// Location of the crash that ended the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FaultModel {
    /// OS id of the thread.
    pub thread: Option<u32>,
    /// Managed id of the thread; `null` for a native thread.
    pub managed_id: Option<u32>,
    /// Signal or exception.
    pub signal: String,
    /// Cause of the signal: `SEGV_MAPERR`, `SI_TKILL`; `null` on Windows, and if the dump does not record it.
    pub code: Option<String>,
    /// Whether the processor raised the signal or exception at an instruction; otherwise a program did.
    pub hardware: bool,
    /// Whether native code crashed: by a processor fault, on a native thread, or by a signal from a function that was called through
    /// P/Invoke.
    pub native: bool,
    /// Address that the instruction accessed; `null` if none is recorded.
    pub address: Option<Addr>,
    /// Whether the first frame raised the signal or exception. Otherwise the first frame is in the signal handler, because the dump does
    /// not have the interrupted context.
    pub at_fault: bool,
    /// Native frames, innermost first.
    pub frames: Vec<NativeFrameModel>,
    /// Why the native frames end: `managed code`, `the outermost frame`, or what is missing from the dump.
    pub end: Option<String>,
    /// Whether the stack of the thread overflowed, according to the runtime's exception or the system's error.
    pub stack_overflow: bool,
    /// The P/Invoke method whose native function the thread is in.
    pub pinvoke: Option<Name>,
    /// Stack pointer of the managed method that called the native frames; `null` if no managed method did.
    pub managed_sp: Option<Addr>,
}

/// A frame of native code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NativeFrameModel {
    /// Instruction pointer: a return address, except in the first frame.
    pub ip: Addr,
    /// Stack pointer.
    pub sp: Option<Addr>,
    /// File name of the image; `null` outside of images.
    pub module: Option<Name>,
    /// Offset of `ip` from the base of the image, in bytes.
    pub offset: Option<u64>,
    /// The last export at or below `ip`. It is another function if the function at `ip` is not exported.
    pub export: Option<String>,
    /// Offset of `ip` from the export, in bytes.
    pub export_offset: Option<u64>,
}

/// Largest distance in bytes from an export at which the export is shown. Few functions are larger, so a more distant address is probably
/// in another function.
const MOST_OF_A_FUNCTION: u64 = 1 << 14;

impl NativeFrameModel {
    fn is_in_c_library(&self) -> bool {
        let libraries = ["libc.so", "libc-", "libpthread", "ld-musl", "libc.musl"];
        self.module.as_deref().is_some_and(|name| libraries.iter().any(|library| name.starts_with(library)))
    }

    /// Text such as `libc.so.6+0x152a89 (strlen+0x19)`, or the address outside of images.
    pub(crate) fn place(&self) -> String {
        let Some((module, offset)) = self.module.as_ref().zip(self.offset) else { return self.ip.to_string() };
        let near = self.export_offset.filter(|at| *at <= MOST_OF_A_FUNCTION);
        let distance = |at: u64| if at == 0 { String::new() } else { format!("+{at:#x}") };
        let export = self.export.as_ref().zip(near).map(|(name, at)| format!(" (nearest export {name}{})", distance(at)));
        format!("{module}+{offset:#x}{}", export.unwrap_or_default())
    }
}

impl FaultModel {
    /// Text such as `SIGSEGV (SEGV_MAPERR) at address 0x10, in libc.so.6+0x152a89 (nearest export strlen+0x19)`.
    pub(crate) fn words(&self) -> String {
        let code = self.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
        let address = self.address.map(|address| format!(" at address {address}")).unwrap_or_default();
        let mut frames = self.frames.iter().filter(|_| self.native && self.at_fault);
        // Programs send signals through the C library, whose frames are skipped.
        let (verb, frame) = if self.hardware { ("in", frames.next()) } else { ("sent by", frames.find(|frame| !frame.is_in_c_library())) };
        let place = frame.map(|frame| format!(", {verb} {}", frame.place())).unwrap_or_default();
        let overflow = if self.stack_overflow && !self.signal.contains(FaultModel::OVERFLOW) { ", stack overflow" } else { "" };
        format!("{}{code}{address}{place}{overflow}", self.signal)
    }

    /// The text in signals for which [`FaultModel::stack_overflow`] is set.
    const OVERFLOW: &str = "stack overflow";

    /// Whether the native frames lead to managed code.
    pub(crate) fn ends_in_managed_code(&self) -> bool {
        self.end.as_deref() == Some(FaultModel::MANAGED)
    }

    /// [`FaultModel::end`] of native frames that lead to managed code.
    pub(crate) const MANAGED: &str = "managed code";
}
