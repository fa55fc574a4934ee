//! arm64: `.xdata` records and packed unwind information, which Windows defines and the runtime uses on every system.
//!
//! Source: "ARM64 exception handling" of Microsoft's documentation; `unwinder/arm64/unwinder.cpp` of the runtime. `tests/it/platforms.rs` checks
//! the stacks of .NET 10 dumps of Linux arm64.

use std::borrow::Cow;

use super::{FunctionEntry, UnwindError};
use crate::base::Addr;
use crate::stack::{CodeBytes, Registers, Saved};

/// Size in bytes of an instruction.
const INSTRUCTION: u64 = 4;
const FP: u8 = 29;
const LR: u8 = 30;
/// The last integer register that a callee preserves, except for the frame pointer.
const LAST_PRESERVED: u8 = 28;
/// Maximum bytes that one `sub` instruction allocates in the canonical prologue of the packed form.
const LARGEST_SUB: u64 = 4080;

/// Offsets in `ARM64_CONTEXT`. fp, lr and sp follow x28.
const CONTEXT_X0: u64 = 8;
const CONTEXT_SP: u64 = 0x100;
const CONTEXT_PC: u64 = 0x108;

/// An unwind code. Each corresponds to one instruction of a prologue or epilogue, except where noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// Undoing the code raises the stack pointer by this many bytes.
    Alloc(u64),
    /// One or two integer registers, beginning with `first`, are saved at `offset` from the stack pointer. Undoing the code also raises the stack
    /// pointer by `release`; both are in bytes.
    Save {
        first: u8,
        pair: bool,
        offset: u64,
        release: u64,
    },
    /// Register `first` and, after it, the link register are saved at `offset` from the stack pointer.
    SaveWithLink {
        first: u8,
        offset: u64,
    },
    /// Floating-point registers are saved. Only `release` matters, because these registers hold no references.
    SaveFloat {
        pair: bool,
        release: u64,
    },
    /// `save_next`: another register pair follows the pair of the next code.
    SaveNext,
    /// The stack pointer is this many bytes below the frame pointer.
    SetFp(u64),
    /// Nothing to undo: stored parameters, a signed return address, codes that are not assigned yet.
    Nop,
    /// The stack pointer and instruction pointer of interrupted code are on the stack. Does not correspond to an instruction.
    MachineFrame,
    /// The `CONTEXT` of interrupted code is on the stack. Does not correspond to an instruction.
    Context,
    /// `clear_unwound_to_call`: the return address is in the link register. Does not correspond to an instruction.
    NoCall,
    /// `end_c`: ends the codes of a fragment of a function. The codes that follow belong to the prologue of the whole function, which has run
    /// completely.
    EndOfPart,
    End,
}

