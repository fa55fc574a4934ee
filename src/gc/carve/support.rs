//! What speaks for a run of objects: references of other objects, words outside of the heap.

use std::collections::BTreeMap;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashSet;

use super::areas::{Areas, Run};
use super::reader::{Kinds, Reader};
use super::scan::{LONG, follow};
use super::{Carved, LeftOut};
use crate::base::missed::{Carried, tried};
use crate::base::{Addr, AddrRange, Count, Index, IndexVec, Silent, ranges};
use crate::contract::ContractError;
use crate::gc::walk::{Object, Piece, SegmentIndex, Visitor, Walker};
use crate::memory::Memory;

/// Ranges closer than that belong together.
const NEAR: u64 = 64 << 10;

/// What is known of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// References of objects to its objects.
    incoming: u64,
    /// References of its objects that lead to the start of one.
    hits: u64,
    /// Those that do not.
    misses: u64,
}

/// Follows the references of objects.
struct References<'a, 'm> {
    areas: &'a Areas<'m>,
    runs: &'a [Run],
    own: usize,
    tallies: IndexVec<SegmentIndex, Tally>,
    /// Targets where no object of a run starts.
    missing: FxHashSet<u64>,
    /// From which run to which other one references lead.
    edges: FxHashSet<(usize, usize)>,
    last: (usize, usize),
}

/// The run that holds `at`.
fn run_of(runs: &[Run], at: Addr) -> Option<usize> {
    let last = runs.partition_point(|r| r.start <= at).checked_sub(1)?;
    runs.get(last).filter(|r| at < r.end).map(|_| last)
}

impl Visitor for References<'_, '_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.own = piece.index.index();
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        let (areas, runs, own) = (self.areas, self.runs, self.own);
        let (mut hits, mut misses) = (0u64, 0u64);
        object.references(|_, target| {
            if !areas.is_start(target) {
                misses.bump();
                self.missing.insert(target.0);
                return;
            }
            hits.bump();
            let known = runs.get(self.last.1).filter(|r| r.start <= target && target < r.end).map(|_| self.last.1);
            let Some(to) = known.or_else(|| run_of(runs, target)) else { return };
            if let Some(tally) = SegmentIndex::new(to).and_then(|i| self.tallies.slot(i)) {
                tally.incoming.bump();
            }
            if self.last != (own, to) {
                self.last = (own, to);
                if own != to {
                    self.edges.insert((own, to));
                }
            }
        });
        if let Some(tally) = SegmentIndex::new(own).and_then(|i| self.tallies.slot(i)) {
            tally.hits.grow(hits);
            tally.misses.grow(misses);
        }
    }
}

/// What references of all objects say.
struct Said {
    tallies: Vec<Tally>,
    missing: Vec<Addr>,
    edges: Vec<(usize, usize)>,
}

/// The runs so far, and what speaks for them.
pub(super) struct Support<'a, 'm> {
    kinds: &'a Kinds<'a>,
    areas: &'a mut Areas<'m>,
    /// By start.
    runs: BTreeMap<Addr, Run>,
    /// Runs that words outside lead to, by start.
    outside: Vec<Addr>,
    left_out: LeftOut,
}

impl<'a, 'm> Support<'a, 'm> {
    pub(super) fn new(kinds: &'a Kinds<'a>, areas: &'a mut Areas<'m>, runs: Vec<Run>) -> Support<'a, 'm> {
        let runs = runs.into_iter().map(|r| (r.start, r)).collect();
        Support { kinds, areas, runs, outside: Vec::new(), left_out: LeftOut::default() }
    }

    fn list(&self) -> Vec<Run> {
        self.runs.values().copied().collect()
    }

    /// Follows the references of all objects.
    fn ask(&self, runs: &[Run], walker: &Walker) -> Said {
        let areas = &*self.areas;
        let visitor = || References {
            areas,
            runs,
            own: 0,
            tallies: IndexVec::default(),
            missing: FxHashSet::default(),
            edges: FxHashSet::default(),
            last: (usize::MAX, usize::MAX),
        };
        let walked = walker.walk(&Silent, visitor);
        let mut said = Said { tallies: vec![Tally::default(); runs.len()], missing: Vec::new(), edges: Vec::new() };
        for visitor in walked.visitors {
            for (sum, one) in said.tallies.iter_mut().zip(visitor.tallies.iter()) {
                sum.incoming.grow(one.incoming);
                sum.hits.grow(one.hits);
                sum.misses.grow(one.misses);
            }
            said.missing.extend(visitor.missing.into_iter().map(Addr));
            said.edges.extend(visitor.edges);
        }
        said.missing.sort_unstable();
        said.missing.dedup();
        said.edges.sort_unstable();
        said.edges.dedup();
        said
    }

