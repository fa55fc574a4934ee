//! The frame chain: follows it and lists its explicit frames.

use super::{GAP_BYTES, SLOTS_OF_A_READ, Start, Walking, inside, told};
use crate::base::reads;
use crate::base::{Addr, PAGE};
use crate::stack::StackError;
use crate::stack::frames::ExplicitFrame;
use crate::stack::walked::{Frame, Gap, GapReason, RuntimeFrame, SLOT_BYTES};

impl Walking<'_> {
    /// The explicit frame with which the walk continues when it cannot unwind the code at `ip`. If `next` is `led`, which led to `ip`, it is
    /// listed and skipped.
    pub(super) fn past(&mut self, next: Option<ExplicitFrame>, led: Option<Addr>, (start, ip): (&Start, Addr)) -> Option<ExplicitFrame> {
        match next {
            Some(frame) if Some(frame.address) == led => {
                // The gap that begins here extends to the end of the stack if the chain ends.
                let next = self.after(&frame, start).map_err(|e| told(GapReason::Frames(e))).ok().flatten();
                self.out.frames.push(Frame::Runtime(RuntimeFrame { frame, ip: Some(ip), within: true, reports: false, passed: None }));
                next
            }
            next => next,
        }
    }

    /// The frame after `frame` in the frame chain.
    pub(super) fn after(&self, frame: &ExplicitFrame, start: &Start) -> Result<Option<ExplicitFrame>, StackError> {
        let next = self.walker.frames.next(self.walker.code.bytes(), frame)?;
        next.map(|at| self.explicit(at, Some(frame.address), start)).transpose()
    }

    /// Reads the explicit frame at `at`, which must be aligned, on the stack, and above the explicit frame at `before`. Only the link from the
    /// signal stack to the normal stack may lead to a lower address.
    pub(super) fn explicit(&self, at: Addr, before: Option<Addr>, start: &Start) -> Result<ExplicitFrame, StackError> {
        let crosses = |before: Addr| start.own.is_some_and(|own| own.contains(at) && !own.contains(before));
        if !at.is_aligned(8) || before.is_some_and(|b| at <= b && !crosses(b)) || !inside(start.stack, at) {
            return Err(StackError::broken(at, "the frame chain has an invalid link"));
        }
        self.walker.frames.read(self.walker.code.bytes(), at)
    }

    /// Adds an explicit frame, and a gap if the references that it owns cannot be read. `reached` is the stack pointer that unwinding has reached.
    pub(super) fn runtime(&mut self, frame: &ExplicitFrame, ip: Option<Addr>, reached: Addr) {
        if frame.is_unhandled() {
            self.unknown = Some(frame.address);
        }
        let mut reports = self.asked.roots && self.parent.is_none_or(|parent| parent.is_below(frame.address));
        if reports && frame.protects_unread() && self.afford(frame.address, GAP_BYTES) {
            let from = Some(reached).filter(|at| !at.is_null() && *at < frame.address).unwrap_or(frame.address);
            let lack = GapReason::GcInfo(StackError::Unsupported { at: frame.address, what: "a list of protected structures" });
            let to = Some(frame.address.plus(PAGE));
            self.out.gaps.push(Gap { from: Some(from), to, registers: Box::default(), ip: None, lack });
        }
        match self.walker.owned(frame) {
            Ok(owned) => {
                let slots = if reports { owned.slot_count() } else { 0 };
                reads::take(slots / SLOTS_OF_A_READ);
                reports &= slots == 0 || self.afford(frame.address, slots.saturating_mul(SLOT_BYTES));
            }
            Err(e) => {
                reports = false;
                if self.afford(frame.address, GAP_BYTES) {
                    let (from, to) = (Some(frame.address), Some(frame.address.plus(PAGE)));
                    let lack = told(GapReason::GcInfo(e));
                    self.out.gaps.push(Gap { from, to, registers: Box::default(), ip: None, lack });
                }
            }
        }
        self.calls = Some(self.out.frames.len()).filter(|_| reports && frame.passes_arguments());
        self.out.frames.push(Frame::Runtime(RuntimeFrame { frame: frame.clone(), ip, within: false, reports, passed: None }));
    }
}
