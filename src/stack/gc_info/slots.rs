//! Slots: registers and stack slots in which a method may keep references.

use super::bits::Bits;
use super::encoding::Encoding;
use super::error::GcInfoError;

/// Maximum number of slots of a method. Compilers track a few thousand, and do not optimize methods that need more.
const MAX_SLOTS: u32 = 100_000;

/// The base that the offset of a stack slot is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotBase {
    /// The caller's stack pointer, after the call returns.
    CallerSp,
    /// The stack pointer.
    Sp,
    /// The frame register.
    FrameRegister,
}

/// The location of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Register(u8),
    Stack { base: SlotBase, offset: i32 },
}

/// A register or stack slot that may hold a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) place: Place,
    /// Whether the reference may point into an object, or outside the heap.
    pub(super) interior: bool,
    /// Whether the object must not be moved.
    pub(super) pinned: bool,
}

/// The slots of a method.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    all: Box<[Slot]>,
    tracked: usize,
}

impl Slots {
    /// The slots that are live only at some offsets: registers, then stack slots.
    pub(super) fn tracked(&self) -> &[Slot] {
        self.all.get(..self.tracked).unwrap_or_default()
    }

    /// The slots that are live everywhere after the prologue.
    pub(super) fn untracked(&self) -> &[Slot] {
        self.all.get(self.tracked..).unwrap_or_default()
    }

    /// Reads the slot table.
    pub(super) fn read(bits: &mut Bits<'_>, encoding: &Encoding, has_frame_register: bool) -> Result<Slots, GcInfoError> {
        let registers = if bits.bit()? { bits.unsigned(encoding.registers)? } else { 0 };
        let (stack, untracked) = if bits.bit()? { (bits.unsigned(2)?, bits.unsigned(1)?) } else { (0, 0) };
        let tracked = u64::from(registers).saturating_add(u64::from(stack));
        if tracked.saturating_add(u64::from(untracked)) > u64::from(MAX_SLOTS) {
            return Err(bits.bad("more than 100,000 slots"));
        }
        let mut all = Vec::new();
        read_registers(bits, encoding, registers, &mut all)?;
        read_stack(bits, stack, has_frame_register, &mut all)?;
        let tracked = all.len();
        read_stack(bits, untracked, has_frame_register, &mut all)?;
        Ok(Slots { all: all.into_boxed_slice(), tracked })
    }
}

/// Reads the flags `interior` and `pinned`.
fn flags(bits: &mut Bits<'_>) -> Result<(bool, bool), GcInfoError> {
    bits.read(2).map(|flags| (flags & 1 != 0, flags & 2 != 0))
}

fn read_registers(bits: &mut Bits<'_>, encoding: &Encoding, count: u32, all: &mut Vec<Slot>) -> Result<(), GcInfoError> {
    let mut last: Option<(u32, (bool, bool))> = None;
    for _ in 0..count {
        let (number, (interior, pinned)) = match last {
            // After a slot without flags, only the distance to the next slot is stored. The next slot has no flags either.
            Some((number, (false, false))) => (number.saturating_add(bits.unsigned(2)?).saturating_add(1), (false, false)),
            _ => (bits.unsigned(3)?, flags(bits)?),
        };
        let register = encoding.register(number).ok_or_else(|| bits.bad("a register that the architecture does not have"))?;
        all.push(Slot { place: Place::Register(register), interior, pinned });
        last = Some((number, (interior, pinned)));
    }
    Ok(())
}

fn read_stack(bits: &mut Bits<'_>, count: u32, has_frame_register: bool, all: &mut Vec<Slot>) -> Result<(), GcInfoError> {
    let mut last: Option<(i32, (bool, bool))> = None;
    for _ in 0..count {
        let base = match bits.read(2)? {
            0 => SlotBase::CallerSp,
            1 => SlotBase::Sp,
            2 if has_frame_register => SlotBase::FrameRegister,
            2 => return Err(bits.bad("a slot relative to a frame register that the method does not have")),
            _ => return Err(bits.bad("a slot relative to base 3, which does not exist")),
        };
        let (words, (interior, pinned)) = match last {
            Some((words, (false, false))) => (words.checked_add_unsigned(bits.unsigned(4)?), (false, false)),
            _ => (Some(bits.signed(6)?), flags(bits)?),
        };
        let far = |bits: &Bits<'_>| bits.bad("a stack slot is too far away");
        let words = words.ok_or_else(|| far(bits))?;
        let offset = words.checked_mul(8).ok_or_else(|| far(bits))?;
        all.push(Slot { place: Place::Stack { base, offset }, interior, pinned });
        last = Some((words, (interior, pinned)));
    }
    Ok(())
}
