//! A walked stack: its frames, what each holds, and what is not known.
//!
//! A stack that has overflowed has half a million frames, so frames are small, and what they hold is in lists of the walk.

use std::sync::Arc;

use super::code::Code;
use super::frames::{ExplicitFrame, Left};
use super::gc_info::{FrameSlot, Location, Place, SlotBase};
use super::{RegisterNames, Saved, StackError};
use crate::base::{Addr, Arch, len64};
use crate::clr::methods::GenericContext;

/// The part of a method that a managed frame executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The method's body.
    Body,
    /// A catch or finally block, called by the runtime while it handles an exception.
    Handler,
    /// The filter of an exception, or a block whose kind the dump does not have.
    Filter,
}

/// A frame of a stack.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// A method.
    Managed(ManagedFrame),
    /// An explicit frame of the runtime.
    Runtime(RuntimeFrame),
}

/// A part of a list of the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of<T>(self, list: &[T]) -> &[T] {
        let at = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        list.get(at(self.start)..at(self.start).saturating_add(at(self.len))).unwrap_or_default()
    }

    /// The part of a list from `start` to its end now.
    fn since<T>(start: usize, list: &[T]) -> Span {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { start: number(start), len: number(list.len().saturating_sub(start)) }
    }
}

/// A method on a stack.
#[derive(Clone, Debug)]
pub(crate) struct ManagedFrame {
    /// Its code.
    pub(crate) code: Arc<Code>,
    /// Where it goes on: a return address, or the next instruction of the innermost frame.
    pub(crate) ip: Addr,
    /// Its stack pointer there.
    pub(crate) sp: Addr,
    held: Span,
    contexts: Span,
    registers: Span,
    /// The part of it.
    pub(crate) part: Part,
    /// How it was left.
    pub(crate) left: Left,
    /// The register that slots count from.
    pub(crate) frame_register: Option<u8>,
    /// Whether it holds nothing because an exception has left it, or because the part of it that runs reports for it.
    pub(crate) unwound: bool,
}

impl ManagedFrame {
    /// A frame without anything in the lists of the walk.
    pub(super) fn new(code: Arc<Code>, part: Part, (ip, sp): (Addr, Addr), left: Left) -> ManagedFrame {
        let none = Span::default();
        ManagedFrame { code, ip, sp, held: none, contexts: none, registers: none, part, left, frame_register: None, unwound: false }
    }

    /// An address within the instruction that it executes: a return address may begin the next statement.
    pub(crate) fn instruction(&self) -> Addr {
        match self.left {
            Left::Call | Left::Helper | Left::Exception => self.ip.minus(1).unwrap_or(self.ip),
            Left::Fault | Left::Stopped => self.ip,
        }
    }
}

/// An explicit frame on a stack. Its reader has the rest.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeFrame {
    /// The frame.
    pub(crate) frame: ExplicitFrame,
    /// The place of the walk when it met the frame.
    pub(crate) ip: Option<Addr>,
    /// Whether it lies within the frame of a method that the walk has entered: it prepares no call.
    pub(crate) within: bool,
    /// Whether it reports the references that it owns.
    pub(crate) reports: bool,
}

/// Why references of a stack are not known precisely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The dump has no registers for the thread.
    Registers,
    /// The code at an address is not known, or how its frame is unwound.
    Unwind(StackError),
    /// The explicit frames cannot be followed.
    Frames(StackError),
    /// The references that a frame holds are not known.
    GcInfo(StackError),
    /// More frames than the bytes of the stack have room for, or more to read for them.
    Endless,
    /// More to keep of what frames hold than the size of the dump allows for.
    Memory,
    /// The stack is that of the `Thread` at this address, for which it was walked.
    Claimed(Addr),
}

