//! The runtime's map of range sections. A section determines the kind of code in its address range.

use std::sync::{Arc, OnceLock};

use super::super::{CodeBytes, CostedCache, StackError};
use crate::base::hash::Set;
use crate::base::missed::{missed, tried};
use crate::base::{Addr, AddrRange, len64};
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, RangeSection, RangeSectionFragment as Fragment, RangeSectionMap, bind};

/// Bits of `RangeSection::_flags` (codeman.h).
const CODE_HEAP: u32 = 2;
/// Stubs and precodes: never managed code.
const RANGE_LIST: u32 = 4;

/// Shift of an address for its index in a table of each level. An entry of the last level covers 128 KiB, and the map covers 57 address bits.
const LEVEL_SHIFTS: [u32; 5] = [49, 41, 33, 25, 17];
/// Flag in a pointer of the map: the section to which the pointer leads is collectible.
const COLLECTIBLE: u64 = 1;
/// Maximum number of fragments in the list of an entry. Each fragment covers a part of the entry's 128 KiB.
const MAX_FRAGMENTS: usize = 1 << 13;

/// Number of entries in a table of each level.
const ENTRIES: u64 = 256;
/// Maximum number of tables in a level of the map, of lists, and of fragments in all lists. It suffices for 4 GiB of contiguous code.
const MAX_TABLES: usize = 1 << 15;

/// The use of a range section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeUse {
    /// JIT-compiled code.
    Jitted,
    /// Stubs and precodes.
    Stubs,
    /// An image with ReadyToRun code.
    Image,
}

/// All readable sections of the map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeRanges {
    /// Ranges that the runtime uses for code, by address.
    pub(crate) ranges: Vec<(AddrRange, CodeUse)>,
    /// The first error, if any.
    pub(crate) error: Option<StackError>,
}

impl CodeRanges {
    /// Returns the value, or records the error.
    fn taken<T>(&mut self, value: Result<T, StackError>) -> Option<T> {
        value.map_err(|e| self.error.get_or_insert(e).clone()).ok()
    }
}

/// A section with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// A code heap of the JIT.
    Heap {
        /// Address that the unwind entries are relative to.
        base: Addr,
        /// Address of the `CodeHeapListNode`.
        heap: Addr,
    },
    /// An image with ReadyToRun code.
    Image {
        /// Address range of the image.
        range: AddrRange,
        /// Address of the `Module`.
        module: Addr,
    },
}

/// A list of fragments.
#[derive(Debug)]
struct List {
    /// The range of each fragment, and the address of the pointer to its section.
    fragments: Box<[(AddrRange, Addr)]>,
    /// The error that ends the list.
    error: Option<StackError>,
}

/// The pointer in a word of the map, without its flag.
fn unmarked(word: u64) -> Addr {
    Addr(word & !COLLECTIBLE)
}

/// Reads the map of range sections.
#[derive(Debug)]
pub(super) struct Sections {
    fragment: Bound<Fragment>,
    section: Bound<RangeSection>,
    /// Address of the top table of the map.
    top: Addr,
    /// Whether the map has any entry, once determined.
    filled: OnceLock<bool>,
    /// Lists by address of the first fragment. They are cached, because many code addresses share a list.
    lists: CostedCache<Arc<List>>,
}

impl Sections {
    pub(super) fn bind(d: &Descriptor, dump_bytes: u64) -> Result<Sections, ContractError> {
        let top = RangeSectionMap::TopLevelData.bind(d)?;
        Ok(Sections {
            fragment: bind!(d, Fragment { Next, RangeBegin, RangeEndOpen, RangeSection })?,
            section: bind!(d, RangeSection { RangeBegin, RangeEndOpen, Flags, R2RModule, HeapList })?,
            // This is the address of the map itself, not of a variable that points to it.
            top: top.place(d.pointer("ExecutionManagerCodeRangeMapAddress")?),
            filled: OnceLock::new(),
            lists: CostedCache::new(dump_bytes),
        })
    }

    /// Fails if the top table has no entry. Every runtime has code, so an empty table is not valid.
    fn must_be_filled(&self, bytes: &CodeBytes) -> Result<(), StackError> {
        let filled = match self.filled.get() {
            Some(filled) => *filled,
            None => {
                let mut filled = false;
                for i in 0..ENTRIES {
                    filled |= bytes.u64(self.top.element(i, 8))? & !COLLECTIBLE != 0;
                    if filled {
                        break;
                    }
                }
                *self.filled.get_or_init(|| filled)
            }
        };
        if filled { Ok(()) } else { Err(StackError::invalid(self.top, "the map of code sections is empty")) }
    }

    /// The section with code that contains `ip`; `None` for stubs and for addresses that are not in the map.
    pub(super) fn at(&self, bytes: &CodeBytes, ip: Addr) -> Result<Option<Section>, StackError> {
        let pointer = |at: Addr| bytes.u64(at).map(unmarked);
        if ip.0 >> 57 != 0 {
            return Ok(None);
        }
        let mut level = self.top;
        for shift in LEVEL_SHIFTS {
            level = pointer(level.element(ip.0 >> shift & 0xff, 8))?;
            if level.is_null() {
                self.must_be_filled(bytes)?;
                return Ok(None);
            }
        }
        let read = || {
            let list = Arc::new(tried(|| self.list(bytes, level)));
            let len = len64(size_of_val(&*list.fragments));
            (list, len)
        };
        let too_many = StackError::invalid(level, "the list of range section fragments takes more reads than are left");
        let list = self.lists.paid(level, read).ok_or(too_many)?;
        match (list.fragments.iter().find(|(range, _)| range.contains(ip)), &list.error) {
            (Some((_, section)), _) => self.section(bytes, pointer(*section)?, ip),
            (None, Some(e)) => {
                if let StackError::Read(e) = e {
                    missed(e.address, e.len);
                }
                Err(e.clone())
            }
            (None, None) => Ok(None),
        }
    }

