//! x64: `UNWIND_INFO` and its codes, versions 1 and 2, with `UWOP_SET_FPREG_LARGE` of the .NET runtime.
//!
//! Source: "x64 exception handling" of Microsoft's documentation; `unwinder/amd64/unwinder.cpp` and `inc/win64unwind.h` of the runtime.

use std::borrow::Cow;

use super::{FunctionEntry, UnwindError};
use crate::base::Addr;
use crate::stack::{CodeBytes, Registers, Saved};

/// Maximum number of chained entries, as in the runtime.
const CHAIN_LIMIT: usize = 32;
/// Maximum number of registers that an epilogue pops: x64 has 16.
const MAX_POPS: usize = 16;
/// Number of codes that are charged as one read of memory.
const CODES_OF_A_READ: u64 = 8;
/// `UNW_FLAG_CHAININFO`.
const CHAINED: u8 = 4;
/// The frame offset that a header with `SET_FPREG_LARGE` must have, in units of 16 bytes. The code has the actual offset.
const LARGEST_OFFSET: u8 = 15;
const RSP: u8 = 4;

const PUSH_NONVOL: u8 = 0;
const ALLOC_LARGE: u8 = 1;
const ALLOC_SMALL: u8 = 2;
const SET_FPREG: u8 = 3;
const SAVE_NONVOL: u8 = 4;
const SAVE_NONVOL_FAR: u8 = 5;
/// In version 2, the location of an epilogue. In version 1, a save of the low half of an XMM register; both take two slots.
const EPILOG: u8 = 6;
/// Unassigned in version 2. In version 1, the far form of the save of the low half of an XMM register.
const SPARE: u8 = 7;
const SAVE_XMM128: u8 = 8;
const SAVE_XMM128_FAR: u8 = 9;
const PUSH_MACHFRAME: u8 = 10;
const SET_FPREG_LARGE: u8 = 11;

/// An `UNWIND_INFO`.
struct Info<'a> {
    at: Addr,
    prologue: u8,
    frame_register: u8,
    /// Offset of the frame register in units of 16 bytes.
    frame_offset: u8,
    codes: Cow<'a, [u8]>,
    /// The chained entry. Its codes are undone after `codes`.
    parent: Option<FunctionEntry>,
}

/// An unwind code with its operand.
#[derive(Clone, Copy)]
struct Code {
    /// Offset in the prologue of the end of the instruction that the code describes, in bytes.
    offset: u8,
    operation: u8,
    info: u8,
    /// The value in the slots that follow; 0 if the code takes one slot.
    operand: u32,
}