/// A part of a stack whose references are not known precisely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Its start.
    pub(crate) from: Option<Addr>,
    /// Its end; `None` for the rest of the stack.
    pub(crate) to: Option<Addr>,
    /// Registers that may hold references as well.
    pub(crate) registers: Box<[(&'static str, Saved)]>,
    /// The code of the frame.
    pub(crate) ip: Option<Addr>,
    /// Why.
    pub(crate) lack: Lack,
}

/// In place of a register's number: a stack slot.
const NO_REGISTER: u8 = u8::MAX;

/// A slot as it is kept.
#[derive(Clone, Copy, Debug)]
struct HeldSlot {
    /// The address, and the value; 0 if it is not known.
    address: u64,
    value: u64,
    offset: i32,
    /// The number of the register, or [`NO_REGISTER`].
    register: u8,
    base: SlotBase,
    interior: bool,
    pinned: bool,
}

impl HeldSlot {
    fn of(slot: &FrameSlot) -> HeldSlot {
        let (register, address, base, offset) = match slot.location {
            Location::Register { number, place } => (number, place, SlotBase::Sp, 0),
            Location::Stack { address, base, offset } => (NO_REGISTER, address, base, offset),
        };
        let (address, value) = (address.map_or(0, |a| a.0), slot.value.unwrap_or(0));
        HeldSlot { address, value, offset, register, base, interior: slot.interior, pinned: slot.pinned }
    }

    fn slot(self) -> FrameSlot {
        let address = Some(Addr(self.address)).filter(|a| !a.is_null());
        let location = match self.register {
            NO_REGISTER => Location::Stack { address, base: self.base, offset: self.offset },
            number => Location::Register { number, place: address },
        };
        FrameSlot { location, value: Some(self.value).filter(|v| *v != 0), interior: self.interior, pinned: self.pinned }
    }
}

/// Bytes of memory that a slot takes; those that a frame of the runtime owns, too, in the answers that list them.
pub(super) const SLOT_BYTES: u64 = 24;
const _: () = assert!(size_of::<HeldSlot>() <= 24 && size_of::<Frame>() <= 64);

/// A walked stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Its frames, innermost first.
    pub(crate) frames: Vec<Frame>,
    /// What is not known precisely; empty for a stack that is complete.
    pub(crate) gaps: Vec<Gap>,
    held: Vec<HeldSlot>,
    contexts: Vec<GenericContext>,
    registers: Vec<(u8, Saved)>,
}

impl Walk {
    /// A stack of which nothing is known but a reason.
    pub(crate) fn unknown(lack: Lack) -> Walk {
        let gap = Gap { from: None, to: None, registers: Box::default(), ip: None, lack };
        Walk { gaps: vec![gap], ..Walk::default() }
    }

    /// Gives back memory that it does not use: a process may have a hundred thousand stacks.
    pub(super) fn fit(&mut self) {
        self.frames.shrink_to_fit();
        self.gaps.shrink_to_fit();
        self.held.shrink_to_fit();
        self.contexts.shrink_to_fit();
        self.registers.shrink_to_fit();
    }

    /// The slots that `frame` holds.
    pub(crate) fn held<'w>(&'w self, frame: &ManagedFrame) -> impl Iterator<Item = FrameSlot> + use<'w> {
        frame.held.of(&self.held).iter().map(|slot| slot.slot())
    }

    /// Whether `frame` holds any slot.
    pub(crate) fn holds_any(frame: &ManagedFrame) -> bool {
        frame.held.len > 0
    }

    /// Possible generic contexts of `frame`, likeliest first; empty but for shared generic code.
    pub(crate) fn contexts(&self, frame: &ManagedFrame) -> &[GenericContext] {
        frame.contexts.of(&self.contexts)
    }

    /// The registers of `frame` whose values are known; empty unless asked for.
    pub(crate) fn registers(&self, frame: &ManagedFrame) -> &[(u8, Saved)] {
        frame.registers.of(&self.registers)
    }

    /// Whether a limit has cut it.
    pub(crate) fn is_cut(&self) -> bool {
        self.gaps.iter().any(|gap| gap.lack.is_limit())
    }

    /// Adds what `frame` holds, unless that is more than `most` slots, and returns their number. `list` hands each slot to the function that
    /// it is given.
    ///
    /// # Errors
    /// Those of `list`: then `frame` holds nothing.
    pub(super) fn hold<E>(
        &mut self,
        frame: &mut ManagedFrame,
        most: u64,
        list: impl FnOnce(&mut dyn FnMut(FrameSlot)) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (start, mut count) = (self.held.len(), 0u64);
        list(&mut |slot| {
            count = count.saturating_add(1);
            if count <= most {
                self.held.push(HeldSlot::of(&slot));
            }
        })?;
        if count > most {
            self.held.truncate(start);
        }
        frame.held = Span::since(start, &self.held);
        Ok(count)
    }

    /// Adds what the generic context of `frame` may be.
    pub(super) fn tell_contexts(&mut self, frame: &mut ManagedFrame, contexts: impl Iterator<Item = GenericContext>) {
        let start = self.contexts.len();
        self.contexts.extend(contexts);
        frame.contexts = Span::since(start, &self.contexts);
    }

    /// Adds the registers of `frame`.
    pub(super) fn tell_registers(&mut self, frame: &mut ManagedFrame, registers: impl Iterator<Item = (u8, Saved)>) -> u64 {
        let start = self.registers.len();
        self.registers.extend(registers);
        frame.registers = Span::since(start, &self.registers);
        u64::from(frame.registers.len).saturating_mul(len64(size_of::<(u8, Saved)>()))
    }
}