impl Op {
    /// The code at the start of `codes`, and its length in bytes; `None` if the code is absent, or cannot be undone.
    fn decode(codes: &[u8]) -> Option<(Op, usize)> {
        let (&code, rest) = codes.split_first()?;
        let second = || rest.first().copied();
        let high = u16::from(code) << 8;
        // Two-byte codes have the number of a register and an offset in units of 8 bytes in their low bits.
        let fields = |offset_bits: u32, register_bits: u32| {
            let word = high | u16::from(second()?);
            let offset = u64::from(word & ((1 << offset_bits) - 1));
            let [register, _] = (word >> offset_bits & ((1 << register_bits) - 1)).to_le_bytes();
            Some((register, offset))
        };
        let save = |(register, offset): (u8, u64), pair| Op::Save { first: 19 + register, pair, offset: offset * 8, release: 0 };
        let save_x = |(register, offset): (u8, u64), pair| Op::Save { first: 19 + register, pair, offset: 0, release: offset * 8 + 8 };
        Some(match code {
            0x00..=0x1f => (Op::Alloc(u64::from(code & 0x1f) * 16), 1),
            0x20..=0x3f => (Op::Save { first: 19, pair: true, offset: 0, release: u64::from(code & 0x1f) * 8 }, 1),
            0x40..=0x7f => (Op::Save { first: FP, pair: true, offset: u64::from(code & 0x3f) * 8, release: 0 }, 1),
            0x80..=0xbf => (Op::Save { first: FP, pair: true, offset: 0, release: u64::from(code & 0x3f) * 8 + 8 }, 1),
            0xc0..=0xc7 => (Op::Alloc(u64::from((high | u16::from(second()?)) & 0x7ff) * 16), 2),
            0xc8..=0xcb => (save(fields(6, 4)?, true), 2),
            0xcc..=0xcf => (save_x(fields(6, 4)?, true), 2),
            0xd0..=0xd3 => (save(fields(6, 4)?, false), 2),
            0xd4..=0xd5 => (save_x(fields(5, 4)?, false), 2),
            0xd6..=0xd7 => {
                let (register, offset) = fields(6, 3)?;
                (Op::SaveWithLink { first: 19 + 2 * register, offset: offset * 8 }, 2)
            }
            0xd8..=0xd9 => (Op::SaveFloat { pair: true, release: 0 }, 2),
            0xda..=0xdb => (Op::SaveFloat { pair: true, release: fields(6, 3)?.1 * 8 + 8 }, 2),
            0xdc..=0xdd => (Op::SaveFloat { pair: false, release: 0 }, 2),
            0xde => (Op::SaveFloat { pair: false, release: fields(5, 3)?.1 * 8 + 8 }, 2),
            0xe0 => {
                let [a, b, c] = *rest.first_chunk()?;
                (Op::Alloc(u64::from(u32::from_be_bytes([0, a, b, c])) * 16), 4)
            }
            0xe1 => (Op::SetFp(0), 1),
            0xe2 => (Op::SetFp(u64::from(second()?) * 8), 2),
            0xe3 => (Op::Nop, 1),
            0xe4 => (Op::End, 1),
            0xe5 => (Op::EndOfPart, 1),
            0xe6 => (Op::SaveNext, 1),
            0xe7 => (Op::any_register(*rest.first_chunk()?)?, 3),
            0xe9 => (Op::MachineFrame, 1),
            0xea => (Op::Context, 1),
            0xec => (Op::NoCall, 1),
            0xf8..=0xfb => (Op::Nop, usize::from(code & 3) + 2),
            0xfc..=0xff => (Op::Nop, 1),
            // Trap frames of the kernel, frames of emulated code, unassigned codes.
            0xdf | 0xe8 | 0xeb | 0xed..=0xf7 => return None,
        })
    }

    /// Decodes the operand of `save_any_reg`, 0pxrrrrr ffoooooo: pair, pre-indexed store, register, kind of register, offset.
    fn any_register([first, second]: [u8; 2]) -> Option<Op> {
        let (pair, writeback, register) = (first & 0x40 != 0, first & 0x20 != 0, first & 0x1f);
        let kind = second >> 6;
        let unit = if writeback || pair || kind == 2 { 16 } else { 8 };
        let offset = u64::from(second & 0x3f);
        let (offset, release) = if writeback { (0, (offset + 1) * unit) } else { (offset * unit, 0) };
        match kind {
            _ if first & 0x80 != 0 => None,
            0 => Some(Op::Save { first: register, pair, offset, release }),
            1 | 2 => Some(Op::SaveFloat { pair, release }),
            _ => None,
        }
    }

    /// Number of instructions that the code corresponds to.
    fn instructions(self) -> u64 {
        u64::from(!matches!(self, Op::MachineFrame | Op::Context | Op::NoCall))
    }

    fn ends(self) -> bool {
        matches!(self, Op::End | Op::EndOfPart)
    }
}

/// The codes of a prologue or epilogue, in the order in which they are undone.
#[derive(Debug)]
struct Sequence(Vec<Op>);

impl Sequence {
    /// The codes from byte `index` of `codes` up to the end code.
    fn decode(at: Addr, codes: &[u8], index: usize) -> Result<Sequence, UnwindError> {
        let mut rest = codes.get(index..).unwrap_or_default();
        let mut ops = Vec::new();
        while !rest.is_empty() {
            let (op, len) = Op::decode(rest).ok_or(UnwindError::invalid(at, "unknown unwind code"))?;
            rest = rest.get(len..).unwrap_or_default();
            ops.push(op);
            if op == Op::End {
                break;
            }
        }
        Ok(Sequence(ops))
    }

