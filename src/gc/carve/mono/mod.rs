//! The heap of Mono: SGen's nursery, the blocks of its major heap, and its large objects.
//!
//! SGen does not publish its structures. Its variables are found by their contents (`variables`), and the objects through the structures
//! that the variables refer to. Memory between objects becomes gaps of the segments: free memory of the nursery, free slots, and ends of
//! slots.
//!
//! Source: `docs/internals/mono.md`, which has the measurements.

mod handles;
mod reader;
mod roots;
mod variables;

use std::sync::Arc;

use super::{Carved, Run};
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Collector, Count, Missing, total};
use crate::contract::{ContractError, Descriptor};
use crate::data::{SgenBlock, SgenFragment, SgenNursery};
use crate::memory::{Image, Memory};
use crate::model::Generation;
use reader::{FLAGS, Reader};
pub(crate) use roots::{SgenRoots, SgenSource};
use variables::Variables;

/// Flag in the first word of an object that was moved. The word without flags is the address of the copy.
const FORWARDED: u64 = 1;
/// Synchronization word of the arrays that fill unused memory of the nursery.
const FILLER: u64 = u64::MAX;

/// The structures that were read from SGen.
#[derive(Clone, Debug, Default)]
pub(in crate::gc) struct Sgen {
    /// The generation of each range with objects.
    pub(in crate::gc) generations: Vec<Generation>,
    /// Parts of segments without objects, by address.
    pub(in crate::gc) gaps: Vec<AddrRange>,
    /// `None` if the tables of roots were not found.
    pub(in crate::gc) roots: Option<SgenRoots>,
}

/// A heap under construction.
#[derive(Default)]
struct Found {
    segments: Vec<(Run, Generation)>,
    gaps: Vec<AddrRange>,
    gap_bytes: u64,
}

impl Found {
    fn gap(&mut self, from: Addr, to: Addr) {
        if to <= from {
            return;
        }
        self.gap_bytes.grow(to.since(from).unwrap_or(0));
        match self.gaps.last_mut() {
            Some(last) if last.end == from => last.end = to,
            _ => self.gaps.push(AddrRange::new(from, to)),
        }
    }

    fn segment(&mut self, range: AddrRange, objects: u64, generation: Generation) {
        let run = Run { start: range.start, end: range.end, last: range.start, objects, open: false, gap: false, bridged: false };
        match self.segments.last_mut() {
            // Blocks of the major heap may adjoin each other.
            Some((last, of)) if last.end == run.start && *of == generation => {
                last.end = run.end;
                last.objects.grow(objects);
            }
            _ => self.segments.push((run, generation)),
        }
    }
}

/// Reads the heap of Mono. The image of the runtime is `image`.
///
/// # Errors
/// [`ContractError`] if the descriptor does not have the layouts.
pub(in crate::gc) fn read(memory: &Arc<Memory>, d: &Descriptor, image: Option<&Image>, notes: &Collector) -> Result<Carved, ContractError> {
    let mut reader = Reader::bind(memory, d)?;
    let variables = image.map(|image| tried(|| Variables::find(&mut reader, image))).unwrap_or_default();
    for (what, found) in [
        ("nursery", variables.nursery.is_some()),
        ("blocks of the major heap", variables.blocks.is_some()),
        ("handles", variables.handles.is_some()),
        ("registered roots", variables.roots.is_some()),
    ] {
        if !found {
            notes.add(Missing::Heap, None, format!("SGen's {what} were not found in the variables of Mono"));
        }
    }
    if variables.large.is_none() {
        let what = "the variables of Mono contain no list of large objects: if the process has any, they are missing";
        notes.add(Missing::Heap, None, what);
    }
    let mut found = Found::default();
    tried(|| {
        if let Some(at) = variables.nursery {
            reader.nursery(at, &mut found);
        }
        if let Some(at) = variables.blocks {
            reader.major(at, &mut found);
        }
        if let Some(at) = variables.large {
            reader.large(at, &mut found);
        }
    });
    let handles = variables.handles.map(|at| tried(|| reader.handles(at))).unwrap_or_default();
    let roots = variables.roots.map(|at| tried(|| reader.roots(at)));
    reader.types.note(notes);
    reader.budget.note("reading the heap of Mono", notes);
    found.gaps.sort_unstable_by_key(|gap| gap.start);
    found.segments.sort_unstable_by_key(|(run, _)| run.start);
    Ok(Carved {
        searched: total(found.segments.iter().map(|(run, _)| run.bytes())),
        gap_bytes: found.gap_bytes,
        sgen: Some(Sgen { generations: found.segments.iter().map(|(_, generation)| *generation).collect(), gaps: found.gaps, roots }),
        handles,
        ranges: found.segments.into_iter().map(|(run, _)| run).collect(),
        why: "Mono's collector does not describe it".into(),
        ..Carved::default()
    })
}

