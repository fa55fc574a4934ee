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
        method_desc: opt "MethodDesc",
        attributes: req "Attributes",
        entry: opt "FCallEntry",
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

layout! {
    struct EntryLayout : "ECHash" {
        next: req "Next",
        implementation: req "Implementation",
        method_desc: req "MethodDesc",
    }
}

/// Attribute of a frame for an exception that the runtime throws (`FRAME_ATTR_EXCEPTION`, frames.h).
const EXCEPTION: u32 = 1;
/// Most native frames between a helper and its managed caller; two were met.
const MAX_NATIVE: usize = 32;
/// Most references that a frame protects.
const MAX_SLOTS: u32 = 1 << 16;

/// Most functions in a bucket of the table of native functions; four were met.
const MAX_BUCKET: usize = 1 << 10;

/// The table of native functions of the runtime that managed code calls directly, by address (`gFCallMethods`, ecall.cpp).
#[derive(Debug)]
struct NativeFunctions {
    table: Addr,
    buckets: u64,
    entry: EntryLayout,
}

impl NativeFunctions {
    fn bind(d: &Descriptor) -> Option<NativeFunctions> {
        let (table, buckets) = (d.pointer("FCallMethods").ok()?, d.number("FCallHashSize").ok()?);
        Some(NativeFunctions { table, buckets, entry: EntryLayout::bind(d).ok()? })
    }

    /// The method that the function at `address` implements; `None` for a helper of the JIT, which implements none.
    fn method(&self, bytes: &CodeBytes, address: u64) -> Option<Addr> {
        let mut at = self.table.element(address.checked_rem(self.buckets)?, 8);
        for _ in 0..MAX_BUCKET {
            let entry = Addr(bytes.u64(at).ok()?);
            if entry.is_null() {
                return None;
            }
            if bytes.u64(entry.plus(self.entry.implementation)).ok()? == address {
                return bytes.u64(entry.plus(self.entry.method_desc)).ok().map(Addr);
            }
            at = entry.plus(self.entry.next);
        }
        None
    }
}

/// Reads these frames.
#[derive(Debug)]
pub(super) struct Helper {
    frame: HelperLayout,
    state: StateLayout,
    /// `None` if the runtime does not describe them.
    functions: Option<NativeFunctions>,
}

impl Helper {
    pub(super) fn bind(d: &Descriptor) -> Option<Helper> {
        Some(Helper { frame: HelperLayout::bind(d).ok()?, state: StateLayout::bind(d).ok()?, functions: NativeFunctions::bind(d) })
    }

    /// The method that the helper implements, as `HelperMethodFrame::GetFunction` of the DAC finds it. The frame notes it with the
    /// registers of its caller; before, it has the function's address only.
    pub(super) fn method(&self, bytes: &CodeBytes, frame: Addr) -> Option<Addr> {
        let word = |at: Addr| bytes.u64(at).ok();
        let noted = word(frame.plus(self.frame.state).plus(self.state.return_address))? != 0;
        match self.frame.method_desc.filter(|_| noted) {
            Some(offset) => word(frame.plus(offset)).map(Addr),
            None => self.functions.as_ref()?.method(bytes, word(frame.plus(self.frame.entry?)).filter(|entry| *entry != 0)?),
        }
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