    /// Number of instructions, without the return of an epilogue.
    fn instructions(&self) -> u64 {
        self.0.iter().take_while(|op| !op.ends()).map(|op| op.instructions()).sum()
    }

    /// The codes that remain without the codes of the first `skipped` instructions.
    fn after(&self, mut skipped: u64) -> &[Op] {
        let first = self.0.iter().position(|op| {
            let stop = op.ends() || skipped == 0;
            skipped = skipped.saturating_sub(op.instructions());
            stop
        });
        first.and_then(|first| self.0.get(first..)).unwrap_or_default()
    }
}

/// The unwind information of a function, from an `.xdata` record or the packed form.
#[derive(Debug)]
struct Function {
    /// Length in instructions.
    len: u64,
    prologue: Sequence,
    /// The epilogue that may contain the requested offset: its start in instructions, and its codes.
    epilogue: Option<(u64, Sequence)>,
}

/// Length of a function in instructions, from its unwind information. The function table does not show the length, because the table has only
/// the starts of functions, and padding may follow a function.
pub(super) fn instructions(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry) -> Result<u64, UnwindError> {
    match entry.unwind & 3 {
        0 => Ok(Header::read(bytes, base.plus(entry.unwind.into()))?.len),
        _ => Ok(u64::from(entry.unwind >> 2 & 0x7ff)),
    }
}

impl Function {
    fn read(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry, offset: u64) -> Result<Function, UnwindError> {
        let at = base.plus(entry.begin.into());
        match entry.unwind & 3 {
            0 => Function::full(bytes, base.plus(entry.unwind.into()), offset),
            1 | 2 => Function::packed(entry.unwind).ok_or(UnwindError::invalid(at, "malformed packed unwind information")),
            _ => Err(UnwindError::invalid(at, "unwind information of a reserved form")),
        }
    }

    /// Reads the `.xdata` record at `at`. `offset`, in instructions, selects the epilogue.
    fn full(bytes: &CodeBytes, at: Addr, offset: u64) -> Result<Function, UnwindError> {
        let header = Header::read(bytes, at)?;
        let codes = header.codes(bytes)?;
        let prologue = Sequence::decode(at, &codes, 0)?;
        let epilogue = if header.one_epilogue {
            let sequence = Sequence::decode(at, &codes, usize::try_from(header.epilogues).unwrap_or(usize::MAX))?;
            let len = sequence.instructions().saturating_add(1);
            header.len.checked_sub(len).map(|start| (start, sequence))
        } else {
            let scope = header.scope_before(bytes, offset)?;
            scope.map(|(start, index)| Ok::<_, UnwindError>((start, Sequence::decode(at, &codes, index)?))).transpose()?
        };
        Ok(Function { len: header.len, prologue, epilogue })
    }

