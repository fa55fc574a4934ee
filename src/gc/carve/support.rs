//! Evidence for runs of objects: references from other objects, and words outside of the heap.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::areas::{Areas, Run, captured};
use super::reader::{Kinds, Reader};
use super::scan::follow;
use super::{Carved, LeftOut, Searched};
use crate::base::cancel::tick;
use crate::base::missed::{Carried, tried};
use crate::base::{Addr, AddrRange, Count, Index, Silent, ranges, total};
use crate::contract::ContractError;
use crate::gc::walk::{Object, Piece, Visitor, Walker};
use crate::memory::Memory;

/// Maximum distance in bytes between runs that belong together.
const NEAR: u64 = 64 << 10;

/// Strings that speak for a range of which they are the half.
const LEAST_TEXTS: u64 = 8;

/// References from and to a run.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// References from objects to the run's objects.
    incoming: u64,
    /// References from the run's objects to the start of an object.
    hits: u64,
    /// Other references from the run's objects.
    misses: u64,
    /// Strings that end in NUL.
    texts: u64,
}

/// Follows the references of objects.
struct References<'a, 'm> {
    kinds: &'a Kinds<'m>,
    areas: &'a Areas<'m>,
    runs: &'a [Run],
    /// Indices in `runs` of the walked runs.
    places: &'a [usize],
    own: usize,
    tallies: FxHashMap<usize, Tally>,
    /// Number of references by source run and target, for targets that are not the start of an object of a run.
    misses: FxHashMap<(usize, Addr), u64>,
    /// Pairs of runs: objects of the first refer to objects of the second.
    edges: FxHashSet<(usize, usize)>,
    /// The target run of the last references, and their number.
    last: (usize, u64),
}

/// Index of the run that contains `at`.
fn run_of(runs: &[Run], at: Addr) -> Option<usize> {
    let last = runs.partition_point(|r| r.start <= at).checked_sub(1)?;
    runs.get(last).filter(|r| at < r.end).map(|_| last)
}

/// Memory in bytes of an entry of a hash table, including unused capacity.
const ENTRY_BYTES: u64 = 64;

impl References<'_, '_> {
    /// Adds the last references to the tallies.
    fn flush(&mut self) {
        let (to, n) = std::mem::take(&mut self.last);
        if n > 0 {
            self.tallies.entry(to).or_default().incoming.grow(n);
            if to != self.own && !self.edges.contains(&(self.own, to)) && self.kinds.afford(ENTRY_BYTES) {
                self.edges.insert((self.own, to));
            }
        }
    }

    fn hit(&mut self, target: Addr) {
        let known = self.runs.get(self.last.0).filter(|r| self.last.1 > 0 && r.start <= target && target < r.end).is_some();
        if known {
            self.last.1.bump();
        } else if let Some(to) = run_of(self.runs, target) {
            self.flush();
            self.last = (to, 1);
        }
    }

    fn miss(&mut self, target: Addr) {
        let key = (self.own, target);
        match self.misses.get_mut(&key) {
            Some(n) => n.bump(),
            None if self.kinds.afford(ENTRY_BYTES) => {
                self.misses.insert(key, 1);
            }
            None => {}
        }
    }
}

impl Visitor for References<'_, '_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.flush();
        let place = self.places.get(piece.index.index()).copied();
        self.own = place.unwrap_or_default();
        place.is_some()
    }

    fn object(&mut self, object: &Object<'_>) {
        let areas = self.areas;
        if self.kinds.lacks_tables() && self.kinds.is_text(object) {
            self.tallies.entry(self.own).or_default().texts.bump();
        }
        let (mut hits, mut misses) = (0u64, 0u64);
        object.references(|_, target| {
            if areas.is_start(target) {
                hits.bump();
                self.hit(target);
            } else {
                misses.bump();
                self.miss(target);
            }
        });
        if hits > 0 || misses > 0 {
            let tally = self.tallies.entry(self.own).or_default();
            tally.hits.grow(hits);
            tally.misses.grow(misses);
        }
    }
}

