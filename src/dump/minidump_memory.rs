//! Minidumps: captured memory and memory regions.

use super::fields::Fields;
use super::minidump_reading::{Reading, stream};
use super::{Backing, CapturedRange, MappedRegion};
use crate::base::AddrRange;

/// Captured memory.
#[derive(Debug, Default)]
pub(super) struct MemoryLists {
    /// The ranges of both lists, those of the 64-bit list first.
    pub(super) ranges: Vec<CapturedRange>,
    /// Bytes that the lists declare but the truncated file does not hold.
    pub(super) truncated: u64,
}

/// Reads MemoryList and Memory64List. Either, both or neither may be present.
pub(super) fn memory_lists(reading: &mut Reading<'_>) -> MemoryLists {
    let mut memory = MemoryLists::default();
    if let Some(list) = reading.stream(stream::MEMORY64, "64-bit memory list") {
        memory64(reading, list, &mut memory);
    }
    if let Some(list) = reading.stream(stream::MEMORY, "memory list") {
        memory32(reading, list, &mut memory);
    }
    let overlaps = overlaps(&memory.ranges);
    if overlaps > 0 {
        reading.oddities.push(match overlaps {
            1 => "a captured range overlaps others".into(),
            n => format!("{n} captured ranges overlap others"),
        });
    }
    memory
}

/// Reads Memory64List: the count, the file offset of the first range's bytes, then *(start, length)* entries. The bytes of all ranges are
/// contiguous in the file.
fn memory64(reading: &mut Reading<'_>, list: Fields<'_>, memory: &mut MemoryLists) {
    const START: u64 = 16;
    const ENTRY: u64 = 16;
    let (Some(declared), Some(mut offset)) = (list.u64(0), list.u64(8)) else {
        reading.oddities.push("the 64-bit memory list is unreadable".to_owned());
        return;
    };
    let room = list.len().saturating_sub(START).checked_div(ENTRY).unwrap_or(0);
    if declared > room {
        reading.oddities.push(format!("the 64-bit memory list holds {room} of its {declared} ranges"));
    }
    for index in 0..declared.min(room) {
        let at = START.saturating_add(index.saturating_mul(ENTRY));
        let (Some(start), Some(len)) = (list.u64(at), list.u64(at.saturating_add(8))) else { break };
        add(reading, memory, start, len, offset);
        offset = offset.saturating_add(len);
    }
}

/// Reads MemoryList: the count, then *(start, length, file offset)* entries.
fn memory32(reading: &mut Reading<'_>, list: Fields<'_>, memory: &mut MemoryLists) {
    const ENTRY: u64 = 16;
    let (begin, count) = reading.list(list, ENTRY, (stream::MEMORY, "memory list"));
    for index in 0..count {
        let at = begin.saturating_add(index.saturating_mul(ENTRY));
        let (Some(start), Some(len), Some(offset)) = (list.u64(at), list.u32(at.saturating_add(8)), list.u32(at.saturating_add(12))) else {
            break;
        };
        add(reading, memory, start, u64::from(len), u64::from(offset));
    }
}

fn add(reading: &Reading<'_>, memory: &mut MemoryLists, start: u64, len: u64, offset: u64) {
    let start = reading.addr(start);
    // Ranges may be empty (microsoft/clrmd#300). Clamp ranges that run past the end of the address space.
    let possible = len.min(reading.max_address.saturating_sub(start.0));
    let len = possible.min(reading.file.len().saturating_sub(offset));
    memory.truncated = memory.truncated.saturating_add(possible.saturating_sub(len));
    if len > 0 {
        memory.ranges.push(CapturedRange { start, len, offset });
    }
}

/// Number of ranges that overlap a range with a lower or equal start. Overlapping ranges are kept, because `Memory::new` resolves overlaps.
fn overlaps(ranges: &[CapturedRange]) -> usize {
    let spans = ranges.iter().map(|r| (r.start.0, r.start.plus(r.len).0));
    // Most writers sort the ranges, and a dump may have millions.
    if spans.clone().is_sorted() {
        return overlapping(spans);
    }
    let mut sorted: Vec<(u64, u64)> = spans.collect();
    sorted.sort_unstable();
    overlapping(sorted.into_iter())
}