    /// Decodes the packed form into the codes of the canonical prologue that it describes; `None` if the fields are inconsistent.
    fn packed(word: u32) -> Option<Function> {
        let field = |shift: u32, bits: u32| u64::from(word >> shift & ((1 << bits) - 1));
        let (fragment, len, chain) = (field(0, 2) == 2, field(2, 11), field(21, 2));
        let (floats, integers, homes, frame) = (field(13, 3), field(16, 4), field(20, 1), field(23, 9) * 16);
        let link = chain == 1;
        let floats = if floats == 0 { 0 } else { floats + 1 };
        let saved = integers + u64::from(link) + floats;
        // Stores of parameters are part of the prologue if the prologue saves registers. Otherwise they are part of the body.
        let saved_bytes = if saved == 0 { 0 } else { ((saved + homes * 8) * 8).next_multiple_of(16) };
        let locals = frame.checked_sub(saved_bytes).filter(|_| integers <= 10)?;

        // `ops` is in the order of the prologue. The first store moves the stack pointer.
        let mut ops = Vec::new();
        let mut slot = 0;
        let mut place = |slots: u64| {
            let at = slot * 8;
            slot += slots;
            if at == 0 { (0, saved_bytes) } else { (at, 0) }
        };
        if chain == 2 {
            ops.push(Op::Nop);
        }
        let last = u8::try_from(18 + integers).ok()?;
        if integers == 1 && link {
            // A store of a register together with the link register cannot move the stack pointer.
            ops.push(Op::Alloc(saved_bytes));
            place(2);
            ops.push(Op::SaveWithLink { first: 19, offset: 0 });
        } else {
            for first in (19..last).step_by(2) {
                let (offset, release) = place(2);
                ops.push(Op::Save { first, pair: true, offset, release });
            }
            if integers % 2 == 1 && link {
                ops.push(Op::SaveWithLink { first: last, offset: place(2).0 });
            } else if integers % 2 == 1 || link {
                let (offset, release) = place(1);
                ops.push(Op::Save { first: if link { LR } else { last }, pair: false, offset, release });
            }
        }
        for _ in 0..floats / 2 {
            ops.push(Op::SaveFloat { pair: true, release: place(2).1 });
        }
        if floats % 2 == 1 {
            ops.push(Op::SaveFloat { pair: false, release: place(1).1 });
        }
        let stores = if homes == 1 && saved > 0 { 4 } else { 0 };
        let before_stores = ops.len();
        ops.extend([Op::Nop; 4].iter().take(stores));
        let chained = matches!(chain, 2 | 3);
        if chained && locals == 0 {
            return None;
        }
        if chained && locals <= 512 {
            ops.push(Op::Save { first: FP, pair: true, offset: 0, release: locals });
        } else {
            let subs = [locals.min(LARGEST_SUB), locals.saturating_sub(LARGEST_SUB)];
            ops.extend(subs.into_iter().filter(|n| *n > 0).map(Op::Alloc));
            if chained {
                ops.push(Op::Save { first: FP, pair: true, offset: 0, release: 0 });
            }
        }
        // An epilogue neither stores parameters nor restores the stack pointer from the frame pointer.
        let backwards = |ops: &[Op]| ops.iter().rev().copied().chain([Op::End]).collect::<Vec<Op>>();
        let epilogue: Vec<Op> = [ops.get(..before_stores)?, ops.get(before_stores + stores..)?].concat();
        let epilogue = Sequence(backwards(&epilogue));
        if chained {
            ops.push(Op::SetFp(0));
        }
        let mut prologue = backwards(&ops);
        if fragment {
            prologue.insert(0, Op::EndOfPart);
        }
        let start = len.checked_sub(epilogue.instructions().saturating_add(1)).filter(|_| !fragment);
        Some(Function { len, prologue: Sequence(prologue), epilogue: start.map(|start| (start, epilogue)) })
    }

    /// The codes to undo if the instruction pointer is at `offset`, in instructions from the function's start.
    fn at(&self, offset: u64) -> &[Op] {
        let not_yet = self.prologue.instructions().saturating_sub(offset);
        if not_yet > 0 {
            return self.prologue.after(not_yet);
        }
        match &self.epilogue {
            Some((start, sequence)) => match offset.checked_sub(*start) {
                Some(done) if done <= sequence.instructions() => sequence.after(done),
                _ => &self.prologue.0,
            },
            None => &self.prologue.0,
        }
    }
}

/// The first words of an `.xdata` record.
#[derive(Debug)]
struct Header {
    /// Length of the function in instructions.
    len: u64,
    /// Whether the RVA of an exception handler follows the codes.
    handler: bool,
    /// Whether there is a single epilogue, at the end of the function. It has no scope, and its codes begin at byte `epilogues`.
    one_epilogue: bool,
    /// Number of epilogue scopes or, with `one_epilogue`, the index of the first byte of the epilogue's codes.
    epilogues: u64,
    /// Length of the codes in words of 4 bytes.
    words: u64,
    /// Address after the header, where the epilogue scopes or the codes begin.
    end: Addr,
}