impl<'a> Info<'a> {
    fn read(bytes: &'a CodeBytes, base: Addr, rva: u32) -> Result<Info<'a>, UnwindError> {
        let at = base.plus(rva.into());
        let [head, prologue, count, frame] = bytes.u32(at)?.to_le_bytes();
        if !matches!(head & 7, 1 | 2) {
            return Err(UnwindError::invalid(at, "unwind information of an unknown version"));
        }
        // Charges for the codes, which are undone one by one, and decoded once more if there is a frame register.
        CodeBytes::afford(at, u64::from(count) / CODES_OF_A_READ)?;
        let slots = at.plus(4);
        let parent = |at: Addr| {
            let field = |offset| bytes.u32(at.plus(offset));
            Ok::<_, UnwindError>(FunctionEntry { begin: field(0)?, end: Some(field(4)?), unwind: field(8)? })
        };
        Ok(Info {
            at,
            prologue,
            frame_register: frame & 15,
            frame_offset: frame >> 4,
            codes: bytes.bytes(slots, u64::from(count).saturating_mul(2))?,
            parent: if head >> 3 & CHAINED != 0 { Some(parent(slots.plus(u64::from(count).next_multiple_of(2) * 2))?) } else { None },
        })
    }

    /// The codes, in reverse order of the prologue's instructions.
    fn codes(&self) -> impl Iterator<Item = Result<Code, UnwindError>> {
        let at = self.at;
        let mut slots = self.codes.as_chunks::<2>().0.iter();
        std::iter::from_fn(move || {
            let [offset, op] = *slots.next()?;
            let (operation, info) = (op & 15, op >> 4);
            let more = match operation {
                PUSH_NONVOL | ALLOC_SMALL | SET_FPREG | PUSH_MACHFRAME => 0,
                ALLOC_LARGE if info == 0 => 1,
                SAVE_NONVOL | EPILOG | SAVE_XMM128 => 1,
                ALLOC_LARGE | SAVE_NONVOL_FAR | SPARE | SAVE_XMM128_FAR | SET_FPREG_LARGE => 2,
                _ => return Some(Err(UnwindError::invalid(at, "unknown unwind operation"))),
            };
            let mut operand = [0; 4];
            for half in operand.chunks_exact_mut(2).take(more) {
                let Some(slot) = slots.next() else { return Some(Err(UnwindError::invalid(at, "an unwind code without its operand"))) };
                half.copy_from_slice(slot);
            }
            Some(Ok(Code { offset, operation, info, operand: u32::from_le_bytes(operand) }))
        })
    }

    /// The address that saves are relative to if the instruction pointer is at `offset`: the stack pointer or, once the prologue has set it, the
    /// frame register minus its offset. `None` if the register is unknown.
    fn establisher(&self, registers: &Registers, offset: u64) -> Result<Option<Addr>, UnwindError> {
        if self.frame_register == 0 {
            return Ok(registers.sp());
        }
        let mut distance = u64::from(self.frame_offset) * 16;
        // The offset in the function from which on the frame register is set.
        let mut set = u64::from(self.prologue);
        for code in self.codes() {
            let code = code?;
            match code.operation {
                SET_FPREG => set = code.offset.into(),
                SET_FPREG_LARGE => (set, distance) = (code.offset.into(), u64::from(code.operand).saturating_mul(16)),
                _ => {}
            }
        }
        if offset < set && offset < self.prologue.into() && self.parent.is_none() {
            return Ok(registers.sp());
        }
        Ok(registers.value(self.frame_register).and_then(|fp| fp.checked_sub(distance)).map(Addr))
    }
}

/// The state of unwinding one frame.
struct Frame<'a> {
    bytes: &'a CodeBytes,
    caller: Registers,
    sp: Addr,
    /// The instruction pointer of a machine frame.
    interrupted: Option<Addr>,
}

impl<'a> Frame<'a> {
    fn new(bytes: &'a CodeBytes, registers: &Registers) -> Result<Frame<'a>, UnwindError> {
        let sp = registers.sp().ok_or(UnwindError::invalid(registers.ip, "unknown stack pointer"))?;
        Ok(Frame { bytes, caller: registers.preserved(), sp, interrupted: None })
    }

    fn restore(&mut self, number: u8, place: Addr) -> Result<(), UnwindError> {
        if number == RSP {
            return Err(UnwindError::invalid(place, "unwind code saves the stack pointer"));
        }
        self.caller.set(number, Saved { value: Some(self.bytes.u64(place)?), place: Some(place) });
        Ok(())
    }

    fn release(&mut self, len: u64) -> Result<(), UnwindError> {
        self.sp = self.sp.0.checked_add(len).map(Addr).ok_or(UnwindError::invalid(self.sp, "frame beyond the end of memory"))?;
        Ok(())
    }

    /// Undoes one code of `info`.
    fn undo(&mut self, info: &Info, code: Code, establisher: Option<Addr>) -> Result<(), UnwindError> {
        let invalid = |what| UnwindError::invalid(info.at, what);
        let established = || establisher.ok_or(invalid("unknown frame register"));
        let operand = u64::from(code.operand);
        match code.operation {
            PUSH_NONVOL => {
                self.restore(code.info, self.sp)?;
                self.release(8)?;
            }
            ALLOC_LARGE if code.info == 0 => self.release(operand.saturating_mul(8))?,
            ALLOC_LARGE => self.release(operand)?,
            ALLOC_SMALL => self.release(u64::from(code.info) * 8 + 8)?,
            SET_FPREG | SET_FPREG_LARGE if info.frame_register == 0 => return Err(invalid("SET_FPREG without a frame register")),
            SET_FPREG_LARGE if info.frame_offset != LARGEST_OFFSET => return Err(invalid("conflicting offsets of the frame register")),
            SET_FPREG | SET_FPREG_LARGE => self.sp = established()?,
            SAVE_NONVOL => self.restore(code.info, established()?.plus(operand.saturating_mul(8)))?,
            SAVE_NONVOL_FAR => self.restore(code.info, established()?.plus(operand))?,
            PUSH_MACHFRAME => {
                let frame = self.sp.plus(u64::from(code.info != 0) * 8);
                self.interrupted = Some(Addr(self.bytes.u64(frame)?));
                self.sp = Addr(self.bytes.u64(frame.plus(24))?);
            }
            // Floating-point registers do not hold references. Epilogues are found by their instructions.
            _ => {}
        }
        Ok(())
    }

    /// Completes the caller's registers: pops the return address, unless a machine frame has the instruction pointer.
    fn finish(mut self, registers: &Registers) -> Result<Registers, UnwindError> {
        let ip = match self.interrupted {
            Some(ip) => ip,
            None => {
                let ip = self.bytes.u64(self.sp)?;
                self.release(8)?;
                Addr(ip)
            }
        };
        if registers.sp().is_none_or(|sp| self.sp <= sp) {
            return Err(UnwindError::invalid(self.sp, "the stack pointer did not advance"));
        }
        self.caller.ip = ip;
        self.caller.set_sp(self.sp);
        Ok(self.caller)
    }
}

pub(super) fn unwind(
    bytes: &CodeBytes,
    base: Addr,
    entry: &FunctionEntry,
    registers: &Registers,
    leaf: bool,
) -> Result<Registers, UnwindError> {
    let begin = base.plus(entry.begin.into());
    let offset = registers.ip.since(begin).ok_or(UnwindError::invalid(registers.ip, "instruction pointer before its function"))?;
    let mut info = Info::read(bytes, base, entry.unwind)?;
    // A return address is never inside an epilogue.
    if leaf && let Some(epilogue) = Epilogue::at(bytes, base, entry, &info, registers.ip)? {
        return epilogue.run(bytes, registers);
    }
    let mut establisher = info.establisher(registers, offset)?;
    let mut frame = Frame::new(bytes, registers)?;
    let mut done = offset;
    for _ in 0..=CHAIN_LIMIT {
        for code in info.codes() {
            let code = code?;
            if u64::from(code.offset) <= done {
                frame.undo(&info, code, establisher)?;
            }
        }
        let Some(parent) = info.parent else { return frame.finish(registers) };
        info = Info::read(bytes, base, parent.unwind)?;
        // The prologue of the parent has run completely before a chained function part starts.
        done = u64::MAX;
        if info.frame_register != 0 {
            establisher = info.establisher(registers, done)?;
        }
    }
    Err(UnwindError::invalid(info.at, "endless chain of unwind information"))
}

/// The first instruction of an epilogue, if it moves the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    None,
    /// `add rsp, n`.
    Add(u64),
    /// `lea rsp, [register + n]`.
    Lea(u8, i64),
}

