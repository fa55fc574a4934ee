//! Pinned objects and their handles.

use crate::base::{Addr, Answer, Count};
use crate::gc::{Gc, HandleFilter};
use crate::model::HandleKind;

/// Returns the pinned objects in the order of addresses, each with its first handle, and the number of all pinning handles.
pub(in crate::analysis) fn pins(gc: &Gc) -> Answer<(Vec<(Addr, Addr)>, u64)> {
    let supported = gc.handle_types().data;
    let kinds: Vec<_> = [HandleKind::Pinned, HandleKind::AsyncPinned].into_iter().filter(|k| supported.contains(k)).collect();
    let (mut pins, mut handles) = (Vec::new(), 0u64);
    let walked = gc.walk_handles(&HandleFilter { kinds: if kinds.is_empty() { vec![HandleKind::Pinned] } else { kinds } }, |h| {
        handles.bump();
        pins.push((h.object, h.address));
    });
    pins.sort_unstable();
    pins.dedup_by_key(|(object, _)| *object);
    walked.map(|_| (pins, handles))
}

/// Finds the pinning handles of objects that are visited in the order of addresses.
pub(in crate::analysis) struct Pins<'p> {
    /// The result of [`pins`].
    all: &'p [(Addr, Addr)],
    next: usize,
}

impl<'p> Pins<'p> {
    pub(in crate::analysis) fn new(all: &'p [(Addr, Addr)]) -> Pins<'p> {
        Pins { all, next: 0 }
    }

    /// Prepares for objects at or after `start`.
    pub(in crate::analysis) fn seek(&mut self, start: Addr) {
        self.next = self.all.partition_point(|(object, _)| *object < start);
    }

    /// Returns the first handle that pins the object at `at`.
    #[inline]
    pub(in crate::analysis) fn handle(&mut self, at: Addr) -> Option<Addr> {
        while let Some((object, handle)) = self.all.get(self.next) {
            if *object > at {
                break;
            }
            self.next.bump();
            if *object == at {
                return Some(*handle);
            }
        }
        None
    }
}
