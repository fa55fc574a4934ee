//! The references that a frame holds.

use super::live::Point;
use super::slots::{Place, Slot, SlotBase};
use super::{Encoding, GcInfo, GcInfoError};
use crate::base::{Addr, Os};
use crate::stack::{CodeBytes, Registers, Saved};

/// How a frame was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The thread was stopped at the instruction pointer, where execution continues. The registers are the registers of the thread or of a
    /// `ResumableFrame`.
    Leaf,
    /// The instruction pointer is a return address.
    Return,
    /// The frame threw or faulted, and will not continue at its instruction pointer.
    Exception,
    /// The instruction pointer is a return address, possibly of a call of a JIT helper, which need not be a safe point.
    Helper,
}

/// A frame whose references are queried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameState<'a> {
    /// Offset of the instruction pointer from the method's start in bytes, also inside funclets.
    pub(crate) offset: u32,
    /// How the frame was left.
    pub(crate) kind: FrameKind,
    /// The registers of the frame.
    pub(crate) registers: &'a Registers,
    /// The stack pointer of the caller.
    pub(crate) caller_sp: Addr,
    /// The operating system, which determines the registers that calls preserve.
    pub(crate) os: Os,
    /// Whether to report untracked slots. False for a filter funclet, because the frame of the method reports them.
    pub(crate) untracked: bool,
}

/// The location of a reference in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a register.
    Register {
        /// Number of the register.
        number: u8,
        /// The stack slot where a callee saved the register; `None` if the value is still in the thread's register.
        place: Option<Addr>,
    },
    /// On the stack.
    Stack {
        /// The address; `None` if the register that the offset is relative to is unknown.
        address: Option<Addr>,
        /// The base that the offset is relative to.
        base: SlotBase,
        /// Offset in bytes.
        offset: i32,
    },
}

/// A reference that a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameSlot {
    /// Location of the reference.
    pub(crate) location: Location,
    /// The reference, never 0. `None` if the reference is unknown because the register is unknown, or because the stack slot has no known
    /// address or is not in the dump.
    pub(crate) value: Option<u64>,
    /// Whether the reference may point into an object, or outside the heap.
    pub(crate) interior: bool,
    /// Whether the reference pins the object.
    pub(crate) pinned: bool,
}

/// The slots of a method that are reported.
struct Reported {
    /// The point at which tracked slots are looked up; `None` if no tracked slot is live.
    point: Option<Point>,
    /// Whether to report registers and stack slots that a call may overwrite.
    scratch: bool,
}

impl GcInfo {
    /// Calls `each` for the slots of `frame` that hold references, without the slots that hold null.
    ///
    /// # Errors
    /// Fails if the offset is not in the method, and if the part with the live slots is missing or invalid. Values that cannot be read
    /// are not an error.
    pub(crate) fn report(&self, bytes: &CodeBytes, frame: &FrameState<'_>, mut each: impl FnMut(FrameSlot)) -> Result<(), GcInfoError> {
        let (offset, code_length) = (frame.offset, self.header.code_length);
        if offset > code_length {
            return Err(GcInfoError::Outside { offset, code_length });
        }
        let Some(reported) = self.reported(offset, frame.kind) else { return Ok(()) };
        let mut add = |slot: &Slot, scratch: bool| {
            if scratch || !self.is_scratch(slot, frame) {
                self.read(slot, bytes, frame).into_iter().for_each(&mut each);
            }
        };
        if let Some(point) = reported.point {
            let tracked = self.slots.tracked();
            self.live(bytes, point)?.into_iter().filter_map(|i| tracked.get(i)).for_each(|slot| add(slot, reported.scratch));
        }
        if frame.untracked {
            self.slots.untracked().iter().for_each(|slot| add(slot, true));
        }
        Ok(())
    }

