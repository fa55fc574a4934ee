//! The method activation whose handler is running.

use crate::base::Addr;
use crate::stack::code::Code;
use crate::stack::walked::Part;

/// Identifies the method activation whose handler is running. Its frame is the next frame of the method's body that has the same value in the
/// frame register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    method_desc: Addr,
    /// Number and value of the frame register; `None` if the GC info is missing or names no frame register.
    frame: Option<(u8, Option<u64>)>,
}

impl Parent {
    /// The activation whose handler has this code and this frame register. A handler has the frame register of its activation.
    pub(super) const fn of(handler: &Code, frame: Option<(u8, Option<u64>)>) -> Parent {
        Parent { method_desc: handler.method_desc, frame }
    }

    /// Whether a frame is that of the activation.
    pub(super) fn is(&self, code: &Code, part: Part, frame: Option<(u8, Option<u64>)>) -> bool {
        let same = self.frame.is_none() || frame.is_none() || self.frame == frame;
        part == Part::Body && code.method_desc == self.method_desc && same
    }

    /// Whether a frame at `sp` is above the frame of the activation, which the walk has then not met: it was in a gap. The frame register points
    /// into the frame of the activation, so the stack pointer there is not above it.
    pub(super) fn is_below(&self, sp: Addr) -> bool {
        self.place().is_some_and(|at| at < sp)
    }

    /// The address in the frame register.
    pub(super) fn place(&self) -> Option<Addr> {
        self.frame.and_then(|(_, value)| value).map(Addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_above_the_frame_register_are_not_unwound() {
        let parent = |frame| Parent { method_desc: Addr(0x10), frame };
        // A frame below the activation, the frame of the activation on arm64, and a frame of its caller.
        let above = |frame| [0x6f00, 0x7000, 0x7010].map(|sp| parent(frame).is_below(Addr(sp)));
        assert_eq!(above(Some((5, Some(0x7000)))), [false, false, true]);
        assert_eq!((above(Some((5, None))), above(None)), ([false; 3], [false; 3]));
        assert_eq!((parent(Some((5, None))).place(), parent(None).place()), (None, None));
    }
}
