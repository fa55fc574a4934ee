//! The references that native code protects from collections while it uses them. Each `GCFrame` has an array of them.
//!
//! Source: `GCFrame` (frames.h), `ScanStackRoots` (gcenv.ee.cpp). Native code of the runtime has these frames on the stack (`GCPROTECT_BEGIN`);
//! so has reflection, for the arguments of the call that it makes (`GCFrameRegistration`).

use crate::base::missed::watched;
use crate::base::{Addr, AddrRange};
use crate::contract::Descriptor;
use crate::data::{Bound, GCFrame, Thread, bind};
use crate::stack::{CodeBytes, StackError};

/// The link that ends a list of explicit frames.
pub(super) const END: Addr = Addr(u64::MAX);
/// Maximum number of references of a frame that was found by what it looks like.
const MOST_FOUND: u64 = 1 << 10;
/// The bit of `GCFlags` for interior pointers.
const INTERIOR: u32 = 1;

/// Reads lists of `GCFrame`s.
#[derive(Debug)]
pub(crate) struct ProtectedFrames {
    /// Offset of the pointer to the innermost frame in a `Thread`, if it is known.
    thread: Option<Bound<Thread>>,
    frame: Bound<GCFrame>,
}

/// References that native code protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtectedFrame {
    /// Address of the `GCFrame`.
    pub(crate) address: Addr,
    /// The array of references.
    pub(crate) slots: AddrRange,
    /// Whether the references may be interior pointers.
    pub(crate) interior: bool,
    /// Whether the frame is in the list of its thread. Otherwise it was found by what it looks like, and may be stale.
    pub(crate) listed: bool,
}

impl ProtectedFrame {
    /// The name of the frames in answers.
    pub(crate) const NAME: &str = "GCFrame";

    /// The addresses of the references.
    pub(crate) fn each(self) -> impl Iterator<Item = Addr> {
        (0..self.slots.len() / 8).map(move |i| self.slots.start.element(i, 8))
    }
}

impl ProtectedFrames {
    /// Binds to a runtime; `None` if the descriptor describes neither the list nor what its frames look like.
    pub(super) fn bind(d: &Descriptor) -> Option<ProtectedFrames> {
        let thread = bind!(d, Thread { GCFrame }).ok();
        let frame = bind!(d, GCFrame { Next, CurThread?, ObjRefs, NumObjRefs, GCFlags }).ok()?;
        (thread.is_some() || frame.has(GCFrame::CurThread)).then_some(ProtectedFrames { thread, frame })
    }

    /// The address of the innermost frame of a thread, `Some(None)` if it has none. `None` if the pointer to it is not described, or is not in the
    /// dump but [`find`](ProtectedFrames::find) can replace it. Copies by earlier versions of `gcdump trim` do not have it; in other dumps, it is a
    /// failed read.
    pub(crate) fn first(&self, bytes: &CodeBytes, thread: Addr) -> Option<Result<Option<Addr>, StackError>> {
        let read = || self.thread.as_ref().map(|of| of.read(bytes, thread, Thread::GCFrame));
        let first = if self.frame.has(GCFrame::CurThread) {
            let (first, missed) = watched(read);
            if !bytes.memory().is_trimmed() {
                missed.tell();
            }
            first.filter(Result::is_ok)
        } else {
            read()
        };
        Some(first?.map(|at| Some(at).filter(|at| is_frame(*at))).map_err(StackError::from))
    }

    /// Everything on the stack of a thread that looks like a frame of it. A part of them may be stale.
    pub(crate) fn find(&self, bytes: &CodeBytes, thread: Addr, stack: AddrRange) -> Vec<ProtectedFrame> {
        let (memory, offset) = (bytes.memory(), self.frame.offset(GCFrame::CurThread));
        let is_thread = |word: &[u8]| memory.shape().number(word) == thread.0;
        let at = |at: Addr| Some(at.minus(offset?)?).filter(|at| stack.contains(*at));
        let places: Vec<Addr> = memory.words(stack).filter(|(_, word)| is_thread(word)).filter_map(|(place, _)| at(place)).collect();
        let sound = |(frame, next): &(ProtectedFrame, Option<Addr>)| {
            let count = frame.slots.len() / 8;
            let in_dump = || memory.captured(frame.slots) == frame.slots.len();
            (1..=MOST_FOUND).contains(&count) && in_dump() && next.is_none_or(|next| next > frame.address && stack.contains(next))
        };
        // The address of the thread may also be elsewhere on the stack.
        let read = |at: Addr| {
            let (frame, missed) = watched(|| self.read(bytes, at));
            if !memory.is_trimmed() && memory.has_lost(&missed) {
                missed.tell();
            }
            let has_slots = |(frame, _): &&(ProtectedFrame, _)| stack.contains(frame.slots.start) && frame.slots.len() <= MOST_FOUND * 8;
            if let Some((frame, _)) = frame.as_ref().ok().filter(has_slots).filter(|_| !memory.is_trimmed()) {
                memory.need(frame.slots);
            }
            frame.ok()
        };
        let frames = places.into_iter().filter_map(read).filter(sound);
        frames.map(|(frame, _)| ProtectedFrame { listed: false, ..frame }).collect()
    }

    /// The frame at `address`, and the address of the outer one.
    pub(crate) fn read(&self, bytes: &CodeBytes, address: Addr) -> Result<(ProtectedFrame, Option<Addr>), StackError> {
        let next = Some(self.frame.read(bytes, address, GCFrame::Next)?).filter(|at| is_frame(*at));
        let start = self.frame.read(bytes, address, GCFrame::ObjRefs)?;
        let len = u64::from(self.frame.read(bytes, address, GCFrame::NumObjRefs)?).saturating_mul(8);
        let interior = self.frame.read(bytes, address, GCFrame::GCFlags)? & INTERIOR != 0;
        let end = start.0.checked_add(len).map(Addr).filter(|_| start.is_aligned(8) && !start.is_null());
        let end = end.ok_or_else(|| StackError::broken(address, "native code protects references outside of the address space"))?;
        Ok((ProtectedFrame { address, slots: AddrRange::new(start, end), interior, listed: true }, next))
    }
}

/// Whether `at` is not the end of a list.
fn is_frame(at: Addr) -> bool {
    !at.is_null() && at != END
}
