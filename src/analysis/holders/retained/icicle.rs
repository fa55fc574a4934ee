//! The dominator tree by type, for an icicle chart: a limited number of boxes, whose sizes add up.
//!
//! A box represents objects of one type that the objects of the parent box dominate. An object belongs to the box of its immediate dominator if both
//! have the same type, so that lists and trees do not become towers. The number of boxes is limited: the largest are opened first, and small ones are
//! combined.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::Retained;
use crate::analysis::{Icicle, IcicleBox};
use crate::base::cancel::check_at;
use crate::base::{Addr, Count, Index, len64, share};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::{RootKind, Sum};
use crate::session::Namer;

/// The group of objects that several roots keep alive, but only through other objects.
const SEVERAL: &str = "several-roots";
/// Maximum number of boxes.
const BOXES: usize = 1_000;
/// Maximum depth of boxes.
const DEPTH: u32 = 40;
/// Minimum share (0 to 1) of the reachable bytes for a separate box.
const SMALLEST: f64 = 0.001;

/// A box, which may have been opened.
struct Open {
    type_index: Option<TypeIndex>,
    /// Kind of root that keeps the objects alive, for a box of the first level.
    root: Option<&'static str>,
    /// The objects of the box whose immediate dominators are in the parent box. They dominate the other objects of the box.
    tops: Vec<ObjectId>,
    own: Sum,
    retained: u64,
    depth: u32,
    /// Indices of the child boxes; `None` until the box is opened.
    below: Option<Vec<usize>>,
    /// Sum of the dominated objects that are too small for a separate box.
    rest: Sum,
}