/// Number of `spans`, which are sorted, that overlap an earlier one.
fn overlapping(spans: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut highest = 0;
    let mut count = 0usize;
    for (start, end) in spans {
        if start < highest {
            count = count.saturating_add(1);
        }
        highest = highest.max(end);
    }
    count
}

/// The regions of MemoryInfoList.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// Committed regions.
    pub(super) committed: Vec<MappedRegion>,
    /// Regions that are reserved but not committed.
    pub(super) reserved: Vec<MappedRegion>,
    /// Number of committed bytes; `None` if the dump has no MemoryInfoList.
    pub(super) mapped_bytes: Option<u64>,
}

/// Reads MemoryInfoList.
pub(super) fn memory_regions(reading: &mut Reading<'_>) -> Regions {
    const COMMITTED: u32 = 0x1000;
    const RESERVED: u32 = 0x2000;
    const MIN_ENTRY: u64 = 48;
    let Some(list) = reading.stream(stream::MEMORY_INFO, "memory info list") else { return Regions::default() };
    let (Some(header), Some(entry), Some(declared)) = (list.u32(0), list.u32(4), list.u64(8)) else {
        reading.oddities.push("the memory info list is unreadable".to_owned());
        reading.lose(stream::MEMORY_INFO);
        return Regions::default();
    };
    let (header, entry) = (u64::from(header), u64::from(entry));
    if entry < MIN_ENTRY || header < 16 {
        reading.oddities.push(format!("the memory info list has entries of {entry} bytes, expected {MIN_ENTRY}"));
        reading.lose(stream::MEMORY_INFO);
        return Regions::default();
    }
    let room = list.len().saturating_sub(header).checked_div(entry).unwrap_or(0);
    if declared > room {
        reading.oddities.push(format!("the memory info list holds {room} of its {declared} regions"));
        reading.lose(stream::MEMORY_INFO);
    }
    let mut regions = Regions::default();
    let mut mapped = 0u64;
    for index in 0..declared.min(room) {
        let at = header.saturating_add(index.saturating_mul(entry));
        let (Some(base), Some(size), Some(state), Some(protection)) =
            (list.u64(at), list.u64(at.saturating_add(24)), list.u32(at.saturating_add(32)), list.u32(at.saturating_add(36)))
        else {
            break;
        };
        let start = reading.addr(base);
        let size = size.min(reading.max_address.saturating_sub(start.0));
        if !matches!(state, COMMITTED | RESERVED) || size == 0 {
            continue;
        }
        let committed = state == COMMITTED;
        let region = MappedRegion {
            range: AddrRange::of(start, size),
            // The protection is one bit, from PAGE_READONLY (2) to PAGE_EXECUTE_WRITECOPY (0x80). Reserved regions have no defined protection.
            read: committed && protection & 0xee != 0,
            write: committed && protection & 0xcc != 0,
            execute: committed && protection & 0xf0 != 0,
            backing: list.u32(at.saturating_add(40)).and_then(backing),
            allocation: list.u64(at.saturating_add(8)).map(|base| reading.addr(base)),
        };
        if committed {
            mapped = mapped.saturating_add(size);
            regions.committed.push(region);
        } else {
            regions.reserved.push(region);
        }
    }
    regions.mapped_bytes = Some(mapped);
    regions
}

/// Decodes the type of a region: `MEM_PRIVATE`, `MEM_MAPPED` or `MEM_IMAGE`.
fn backing(kind: u32) -> Option<Backing> {
    match kind {
        0x0002_0000 => Some(Backing::Private),
        0x0004_0000 => Some(Backing::Section),
        0x0100_0000 => Some(Backing::Image),
        _ => None,
    }
}
