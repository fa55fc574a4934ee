//! Range sections: what kind of code an address may be.

use super::super::{CodeBytes, StackError};
use crate::base::{Addr, AddrRange};
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};

layout! {
    struct MapLayout : "RangeSectionMap" {
        top: req "TopLevelData",
    }
}

layout! {
    struct FragmentLayout : "RangeSectionFragment" {
        next: req "Next",
        begin: req "RangeBegin",
        end: req "RangeEndOpen",
        section: req "RangeSection",
    }
}

layout! {
    struct SectionLayout : "RangeSection" {
        begin: req "RangeBegin",
        end: req "RangeEndOpen",
        flags: req "Flags",
        module: req "R2RModule",
        heap: req "HeapList",
    }
}

/// Bits of `RangeSection::_flags` (codeman.h).
const CODE_HEAP: u32 = 2;
/// Stubs and precodes: never managed code.
const RANGE_LIST: u32 = 4;

/// The map's levels, each of 256 entries, cover 57 bits of address; the last 17 stay within one entry.
const LEVEL_SHIFTS: [u32; 5] = [49, 41, 33, 25, 17];
/// Bit 0 of the map's pointers says that what they lead to may be collected.
const COLLECTIBLE: u64 = 1;
/// Most fragments in an entry: each covers a part of 128 KiB.
const MAX_FRAGMENTS: usize = 1 << 13;

/// A section with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// A code heap of the JIT.
    Heap {
        /// What its unwind entries count from.
        base: Addr,
        /// Its `CodeHeapListNode`.
        heap: Addr,
    },
    /// An image with ReadyToRun code.
    Image {
        /// Its extent.
        range: AddrRange,
        /// Its `Module`.
        module: Addr,
    },
}

/// Reads the map of sections.
#[derive(Debug)]
pub(super) struct Sections {
    map: MapLayout,
    fragment: FragmentLayout,
    section: SectionLayout,
    at: Addr,
}

impl Sections {
    pub(super) fn bind(d: &Descriptor) -> Result<Sections, ContractError> {
        Ok(Sections {
            map: MapLayout::bind(d)?,
            fragment: FragmentLayout::bind(d)?,
            section: SectionLayout::bind(d)?,
            // The address of the map itself, not of a variable that points to it.
            at: d.pointer("ExecutionManagerCodeRangeMapAddress")?,
        })
    }

    /// The section with code around `ip`.
    pub(super) fn at(&self, bytes: &CodeBytes, ip: Addr) -> Result<Option<Section>, StackError> {
        let pointer = |at: Addr| bytes.u64(at).map(|p| Addr(p & !COLLECTIBLE));
        if ip.0 >> 57 != 0 {
            return Ok(None);
        }
        let mut level = self.at.plus(self.map.top);
        for shift in LEVEL_SHIFTS {
            level = pointer(level.element(ip.0 >> shift & 0xff, 8))?;
            if level.is_null() {
                return Ok(None);
            }
        }
        let mut fragment = level;
        for _ in 0..MAX_FRAGMENTS {
            let (begin, end) = (bytes.u64(fragment.plus(self.fragment.begin))?, bytes.u64(fragment.plus(self.fragment.end))?);
            if begin <= ip.0 && ip.0 < end {
                let section = pointer(fragment.plus(self.fragment.section))?;
                return self.section(bytes, section, ip);
            }
            fragment = pointer(fragment.plus(self.fragment.next))?;
            if fragment.is_null() {
                return Ok(None);
            }
        }
        Err(StackError::invalid(level, "the list of range section fragments does not end"))
    }

    fn section(&self, bytes: &CodeBytes, at: Addr, ip: Addr) -> Result<Option<Section>, StackError> {
        let l = &self.section;
        let (begin, end) = (Addr(bytes.u64(at.plus(l.begin))?), Addr(bytes.u64(at.plus(l.end))?));
        if !(begin <= ip && ip < end) {
            return Err(StackError::invalid(at, "a range section does not contain the address that leads to it"));
        }
        let flags = bytes.u32(at.plus(l.flags))?;
        if flags & RANGE_LIST != 0 {
            return Ok(None);
        }
        if flags & CODE_HEAP != 0 {
            return Ok(Some(Section::Heap { base: begin, heap: Addr(bytes.u64(at.plus(l.heap))?) }));
        }
        let module = Addr(bytes.u64(at.plus(l.module))?);
        Ok((!module.is_null()).then(|| Section::Image { range: AddrRange::new(begin, end), module }))
    }
}
