//! GC info: the slots in which a method keeps references, and the instructions at which they are live.
//!
//! GC info is a bit stream that the compiler writes. In ReadyToRun images it follows the method's unwind info; the code header of JIT-compiled
//! code points to it. Versions 2 (.NET 8), 3 (.NET 9), 4 (.NET 10) and 5 (.NET 11, decoded like 4) are supported. The stream has no stored length
//! and may extend into a page that is not in the dump, so bytes are read only when needed. [`GcInfo::decode`] reads the bytes that describe the
//! method, and each [`GcInfo::report`] reads the bytes for one offset.
//!
//! The parts of the stream are: header; safe points, which are the offsets after calls where slots are live; interruptible ranges, in which every
//! instruction is a safe point; slots; and the live slots for each safe point and for each 64 units inside ranges.
//!
//! x64 is verified against the DAC. For arm64, `tests/it/platforms.rs` checks that all stacks of .NET 10 dumps of Linux are precise.

mod bits;
mod encoding;
mod error;
mod header;
mod live;
mod roots;
mod slots;

pub(crate) use error::GcInfoError;
pub(crate) use header::{GenericContextKind, Header};
pub use roots::Location;
pub(crate) use roots::{FrameKind, FrameSlot, FrameState};
pub use slots::{Place, SlotBase};

use bits::Bits;
use encoding::Encoding;
use slots::Slots;

use crate::base::{Addr, Arch, len64};
use crate::contract::Contract;
use crate::stack::CodeBytes;

/// An interruptible range: code in which every instruction is a safe point. Offsets are in units of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    /// Sum of the lengths of the ranges before this one.
    before: u32,
}

/// The GC info of a method.
#[derive(Clone, Debug)]
pub(crate) struct GcInfo {
    start: Addr,
    encoding: Encoding,
    header: Header,
    /// Safe points in units, ascending, as stored: since version 4, a safe point is the offset of a return address; in earlier versions, it is that
    /// offset minus one.
    safe_points: Box<[u32]>,
    /// Interruptible ranges, ascending and disjoint.
    ranges: Box<[Range]>,
    slots: Slots,
    /// Position of the part with the live slots, in bits.
    live: u64,
}

impl GcInfo {
    /// The contract that describes GC info. .NET 10 does not have it; all runtimes publish the version of the encoding as a global.
    pub(crate) const CONTRACT: Contract = Contract::optional("GCInfo", &["1"]);

    /// Decodes the GC info at `at`, except for the live slots.
    ///
    /// # Errors
    /// Fails if the version or architecture is not supported, if bytes are missing, and if the info is inconsistent.
    pub(crate) fn decode(bytes: &CodeBytes, at: Addr, version: u32, arch: Arch) -> Result<GcInfo, GcInfoError> {
        let encoding = Encoding::new(version, arch)?;
        let mut bits = Bits::new(bytes, at);
        let (header, counts) = header::header(&mut bits, &encoding)?;
        let code = header.code_length.checked_div(encoding.unit).unwrap_or(0);
        let safe_points = read_safe_points(&mut bits, counts.safe_points, code)?;
        let ranges = read_ranges(&mut bits, counts.ranges, code)?;
        let slots = Slots::read(&mut bits, &encoding, header.frame_register.is_some())?;
        Ok(GcInfo { start: at, encoding, header, safe_points, ranges, slots, live: bits.position() })
    }

    /// The length of the method's code in bytes, including funclets. Later parts of the info are not read.
    ///
    /// # Errors
    /// Fails if the version or architecture is not supported, and if bytes are missing.
    #[cfg(test)]
    pub(crate) fn code_length(bytes: &CodeBytes, at: Addr, version: u32, arch: Arch) -> Result<u32, GcInfoError> {
        let encoding = Encoding::new(version, arch)?;
        header::code_length(&mut Bits::new(bytes, at), &encoding)
    }

    /// Facts about the whole method.
    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    /// The number of slots, which is the maximum cost of a query in steps.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.tracked().len().saturating_add(self.slots.untracked().len())
    }

    /// The memory that the lists use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let points = size_of_val(&*self.safe_points).saturating_add(size_of_val(&*self.ranges));
        len64(points.saturating_add(size_of_val(self.slots.tracked())).saturating_add(size_of_val(self.slots.untracked())))
    }
}

/// For the fuzz target: decodes the info at `at` and queries the live slots at `offset` for each kind of frame, with each register set to
/// `at`. Returns the number of safe points, ranges and slots, and the maximum number of slots reported.
#[cfg(feature = "internals")]
pub fn try_gc_info(memory: &std::sync::Arc<crate::memory::Memory>, at: Addr, version: u32, arch: Arch, offset: u32) -> Option<[usize; 2]> {
    let bytes = CodeBytes::new(memory);
    let info = GcInfo::decode(&bytes, at, version, arch).ok()?;
    let mut registers = crate::stack::Registers::new(arch)?;
    (0..32).for_each(|number| registers.set(number, crate::stack::Saved { value: Some(at.0), place: None }));
    let ask = |kind| {
        let os = crate::base::Os::Linux;
        let frame = FrameState { offset, kind, registers: &registers, caller_sp: at, os, untracked: true };
        info.roots(&bytes, &frame).map_or(0, |slots| slots.len())
    };
    let most = [FrameKind::Leaf, FrameKind::Return, FrameKind::Exception].into_iter().map(ask).max().unwrap_or(0);
    Some([info.safe_points.len().saturating_add(info.ranges.len()).saturating_add(info.slot_count()), most])
}

/// The number of bits needed for every number below `n`.
fn bits_below(n: u32) -> u32 {
    n.checked_sub(1).map_or(0, |last| u32::BITS.saturating_sub(last.leading_zeros()))
}

/// Reads `count` safe points of a method of `code` units.
fn read_safe_points(bits: &mut Bits<'_>, count: u32, code: u32) -> Result<Box<[u32]>, GcInfoError> {
    if count > code {
        return Err(bits.bad("more safe points than code"));
    }
    let width = bits_below(code);
    let mut all: Vec<u32> = Vec::new();
    for _ in 0..count {
        let offset = bits.read(width)?;
        if offset >= code || all.last().is_some_and(|last| *last >= offset) {
            return Err(bits.bad("safe points do not ascend within the code"));
        }
        all.push(offset);
    }
    Ok(all.into_boxed_slice())
}

/// Reads `count` ranges of a method of `code` units.
fn read_ranges(bits: &mut Bits<'_>, count: u32, code: u32) -> Result<Box<[Range]>, GcInfoError> {
    if count > code {
        return Err(bits.bad("more ranges than code"));
    }
    let mut all = Vec::new();
    let (mut end, mut before) = (0u32, 0u32);
    for _ in 0..count {
        let start = end.saturating_add(bits.unsigned(6)?);
        end = start.saturating_add(bits.unsigned(6)?).saturating_add(1);
        if end > code {
            return Err(bits.bad("a range ends past the end of the code"));
        }
        all.push(Range { start, end, before });
        before = before.saturating_add(end.saturating_sub(start));
    }
    Ok(all.into_boxed_slice())
}

#[cfg(test)]
mod tests;
