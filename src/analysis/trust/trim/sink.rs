//! Writes the ranges of a new dump in sequence.

use std::io::{self, Write};

use crate::base::{Addr, AddrRange, len64};
use crate::dump::CapturedRange;
use crate::memory::Memory;

/// Number of bytes written at a time.
const STEP: usize = 64 << 10;

/// Accepts bytes in ascending order of addresses and writes the bytes inside the ranges of the new dump. All other bytes of the ranges are written as
/// zeros, so the file contains only data that was explicitly passed.
pub(super) struct Sink<'r, W> {
    out: W,
    ranges: std::slice::Iter<'r, CapturedRange>,
    /// Remainder of the current range.
    rest: AddrRange,
}

impl<'r, W: Write> Sink<'r, W> {
    pub(super) fn new(out: W, ranges: &'r [CapturedRange]) -> Sink<'r, W> {
        let mut sink = Sink { out, ranges: ranges.iter(), rest: AddrRange::default() };
        sink.next_range();
        sink
    }

    fn next_range(&mut self) -> bool {
        match self.ranges.next() {
            Some(r) => {
                self.rest = r.range();
                true
            }
            None => false,
        }
    }

    fn zeros(&mut self, mut count: u64) -> io::Result<()> {
        static ZEROS: [u8; STEP] = [0; STEP];
        while count > 0 {
            let part = usize::try_from(count).unwrap_or(STEP).min(STEP);
            self.out.write_all(ZEROS.get(..part).unwrap_or_default())?;
            count = count.saturating_sub(u64::try_from(part).unwrap_or(count));
        }
        Ok(())
    }

    /// Pads with zeros up to `address`.
    fn advance(&mut self, address: Addr) -> io::Result<()> {
        loop {
            let to = address.min(self.rest.end);
            if let Some(skipped) = to.since(self.rest.start).filter(|n| *n > 0) {
                self.zeros(skipped)?;
                self.rest.start = to;
            }
            if address < self.rest.end || !self.next_range() {
                return Ok(());
            }
        }
    }

    /// Writes `bytes` at `address`. Bytes before the current position, or outside all ranges, are dropped.
    pub(super) fn put(&mut self, address: Addr, bytes: &[u8]) -> io::Result<()> {
        let (mut at, mut bytes) = (address, bytes);
        while !bytes.is_empty() {
            self.advance(at)?;
            let before = self.rest.start.since(at).unwrap_or(0);
            let skip = usize::try_from(before).unwrap_or(usize::MAX).min(bytes.len());
            let later = bytes.get(skip..).unwrap_or_default();
            let room = usize::try_from(self.rest.len()).unwrap_or(usize::MAX).min(later.len());
            if room == 0 {
                return Ok(());
            }
            let (now, rest) = later.split_at_checked(room).unwrap_or((later, &[]));
            self.out.write_all(now)?;
            self.rest.start = self.rest.start.plus(u64::try_from(room).unwrap_or(0));
            at = self.rest.start;
            bytes = rest;
        }
        Ok(())
    }

    /// Writes the captured part of `range`. The steps are small enough to be copied to the buffer of the writer. Writing directly from unmapped file
    /// pages takes twice as long.
    pub(super) fn copy(&mut self, memory: &Memory, range: AddrRange) -> io::Result<()> {
        memory.stretches(range).try_for_each(|(mut at, bytes)| {
            bytes.chunks(STEP).try_for_each(|step| {
                self.put(at, step)?;
                at = at.plus(len64(step.len()));
                Ok(())
            })
        })
    }

    /// Fills `range` with repetitions of `unit`.
    pub(super) fn fill(&mut self, range: AddrRange, unit: [u8; 2]) -> io::Result<()> {
        // The block is no longer than needed: there are millions of strings, most of them short.
        let longest = usize::try_from(range.len()).unwrap_or(STEP).min(STEP);
        let block = unit.repeat(longest.div_ceil(2));
        let mut at = range.start;
        while let Some(left) = range.end.since(at).filter(|n| *n > 0) {
            let part = usize::try_from(left).unwrap_or(STEP).min(STEP);
            self.put(at, block.get(..part).unwrap_or_default())?;
            at = at.plus(u64::try_from(part).unwrap_or(left));
        }
        Ok(())
    }

    /// Writes the rest as zeros and returns the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.advance(Addr(u64::MAX))?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_bytes_get_into_the_ranges() {
        let range = |start: u64, len: u64| CapturedRange { start: Addr(start), len, offset: 0 };
        let ranges = [range(10, 4), range(20, 6), range(40, 2)];
        let mut sink = Sink::new(Vec::new(), &ranges);
        sink.put(Addr(8), b"abcd").unwrap();
        sink.put(Addr(9), b"wxyz").unwrap();
        sink.put(Addr(15), b"nowhere").unwrap();
        sink.fill(AddrRange::new(Addr(23), Addr(25)), *b"!?").unwrap();
        sink.put(Addr(30), b"nowhere").unwrap();
        assert_eq!(sink.finish().unwrap(), b"cdz\0re\0!?\0\0\0");
    }
}