    /// Admits what objects refer to, and what that refers to.
    pub(super) fn close(&mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<(), ContractError> {
        let runs = self.list();
        let missing = self.ask(&runs, &walker(&runs)?).missing;
        self.admit(missing, true);
        Ok(())
    }

    /// Admits the objects at `targets`, and what they refer to. `referred` says that objects refer to them: then what follows need not be
    /// objects.
    fn admit(&mut self, targets: Vec<Addr>, referred: bool) {
        let mut reader = Reader::new(self.kinds);
        let mut queue = targets;
        // By address, whatever led there.
        queue.reverse();
        let mut proven = if referred { 0 } else { queue.len() };
        while let Some(at) = queue.pop() {
            let known = queue.len() >= proven;
            proven = proven.min(queue.len());
            let Some(run) = self.admit_one(&mut reader, at, known) else { continue };
            let mut here = run.start;
            for _ in 0..run.objects {
                let Some((area, offset)) = self.areas.locate(here) else { break };
                let Some(first) = reader.word(&area, offset) else { break };
                let Some(object) = reader.object(&area, offset, first) else { break };
                let areas = &*self.areas;
                reader.references(here, first, object.size, |_, target| {
                    if !areas.is_start(target) {
                        queue.push(target);
                    }
                });
                here = object.end;
            }
        }
    }

    /// The run that begins at `at`, if there is one and it overlaps no other.
    fn admit_one(&mut self, reader: &mut Reader<'_>, at: Addr, referred: bool) -> Option<Run> {
        if !at.is_aligned(self.kinds.memory.ptr_bytes()) || self.areas.is_start(at) {
            return None;
        }
        if self.runs.range(..=at).next_back().is_some_and(|(_, r)| at < r.end) {
            return None;
        }
        let next = self.runs.range(at..).next().map_or(Addr(u64::MAX), |(start, _)| *start);
        let (area, offset) = self.areas.locate(at)?;
        let mut run = follow(reader, &area, offset, next, u64::MAX);
        run.open = false;
        // Zeros, the end of the memory or a known object follow.
        let behind = area.offset(run.end).and_then(|o| reader.word(&area, o)).unwrap_or(0);
        let clean = run.end == next || run.end < next && (behind == 0 || run.objects >= LONG);
        if !clean && referred {
            run = follow(reader, &area, offset, next, 1);
            run.open = false;
        } else if !clean {
            return None;
        }
        let mut whole = || reader.word(&area, offset).is_some_and(|first| reader.looks_whole(&area, offset, first));
        if run.objects == 0 || run.end > next || !(referred || whole()) {
            return None;
        }
        let mut here = at;
        for _ in 0..run.objects {
            self.areas.mark(here, true);
            here = super::scan::end_of(reader, self.areas, here)?;
        }
        self.runs.insert(at, run);
        Some(run)
    }

    /// Drops ranges to which no object refers and whose own references lead to no object, or mostly so: arrays of method tables.
    pub(super) fn drop_unsupported(&mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<(), ContractError> {
        let runs = self.list();
        let said = self.ask(&runs, &walker(&runs)?);
        for group in groups(&runs) {
            let own = said.tallies.get(group.clone()).unwrap_or_default();
            let sum = |of: fn(&Tally) -> u64| own.iter().map(of).fold(0, u64::saturating_add);
            let (incoming, hits, misses) = (sum(|t| t.incoming), sum(|t| t.hits), sum(|t| t.misses));
            if incoming == 0 && (misses > hits || hits == 0) {
                runs.get(group).unwrap_or_default().iter().for_each(|run| self.drop_run(run));
            }
        }
        Ok(())
    }

    fn drop_run(&mut self, run: &Run) {
        super::scan::unmark(&mut Reader::new(self.kinds), self.areas, *run);
        self.runs.remove(&run.start);
    }

    /// Admits objects to which words outside of the heap lead: handles, statics, stacks. `writable` is the memory with such words.
    pub(super) fn admit_outside(&mut self, memory: &Memory, writable: &[AddrRange]) {
        let words = self.outside_words(memory, writable);
        let (starts, likely): (Vec<Addr>, Vec<Addr>) = words.into_iter().partition(|at| self.areas.is_start(*at));
        self.admit(likely.clone(), false);
        let runs = self.list();
        let found = starts.into_iter().chain(likely).filter_map(|at| runs.get(run_of(&runs, at)?).map(|r| r.start));
        let mut outside: Vec<Addr> = found.collect();
        outside.sort_unstable();
        outside.dedup();
        self.outside = outside;
    }

    /// The words outside of the runs that lead to objects, or to what may be some, sorted.
    fn outside_words(&self, memory: &Memory, writable: &[AddrRange]) -> Vec<Addr> {
        const PART: u64 = 1 << 20;
        let inside = ranges::union(self.runs.values().map(|r| AddrRange::new(r.start, r.end)).collect(), 0);
        let outside = ranges::subtract(writable, &inside);
        let cut = |range: &AddrRange| {
            let range = *range;
            let starts = std::iter::successors(Some(range.start), move |at| Some(at.plus(PART)).filter(|at| *at < range.end));
            starts.map(move |at| AddrRange::new(at, at.plus(PART).min(range.end)))
        };
        let parts: Vec<AddrRange> = outside.iter().flat_map(cut).collect();
        let (carried, areas) = (Carried::here(), &*self.areas);
        let (lowest, highest) = areas.bounds();
        let of = |part: AddrRange| {
            carried.run(|| {
                tried(|| {
                    let words = memory.set_words(part).map(|(_, word)| Addr(word));
                    let within = words.filter(|at| lowest <= *at && *at < highest);
                    let mut found: Vec<Addr> = within.filter(|at| areas.is_start(*at) || areas.is_likely(*at)).collect();
                    found.sort_unstable();
                    found.dedup();
                    found
                })
            })
        };
        let found: Vec<Vec<Addr>> = parts.into_par_iter().map(of).collect();
        let mut found: Vec<Addr> = found.into_iter().flatten().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Leaves out runs that nothing leads to from outside of the heap, and sums up.
    pub(super) fn finish(mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<Carved, ContractError> {
        let runs = self.list();
        let said = self.ask(&runs, &walker(&runs)?);
        let mut reached: Vec<bool> = runs.iter().map(|r| self.outside.binary_search(&r.start).is_ok()).collect();
        let mut queue: Vec<usize> = reached.iter().enumerate().filter(|(_, r)| **r).map(|(i, _)| i).collect();
        while let Some(from) = queue.pop() {
            let first = said.edges.partition_point(|(f, _)| *f < from);
            for (_, to) in said.edges.iter().skip(first).take_while(|(f, _)| *f == from) {
                if let Some(r) = reached.get_mut(*to).filter(|r| !**r) {
                    *r = true;
                    queue.push(*to);
                }
            }
        }
        let mut carved = Carved::default();
        for ((run, reached), tally) in runs.iter().zip(&reached).zip(&said.tallies) {
            if !reached {
                self.left_out.add(run);
                continue;
            }
            carved.references.grow(tally.hits.saturating_add(tally.misses));
            carved.hits.grow(tally.hits);
            match carved.ranges.last_mut().filter(|last| last.end == run.start) {
                Some(last) => {
                    last.end = run.end;
                    last.objects.grow(run.objects);
                }
                None => carved.ranges.push(*run),
            }
        }
        carved.left_out = self.left_out;
        Ok(carved)
    }
}

/// Places of runs that are close to each other.
fn groups(runs: &[Run]) -> Vec<std::ops::Range<usize>> {
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| runs.get(b));
        match out.last_mut().filter(|_| before.is_some_and(|b| run.start <= b.end.plus(NEAR))) {
            Some(group) => group.end = i.saturating_add(1),
            None => out.push(i..i.saturating_add(1)),
        }
    }
    out
}