impl Header {
    fn read(bytes: &CodeBytes, at: Addr) -> Result<Header, UnwindError> {
        let word = bytes.u32(at)?;
        if word >> 18 & 3 != 0 {
            return Err(UnwindError::invalid(at, "unwind information of an unknown version"));
        }
        let (mut epilogues, mut words) = (word >> 22 & 0x1f, word >> 27);
        let mut end = at.plus(4);
        if epilogues == 0 && words == 0 {
            let more = bytes.u32(end)?;
            (epilogues, words) = (more & 0xffff, more >> 16 & 0xff);
            end = at.plus(8);
        }
        Ok(Header {
            len: u64::from(word & 0x3_ffff),
            handler: word >> 20 & 1 == 1,
            one_epilogue: word >> 21 & 1 == 1,
            epilogues: epilogues.into(),
            words: words.into(),
            end,
        })
    }

    /// Number of epilogue scopes before the codes.
    fn scopes(&self) -> u64 {
        if self.one_epilogue { 0 } else { self.epilogues }
    }

    fn codes<'a>(&self, bytes: &'a CodeBytes) -> Result<Cow<'a, [u8]>, UnwindError> {
        // A word has up to four codes, and eight codes are charged as one read.
        CodeBytes::afford(self.end, self.words / 2)?;
        Ok(bytes.bytes(self.end.element(self.scopes(), 4), self.words * 4)?)
    }

    /// The last scope that starts at or before `offset`: its start in instructions, and the byte at which its codes begin.
    fn scope_before(&self, bytes: &CodeBytes, offset: u64) -> Result<Option<(u64, usize)>, UnwindError> {
        let scope = |i| bytes.u32(self.end.element(i, 4));
        let start = |scope: u32| u64::from(scope & 0x3_ffff);
        let (mut low, mut high) = (0, self.scopes());
        while low < high {
            let middle = low.midpoint(high);
            if start(scope(middle)?) <= offset { low = middle + 1 } else { high = middle }
        }
        let Some(last) = low.checked_sub(1) else { return Ok(None) };
        let found = scope(last)?;
        Ok(Some((start(found), usize::try_from(found >> 22).unwrap_or(usize::MAX))))
    }
}

/// The state of unwinding one frame.
struct Frame<'a> {
    bytes: &'a CodeBytes,
    caller: Registers,
    sp: Addr,
    link: Option<u64>,
    /// Whether the link register, or the instruction pointer, came from the stack.
    from_stack: bool,
    /// The caller's instruction pointer from a machine frame or `CONTEXT`; `None` if the link register has it.
    interrupted: Option<Addr>,
    /// Number of `save_next` codes since the last register pair.
    extended: u8,
}

