//! The registers in a `CONTEXT` of a frame. It has the layout of Windows on all systems (winnt.h, pal.h).

use super::super::{CodeBytes, Registers, Saved, StackError};
use crate::base::{Addr, Arch, Os};

/// Offsets in a `CONTEXT` of register 0, which the other registers follow, and of the instruction pointer.
const X64: (u64, u64) = (0x78, 0xf8);
const ARM64: (u64, u64) = (0x08, 0x108);

/// The registers in the `CONTEXT` at `at`.
pub(super) fn read(bytes: &CodeBytes, (arch, os): (Arch, Os), at: Addr) -> Result<Registers, StackError> {
    let mut registers =
        Registers::new(arch).map(|r| r.on(os)).ok_or(StackError::Unsupported { at, what: "a context of another architecture" })?;
    // Both architectures store registers in the order of their numbers: on arm64, fp, lr and sp follow x28.
    let (first, ip) = if arch == Arch::X64 { X64 } else { ARM64 };
    registers.ip = Addr(bytes.u64(at.plus(ip))?);
    let sp = registers.sp_number();
    for number in 0..registers.count() {
        let place = at.plus(first).element(u64::from(number), 8);
        let value = Some(bytes.u64(place)?);
        registers.set(number, Saved { value, place: (number != sp).then_some(place) });
    }
    Ok(registers)
}
