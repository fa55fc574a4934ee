//! Unwinds managed code, and code of PE images, by Windows-style unwind information, which .NET uses on every system.
//!
//! Sources: Microsoft's documents on x64 and ARM64 exception handling; `src/coreclr/unwinder` of the .NET runtime.

mod arm64;
#[cfg(test)]
mod arm64_tests;
#[cfg(test)]
mod tests;
mod x64;

use super::{CodeBytes, Registers};
use crate::base::{Addr, Arch};
use crate::memory::ReadError;

/// An entry of a function table: a part of a function, and its unwind information. All offsets are relative to a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionEntry {
    /// Start of the function part.
    pub(crate) begin: u32,
    /// End of the function part; present in the 12-byte entries of x64, not in the 8-byte entries of arm64.
    pub(crate) end: Option<u32>,
    /// Offset of the unwind information; on arm64, packed unwind information if the low bits are not 0.
    pub(crate) unwind: u32,
}

/// Why a frame could not be unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnwindError {
    /// Unwind information, or the stack, is not in the dump.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Unwind information is malformed, or does not fit the registers.
    #[error("{what} at {at}")]
    Invalid {
        /// Address of the unwind information or code.
        at: Addr,
        /// The error.
        what: &'static str,
    },
}

impl UnwindError {
    /// An error about `what` at `at`.
    pub(crate) const fn invalid(at: Addr, what: &'static str) -> UnwindError {
        UnwindError::Invalid { at, what }
    }
}

/// Unwinds one frame: returns the caller's registers for `registers` inside the function of `entry`. Registers that a callee does not
/// preserve are unknown.
///
/// If `leaf`, execution was stopped or interrupted at the instruction pointer, which may be anywhere in the function. Otherwise the instruction
/// pointer is a return address.
///
/// # Errors
/// [`UnwindError::Read`] if unwind information or a part of the stack is absent, [`UnwindError::Invalid`] if the information is
/// malformed, needs a register that is unknown, or does not lead up the stack.
pub(crate) fn unwind(
    bytes: &CodeBytes,
    base: Addr,
    entry: &FunctionEntry,
    registers: &Registers,
    leaf: bool,
) -> Result<Registers, UnwindError> {
    match registers.arch() {
        Arch::X64 => x64::unwind(bytes, base, entry, registers, leaf),
        _ => arm64::unwind(bytes, base, entry, registers),
    }
}

/// The address of the GC info of the ReadyToRun method with the main part `entry`. The GC info follows the unwind information and the RVA of the
/// personality routine, which is always present.
///
/// Source: `ReadyToRunJitManager::GetGCInfoToken` and `GetUnwindDataBlob` (`codeman.cpp`).
///
/// # Errors
/// [`UnwindError::Read`] if the unwind information is absent, [`UnwindError::Invalid`] for the packed form of arm64, which GC info cannot
/// follow, and for other architectures.
pub(crate) fn gc_info_after(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry, arch: Arch) -> Result<Addr, UnwindError> {
    match arch {
        Arch::X64 => x64::end(bytes, base.plus(entry.unwind.into())),
        Arch::Arm64 => arm64::end(bytes, base, entry),
        _ => Err(UnwindError::invalid(base, "ReadyToRun code of an unsupported architecture")),
    }
}

/// The end of the function of `entry` from its unwind information, for function tables without ends (arm64).
pub(crate) fn end_of(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry) -> Result<Addr, UnwindError> {
    Ok(base.plus(entry.begin.into()).plus(arm64::instructions(bytes, base, entry)?.saturating_mul(4)))
}

/// Registers for fuzz targets: register n has the address of word n at `base`. `ip` and `sp` are offsets from `base`.
#[cfg(feature = "internals")]
pub(super) fn try_registers(arch: Arch, base: Addr, ip: u16, sp: u16) -> Option<Registers> {
    let mut registers = Registers::new(arch)?;
    for number in 0..registers.count() {
        let value = base.element(number.into(), 8).0;
        registers.set(number, super::Saved { value: Some(value), place: None });
    }
    registers.ip = base.plus(ip.into());
    registers.set_sp(base.plus(sp.into()));
    Some(registers)
}

/// For the fuzz target: unwinds a function that begins at `base` and has `word` as its unwind information. Returns the distance that the
/// stack pointer moved.
#[cfg(feature = "internals")]
pub fn try_unwind(
    memory: &std::sync::Arc<crate::memory::Memory>,
    (arch, base, word): (Arch, Addr, u32),
    (ip, sp, leaf): (u16, u16, bool),
) -> Option<u64> {
    let bytes = CodeBytes::new(memory);
    let registers = try_registers(arch, base, ip, sp)?;
    let entry = FunctionEntry { begin: 0, end: Some(0x8000), unwind: word };
    let _ = gc_info_after(&bytes, base, &entry, arch);
    unwind(&bytes, base, &entry, &registers, leaf).ok()?.sp()?.since(registers.sp()?)
}