impl Frame<'_> {
    fn restore(&mut self, number: u8, place: Addr) -> Result<(), UnwindError> {
        let value = Some(self.bytes.u64(place)?);
        match number {
            0..LR => self.caller.set(number, Saved { value, place: Some(place) }),
            LR => (self.link, self.from_stack) = (value, true),
            _ => return Err(UnwindError::invalid(place, "unwind code saves the stack pointer")),
        }
        Ok(())
    }

    fn release(&mut self, len: u64) -> Result<(), UnwindError> {
        self.sp = self.sp.0.checked_add(len).map(Addr).ok_or(UnwindError::invalid(self.sp, "frame beyond the end of memory"))?;
        Ok(())
    }

    fn undo(&mut self, at: Addr, op: Op) -> Result<(), UnwindError> {
        let pair = matches!(op, Op::SaveNext | Op::EndOfPart | Op::Save { pair: true, .. } | Op::SaveFloat { pair: true, .. });
        if self.extended > 0 && !pair {
            return Err(UnwindError::invalid(at, "a save_next code without a register pair"));
        }
        match op {
            Op::Alloc(len) => self.release(len)?,
            Op::Save { first, pair, offset, release } => {
                let numbers = first..first.saturating_add(1 + u8::from(pair));
                let start = self.sp.plus(offset);
                for (i, number) in (0u64..).zip(numbers.clone()) {
                    self.restore(number, start.element(i, 8))?;
                }
                // After the last integer register, the pairs continue with floating-point registers, which are not restored.
                let extended = std::mem::take(&mut self.extended);
                let more = numbers.end..=numbers.end.saturating_add(extended.saturating_mul(2)).saturating_sub(1).min(LAST_PRESERVED);
                for (i, number) in (2u64..).zip(more) {
                    self.restore(number, start.element(i, 8))?;
                }
                self.release(release)?;
            }
            Op::SaveWithLink { first, offset } => {
                let start = self.sp.plus(offset);
                self.restore(first, start)?;
                self.restore(LR, start.plus(8))?;
            }
            Op::SaveFloat { release, .. } => {
                self.extended = 0;
                self.release(release)?;
            }
            Op::SaveNext => self.extended = self.extended.saturating_add(1),
            Op::SetFp(distance) => {
                let fp = self.caller.value(FP).and_then(|fp| fp.checked_sub(distance));
                self.sp = fp.map(Addr).ok_or(UnwindError::invalid(at, "unknown frame register"))?;
            }
            Op::MachineFrame => {
                let start = self.sp;
                self.sp = Addr(self.bytes.u64(start)?);
                self.interrupt(start.plus(8))?;
            }
            Op::Context => {
                let start = self.sp;
                for (i, number) in (0u64..).zip(0..=LR) {
                    self.restore(number, start.plus(CONTEXT_X0).element(i, 8))?;
                }
                self.sp = Addr(self.bytes.u64(start.plus(CONTEXT_SP))?);
                self.interrupt(start.plus(CONTEXT_PC))?;
            }
            Op::Nop | Op::NoCall | Op::EndOfPart | Op::End => {}
        }
        Ok(())
    }

    /// Reads the caller's instruction pointer from `place`.
    fn interrupt(&mut self, place: Addr) -> Result<(), UnwindError> {
        self.interrupted = Some(Addr(self.bytes.u64(place)?));
        self.from_stack = true;
        Ok(())
    }
}

pub(super) fn unwind(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry, registers: &Registers) -> Result<Registers, UnwindError> {
    let invalid = |what| UnwindError::invalid(registers.ip, what);
    let offset = registers.ip.since(base.plus(entry.begin.into())).ok_or(invalid("instruction pointer before its function"))?;
    let sp = registers.sp().ok_or(invalid("unknown stack pointer"))?;
    let function = Function::read(bytes, base, entry, offset / INSTRUCTION)?;
    // A return address is at the function's end if the last instruction is a call that does not return.
    if offset > function.len * INSTRUCTION {
        return Err(invalid("instruction pointer past the end of its function"));
    }
    let (caller, link) = (registers.preserved(), registers.value(LR));
    let mut frame = Frame { bytes, caller, sp, link, from_stack: false, interrupted: None, extended: 0 };
    for op in function.at(offset / INSTRUCTION) {
        frame.undo(registers.ip, *op)?;
    }
    if frame.sp < sp || frame.sp == sp && frame.from_stack {
        return Err(UnwindError::invalid(frame.sp, "the stack pointer did not advance"));
    }
    let ip = frame.interrupted.or(frame.link.map(Addr)).ok_or(invalid("unknown return address"))?;
    frame.caller.ip = without_signature(ip);
    frame.caller.set_sp(frame.sp);
    Ok(frame.caller)
}

/// Clears the bits of pointer authentication, which are above the 48 address bits. User-mode addresses have a 0 in bit 55; other addresses are
/// returned unchanged.
fn without_signature(address: Addr) -> Addr {
    if address.0 >> 55 & 1 == 0 { Addr(address.0 & ((1 << 48) - 1)) } else { address }
}

/// The address after the unwind information of `entry` and the RVA of its personality routine.
pub(super) fn end(bytes: &CodeBytes, base: Addr, entry: &FunctionEntry) -> Result<Addr, UnwindError> {
    if entry.unwind & 3 != 0 {
        return Err(UnwindError::invalid(base.plus(entry.begin.into()), "nothing follows packed unwind information"));
    }
    let at = base.plus(entry.unwind.into());
    let header = Header::read(bytes, at)?;
    if !header.handler {
        return Err(UnwindError::invalid(at, "a ReadyToRun method without a personality routine"));
    }
    Ok(header.end.element(header.scopes(), 4).element(header.words, 4).plus(4))
}
