//! Unwinding native code of the runtime's own image, on x64: from the place where it entered its frame chain back to managed code.

mod eh_frame;
mod pdata;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod tests;

use super::{CodeBytes, Registers, UnwindError};
use crate::base::Arch;
use crate::memory::{Image, ImageFormat};

/// The caller's registers, for `registers` inside of `image`. Those that a callee does not preserve are unknown.
///
/// `leaf` tells that the registers are the thread's own. Otherwise the instruction pointer is a return address, which may lie behind
/// the function that called.
///
/// # Errors
/// [`UnwindError::Read`] where the image's tables or a part of the stack are absent, [`UnwindError::Invalid`] where nothing describes the
/// function, the description is not well-formed, needs what is unknown, or does not lead up the stack, and for other architectures.
pub(crate) fn step(bytes: &CodeBytes, image: &Image, registers: &Registers, leaf: bool) -> Result<Registers, UnwindError> {
    let invalid = |what| UnwindError::invalid(registers.ip, what);
    if registers.arch() != Arch::X64 {
        return Err(invalid("native code of an architecture that is not unwound"));
    }
    let table = image.unwind_table(bytes.memory())?.ok_or(invalid("an image without unwind information"))?;
    match image.format {
        ImageFormat::Elf => eh_frame::step(bytes, table, registers, leaf),
        ImageFormat::Pe => pdata::step(bytes, image.base, table, registers, leaf),
    }
}

/// For the fuzz target: unwinds by tables of both formats at `base`, in an image that begins there, and measures how far the stack
/// pointer moved.
#[cfg(feature = "internals")]
pub fn try_native(
    memory: &std::sync::Arc<crate::memory::Memory>,
    (base, len): (crate::base::Addr, u64),
    (ip, sp, leaf): (u16, u16, bool),
) -> [Option<u64>; 2] {
    let bytes = CodeBytes::new(memory);
    let Some(registers) = super::unwind::try_registers(Arch::X64, base, ip, sp) else { return [None; 2] };
    let table = crate::base::AddrRange::new(base, base.plus(len));
    let results = [eh_frame::step(&bytes, table, &registers, leaf), pdata::step(&bytes, base, table, &registers, leaf)];
    results.map(|caller| caller.ok()?.sp()?.since(registers.sp()?))
}
