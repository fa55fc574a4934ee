use serde::{Serialize, Serializer};

use super::segment::Generation;
use crate::base::{Addr, Count, named_enum};

named_enum! {
    /// What a cell of a heap map mostly holds.
    pub enum MapCell {
        /// Objects. Letter `o`.
        Objects = "objects",
        /// Objects, some of them pinned by handles. Letter `p`.
        Pinned = "pinned",
        /// With `--garbage`: objects that no root reaches. Letter `g`.
        Garbage = "garbage",
        /// Free space between objects. Letter `f`.
        Free = "free",
        /// Free space with pinned objects in it, which keep it from being given back. Letter `x`.
        FreePinned = "free-pinned",
        /// Committed, and neither allocated nor free space between objects. Letter `u`.
        Unused = "unused",
        /// Not in the dump, or no object where one should be. Letter `?`.
        Unknown = "unknown",
        /// Reserved. Letter `.`.
        Reserved = "reserved",
    }
}

impl MapCell {
    /// The letter that stands for it.
    pub const fn letter(self) -> char {
        match self {
            MapCell::Objects => 'o',
            MapCell::Pinned => 'p',
            MapCell::Garbage => 'g',
            MapCell::Free => 'f',
            MapCell::FreePinned => 'x',
            MapCell::Unused => 'u',
            MapCell::Unknown => '?',
            MapCell::Reserved => '.',
        }
    }

    /// What a letter stands for.
    pub(crate) fn of(letter: char) -> Option<MapCell> {
        MapCell::ALL.into_iter().find(|cell| cell.letter() == letter)
    }
}

named_enum! {
    /// What a row of a heap map stands for.
    pub enum MapRows {
        /// A segment or region.
        Segments = "segments",
        /// The segments of a generation of a heap, one behind the other by address.
        HeapGenerations = "heap-generations",
        /// The segments of a generation of all heaps, one behind the other by address.
        Generations = "generations",
    }
}

/// Bytes of the heap by what they hold. All but `reserved` add up to the committed bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MapBytes {
    /// Objects that are neither pinned nor known to be garbage.
    pub objects: u64,
    /// Objects that handles pin.
    pub pinned: u64,
    /// With `--garbage`: objects that no root reaches.
    pub garbage: Option<u64>,
    /// Free space between objects.
    pub free: u64,
    /// Committed, and neither allocated nor free space between objects: what is before the first object and behind the last, and what
    /// threads have taken to allocate from.
    pub unused: u64,
    /// Not in the dump, or no object where one should be.
    pub unknown: u64,
    /// Reserved and not committed.
    pub reserved: u64,
}

impl MapBytes {
    /// Adds `other`.
    pub(crate) fn merge(&mut self, other: &MapBytes) {
        self.objects.grow(other.objects);
        self.pinned.grow(other.pinned);
        self.garbage = self.garbage.map(|own| own.saturating_add(other.garbage.unwrap_or(0)));
        self.free.grow(other.free);
        self.unused.grow(other.unused);
        self.unknown.grow(other.unknown);
        self.reserved.grow(other.reserved);
    }
}

/// A row of a heap map.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapMapRow {
    /// Index of its heap; `null` for a row of several.
    pub heap: Option<u64>,
    /// Generation or segment kind.
    pub generation: Generation,
    /// Address of the `heap_segment`; `null` for a row of several.
    pub segment: Option<Addr>,
    /// Number of segments or regions.
    pub segments: u64,
    /// Where the committed memory of the first begins.
    pub start: Addr,
    /// Committed bytes, which the cells stand for.
    pub committed: u64,
    /// Bytes by what they hold.
    #[serde(flatten)]
    pub bytes: MapBytes,
    /// What each cell of the committed memory mostly holds, a letter for each; at its end at most 16 cells of what is only reserved.
    #[serde(serialize_with = "letters")]
    #[cfg_attr(feature = "cli", schemars(with = "String"))]
    pub cells: Vec<MapCell>,
}

impl HeapMapRow {
    /// The letters of its cells.
    pub fn letters(&self) -> String {
        text(&self.cells)
    }
}

fn text(cells: &[MapCell]) -> String {
    cells.iter().map(|c| c.letter()).collect()
}

fn letters<S: Serializer>(cells: &[MapCell], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(cells))
}

/// What the memory of the heap holds, segment by segment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapMapModel {
    /// Bytes that a cell stands for; fewer in the last one of a row.
    pub cell_bytes: u64,
    /// What a row stands for.
    pub by: MapRows,
    /// The rows, by heap, generation and address.
    pub rows: Vec<HeapMapRow>,
    /// Their sums.
    pub totals: MapBytes,
}
