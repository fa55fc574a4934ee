//! A walked stack: its frames, the references that each frame holds, and gaps.
//!
//! An overflowed stack may have half a million frames, so the type of a frame is small. The contents of frames are in lists of the walk.

use std::sync::Arc;

use super::code::Code;
use super::frames::{ExplicitFrame, Left, ProtectedFrame};
use super::gc_info::{FrameSlot, Location, Place, SlotBase};
use super::{RegisterNames, Saved, StackError};
use crate::base::{Addr, AddrRange, Arch, Remedy, len64};
use crate::clr::methods::GenericContext;

/// The part of a method that a managed frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The method's body.
    Body,
    /// A catch block.
    Catch,
    /// A finally or fault block. The runtime calls it while it unwinds an exception, and the method itself may call it.
    Finally,
    /// An exception filter.
    Filter,
    /// A handler or a filter. It counts as a filter, which reports too much rather than too little.
    Funclet,
}

impl Part {
    /// Whether the part is a catch, finally or fault block.
    pub(crate) const fn is_handler(self) -> bool {
        matches!(self, Part::Catch | Part::Finally)
    }
}

/// A frame of a stack.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// A frame of a method.
    Managed(ManagedFrame),
    /// An explicit frame of the runtime.
    Runtime(RuntimeFrame),
}

impl Frame {
    /// The frame of a method; `None` for a frame of the runtime.
    pub(crate) const fn managed(&self) -> Option<&ManagedFrame> {
        match self {
            Frame::Managed(frame) => Some(frame),
            Frame::Runtime(_) => None,
        }
    }

    /// The stack pointer of the frame; for a frame of the runtime, the address of the frame.
    pub(crate) const fn sp(&self) -> Addr {
        match self {
            Frame::Managed(frame) => frame.sp,
            Frame::Runtime(frame) => frame.frame.address,
        }
    }

    /// The instruction pointer of the frame. A frame of the runtime has that of the walk when it met the frame.
    pub(crate) const fn ip(&self) -> Option<Addr> {
        match self {
            Frame::Managed(frame) => Some(frame.ip),
            Frame::Runtime(frame) => frame.ip,
        }
    }

    /// The type of a frame of the runtime.
    pub(crate) fn type_name(&self) -> Option<&Arc<str>> {
        match self {
            Frame::Managed(_) => None,
            Frame::Runtime(frame) => frame.frame.of.name.as_ref(),
        }
    }
}

/// A range in a list of the walk.
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

    /// The range of a list from `start` to its current end.
    fn since<T>(start: usize, list: &[T]) -> Span {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { start: number(start), len: number(list.len().saturating_sub(start)) }
    }
}

/// A frame of a method.
#[derive(Clone, Debug)]
pub(crate) struct ManagedFrame {
    /// The code of the method.
    pub(crate) code: Arc<Code>,
    /// Address at which the method continues: a return address, or the next instruction of the innermost frame.
    pub(crate) ip: Addr,
    /// The stack pointer at `ip`.
    pub(crate) sp: Addr,
    held: Span,
    contexts: Span,
    registers: Span,
    /// The part of the method.
    pub(crate) part: Part,
    /// How the frame was left.
    pub(crate) left: Left,
    /// Number of the frame register, which stack slots may be relative to.
    pub(crate) frame_register: Option<u8>,
    /// Whether the frame holds no references, because an exception has unwound it or a running funclet of its method reports them.
    pub(crate) unwound: bool,
}

impl ManagedFrame {
    /// A frame with empty ranges in the lists of the walk.
    pub(super) fn new(code: Arc<Code>, part: Part, (ip, sp): (Addr, Addr), left: Left) -> ManagedFrame {
        let none = Span::default();
        ManagedFrame { code, ip, sp, held: none, contexts: none, registers: none, part, left, frame_register: None, unwound: false }
    }

    /// An address within the instruction that the frame executes. A return address is after the call, possibly in the next statement.
    pub(crate) fn instruction(&self) -> Addr {
        match self.left {
            Left::Call | Left::Helper | Left::Exception => self.ip.minus(1).unwrap_or(self.ip),
            Left::Fault | Left::Stopped => self.ip,
        }
    }
}

