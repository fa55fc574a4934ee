//! Arguments that the caller of a prepared call passes on the stack.

use super::Walking;
use crate::base::{Addr, AddrRange};
use crate::stack::code::Code;
use crate::stack::walked::Frame;

impl Walking<'_> {
    /// If an explicit frame prepares the call that the method of `code` makes, adds to it the words at the stack pointer `sp` where the method
    /// passes arguments. Neither the method nor the frame reports them: the callee would, which has not been entered.
    pub(super) fn arguments(&mut self, code: &Code, sp: Addr) {
        let Some(index) = self.calls.take().filter(|_| !self.blind) else { return };
        // Without the GC info, all of the method's stack frame is a gap.
        let Ok(info) = self.gc_info(code) else { return };
        let home = self.walker.frames.home_bytes();
        let bytes = u64::from(info.header().outgoing_area).saturating_sub(home);
        if bytes > 0
            && let Some(Frame::Runtime(frame)) = self.out.frames.get_mut(index)
        {
            let start = sp.plus(home);
            frame.passed = Some(AddrRange::of(start, bytes));
        }
    }
}