/// References of objects, summed for each run. Runs are identified by their start.
#[derive(Default)]
struct Said {
    tallies: BTreeMap<Addr, Tally>,
    /// Number of references by source run and target. When they were followed, no object was known at the target.
    misses: BTreeMap<(Addr, Addr), u64>,
    /// Pairs of runs: objects of the first refer to objects of the second.
    edges: BTreeSet<(Addr, Addr)>,
}

/// The runs found so far, and the evidence for them.
pub(super) struct Support<'a, 'm> {
    kinds: &'a Kinds<'a>,
    areas: &'a mut Areas<'m>,
    /// By start.
    runs: BTreeMap<Addr, Run>,
    /// Starts of the runs to which words outside of the heap refer, sorted.
    outside: Vec<Addr>,
    /// Starts of the runs whose references no walk has followed yet.
    new: BTreeSet<Addr>,
    said: Said,
    left_out: LeftOut,
}

impl<'a, 'm> Support<'a, 'm> {
    pub(super) fn new(kinds: &'a Kinds<'a>, areas: &'a mut Areas<'m>, runs: Vec<Run>) -> Support<'a, 'm> {
        let new = runs.iter().map(|r| r.start).collect();
        let runs = runs.into_iter().map(|r| (r.start, r)).collect();
        Support { kinds, areas, runs, outside: Vec::new(), new, said: Said::default(), left_out: LeftOut::default() }
    }

    fn list(&self) -> Vec<Run> {
        self.runs.values().copied().collect()
    }

