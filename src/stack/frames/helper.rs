//! `HelperMethodFrame` (.NET 8 and 9): a call from managed code to a native helper of the runtime.
//!
//! The frame has the registers of the helper, but not the registers of the helper's managed caller. The runtime adds the caller's registers
//! (`MachineState`) when it needs them. Until then, only unwinding the helper's native frames yields the caller's registers.

use super::{Caller, FrameReader, Left, Protected, Slots};
use crate::base::Addr;
use crate::contract::Descriptor;
use crate::data::{Bound, ECHash, HelperMethodFrame as Frame, MachineState as State, bind};
use crate::stack::code::CodeMap;
use crate::stack::native::Native;
use crate::stack::{CodeBytes, Saved, StackError};

/// Attribute of the frame of an exception that the runtime throws (`FRAME_ATTR_EXCEPTION`, frames.h).
const EXCEPTION: u32 = 1;
/// Maximum number of native frames between a helper and its managed caller; at most two were seen.
const MAX_NATIVE: usize = 32;
/// Maximum number of references that a frame protects.
const MAX_SLOTS: u32 = 1 << 16;

/// Maximum number of functions in a bucket of the table of native functions; at most four were seen.
const MAX_BUCKET: usize = 1 << 10;

/// The table of native functions of the runtime that managed code calls directly, by address (`gFCallMethods`, ecall.cpp).
#[derive(Debug)]
struct NativeFunctions {
    table: Addr,
    buckets: u64,
    entry: Bound<ECHash>,
}

impl NativeFunctions {
    fn bind(d: &Descriptor) -> Option<NativeFunctions> {
        let (table, buckets) = (d.pointer("FCallMethods").ok()?, d.number("FCallHashSize").ok()?);
        Some(NativeFunctions { table, buckets, entry: bind!(d, ECHash { Next, Implementation, MethodDesc }).ok()? })
    }

    /// The method that the function at `address` implements; `None` for a JIT helper, which does not implement a method.
    fn method(&self, bytes: &CodeBytes, address: Addr) -> Option<Addr> {
        let mut entry = Addr(bytes.u64(self.table.element(address.0.checked_rem(self.buckets)?, 8)).ok()?);
        for _ in 0..MAX_BUCKET {
            if entry.is_null() {
                return None;
            }
            if self.entry.get(bytes, entry, ECHash::Implementation)? == address {
                return self.entry.get(bytes, entry, ECHash::MethodDesc);
            }
            entry = self.entry.get(bytes, entry, ECHash::Next)?;
        }
        None
    }
}

/// Reads `HelperMethodFrame`s.
#[derive(Debug)]
pub(super) struct Helper {
    frame: Bound<Frame>,
    state: Bound<State>,
    /// The table of native functions; `None` if the runtime does not describe it.
    functions: Option<NativeFunctions>,
}

impl Helper {
    pub(super) fn bind(d: &Descriptor) -> Option<Helper> {
        let (frame, state) = (
            bind!(d, Frame { MethodDesc?, Attributes, FCallEntry?, MachineState, Slots, SlotCount }).ok()?,
            bind!(d, State { Rip, Rsp, Captured, Pointers, ReturnAddress, Unwound?, CaptureRip, CaptureRsp }).ok()?,
        );
        Some(Helper { frame, state, functions: NativeFunctions::bind(d) })
    }

    /// The method that the helper implements, found as in `HelperMethodFrame::GetFunction` of the DAC. The runtime adds the method to the frame
    /// together with the caller's registers; until then, the frame has only the address of the native function.
    pub(super) fn method(&self, bytes: &CodeBytes, frame: Addr) -> Option<Addr> {
        let state = self.frame.place(frame, Frame::MachineState)?;
        let noted = !self.state.get(bytes, state, State::ReturnAddress)?.is_null();
        if noted && self.frame.has(Frame::MethodDesc) {
            return self.frame.get(bytes, frame, Frame::MethodDesc);
        }
        let functions = self.functions.as_ref()?;
        functions.method(bytes, self.frame.get(bytes, frame, Frame::FCallEntry).filter(|entry| !entry.is_null())?)
    }

    /// The managed caller of the helper whose frame is at `frame`.
    pub(super) fn caller(&self, of: &FrameReader, code: &CodeMap, runtime: &Native, frame: Addr) -> Result<Caller, StackError> {
        let (bytes, state) = (code.bytes(), self.frame.at(frame, Frame::MachineState)?);
        let of_state = |field| self.state.read(bytes, state, field);
        let exception = self.frame.read(bytes, frame, Frame::Attributes)? & EXCEPTION != 0;
        let left = if exception { Left::Exception } else { Left::Call };
        if !of_state(State::ReturnAddress)?.is_null() {
            let mut registers = of.blank(of_state(State::Rip)?, of_state(State::Rsp)?, frame)?;
            let (pointers, unwound) = (self.state.at(state, State::Pointers)?, self.state.place(state, State::Unwound));
            for (number, offset) in &of.callee_saved {
                let place = Addr(bytes.u64(pointers.plus(*offset))?);
                let saved = match unwound {
                    Some(unwound) if place.is_null() => {
                        let place = unwound.plus(*offset);
                        Saved { value: Some(bytes.u64(place)?), place: Some(place) }
                    }
                    None if place.is_null() => Saved::default(),
                    _ => Saved { value: Some(bytes.u64(place)?), place: Some(place) },
                };
                registers.set(*number, saved);
            }
            return Ok(Caller { registers, left });
        }
        // The function that captured the stack pointer has returned, which popped 8 bytes.
        let sp = of_state(State::CaptureRsp)?.plus(8);
        let mut registers = of.blank(of_state(State::CaptureRip)?, sp, frame)?;
        of.callee_saved(bytes, self.state.at(state, State::Captured)?, &mut registers)?;
        for _ in 0..MAX_NATIVE {
            if runtime.image().is_none() {
                return Err(StackError::Unsupported { at: frame, what: "a native helper of a runtime whose image is unknown" });
            }
            registers = runtime.step(bytes, &registers, false)?.registers;
            if code.paid(registers.ip)?.is_some() {
                return Ok(Caller { registers, left });
            }
        }
        Err(StackError::invalid(frame, "no managed caller found above a native helper"))
    }

    /// The slots of the references that the frame protects.
    pub(super) fn slots(&self, bytes: &CodeBytes, frame: Addr, protected: Protected) -> Result<Slots, StackError> {
        let first = self.frame.at(frame, Frame::Slots)?;
        match protected {
            Protected::Slots(count) => {
                let mut each = [Addr::NULL; 3];
                for (i, slot) in (0..u64::from(count)).zip(&mut each) {
                    *slot = Addr(bytes.u64(first.element(i, 8))?);
                }
                Ok(Slots::Each(each, count))
            }
            Protected::Array => {
                let (array, count) = (Addr(bytes.u64(first)?), self.frame.read(bytes, frame, Frame::SlotCount)?);
                if count > MAX_SLOTS {
                    return Err(StackError::invalid(frame, "a frame protects too many references"));
                }
                Ok(Slots::Array(array, count))
            }
        }
    }
}