/// An explicit frame on a stack, as the walk found it.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeFrame {
    /// The frame.
    pub(crate) frame: ExplicitFrame,
    /// The instruction pointer of the walk when it met the frame.
    pub(crate) ip: Option<Addr>,
    /// Whether the explicit frame is within a managed frame that the walk has already entered. Such a frame does not prepare a call.
    pub(crate) within: bool,
    /// Whether the walk reports the references that the frame owns.
    pub(crate) reports: bool,
    /// For a call that the frame prepares: the words at the stack pointer of the caller, which passes further arguments there.
    pub(crate) passed: Option<AddrRange>,
}

/// Why the references of a stack are imprecise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GapReason {
    /// The registers of the thread are not in the dump.
    Registers,
    /// The code at an address cannot be looked up or unwound.
    Unwind(StackError),
    /// The frame chain cannot be followed.
    Frames(StackError),
    /// The references in a frame are not known.
    GcInfo(StackError),
    /// The references that native code protects are not known.
    Protected(StackError),
    /// The limit on frames or reads for a stack of this size was reached.
    Endless,
    /// The references in frames exceed the memory limit for a dump of this size.
    Memory,
    /// The stack also belongs to the `Thread` at this address, and was walked for that thread only.
    Claimed(Addr),
}

/// A part of a stack whose references are imprecise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Start of the part.
    pub(crate) from: Option<Addr>,
    /// End of the part; `None` for the rest of the stack.
    pub(crate) to: Option<Addr>,
    /// Registers that may hold references as well.
    pub(crate) registers: Box<[(&'static str, Saved)]>,
    /// Address in the code of the frame at which the gap begins.
    pub(crate) ip: Option<Addr>,
    /// The reason.
    pub(crate) lack: GapReason,
}

/// Marks a stack slot in place of a register's number.
const NO_REGISTER: u8 = u8::MAX;

/// A [`FrameSlot`] as stored in the walk.
#[derive(Clone, Copy, Debug)]
struct HeldSlot {
    /// The address; 0 if it is unknown.
    address: u64,
    /// The value; 0 if it is unknown.
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

/// Bytes of memory that a walk is charged for each GC slot of a managed frame, and for each slot that an explicit frame owns.
pub(super) const SLOT_BYTES: u64 = 24;
const _: () = assert!(size_of::<HeldSlot>() <= 24 && size_of::<Frame>() <= 64);

/// A walked stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// The frames, innermost first.
    pub(crate) frames: Vec<Frame>,
    /// The parts whose references are imprecise; empty for a complete stack.
    pub(crate) gaps: Vec<Gap>,
    /// The references that native code protects, innermost frame first.
    pub(crate) protected: Vec<ProtectedFrame>,
    held: Vec<HeldSlot>,
    contexts: Vec<GenericContext>,
    registers: Vec<(u8, Saved)>,
}

impl Walk {
    /// A stack of which nothing is known, with the reason.
    pub(crate) fn unknown(lack: GapReason) -> Walk {
        let gap = Gap { from: None, to: None, registers: Box::default(), ip: None, lack };
        Walk { gaps: vec![gap], ..Walk::default() }
    }

    /// Releases unused capacity, because a process may have a hundred thousand stacks.
    pub(super) fn fit(&mut self) {
        self.frames.shrink_to_fit();
        self.gaps.shrink_to_fit();
        self.protected.shrink_to_fit();
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

    /// Possible generic contexts of `frame`, likeliest first; empty except for shared generic code.
    pub(crate) fn contexts(&self, frame: &ManagedFrame) -> &[GenericContext] {
        frame.contexts.of(&self.contexts)
    }

    /// The registers of `frame` whose values are known; empty unless they were requested.
    pub(crate) fn registers(&self, frame: &ManagedFrame) -> &[(u8, Saved)] {
        frame.registers.of(&self.registers)
    }

    /// Whether the walk ended at a limit.
    pub(crate) fn is_cut(&self) -> bool {
        self.gaps.iter().any(|gap| gap.lack.is_limit())
    }

    /// Adds the slots that `frame` holds, unless there are more than `most`, and returns their number. `list` passes each slot to its
    /// argument.
    ///
    /// # Errors
    /// The error of `list`; `frame` then holds no slots.
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

    /// Adds the possible generic contexts of `frame`.
    pub(super) fn add_contexts(&mut self, frame: &mut ManagedFrame, contexts: impl Iterator<Item = GenericContext>) {
        let start = self.contexts.len();
        self.contexts.extend(contexts);
        frame.contexts = Span::since(start, &self.contexts);
    }

    /// Adds the registers of `frame`. Returns the bytes of memory that they take.
    pub(super) fn add_registers(&mut self, frame: &mut ManagedFrame, registers: impl Iterator<Item = (u8, Saved)>) -> u64 {
        let start = self.registers.len();
        self.registers.extend(registers);
        frame.registers = Span::since(start, &self.registers);
        u64::from(frame.registers.len).saturating_mul(len64(size_of::<(u8, Saved)>()))
    }
}

impl GapReason {
    /// Whether the reason is a limit, and not that something is missing from the dump or invalid.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self, GapReason::Endless | GapReason::Memory)
    }

    /// The error, if reading something failed.
    pub(crate) const fn error(&self) -> Option<&StackError> {
        match self {
            GapReason::Unwind(e) | GapReason::Frames(e) | GapReason::GcInfo(e) | GapReason::Protected(e) => Some(e),
            GapReason::Registers | GapReason::Endless | GapReason::Memory | GapReason::Claimed(_) => None,
        }
    }

    /// Whether frames are lost, and not only the references in a known frame.
    pub(crate) const fn loses_frames(&self) -> bool {
        !matches!(self, GapReason::GcInfo(_) | GapReason::Protected(_))
    }

    /// The source of the missing data of the code in `module`, if one is known.
    pub(crate) const fn remedy(&self, module: Option<&str>) -> Option<Remedy> {
        match (self, module) {
            (
                GapReason::Unwind(StackError::Read(_)) | GapReason::Frames(StackError::Read(_)) | GapReason::GcInfo(StackError::Read(_)),
                Some(_),
            ) => Some(Remedy::ModuleFile),
            _ => None,
        }
    }

    /// The reason as text, with the module of the code.
    pub(crate) fn reason(&self, module: Option<&str>) -> String {
        let of = |what: &str, e: &StackError| match module {
            Some(module) => format!("{what} in {module}: {e}"),
            None => format!("{what}: {e}"),
        };
        match self {
            GapReason::Registers => "the registers of the thread are not in the dump".into(),
            GapReason::Unwind(e) => of("code cannot be unwound", e),
            GapReason::Frames(e) => of("the frame chain cannot be followed", e),
            GapReason::GcInfo(e) => of("the references in a frame are unknown", e),
            GapReason::Protected(e) => format!("the references that native code protects are unknown: {e}"),
            GapReason::Endless => "the limit on frames or reads for a stack of its size was reached; the stack may be corrupt".into(),
            GapReason::Memory => "the references in its frames exceed the memory limit for a dump of this size".into(),
            GapReason::Claimed(by) => format!("the stack also belongs to the thread at {by}, and is walked only for that one"),
        }
    }
}

impl Location {
    /// The address of the stack slot; for a register, the address of the slot where a callee saved it.
    pub(crate) const fn address(&self) -> Option<Addr> {
        match self {
            Location::Register { place, .. } => *place,
            Location::Stack { address, .. } => *address,
        }
    }

    /// The location without the address.
    pub(crate) const fn place(&self) -> Place {
        match self {
            Location::Register { number, .. } => Place::Register(*number),
            Location::Stack { base, offset, .. } => Place::Stack { base: *base, offset: *offset },
        }
    }

    /// The location as in a disassembly: `[rbp-0x48]`, `rbx`. `frame_register` is the register that slots are relative to.
    pub(crate) fn text(&self, arch: Arch, frame_register: Option<u8>) -> String {
        self.place().text(arch, frame_register, self.address())
    }
}

impl Place {
    /// Formats the location as [`Location::text`] does. `address` is the address of the stack slot.
    pub(crate) fn text(self, arch: Arch, frame_register: Option<u8>, address: Option<Addr>) -> String {
        let names = RegisterNames::of(arch);
        let name = |number: u8| names.get(usize::from(number)).copied();
        match self {
            Place::Register(number) => match (name(number), address) {
                (Some(name), _) => name.into(),
                // A slot that an explicit frame owns has only an address.
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
