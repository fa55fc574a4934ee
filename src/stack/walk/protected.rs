//! The references that native code protects.

use super::{SLOTS_OF_A_READ, Start, Walking, inside, told};
use crate::base::reads;
use crate::base::{Addr, len64};
use crate::stack::StackError;
use crate::stack::frames::ProtectedFrame;
use crate::stack::walked::{Gap, GapReason, SLOT_BYTES};

impl Walking<'_> {
    /// Lists the references that native code protects. If the list is damaged or missing, the whole stack is a gap, because the references are
    /// on the stack too.
    pub(super) fn protected(&mut self, start: &Start) {
        if !self.asked.roots {
            return;
        }
        if let Err(e) = self.list_protected(start) {
            let lack = told(GapReason::Protected(e));
            self.out.gaps.push(Gap { from: None, to: None, registers: Box::default(), ip: None, lack });
        }
    }

    fn list_protected(&mut self, start: &Start) -> Result<(), StackError> {
        let bytes = self.walker.code.bytes();
        let Some(frames) = self.walker.frames.protected() else { return Ok(()) };
        let Some(first) = frames.first(bytes, start.thread) else {
            for stack in [start.stack, start.own].into_iter().flatten() {
                reads::take(stack.len() / 8 / SLOTS_OF_A_READ);
                for frame in frames.find(bytes, start.thread, stack) {
                    if !self.keep(frame) {
                        break;
                    }
                }
            }
            return Ok(());
        };
        let (mut next, mut before): (_, Option<Addr>) = (first?, None);
        while let Some(at) = next {
            // The frames are on the stack, inner ones below outer ones, except where the list leads from the signal stack to the normal stack.
            let crosses = |before: Addr| start.own.is_some_and(|own| own.contains(at) && !own.contains(before));
            if !at.is_aligned(8) || before.is_some_and(|b| at <= b && !crosses(b)) || !inside(start.stack, at) {
                let what = "the list of protected references has an invalid link";
                // On Windows, the context of the exception is that of the throw, and the runtime runs below it while it handles the exception.
                let is_below = before.is_none() && start.stack.is_some_and(|stack| at < stack.start);
                return Err(if is_below { StackError::invalid(at, what) } else { StackError::broken(at, what) });
            }
            let (frame, outer) = frames.read(bytes, at)?;
            if !self.keep(frame) {
                return Ok(());
            }
            (before, next) = (Some(at), outer);
        }
        Ok(())
    }

    /// Adds a frame. Returns whether the budget allows more.
    fn keep(&mut self, frame: ProtectedFrame) -> bool {
        let slots = frame.slots.len() / 8;
        reads::take(slots / SLOTS_OF_A_READ);
        let bytes = slots.saturating_mul(SLOT_BYTES).saturating_add(len64(size_of::<ProtectedFrame>()));
        let kept = !reads::exhausted() && self.afford(frame.address, bytes);
        if kept {
            self.out.protected.push(frame);
        }
        kept
    }
}
