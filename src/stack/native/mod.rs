//! Unwinds native code of images on x64, by `.eh_frame` or `.pdata`.

mod eh_frame;
mod expression;
mod images;
mod numbers;
mod pdata;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub(crate) use images::NativeImages;

use super::{CodeBytes, CostedCache, Registers, UnwindError};
use crate::base::reads;
use crate::base::{AddrRange, Arch};
use crate::memory::{Image, ImageFormat};

/// A cache of `.eh_frame` rows by code address. Most look-ups are repeated, because native frames of a process are at few addresses.
type Rows = CostedCache<Result<eh_frame::Row, UnwindError>>;

/// The caller of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The registers of the caller.
    pub(crate) registers: Registers,
    /// Whether a signal interrupted the caller. It may then be at any instruction, and the signal frame has all of its registers.
    pub(crate) interrupted: bool,
}

/// Unwinds the functions of an image.
#[derive(Debug)]
pub(crate) struct Native {
    /// The image; `None` if it is unknown.
    image: Option<Image>,
    /// Address range of the image's unwind information, once it has been found.
    table: OnceLock<AddrRange>,
    rows: Rows,
}

impl Native {
    /// Prepares unwinding of `image` in a dump of `dump_bytes` bytes.
    pub(crate) fn new(image: Option<Image>, dump_bytes: u64) -> Native {
        Native { image, table: OnceLock::new(), rows: CostedCache::new(dump_bytes) }
    }

    /// The image.
    pub(crate) const fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// Unwinds one frame: returns the caller for `registers` inside the image. Registers that a callee does not preserve are unknown.
    ///
    /// If `leaf`, the registers are the registers of the thread or of code that a signal interrupted. Otherwise the instruction pointer is a
    /// return address, which may be past the end of the function that made the call.
    ///
    /// # Errors
    /// [`UnwindError::Read`] if the image's tables or a part of the stack are absent. [`UnwindError::Invalid`] if the unwind information is missing
    /// or malformed, needs unknown registers, or does not advance the stack pointer; also if the architecture is not x64, and if the image is
    /// unknown.
    pub(crate) fn step(&self, bytes: &CodeBytes, registers: &Registers, leaf: bool) -> Result<Caller, UnwindError> {
        let invalid = |what| UnwindError::invalid(registers.ip, what);
        let image = self.image().ok_or(invalid("native code of a runtime whose image is unknown"))?;
        if registers.arch() != Arch::X64 {
            return Err(invalid("native code of an unsupported architecture"));
        }
        let table = match self.table.get() {
            Some(table) => *table,
            None => {
                let table = image.unwind_table(bytes.memory())?.ok_or(invalid("an image without unwind information"))?;
                *self.table.get_or_init(|| table)
            }
        };
        match image.format {
            ImageFormat::Elf => eh_frame::step(bytes, &self.rows, table, registers, leaf),
            ImageFormat::Pe => {
                let registers = pdata::step(bytes, image.base, table, registers, leaf)?;
                Ok(Caller { registers, interrupted: false })
            }
        }
    }
}

/// For the fuzz target: unwinds by tables of both formats at `base`, in an image that begins there. Returns the distances that the stack
/// pointer moved.
#[cfg(feature = "internals")]
pub fn try_native(
    memory: &std::sync::Arc<crate::memory::Memory>,
    (base, len): (crate::base::Addr, u64),
    (ip, sp, leaf): (u16, u16, bool),
) -> [Option<u64>; 2] {
    let bytes = CodeBytes::new(memory);
    let Some(registers) = super::unwind::try_registers(Arch::X64, base, ip, sp) else { return [None; 2] };
    let table = crate::base::AddrRange::of(base, len);
    let dwarf = eh_frame::step(&bytes, &Rows::new(0), table, &registers, leaf).map(|caller| caller.registers);
    let results = [dwarf, pdata::step(&bytes, base, table, &registers, leaf)];
    results.map(|caller| caller.ok()?.sp()?.since(registers.sp()?))
}

/// For the fuzz target: unwinds up to `most` frames by the table at `base`, twice with one cache. Returns the number of frames of each
/// walk, and the number of `reads` that it took.
#[cfg(feature = "internals")]
pub fn try_eh_frame(
    memory: &std::sync::Arc<crate::memory::Memory>,
    (base, len): (crate::base::Addr, u64),
    (ip, sp, leaf): (u16, u16, bool),
    (most, reads): (u64, u64),
) -> [(u64, u64); 2] {
    let (bytes, rows, table) = (CodeBytes::new(memory), Rows::new(0), AddrRange::of(base, len));
    let walk = || {
        let (mut frames, mut left, mut leaf) = (0u64, reads, leaf);
        let mut next = super::unwind::try_registers(Arch::X64, base, ip, sp);
        reads::taking(&mut left, || {
            while let Some(registers) = next.take().filter(|_| frames < most) {
                next = eh_frame::step(&bytes, &rows, table, &registers, leaf).ok().map(|caller| caller.registers);
                frames = frames.saturating_add(u64::from(next.is_some()));
                leaf = false;
            }
        });
        (frames, reads.saturating_sub(left))
    };
    [walk(), walk()]
}