impl Retained<'_> {
    /// Returns the dominator tree by type.
    pub(in crate::analysis) fn icicle(&self, namer: &Namer) -> Icicle {
        let all = self.totals.reachable_bytes;
        let mut boxes = vec![Open {
            type_index: None,
            root: None,
            tops: Vec::new(),
            own: Sum { count: self.totals.reachable_objects, bytes: 0 },
            retained: all,
            depth: 0,
            below: None,
            rest: Sum::default(),
        }];
        // The largest box comes first; of equal boxes, the one that was found first.
        let mut waiting = BinaryHeap::from([(all, Reverse(0usize))]);
        while let Some((_, Reverse(at))) = waiting.pop() {
            if boxes.len() >= BOXES {
                break;
            }
            let Some(open) = boxes.get_mut(at).filter(|b| b.depth < DEPTH) else { continue };
            let (tops, of, depth) = (std::mem::take(&mut open.tops), open.type_index, open.depth);
            let is_root = open.root.is_some();
            let (own, mut groups) = match (at, is_root) {
                (0, _) => (Sum::default(), self.by_kind_of_root()),
                (_, true) => (Sum { count: len64(tops.len()), bytes: 0 }, self.by_type(&tops)),
                (_, false) => self.below_box(&tops, of),
            };
            let mut rest = Sum::default();
            groups.retain(|g| {
                let shown = share(g.retained, all).unwrap_or(1.0) >= SMALLEST;
                if !shown {
                    rest.count.grow(g.dominated);
                    rest.bytes.grow(g.retained);
                }
                shown
            });
            groups.sort_by_key(|g| (Reverse(g.retained), g.tops.first().copied()));
            let first = boxes.len();
            for g in groups {
                waiting.push((g.retained, Reverse(boxes.len())));
                boxes.push(Open {
                    type_index: g.of,
                    root: g.root,
                    tops: g.tops,
                    own: Sum::default(),
                    retained: g.retained,
                    depth: depth.saturating_add(1),
                    below: None,
                    rest: Sum::default(),
                });
            }
            let below = (first..boxes.len()).collect();
            if let Some(open) = boxes.get_mut(at) {
                (open.below, open.rest) = (Some(below), rest);
                if at > 0 {
                    open.own = own;
                }
                // One of the objects is kept as an example.
                open.tops = tops.into_iter().take(usize::from(!is_root)).collect();
            }
        }
        Icicle { boxes: self.rows_of(&boxes, namer), totals: self.totals.clone() }
    }

    /// Returns the boxes in drawing order: parents before children.
    fn rows_of(&self, boxes: &[Open], namer: &Namer) -> Vec<IcicleBox> {
        let mut rows = Vec::with_capacity(boxes.len());
        let mut next = vec![Next::Box(0)];
        while let Some(at) = next.pop() {
            let at = match at {
                Next::Box(at) => at,
                Next::Rest(row) => {
                    rows.push(row);
                    continue;
                }
            };
            let Some(b) = boxes.get(at) else { continue };
            let closed = b.below.is_none();
            // The objects of a box are unknown until it is opened, except `tops`.
            let own = match closed {
                true => b.tops.iter().fold(Sum::default(), |mut sum, id| {
                    sum.add(self.graph.size(*id));
                    sum
                }),
                false => b.own,
            };
            rows.push(IcicleBox {
                depth: b.depth,
                root: b.root.map(String::from),
                type_name: b.type_index.and_then(|t| self.graph.types.get(t)).map(|k| namer.name_or_address(k.method_table)),
                count: own.count,
                bytes: own.bytes,
                retained: b.retained,
                example: b.tops.first().filter(|_| b.root.is_none()).map(|id| self.graph.address(*id)),
                closed: closed && b.retained > own.bytes,
            });
            if b.rest.bytes > 0 {
                next.push(Next::Rest(IcicleBox {
                    depth: b.depth.saturating_add(1),
                    root: None,
                    type_name: None,
                    count: b.rest.count,
                    bytes: b.rest.bytes,
                    retained: b.rest.bytes,
                    example: None,
                    closed: true,
                }));
            }
            next.extend(b.below.iter().flatten().rev().map(|at| Next::Box(*at)));
        }
        rows
    }

    /// Groups the objects without a dominator by the kind of their first root, or [`SEVERAL`] if no root refers to them directly.
    fn by_kind_of_root(&self) -> Vec<Group> {
        let mut kinds: FxHashMap<Addr, RootKind> = FxHashMap::default();
        for root in self.graph.roots.roots.iter().filter(|root| root.counts(self.stacks)) {
            kinds.entry(root.object).or_insert(root.kind);
        }
        let mut groups: FxHashMap<&'static str, Group> = FxHashMap::default();
        for id in self.tree.below(None) {
            check_at(id.as_u32());
            let kind = kinds.get(&self.graph.address(id)).map_or(SEVERAL, |kind| kind.name());
            let group = groups.entry(kind).or_insert_with(|| Group { root: Some(kind), ..Group::default() });
            self.add(group, id);
        }
        groups.into_values().collect()
    }

    fn add(&self, group: &mut Group, id: ObjectId) {
        group.retained.grow(self.tree.retained(id));
        group.dominated.grow(self.tree.subtree(id));
        group.tops.push(id);
    }

    /// Groups objects by type.
    fn by_type(&self, tops: &[ObjectId]) -> Vec<Group> {
        let mut groups: FxHashMap<Option<TypeIndex>, Group> = FxHashMap::default();
        for id in tops {
            let of = self.graph.type_index(*id);
            self.add(groups.entry(of).or_insert_with(|| Group { of, ..Group::default() }), *id);
        }
        groups.into_values().collect()
    }

    /// Returns the sum of the objects in a box, and the other objects that they immediately dominate, grouped by type.
    fn below_box(&self, tops: &[ObjectId], of: Option<TypeIndex>) -> (Sum, Vec<Group>) {
        let mut groups: FxHashMap<Option<TypeIndex>, Group> = FxHashMap::default();
        let mut own = Sum::default();
        let mut add = |id: ObjectId| {
            let kind = self.graph.type_index(id);
            self.add(groups.entry(kind).or_insert_with(|| Group { of: kind, ..Group::default() }), id);
        };
        // Objects of the box that are still to be visited.
        let mut same: Vec<ObjectId> = Vec::new();
        for top in tops {
            same.push(*top);
            while let Some(id) = same.pop() {
                check_at(id.as_u32());
                own.add(self.graph.size(id));
                for child in self.tree.below(Some(id)) {
                    if of.is_some() && self.graph.type_index(child) == of {
                        same.push(child);
                    } else {
                        add(child);
                    }
                }
            }
        }
        (own, groups.into_values().collect())
    }
}

/// The next row to draw.
enum Next {
    Box(usize),
    Rest(IcicleBox),
}

/// Dominated objects of one type, or objects without a dominator by kind of root.
#[derive(Default)]
struct Group {
    of: Option<TypeIndex>,
    /// The kind of root, if the objects are grouped by it.
    root: Option<&'static str>,
    tops: Vec<ObjectId>,
    retained: u64,
    /// Number of `tops` and of all objects that they dominate.
    dominated: u64,
}
