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
