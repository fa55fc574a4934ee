//! Determines whether an answer depends on doubtful words of stacks, which were scanned conservatively: see [`RootFlags::DOUBTFUL`].

use super::edges::ObjectSet;
use super::graph::{Doubts, HeapGraph};
use super::roots::{RawRoot, RootFlags};
use crate::base::cancel::check_at;
use crate::base::{Collector, Count, Index, be, len64, plural};
use crate::gc::ObjectId;
use crate::model::{Stacks, Sum};

/// The data that an answer depends on. All of it is computed from the roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depends {
    /// The set of live objects.
    Live,
    /// The dominator tree and the retained sizes.
    Dominators,
    /// The list of roots itself.
    Roots,
}

impl HeapGraph {
    /// Adds a note if doubtful words affect an answer that depends on `depends`.
    pub(crate) fn note_doubts(&self, stacks: Stacks, depends: Depends, notes: &Collector) {
        if !self.roots.has_doubts(stacks) {
            return;
        }
        let Doubts { only, dominators } = *self.doubts(stacks);
        let what = if only.count > 0 {
            let objects = format!("{} of {}", plural(only.count, "object"), plural(only.bytes, "byte"));
            format!("{objects} {} held only by stack words that may be stale", be(only.count))
        } else {
            match depends {
                Depends::Live => return,
                Depends::Dominators if !dominators => return,
                Depends::Dominators => "stack words that may be stale also hold objects that other objects are shown to retain".into(),
                Depends::Roots => "the roots include stack words that may be stale".into(),
            }
        };
        self.roots.note_doubts(stacks, &what, notes);
    }

    /// Adds a note if one of the `targets` can be reached from a doubtful word.
    pub(crate) fn note_doubts_of(&self, targets: &[ObjectId], stacks: Stacks, notes: &Collector) {
        if !self.roots.has_doubts(stacks) {
            return;
        }
        let reached = self.edges.reachable(self.rooted_by(is_doubtful));
        let mut held = targets.iter().filter(|id| reached.contains(**id));
        if let Some(first) = held.next() {
            let more = len64(held.count());
            let more = if more > 0 { format!(" and {}", plural(more, "other object")) } else { String::new() };
            let what = format!(
                "{}{more} {} also held by stack words that may be stale",
                self.address(*first),
                if more.is_empty() { "is" } else { "are" }
            );
            self.roots.note_doubts(stacks, &what, notes);
        }
    }

    fn doubts(&self, stacks: Stacks) -> &Doubts {
        self.doubts.get_or_init(|| {
            let doubtful = self.rooted_by(is_doubtful);
            let [lasting, _] = self.start_groups(stacks);
            let mut reached = self.edges.reachable(lasting);
            let certain = self.rooted_by(|r| r.counts(stacks) && !is_doubtful(r));
            let dominators = doubtful.iter().any(|id| !reached.contains(*id) && certain.binary_search(id).is_err());
            self.reach(certain, &mut reached);
            Doubts { only: self.reach(doubtful, &mut reached), dominators }
        })
    }

    /// Adds the objects reachable from `from` to `reached`. Returns number and size of the added objects.
    fn reach(&self, from: Vec<ObjectId>, reached: &mut ObjectSet) -> Sum {
        let (mut sum, mut next) = (Sum::default(), from);
        while let Some(id) = next.pop() {
            check_at(id.as_u32());
            if reached.insert(id) {
                sum.count.bump();
                sum.bytes.grow(self.size(id));
                next.extend(self.edges.successors(id).filter(|to| !reached.contains(*to)));
            }
        }
        sum
    }
}

fn is_doubtful(root: &RawRoot) -> bool {
    root.flags.has(RootFlags::DOUBTFUL)
}
