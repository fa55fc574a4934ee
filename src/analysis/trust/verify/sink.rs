//! Collects findings: counts all of them, and keeps the requested number of each kind, lowest addresses first.

use std::collections::{BTreeMap, BinaryHeap};

use crate::analysis::FindingId;
use crate::base::{Addr, AddrRange, Count};

/// Maximum number of findings kept per kind if all are requested. They take some MB.
const MAX_KEPT: usize = 1 << 16;

/// A finding without its message, ordered by address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) address: Addr,
    pub(super) id: FindingId,
    /// The affected object.
    pub(super) object: Option<Addr>,
    pub(super) related: Option<Addr>,
    /// Number of other references into the same corruption.
    pub(super) also: u64,
    /// Additional data of some kinds of findings.
    pub(super) detail: Detail,
}

/// Data for the message in addition to the addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    None,
    Number(u64),
    Name(&'static str),
    /// Size of a gap in bytes, and the object before it whose length may be wrong instead.
    Gap(u64, Option<Addr>),
    /// Address at which an object of the type in the method table would end.
    Ends(Addr),
}

impl Found {
    pub(super) fn new(id: FindingId, address: Addr) -> Found {
        Found { address, id, object: None, related: None, also: 0, detail: Detail::None }
    }

    pub(super) fn object(self, object: Addr) -> Found {
        Found { object: Some(object), ..self }
    }

    pub(super) fn related(self, related: Addr) -> Found {
        Found { related: Some(related), ..self }
    }

    pub(super) fn number(self, number: u64) -> Found {
        Found { detail: Detail::Number(number), ..self }
    }

    pub(super) fn name(self, name: &'static str) -> Found {
        Found { detail: Detail::Name(name), ..self }
    }
}

/// The findings of one thread, or of all of them.
#[derive(Clone, Debug)]
pub(super) struct Sink {
    most: usize,
    /// Only findings about this range, which is an object with its header.
    only: Option<AddrRange>,
    counts: BTreeMap<FindingId, u64>,
    kept: BTreeMap<FindingId, BinaryHeap<Found>>,
}

impl Sink {
    /// Creates a sink that keeps `top` findings of each kind; 0 keeps up to `MAX_KEPT`.
    pub(super) fn new(top: usize, only: Option<AddrRange>) -> Sink {
        let most = if top == 0 { MAX_KEPT } else { top };
        Sink { most, only, counts: BTreeMap::new(), kept: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, found: Found) {
        let inside = |range: AddrRange| {
            let places = [Some(found.address), found.object, found.related];
            places.into_iter().flatten().any(|a| range.contains(a))
        };
        if self.only.is_some_and(|range| !inside(range)) {
            return;
        }
        let count = self.counts.entry(found.id).or_default();
        count.bump();
        self.keep(found);
    }

    fn keep(&mut self, found: Found) {
        let kept = self.kept.entry(found.id).or_default();
        if kept.len() >= self.most {
            match kept.peek() {
                Some(last) if *last > found => drop(kept.pop()),
                _ => return,
            }
        }
        kept.push(found);
    }

    pub(super) fn merge(&mut self, other: Sink) {
        for (id, n) in other.counts {
            let count = self.counts.entry(id).or_default();
            count.grow(n);
        }
        other.kept.into_values().flatten().for_each(|found| self.keep(found));
    }

    /// Returns the number of findings by kind.
    pub(super) fn counts(&self) -> &BTreeMap<FindingId, u64> {
        &self.counts
    }

    /// Returns the kept findings, errors first, then by address.
    pub(super) fn into_kept(self) -> Vec<Found> {
        let mut out: Vec<Found> = self.kept.into_values().flatten().collect();
        out.sort_by(|a, b| (a.id.severity(), a).cmp(&(b.id.severity(), b)));
        out
    }
}