/// The instructions of an epilogue that remain to be executed.
#[derive(Debug, PartialEq, Eq)]
struct Epilogue {
    first: Move,
    pops: Vec<u8>,
}

impl Epilogue {
    /// The epilogue that contains `ip`; `None` if `ip` is not in an epilogue, or if the code is absent.
    fn at(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry, info: &Info, ip: Addr) -> Result<Option<Epilogue>, UnwindError> {
        let byte = |at: Addr, n: u64| bytes.u8(at.plus(n)).ok();
        let Some((epilogue, at)) = Epilogue::parse(info.frame_register, ip, byte) else { return Ok(None) };
        let leaves = match ends(at, |n| byte(at, n)) {
            Some(End::Returns) => true,
            Some(End::Jumps(target)) => jumps_out(bytes, base, entry, info, target)?,
            None => false,
        };
        Ok(leaves.then_some(epilogue))
    }

    /// Parses instructions at `ip` that may belong to an epilogue. Returns them and the address after them.
    fn parse(frame_register: u8, ip: Addr, byte: impl Fn(Addr, u64) -> Option<u8>) -> Option<(Epilogue, Addr)> {
        let mut at = ip;
        let le32 = |from| Some(i32::from_le_bytes([byte(ip, from)?, byte(ip, from + 1)?, byte(ip, from + 2)?, byte(ip, from + 3)?]));
        let le8 = |from| Some(i32::from(byte(ip, from)?.cast_signed()));
        let mut first = Move::None;
        let prefix = byte(ip, 0)?;
        if matches!(prefix, 0x48 | 0x49) {
            let (op, operands) = (byte(ip, 1)?, byte(ip, 2)?);
            let base_register = (prefix & 1) << 3 | operands & 7;
            // An `add rsp` of a negative number allocates, so it does not belong to an epilogue. A base register with the low bits of rsp needs a
            // SIB byte, and is never a frame register.
            let (moved, len) = match (prefix, op, operands & 0xf8) {
                (0x48, 0x83, _) if operands == 0xc4 => (Move::Add(le8(3)?.try_into().ok()?), 4),
                (0x48, 0x81, _) if operands == 0xc4 => (Move::Add(le32(3)?.try_into().ok()?), 7),
                (_, 0x8d, 0x60 | 0xa0) if base_register != frame_register || operands & 7 == RSP => (Move::None, 0),
                (_, 0x8d, 0x60) => (Move::Lea(base_register, le8(3)?.into()), 4),
                (_, 0x8d, 0xa0) => (Move::Lea(base_register, le32(3)?.into()), 7),
                _ => (Move::None, 0),
            };
            first = moved;
            at = at.plus(len);
        }
        let mut pops = Vec::new();
        loop {
            let (number, len) = match byte(at, 0)? {
                op @ 0x58..=0x5f => (op & 7, 1),
                rex @ 0x40..=0x4f => match byte(at, 1)? {
                    op @ 0x58..=0x5f => ((rex & 1) << 3 | op & 7, 2),
                    _ => break,
                },
                _ => break,
            };
            if pops.len() == MAX_POPS {
                return None;
            }
            pops.push(number);
            at = at.plus(len);
        }
        Some((Epilogue { first, pops }, at))
    }