impl Lack {
    /// Whether a limit was met, in place of something missing from the dump.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self, Lack::Endless | Lack::Memory)
    }

    /// The error, where reading something failed.
    pub(crate) const fn error(&self) -> Option<&StackError> {
        match self {
            Lack::Unwind(e) | Lack::Frames(e) | Lack::GcInfo(e) => Some(e),
            Lack::Registers | Lack::Endless | Lack::Memory | Lack::Claimed(_) => None,
        }
    }

    /// Whether frames are lost, and not only what a known one holds.
    pub(crate) const fn loses_frames(&self) -> bool {
        !matches!(self, Lack::GcInfo(_))
    }

    /// In words, with the module of the code.
    pub(crate) fn reason(&self, module: Option<&str>) -> String {
        let of = |what: &str, e: &StackError| match module {
            Some(module) if matches!(e, StackError::Read(_)) => format!("{what} in {module}, whose file would tell (--modules): {e}"),
            Some(module) => format!("{what} in {module}: {e}"),
            None => format!("{what}: {e}"),
        };
        match self {
            Lack::Registers => "the registers of the thread are not in the dump".into(),
            Lack::Unwind(e) => of("code cannot be unwound", e),
            Lack::Frames(e) => of("the runtime's frames cannot be followed", e),
            Lack::GcInfo(e) => of("what a frame holds is not known", e),
            Lack::Endless => "more frames, or more to read for them, than a stack of its size has".into(),
            Lack::Memory => "what its frames hold takes more memory than the size of the dump allows for".into(),
            Lack::Claimed(by) => format!("the stack is that of the thread at {by}, and is walked only for that"),
        }
    }
}

impl Location {
    /// The stack slot: for a register, where a callee saved it.
    pub(crate) const fn address(&self) -> Option<Addr> {
        match self {
            Location::Register { place, .. } => *place,
            Location::Stack { address, .. } => *address,
        }
    }

    /// Without the address.
    pub(crate) const fn place(&self) -> Place {
        match self {
            Location::Register { number, .. } => Place::Register(*number),
            Location::Stack { base, offset, .. } => Place::Stack { base: *base, offset: *offset },
        }
    }

    /// As in a disassembly: `[rbp-0x48]`, `rbx`. `frame_register` is the one that slots count from.
    pub(crate) fn text(&self, arch: Arch, frame_register: Option<u8>) -> String {
        self.place().text(arch, frame_register, self.address())
    }
}

impl Place {
    /// Returns the text of [`Location::text`]. `address`: the stack slot.
    pub(crate) fn text(self, arch: Arch, frame_register: Option<u8>, address: Option<Addr>) -> String {
        let names = RegisterNames::of(arch);
        let name = |number: u8| names.get(usize::from(number)).copied();
        match self {
            Place::Register(number) => match (name(number), address) {
                (Some(name), _) => name.into(),
                // A slot that a frame of the runtime knows by its address.
                (None, Some(address)) => format!("[{address}]"),
                (None, None) => "?".into(),
            },
            Place::Stack { base, offset } => {
                let base = match base {
                    SlotBase::CallerSp => "caller sp",
                    SlotBase::Sp if arch == Arch::X64 => "rsp",
                    SlotBase::Sp => "sp",
                    SlotBase::FrameRegister => frame_register.and_then(name).unwrap_or("frame"),
                };
                let sign = if offset < 0 { '-' } else { '+' };
                format!("[{base}{sign}{:#x}]", offset.unsigned_abs())
            }
        }
    }
}
