//! Unwinds code of PE images by the function table in `.pdata` and the unwind information that it leads to.
//!
//! Source: "x64 exception handling" of Microsoft's documentation.

use crate::base::{Addr, AddrRange};
use crate::stack::{CodeBytes, FunctionEntry, Registers, Saved, UnwindError, unwind};

/// Size in bytes of an entry.
const ENTRY: u64 = 12;
/// Flag in the unwind field of an entry: the field points to another entry (`RUNTIME_FUNCTION_INDIRECT`).
const INDIRECT: u32 = 1;

pub(super) fn step(bytes: &CodeBytes, base: Addr, table: AddrRange, registers: &Registers, leaf: bool) -> Result<Registers, UnwindError> {
    let outside = UnwindError::invalid(registers.ip, "instruction pointer outside its image");
    // A return address may be past the end of its function, if the last instruction is a call that does not return.
    let within = registers.ip.minus(u64::from(!leaf)).and_then(|pc| pc.since(base)).ok_or(outside)?;
    let rva = u32::try_from(within).map_err(|_| outside)?;
    match find(bytes, table, rva)? {
        Some(entry) if entry.unwind & INDIRECT != 0 => {
            let entry = read(bytes, base.plus(u64::from(entry.unwind & !INDIRECT)))?;
            unwind(bytes, base, &entry, registers, leaf)
        }
        Some(entry) => unwind(bytes, base, &entry, registers, leaf),
        None => frameless(bytes, registers),
    }
}

pub(super) fn read(bytes: &CodeBytes, at: Addr) -> Result<FunctionEntry, UnwindError> {
    Ok(FunctionEntry { begin: bytes.u32(at)?, end: Some(bytes.u32(at.plus(4))?), unwind: bytes.u32(at.plus(8))? })
}

/// The entry of the function that contains `rva`.
fn find(bytes: &CodeBytes, table: AddrRange, rva: u32) -> Result<Option<FunctionEntry>, UnwindError> {
    let (mut low, mut high) = (0, table.len() / ENTRY);
    while low < high {
        let middle = low.midpoint(high);
        let entry = read(bytes, table.start.element(middle, ENTRY))?;
        if rva < entry.begin {
            high = middle;
        } else if entry.end.is_some_and(|end| end <= rva) {
            low = middle.saturating_add(1);
        } else {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// The caller of a function without an entry, which neither moves the stack pointer nor saves registers.
fn frameless(bytes: &CodeBytes, registers: &Registers) -> Result<Registers, UnwindError> {
    let sp = registers.sp().ok_or(UnwindError::invalid(registers.ip, "unknown stack pointer"))?;
    let mut caller = registers.preserved();
    caller.ip = Addr(bytes.u64(sp)?);
    let value = sp.0.checked_add(8).ok_or(UnwindError::invalid(sp, "frame beyond the end of memory"))?;
    caller.set(caller.sp_number(), Saved { value: Some(value), place: None });
    Ok(caller)
}