    /// The readable fragments of the list at `head`.
    fn list(&self, bytes: &CodeBytes, head: Addr) -> List {
        let mut fragments = Vec::new();
        let mut read = || {
            let mut fragment = head;
            for _ in 0..MAX_FRAGMENTS {
                let of_fragment = |field| self.fragment.read(bytes, fragment, field);
                let (begin, end) = (of_fragment(Fragment::RangeBegin)?, of_fragment(Fragment::RangeEndOpen)?);
                if begin >= end {
                    return Err(StackError::invalid(fragment, "a range section fragment ends before it begins"));
                }
                fragments.push((AddrRange::new(begin, end), self.fragment.at(fragment, Fragment::RangeSection)?));
                fragment = unmarked(of_fragment(Fragment::Next)?.0);
                if fragment.is_null() {
                    return Ok(());
                }
            }
            Err(StackError::invalid(head, "the list of range section fragments does not end"))
        };
        let error = read().err();
        List { fragments: fragments.into(), error }
    }

    /// Every section of the map.
    pub(super) fn all(&self, bytes: &CodeBytes) -> CodeRanges {
        let mut out = CodeRanges { error: self.must_be_filled(bytes).err(), ..CodeRanges::default() };
        let mut tables = vec![self.top];
        for _ in LEVEL_SHIFTS {
            let mut below = Vec::new();
            for table in tables {
                below.extend(self.entries(bytes, table, &mut out));
                if below.len() > MAX_TABLES {
                    out.error.get_or_insert(StackError::invalid(table, "the map of code sections has too many tables"));
                    break;
                }
            }
            tables = below;
        }
        let (mut fragments, mut sections) = (Set::default(), Set::default());
        for head in tables {
            let mut fragment = head;
            // Lists of neighboring entries may share their last fragments.
            while !fragment.is_null() && fragments.insert(fragment) {
                if fragments.len() > MAX_TABLES {
                    out.error.get_or_insert(StackError::invalid(head, "the map of code sections has too many fragments"));
                    break;
                }
                let pointer = |field| self.fragment.read(bytes, fragment, field).map(|p: Addr| unmarked(p.0)).map_err(StackError::from);
                let section = out.taken(pointer(Fragment::RangeSection));
                if let Some(at) = section.filter(|at| !at.is_null() && sections.insert(*at)) {
                    let found = out.taken(self.bounds(bytes, at));
                    out.ranges.extend(found.filter(|(range, _)| !range.is_empty()));
                }
                fragment = out.taken(pointer(Fragment::Next)).unwrap_or(Addr::NULL);
            }
        }
        out.ranges.sort_unstable_by_key(|(range, _)| *range);
        out
    }

    /// The non-null entries of a table of the map.
    fn entries(&self, bytes: &CodeBytes, table: Addr, out: &mut CodeRanges) -> Vec<Addr> {
        let read = |i: u64| bytes.u64(table.element(i, 8)).map(unmarked).map_err(StackError::from);
        (0..ENTRIES).filter_map(|i| out.taken(read(i))).filter(|p| !p.is_null()).collect()
    }

    /// Range and use of the section at `at`.
    fn bounds(&self, bytes: &CodeBytes, at: Addr) -> Result<(AddrRange, CodeUse), StackError> {
        let pointer = |field| self.section.read(bytes, at, field);
        let range = AddrRange::new(pointer(RangeSection::RangeBegin)?, pointer(RangeSection::RangeEndOpen)?);
        let flags = self.section.read(bytes, at, RangeSection::Flags)?;
        let used = match (flags & RANGE_LIST != 0, flags & CODE_HEAP != 0) {
            (true, _) => CodeUse::Stubs,
            (_, true) => CodeUse::Jitted,
            _ => CodeUse::Image,
        };
        Ok((range, used))
    }

    fn section(&self, bytes: &CodeBytes, at: Addr, ip: Addr) -> Result<Option<Section>, StackError> {
        let pointer = |field| self.section.read(bytes, at, field);
        let (begin, end) = (pointer(RangeSection::RangeBegin)?, pointer(RangeSection::RangeEndOpen)?);
        if !(begin <= ip && ip < end) {
            return Err(StackError::invalid(at, "a range section does not contain the address that leads to it"));
        }
        let flags = self.section.read(bytes, at, RangeSection::Flags)?;
        if flags & RANGE_LIST != 0 {
            return Ok(None);
        }
        if flags & CODE_HEAP != 0 {
            return Ok(Some(Section::Heap { base: begin, heap: pointer(RangeSection::HeapList)? }));
        }
        let module = pointer(RangeSection::R2RModule)?;
        if module.is_null() {
            return Err(StackError::invalid(at, "a range section of an image has no module"));
        }
        Ok(Some(Section::Image { range: AddrRange::new(begin, end), module }))
    }
}