    fn run(&self, bytes: &CodeBytes, registers: &Registers) -> Result<Registers, UnwindError> {
        let mut frame = Frame::new(bytes, registers)?;
        match self.first {
            Move::None => {}
            Move::Add(n) => frame.release(n)?,
            Move::Lea(number, n) => {
                let sp = registers.value(number).and_then(|fp| fp.checked_add_signed(n));
                frame.sp = sp.map(Addr).ok_or(UnwindError::invalid(registers.ip, "unknown frame register"))?;
            }
        }
        for number in &self.pops {
            // A pop into a register that callees do not preserve only raises the stack pointer.
            if registers.preserves(*number) {
                frame.restore(*number, frame.sp)?;
            }
            frame.release(8)?;
        }
        frame.finish(registers)
    }
}

/// The last instruction of an epilogue.
enum End {
    Returns,
    /// A jump to an address, which may be in the same function.
    Jumps(Addr),
}

/// The instruction at `at`, if an epilogue can end with it.
fn ends(at: Addr, byte: impl Fn(u64) -> Option<u8>) -> Option<End> {
    // A `repne` prefix (`bnd`) before a control transfer can be ignored.
    let skip = u64::from(byte(0)? == 0xf2);
    let next = |n: u64| byte(skip + n);
    let target = |len: u64, distance: i64| at.plus(skip + len).0.checked_add_signed(distance).map(Addr);
    match next(0)? {
        0xc3 | 0xc2 => Some(End::Returns),
        0xf3 if next(1)? == 0xc3 => Some(End::Returns),
        0xeb => target(2, next(1)?.cast_signed().into()).map(End::Jumps),
        0xe9 => target(5, i32::from_le_bytes([next(1)?, next(2)?, next(3)?, next(4)?]).into()).map(End::Jumps),
        // `jmp [rip + n]`: a jump through an import.
        0xff if next(1)? == 0x25 => Some(End::Returns),
        // `rex.w jmp`: compilers add the redundant prefix if the jump leaves the function.
        0x48..=0x4f if next(1)? == 0xff && next(2)? & 0x38 == 0x20 => Some(End::Returns),
        _ => None,
    }
}

/// Whether a jump to `target` leaves the function. A jump to the function's beginning is a recursive tail call, which leaves it too.
fn jumps_out(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry, info: &Info, target: Addr) -> Result<bool, UnwindError> {
    let within = |e: &FunctionEntry| base.plus(e.begin.into()) <= target && e.end.is_none_or(|end| target < base.plus(end.into()));
    let (mut part, mut parent) = (*entry, info.parent);
    for _ in 0..=CHAIN_LIMIT {
        let Some(next) = parent else { return Ok(target == base.plus(part.begin.into()) || !within(&part)) };
        if within(&part) {
            return Ok(false);
        }
        part = next;
        parent = Info::read(bytes, base, part.unwind)?.parent;
    }
    Err(UnwindError::invalid(info.at, "endless chain of unwind information"))
}

/// The address after the unwind information at `at` and the RVA of a personality routine.
pub(super) fn end(bytes: &CodeBytes, at: Addr) -> Result<Addr, UnwindError> {
    let count = u64::from(bytes.u8(at.plus(2))?);
    Ok(at.plus((4 + 2 * count + 4).next_multiple_of(4)))
}