    /// Walks the new runs and follows the references of their objects.
    fn ask(&mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<(), ContractError> {
        let runs = self.list();
        let (mut places, mut new) = (Vec::new(), Vec::new());
        for (place, run) in runs.iter().enumerate().filter(|(_, run)| self.new.contains(&run.start)) {
            places.push(place);
            new.push(*run);
        }
        let (areas, kinds, walker) = (&*self.areas, self.kinds, walker(&new)?);
        let visitor = || References {
            kinds,
            areas,
            runs: &runs,
            places: &places,
            own: 0,
            tallies: FxHashMap::default(),
            misses: FxHashMap::default(),
            edges: FxHashSet::default(),
            last: (0, 0),
        };
        let walked = walker.walk(&Silent, visitor);
        let start = |place: usize| runs.get(place).map(|r| r.start);
        let said = &mut self.said;
        for mut visitor in walked.visitors {
            visitor.flush();
            for (place, one) in visitor.tallies {
                let Some(sum) = start(place).map(|start| said.tallies.entry(start).or_default()) else { continue };
                sum.incoming.grow(one.incoming);
                sum.hits.grow(one.hits);
                sum.misses.grow(one.misses);
                sum.texts.grow(one.texts);
            }
            for ((own, to), n) in visitor.misses {
                if let Some(own) = start(own) {
                    said.misses.entry((own, to)).or_default().grow(n);
                }
            }
            said.edges.extend(visitor.edges.into_iter().filter_map(|(own, to)| Some((start(own)?, start(to)?))));
        }
        self.new.clear();
        Ok(())
    }

    /// Drops the runs without evidence. Admits the objects to which the other runs refer, directly or indirectly.
    pub(super) fn close(&mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<(), ContractError> {
        self.ask(walker)?;
        let dropped = self.unsupported();
        for start in &dropped {
            if let Some(run) = self.runs.remove(start) {
                super::scan::unmark(&mut Reader::new(self.kinds), self.areas, run);
            }
        }
        self.said.misses.retain(|(own, _), _| !dropped.contains(own));
        let missing: BTreeSet<Addr> = self.said.misses.keys().map(|(_, to)| *to).collect();
        self.admit(missing.into_iter().collect(), true);
        Ok(())
    }

    /// Admits the objects at `targets`, and all objects that these refer to, directly or indirectly. If `referred` is set, objects refer to
    /// the targets. The memory after a target then need not be an object.
    fn admit(&mut self, targets: Vec<Addr>, referred: bool) {
        let mut reader = Reader::new(self.kinds);
        let mut queue = targets;
        // The targets are taken in the order of their addresses, whatever refers to them.
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

    /// Admits the run that begins at `at`, if there is one and it does not overlap another run.
    fn admit_one(&mut self, reader: &mut Reader<'_>, at: Addr, referred: bool) -> Option<Run> {
        if !at.is_aligned(self.kinds.memory.ptr_bytes()) || self.areas.is_start(at) {
            return None;
        }
        if self.runs.range(..=at).next_back().is_some_and(|(_, r)| at < r.end) || !self.kinds.step(0) {
            return None;
        }
        let next = self.runs.range(at..).next().map_or(Addr(u64::MAX), |(start, _)| *start);
        let (area, offset) = self.areas.locate(at)?;
        let mut run = follow(reader, &area, offset, next, u64::MAX);
        run.open = false;
        // The run is clean if a known object, zeros or the end of the memory follow.
        let behind = area.offset(run.end).and_then(|o| reader.word(&area, o)).unwrap_or(0);
        let clean = run.end == next || run.end < next && (behind == 0 || run.is_long());
        if !clean && !self.kinds.step(run.objects) {
            return None;
        }
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
        self.new.insert(at);
        Some(run)
    }

    /// Admits objects to which words outside of the heap refer: handles, statics, stacks.
    pub(super) fn admit_outside(&mut self, memory: &Memory, searched: &Searched) {
        let words = self.outside_words(memory, searched);
        let (starts, mut likely): (Vec<Addr>, Vec<Addr>) = words.into_iter().partition(|at| self.areas.is_start(*at));
        if self.kinds.lacks_tables() {
            // Structures of native code lead to each other.
            likely.retain(|at| self.is_among_runs(*at));
        }
        self.admit(likely.clone(), false);
        let runs = self.list();
        let found = starts.into_iter().chain(likely).filter_map(|at| runs.get(run_of(&runs, at)?).map(|r| r.start));
        let mut outside: Vec<Addr> = found.collect();
        outside.sort_unstable();
        outside.dedup();
        self.outside = outside;
    }

    /// Whether the memory around `at` has runs.
    fn is_among_runs(&self, at: Addr) -> bool {
        self.areas.locate(at).is_some_and(|(area, _)| self.runs.range(area.start..area.end()).next().is_some())
    }

    /// The words outside of the runs that lead to objects, or to what may be some, sorted.
    fn outside_words(&self, memory: &Memory, searched: &Searched) -> Vec<Addr> {
        const PART: u64 = 1 << 20;
        let inside = ranges::union(self.runs.values().map(|r| AddrRange::new(r.start, r.end)).collect(), 0);
        let outside = ranges::subtract(&searched.writable, &inside);
        let cut = |range: &AddrRange| {
            let range = *range;
            let starts = std::iter::successors(Some(range.start), move |at| Some(at.plus(PART)).filter(|at| *at < range.end));
            starts.map(move |at| AddrRange::new(at, at.plus(PART).min(range.end)))
        };
        let parts: Vec<AddrRange> = outside.iter().flat_map(cut).collect();
        let on_stack = |at: &Addr| {
            let before = searched.stacks.partition_point(|s| s.start <= *at).checked_sub(1).and_then(|i| searched.stacks.get(i));
            before.is_some_and(|s| s.contains(*at))
        };
        let (carried, areas) = (Carried::here(), &*self.areas);
        let (lowest, highest) = areas.bounds();
        let word = usize::try_from(memory.ptr_bytes()).unwrap_or(8);
        let of = |part: AddrRange| {
            carried.run(|| {
                tried(|| {
                    let mut found = Vec::new();
                    for area in captured(memory, part) {
                        tick();
                        area.each_set(memory.shape(), word, |at, value| {
                            let to = Addr(value);
                            let within = lowest <= to && to < highest;
                            if within && (areas.is_start(to) || areas.is_likely(to) && !on_stack(&to)) {
                                memory.touch(AddrRange::of(at, memory.ptr_bytes()));
                                found.push(to);
                            }
                        });
                    }
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

    /// Admits objects between runs that are close to each other: recently dropped objects between allocation contexts.
    pub(super) fn fill_gaps(&mut self) {
        let runs = self.list();
        let close = runs.iter().zip(runs.iter().skip(1)).filter(|(run, next)| next.start <= run.end.plus(NEAR));
        let found: Vec<Addr> = close.flat_map(|(run, next)| self.areas.likely_in(AddrRange::new(run.end, next.start))).collect();
        self.admit(found.clone(), false);
        for at in found.into_iter().filter(|at| self.runs.contains_key(at)) {
            // Such an object is kept if the run before it is kept.
            if let Some((before, _)) = self.runs.range(..at).next_back() {
                self.said.edges.insert((*before, at));
            }
        }
    }

    /// Counts the references whose target was admitted after they were followed.
    fn resolve(&mut self) {
        let runs = self.list();
        for ((own, to), n) in &self.said.misses {
            let found = if self.areas.is_start(*to) { run_of(&runs, *to).and_then(|place| runs.get(place)) } else { None };
            let Some(run) = found else { continue };
            let tally = self.said.tallies.entry(*own).or_default();
            tally.hits.grow(*n);
            tally.misses = tally.misses.saturating_sub(*n);
            self.said.tallies.entry(run.start).or_default().incoming.grow(*n);
            self.said.edges.insert((*own, run.start));
        }
    }

    /// Links runs with only zeros between them, where an allocation context was. The second run is then kept if the first is.
    fn link_neighbors(&mut self) {
        let runs = self.list();
        for (run, next) in runs.iter().zip(runs.iter().skip(1)) {
            let gap = next.start.since(run.end).filter(|gap| *gap <= NEAR).and_then(|gap| usize::try_from(gap).ok());
            let Some((gap, (area, from))) = gap.zip(self.areas.locate(run.end)) else { continue };
            let between = area.bytes.get(from..from.saturating_add(gap));
            if between.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) {
                self.said.edges.insert((run.start, next.start));
            }
        }
    }

    /// Leaves out runs to which words outside of the heap do not refer, directly or indirectly. Sums up the others.
    pub(super) fn finish(mut self, walker: impl Fn(&[Run]) -> Result<Walker, ContractError>) -> Result<Carved, ContractError> {
        self.ask(walker)?;
        self.resolve();
        self.link_neighbors();
        let dropped = self.unsupported();
        if self.kinds.lacks_tables() {
            // The statics are lost as well.
            self.outside = self.runs.keys().copied().collect();
        }
        let mut queue: Vec<Addr> = self.outside.iter().copied().filter(|start| !dropped.contains(start)).collect();
        let mut reached: BTreeSet<Addr> = queue.iter().copied().collect();
        while let Some(from) = queue.pop() {
            for (_, to) in self.said.edges.range((from, Addr::NULL)..=(from, Addr(u64::MAX))) {
                if reached.insert(*to) {
                    queue.push(*to);
                }
            }
        }
        let mut carved = Carved::default();
        for run in self.runs.values().filter(|run| !dropped.contains(&run.start)) {
            if !reached.contains(&run.start) {
                self.left_out.add(run);
                continue;
            }
            let tally = self.said.tallies.get(&run.start).copied().unwrap_or_default();
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

    /// Starts of the runs in ranges without evidence: no object refers to them, and most or all of their references do not point to
    /// objects. These are arrays of method tables in the C heap, or structures with a method table.
    fn unsupported(&self) -> BTreeSet<Addr> {
        let runs = self.list();
        let mut out = BTreeSet::new();
        for group in groups(&runs) {
            let own = runs.get(group).unwrap_or_default();
            let mut sum = Tally::default();
            for tally in own.iter().filter_map(|run| self.said.tallies.get(&run.start)) {
                sum.incoming.grow(tally.incoming);
                sum.hits.grow(tally.hits);
                sum.misses.grow(tally.misses);
                sum.texts.grow(tally.texts);
            }
            let objects = total(own.iter().map(|run| run.objects));
            // Only statics refer to literals.
            let is_text = sum.texts >= LEAST_TEXTS && sum.texts.saturating_mul(2) >= objects;
            if sum.incoming == 0 && !is_text && (sum.misses > sum.hits || sum.hits == 0) {
                out.extend(own.iter().map(|run| run.start));
            }
        }
        out
    }
}

/// Groups of runs that are close to each other, as ranges of indices.
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
