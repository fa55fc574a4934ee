//! The memory that is searched, and where in it objects may start.

use crate::base::{Addr, AddrRange, Shape, len64};
use crate::contract::evidence::{Sizes, Tables};
use crate::memory::Memory;

/// Captured memory without a gap.
struct Area<'m> {
    start: Addr,
    bytes: &'m [u8],
}

impl Area<'_> {
    fn end(&self) -> Addr {
        self.start.plus(len64(self.bytes.len()))
    }
}

/// Captured memory, in the order of addresses.
pub(super) struct Places<'m> {
    memory: &'m Memory,
    areas: Vec<Area<'m>>,
    /// Memory that is not in the dump, sorted and disjoint.
    lost: Vec<AddrRange>,
    tables: Option<&'m Tables>,
    shape: Shape,
    pub(super) word: u64,
}

/// One bit for each word of each area.
#[derive(Clone)]
pub(super) struct Marks(Vec<Vec<u64>>);

/// A place: number of the area, number of the word.
type Place = (usize, u64);

impl Marks {
    fn slot(index: u64) -> (usize, u64) {
        (usize::try_from(index / 64).unwrap_or(usize::MAX), 1 << (index % 64))
    }

    pub(super) fn has(&self, (area, index): Place) -> bool {
        let (slot, bit) = Marks::slot(index);
        self.0.get(area).and_then(|words| words.get(slot)).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn set(&mut self, (area, index): Place, on: bool) {
        let (slot, bit) = Marks::slot(index);
        if let Some(word) = self.0.get_mut(area).and_then(|words| words.get_mut(slot)) {
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    /// The first mark of `area` at or after `from`.
    fn next(&self, area: usize, from: u64) -> Option<u64> {
        let words = self.0.get(area)?;
        let (first, bit) = Marks::slot(from);
        let rest = words.get(first)? & bit.wrapping_neg();
        let found = |slot: usize, word: u64| len64(slot).saturating_mul(64).saturating_add(u64::from(word.trailing_zeros()));
        if rest != 0 {
            return Some(found(first, rest));
        }
        let behind = first.saturating_add(1);
        let (slot, word) = words.iter().enumerate().skip(behind).find(|(_, word)| **word != 0)?;
        Some(found(slot, *word))
    }
}

impl<'m> Places<'m> {
    /// The captured memory of `ranges`; `None` if nothing is lost.
    pub(super) fn of(memory: &'m Memory, searched: &[AddrRange], lost: Vec<AddrRange>, tables: Option<&'m Tables>) -> Option<Places<'m>> {
        let word = memory.ptr_bytes();
        let part = |(start, bytes): (Addr, &'m [u8])| {
            let first = start.0.checked_next_multiple_of(word)?;
            let skip = usize::try_from(first.checked_sub(start.0)?).ok()?;
            Some(Area { start: Addr(first), bytes: bytes.get(skip..)? })
        };
        let areas = searched.iter().flat_map(|range| memory.stretches(*range)).filter_map(part).collect();
        (!lost.is_empty()).then_some(Places { memory, areas, lost, tables, shape: memory.shape(), word })
    }

    fn place(&self, at: Addr) -> Option<Place> {
        let area = self.areas.partition_point(|a| a.start <= at).checked_sub(1)?;
        let index = at.since(self.areas.get(area)?.start)?.checked_div(self.word)?;
        Some((area, index))
    }

    fn value(&self, area: &Area<'m>, index: u64) -> Option<u64> {
        let from = usize::try_from(index.checked_mul(self.word)?).ok()?;
        let bytes = area.bytes.get(from..from.checked_add(usize::try_from(self.word).ok()?)?)?;
        Some(self.shape.number(bytes))
    }

    /// The word at `at`; `None` outside of the memory that is searched.
    pub(super) fn word_at(&self, at: Addr) -> Option<u64> {
        let (area, index) = self.place(at)?;
        self.value(self.areas.get(area)?, index)
    }

    /// The length in the object at `at`.
    pub(super) fn length(&self, at: Addr) -> Option<u32> {
        self.memory.u32(at.plus(self.word)).ok()
    }

    pub(super) fn bytes(&self, at: Addr, len: u64) -> Option<&'m [u8]> {
        self.memory.slice(at, len)
    }

    /// The method table in the first word of an object, without the bits that collections set.
    pub(super) fn table(&self, word: u64) -> Addr {
        Addr(word).align_down(self.word)
    }

    pub(super) fn is_lost(&self, at: Addr) -> bool {
        let before = self.lost.partition_point(|range| range.start <= at).checked_sub(1);
        before.and_then(|i| self.lost.get(i)).is_some_and(|range| range.contains(at))
    }

    /// The sizes in the method table at `mt`, if the dump has it.
    pub(super) fn known(&self, mt: Addr) -> Option<Sizes> {
        self.tables?.sizes(self.memory, mt)
    }

    pub(super) fn has(&self, marks: &Marks, at: Addr) -> bool {
        at.is_aligned(self.word) && self.place(at).is_some_and(|place| marks.has(place))
    }

    pub(super) fn set(&self, marks: &mut Marks, at: Addr, on: bool) {
        if let Some(place) = self.place(at) {
            marks.set(place, on);
        }
    }

    /// The next mark after `at`, less than `most` words away.
    pub(super) fn next(&self, marks: &Marks, at: Addr, most: u64) -> Option<Addr> {
        let (area, index) = self.place(at)?;
        let next = marks.next(area, index.checked_add(1)?)?;
        (next.checked_sub(index)? <= most).then(|| self.areas.get(area).map(|a| a.start.element(next, self.word)))?
    }

    /// The places of `marks`, in order.
    pub(super) fn each<'a>(&'a self, marks: &'a Marks) -> impl Iterator<Item = Addr> + 'a {
        self.areas.iter().enumerate().flat_map(move |(number, area)| {
            let first = marks.next(number, 0);
            let rest = std::iter::successors(first, move |at| marks.next(number, at.checked_add(1)?));
            rest.map(|index| area.start.element(index, self.word))
        })
    }

    /// Marks for all words, none of which is set.
    pub(super) fn marks(&self) -> Option<Marks> {
        let slots = |area: &Area<'_>| len64(area.bytes.len()).checked_div(self.word).unwrap_or(0).div_ceil(64);
        let all = self.areas.iter().map(slots).fold(0u64, u64::saturating_add);
        self.memory.afford_memory(all.saturating_mul(8)).then_some(())?;
        Some(Marks(self.areas.iter().map(|area| vec![0; usize::try_from(slots(area)).unwrap_or(0)]).collect()))
    }

    pub(super) fn afford(&self, bytes: u64) -> bool {
        self.memory.afford_memory(bytes)
    }

    pub(super) fn step(&self, n: u64) -> bool {
        self.memory.afford_steps(n)
    }

    /// Whether free space starts at `at`.
    pub(super) fn is_free(&self, at: Addr) -> bool {
        self.word_at(at).and_then(|word| self.known(self.table(word))).is_some_and(|known| known.is_free)
    }

    /// Calls `visit` with each word that is not zero, until the budget ends.
    fn each_word(&self, mut visit: impl FnMut(Addr, u64)) {
        for area in &self.areas {
            if !self.memory.afford_bytes(len64(area.bytes.len())) {
                return;
            }
            self.memory.set_words(AddrRange::new(area.start, area.end())).for_each(|(at, value)| visit(at, value));
        }
    }

    /// Words that lead to lost memory, or to method tables, after half a header word of zeros.
    pub(super) fn candidates(&self) -> Option<Marks> {
        let mut marks = self.marks()?;
        self.each_word(|at, value| {
            let mt = self.table(value);
            if (self.is_lost(mt) || self.memory.has(mt)) && self.has_header(at) && (self.is_lost(mt) || self.known(mt).is_some()) {
                self.set(&mut marks, at, true);
            }
        });
        Some(marks)
    }

    /// Which of `candidates` words lead to. Adds free space to these, which keeps old bytes in front of it.
    pub(super) fn referenced(&self, candidates: &mut Marks) -> Option<Marks> {
        let mut marks = self.marks()?;
        let bounds = AddrRange::new(self.areas.first()?.start, self.areas.last()?.end());
        let free = self.tables.map(Tables::free).unwrap_or_default();
        self.each_word(|at, value| {
            if bounds.contains(Addr(value)) && self.has(candidates, Addr(value)) {
                self.set(&mut marks, Addr(value), true);
            }
            if free.contains(&Addr(value)) {
                self.set(candidates, at, true);
            }
        });
        Some(marks)
    }

    /// Whether half a word in front of `at` is zero. Only 64-bit targets have this padding.
    fn has_header(&self, at: Addr) -> bool {
        self.word != 8 || at.minus(self.word).is_some_and(|before| self.memory.u32(before) == Ok(0))
    }
}