impl Reader<'_> {
    /// Reads the address range of the nursery from its variables, which are at `at`.
    fn nursery_range(&self, at: Addr) -> Option<AddrRange> {
        let start = self.nursery.get(self.memory, at, SgenNursery::start)?;
        Some(AddrRange::new(start, self.nursery.get(self.memory, at, SgenNursery::end)?))
    }

    fn nursery(&mut self, variables: Addr, out: &mut Found) -> Option<()> {
        let range = self.nursery_range(variables)?;
        let free = self.fragments(variables, range);
        let (memory, word) = (self.memory, self.memory.ptr_bytes());
        let (mut at, mut objects) = (range.start, 0u64);
        while at < range.end {
            if let Some(end) = free.get(&at.0) {
                out.gap(at, *end);
                at = *end;
                continue;
            }
            let Ok(first) = memory.word(at) else {
                let there = memory.stretches(AddrRange::new(at, range.end)).next().map_or(range.end, |(start, _)| start);
                let next = there.max(at.plus(word)).min(range.end);
                out.gap(at, next);
                at = next;
                continue;
            };
            let room = range.end.since(at).unwrap_or(0);
            let next = match first {
                0 => None,
                _ if first & FORWARDED != 0 => self.size(Addr(first & !FLAGS)).map(|size| (size, false)),
                _ => match self.size(at) {
                    Some(size) => Some((size, true)),
                    None => self.filler(at).map(|size| (size, false)),
                },
            };
            match next.filter(|(size, _)| *size <= room && *size > 0) {
                Some((size, true)) => {
                    objects.bump();
                    at = at.plus(size);
                }
                other => {
                    let next = at.plus(other.map_or(word, |(size, _)| size)).min(range.end);
                    out.gap(at, next);
                    at = next;
                }
            }
        }
        out.segment(range, objects, Generation::Gen0);
        Some(())
    }

    /// Size of the array that fills unused memory at `at`, if there is one.
    fn filler(&self, at: Addr) -> Option<u64> {
        let word = self.memory.ptr_bytes();
        (self.memory.word(at.plus(word)).ok()? == FILLER).then_some(())?;
        let string = self.tables.read(self.tables.object?).ok()?;
        let elements = self.tables.elements_at(&string)?;
        let length = self.memory.u32(at.plus(self.tables.length_at(&string))).ok()?;
        elements.checked_add(length.into())?.checked_next_multiple_of(word)
    }

    /// Free ranges of the nursery: their ends by their starts.
    fn fragments(&self, variables: Addr, nursery: AddrRange) -> Map<u64, Addr> {
        let (memory, mut out, mut seen) = (self.memory, Map::default(), Set::default());
        let mut at = self.nursery.get(memory, variables, SgenNursery::fragments).unwrap_or(Addr::NULL);
        loop {
            at = Addr(at.0 & !FLAGS);
            if at.is_null() || !seen.insert(at) || !self.budget.steps(1) || !self.budget.memory(32) {
                return out;
            }
            let field = |field| self.fragment.get(memory, at, field);
            let (Some(free), Some(end)) = (field(SgenFragment::next_free), field(SgenFragment::end)) else { return out };
            if nursery.start <= free && free < end && end <= nursery.end {
                out.insert(free.0, end);
            }
            let Some(next) = field(SgenFragment::next) else { return out };
            at = next;
        }
    }

    fn major(&mut self, list: Addr, out: &mut Found) {
        let mut blocks: Vec<Addr> = self.items(list).into_iter().map(|(_, at)| Addr(at & !FLAGS)).filter(|at| !at.is_null()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            self.block(block, out);
        }
    }

    fn block(&mut self, block: Addr, out: &mut Found) -> Option<()> {
        let (memory, word) = (self.memory, self.memory.ptr_bytes());
        let end = block.plus(self.block_bytes);
        block.is_aligned(self.block_bytes).then_some(())?;
        let slot = u64::from(self.block.get(memory, block, SgenBlock::obj_size)?);
        (slot >= self.tables.smallest() && slot.is_multiple_of(word)).then_some(())?;
        // The header ends with the mark bits, an array of `u32` with one bit for each pointer-sized word of the block.
        let marks = self.block_bytes.checked_div(word.saturating_mul(8))?;
        let first = self.block.offset(SgenBlock::mark_words)?.checked_add(marks)?.checked_next_multiple_of(16)?;
        let count = self.block_bytes.checked_sub(first)?.checked_div(slot)?;
        out.gap(block, block.plus(first));
        let (mut at, mut objects) = (block.plus(first), 0u64);
        for _ in 0..count {
            let next = at.plus(slot);
            let value = memory.word(at).unwrap_or(0);
            // Free slots form a linked list. The first word of each is zero or the address of the next one in the block.
            let is_free = value == 0 || value & FORWARDED != 0 || (block <= Addr(value) && Addr(value) < end);
            match self.size(at).filter(|size| !is_free && *size <= slot) {
                Some(size) => {
                    objects.bump();
                    out.gap(at.plus(size), next);
                }
                None => out.gap(at, next),
            }
            at = next;
        }
        out.gap(at, end);
        out.segment(AddrRange::new(block, end), objects, Generation::Gen1);
        Some(())
    }

    fn large(&mut self, first: Addr, out: &mut Found) {
        let mut objects = self.large_objects(first);
        objects.sort_unstable();
        for (at, size) in objects {
            out.segment(AddrRange::of(at, size), 1, Generation::Loh);
        }
    }
}