    /// The slots of `frame` that hold references.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn roots(&self, bytes: &CodeBytes, frame: &FrameState<'_>) -> Result<Vec<FrameSlot>, GcInfoError> {
        let mut roots = Vec::new();
        self.report(bytes, frame, |slot| roots.push(slot))?;
        Ok(roots)
    }

    /// Whether the info describes the live slots at `offset`. A thread that no collection has stopped may be at an offset that the info does not
    /// describe.
    pub(crate) fn describes(&self, offset: u32, kind: FrameKind) -> bool {
        let encoding = &self.encoding;
        let safe_point = || self.safe_point(encoding.safe_point(offset)).is_some();
        match kind {
            FrameKind::Leaf => self.range(offset.checked_div(encoding.unit)).is_some() || encoding.leaves_at_safe_points() && safe_point(),
            FrameKind::Helper => safe_point() || self.range(encoding.in_range(offset)).is_some(),
            FrameKind::Return | FrameKind::Exception => true,
        }
    }

    /// The slots to report for a frame; `None` if not even untracked slots are reported.
    fn reported(&self, offset: u32, kind: FrameKind) -> Option<Reported> {
        let scratch = kind == FrameKind::Leaf;
        let nothing_tracked = Some(Reported { point: None, scratch });
        if self.slots.tracked().is_empty() {
            return nothing_tracked;
        }
        let encoding = &self.encoding;
        let here = offset.checked_div(encoding.unit);
        let safe_point = || self.safe_point(encoding.safe_point(offset));
        let point = match kind {
            FrameKind::Leaf if encoding.leaves_at_safe_points() => self.range(here).or_else(safe_point),
            FrameKind::Leaf | FrameKind::Exception => self.range(here),
            FrameKind::Return | FrameKind::Helper => safe_point().or_else(|| self.range(encoding.in_range(offset))),
        };
        match point {
            Some(point) => Some(Reported { point: Some(point), scratch }),
            // A collection stops a method with ranges only inside them or at safe points, so no slot is reported here.
            None if self.has_ranges() => None,
            None => nothing_tracked,
        }
    }

    /// Whether calls may overwrite `slot`, so that it cannot hold a reference across a call.
    fn is_scratch(&self, slot: &Slot, frame: &FrameState<'_>) -> bool {
        match slot.place {
            Place::Register(number) => self.encoding.is_scratch(number, frame.os),
            Place::Stack { base, offset } => {
                let end = frame.registers.sp().map(|sp| sp.plus(u64::from(self.header.outgoing_area)));
                self.address(base, offset, frame).zip(end).is_some_and(|(address, end)| address < end)
            }
        }
    }

    /// The address of a stack slot.
    fn address(&self, base: SlotBase, offset: i32, frame: &FrameState<'_>) -> Option<Addr> {
        let base = match base {
            SlotBase::CallerSp => frame.caller_sp,
            SlotBase::Sp => frame.registers.sp()?,
            SlotBase::FrameRegister => Addr(frame.registers.value(self.header.frame_register?)?),
        };
        base.0.checked_add_signed(i64::from(offset)).map(Addr)
    }

    /// The contents of `slot`, unless it holds null.
    fn read(&self, slot: &Slot, bytes: &CodeBytes, frame: &FrameState<'_>) -> Option<FrameSlot> {
        let (location, value) = match slot.place {
            Place::Register(number) => {
                let Saved { value, place } = frame.registers.get(number);
                (Location::Register { number, place }, value)
            }
            Place::Stack { base, offset } => {
                let address = self.address(base, offset, frame);
                (Location::Stack { address, base, offset }, address.and_then(|a| bytes.memory().u64(a).ok()))
            }
        };
        (value != Some(0)).then_some(FrameSlot { location, value, interior: slot.interior, pinned: slot.pinned })
    }
}

impl Encoding {
    /// Whether calls may overwrite register `number`.
    fn is_scratch(&self, number: u8, os: Os) -> bool {
        match number {
            _ if self.is_arm64() => number <= 17 || number >= 29,
            // rbx, rbp, r12 to r15.
            3 | 5 | 12..=15 => false,
            // rsi, rdi.
            6 | 7 => os != Os::Windows,
            _ => true,
        }
    }
}
