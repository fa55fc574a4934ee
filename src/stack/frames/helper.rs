//! `HelperMethodFrame` (.NET 8 and 9): managed code called a native helper of the runtime.
//!
//! The frame remembers where the helper stood, not its managed caller. Once the runtime had to know, it noted the caller's registers
//! (`MachineState`); before, the helper's native frames must be unwound.

use super::{Caller, FrameReader, Left, Protected, Slots};
use crate::base::Addr;
use crate::contract::Descriptor;
use crate::contract::descriptor::layout;
use crate::stack::code::CodeMap;
use crate::stack::native::Native;
use crate::stack::{CodeBytes, Saved, StackError};

layout! {
    struct HelperLayout : "HelperMethodFrame" {
        attributes: req "Attributes",
        state: req "MachineState",
        slots: req "Slots",
        slot_count: req "SlotCount",
    }
}

layout! {
    struct StateLayout : "MachineState" {
        ip: req "Rip",
        sp: req "Rsp",
        captured: req "Captured",
        pointers: req "Pointers",
        return_address: req "ReturnAddress",
        unwound: opt "Unwound",
        capture_ip: req "CaptureRip",
        capture_sp: req "CaptureRsp",
    }
}

/// Attribute of a frame for an exception that the runtime throws (`FRAME_ATTR_EXCEPTION`, frames.h).
const EXCEPTION: u32 = 1;
/// Most native frames between a helper and its managed caller; two were met.
const MAX_NATIVE: usize = 32;
/// Most references that a frame protects.
const MAX_SLOTS: u32 = 1 << 16;

/// Reads these frames.
#[derive(Debug)]
pub(super) struct Helper {
    frame: HelperLayout,
    state: StateLayout,
}

impl Helper {
    pub(super) fn bind(d: &Descriptor) -> Option<Helper> {
        Some(Helper { frame: HelperLayout::bind(d).ok()?, state: StateLayout::bind(d).ok()? })
    }

    /// The managed caller of the helper whose frame is at `frame`.
    pub(super) fn caller(&self, of: &FrameReader, code: &CodeMap, runtime: &Native, frame: Addr) -> Result<Caller, StackError> {
        let (bytes, l, state) = (code.bytes(), &self.state, frame.plus(self.frame.state));
        let word = |offset: u64| bytes.u64(state.plus(offset));
        let exception = bytes.u32(frame.plus(self.frame.attributes))? & EXCEPTION != 0;
        let left = if exception { Left::Exception } else { Left::Call };
        if word(l.return_address)? != 0 {
            let mut registers = of.blank(Addr(word(l.ip)?), Addr(word(l.sp)?), frame)?;
            for (number, offset) in &of.callee_saved {
                let place = Addr(word(l.pointers.saturating_add(*offset))?);
                let saved = match l.unwound {
                    Some(unwound) if place.is_null() => {
                        let place = state.plus(unwound).plus(*offset);
                        Saved { value: Some(bytes.u64(place)?), place: Some(place) }
                    }
                    None if place.is_null() => Saved::default(),
                    _ => Saved { value: Some(bytes.u64(place)?), place: Some(place) },
                };
                registers.set(*number, saved);
            }
            return Ok(Caller { registers, left });
        }
        // The stack pointer was captured by a function that has returned.
        let sp = Addr(word(l.capture_sp)?).plus(8);
        let mut registers = of.blank(Addr(word(l.capture_ip)?), sp, frame)?;
        of.callee_saved(bytes, state.plus(l.captured), &mut registers)?;
        for _ in 0..MAX_NATIVE {
            if runtime.image().is_none() {
                return Err(StackError::Unsupported { at: frame, what: "a native helper of an unknown runtime image" });
            }
            registers = runtime.step(bytes, &registers, false)?.registers;
            if code.paid(registers.ip)?.is_some() {
                return Ok(Caller { registers, left });
            }
        }
        Err(StackError::invalid(frame, "a native helper has no managed caller"))
    }

    /// Slots of the references that the frame protects.
    pub(super) fn slots(&self, bytes: &CodeBytes, frame: Addr, protected: Protected) -> Result<Slots, StackError> {
        let first = frame.plus(self.frame.slots);
        match protected {
            Protected::Slots(count) => {
                let mut each = [Addr::NULL; 3];
                for (i, slot) in (0..u64::from(count)).zip(&mut each) {
                    *slot = Addr(bytes.u64(first.element(i, 8))?);
                }
                Ok(Slots::Each(each, count))
            }
            Protected::Array => {
                let (array, count) = (Addr(bytes.u64(first)?), bytes.u32(frame.plus(self.frame.slot_count))?);
                if count > MAX_SLOTS {
                    return Err(StackError::invalid(frame, "a frame protects too many references"));
                }
                Ok(Slots::Array(array, count))
            }
        }
    }
}
