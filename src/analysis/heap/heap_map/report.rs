//! The report of `heap_map`.

use serde::{Serialize, Serializer};

use crate::base::{Addr, Count, named_enum};
use crate::model::Generation;

named_enum! {
    /// Predominant contents of a cell of a heap map.
    pub enum MapCell {
        /// Objects. Letter `o`.
        Objects = "objects",
        /// Objects, some of them pinned by handles. Letter `p`.
        Pinned = "pinned",
        /// With `--garbage`: unreachable objects. Letter `g`.
        Garbage = "garbage",
        /// Free space between objects. Letter `f`.
        Free = "free",
        /// Free space with pinned objects, which prevent it from being decommitted. Letter `x`.
        FreePinned = "free-pinned",
        /// Committed memory that is neither allocated nor free space between objects. Letter `u`.
        Unused = "unused",
        /// Memory that is not in the dump, or that is not an object where one should be. Letter `?`.
        Unknown = "unknown",
        /// Reserved memory. Letter `.`.
        Reserved = "reserved",
    }
}

impl MapCell {
    /// Returns the letter of the cell.
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

    /// Returns the cell with this letter.
    pub(crate) fn of(letter: char) -> Option<MapCell> {
        MapCell::ALL.into_iter().find(|cell| cell.letter() == letter)
    }
}

named_enum! {
    /// Unit of the rows of a heap map.
    pub enum MapRows {
        /// A segment or region.
        Segments = "segments",
        /// All segments of one generation of one heap, consecutive by address.
        HeapGenerations = "heap-generations",
        /// All segments of one generation of all heaps, consecutive by address.
        Generations = "generations",
    }
}

/// Bytes of the heap by content. All but `reserved` add up to the committed bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MapBytes {
    /// Objects that are neither pinned nor known to be garbage.
    pub objects: u64,
    /// Objects that are pinned by handles.
    pub pinned: u64,
    /// With `garbage`: unreachable objects.
    pub garbage: Option<u64>,
    /// Free space between objects.
    pub free: u64,
    /// Committed memory that is neither allocated nor free space between objects: before the first object, after the last one, and in allocation
    /// contexts.
    pub unused: u64,
    /// Memory that is not in the dump, or that is not an object where one should be.
    pub unknown: u64,
    /// Reserved but not committed memory.
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
    /// Index of the heap; `null` for a row of several heaps.
    pub heap: Option<u64>,
    /// Generation or segment kind.
    pub generation: Generation,
    /// Address of the `heap_segment`; `null` for a row of several segments.
    pub segment: Option<Addr>,
    /// Number of segments or regions.
    pub segments: u64,
    /// Start of the committed memory of the first segment.
    pub start: Addr,
    /// Committed bytes, which the cells represent.
    pub committed: u64,
    /// Bytes by content.
    #[serde(flatten)]
    pub bytes: MapBytes,
    /// Contents of the cells, one letter each: the committed memory, then at most 16 cells of memory that is only reserved.
    #[serde(serialize_with = "letters")]
    #[cfg_attr(feature = "cli", schemars(with = "String"))]
    pub cells: Vec<MapCell>,
}

impl HeapMapRow {
    /// Returns the letters of the cells.
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

/// A map of the heap's memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapMapModel {
    /// Number of bytes per cell; the last one of a row may have fewer.
    pub cell_bytes: u64,
    /// Unit of the rows.
    pub by: MapRows,
    /// The rows, by heap, generation and address.
    pub rows: Vec<HeapMapRow>,
    /// Sums of the rows.
    pub totals: MapBytes,
}
