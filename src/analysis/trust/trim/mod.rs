//! Smaller copies of a dump, with only the memory that gcdump reads.
//!
//! To determine the memory to keep, every reader runs while the memory records the reads. Heap segments are kept completely, so reads of objects are
//! not recorded. A new reader must be called in `readers`; nothing else changes.

mod readers;
mod redact;
mod report;
mod sink;

pub(crate) use redact::Contents;
pub use report::*;

use std::io::{self, Write};

use crate::base::ranges::{bytes, intersect, subtract, union};
use crate::base::{Addr, AddrRange};
use crate::dump::{Layout, Ranges, ThreadStacks, WriteError, lay_out};
use crate::memory::Memory;
use crate::session::{Dump, Survey};
use redact::Redaction;
use sink::Sink;

/// Memory read by the commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Ranges read individually.
    read: Vec<AddrRange>,
    /// Ranges of which all words are scanned for addresses.
    scanned: Vec<AddrRange>,
    /// Ranges of string characters; may overlap.
    texts: Vec<AddrRange>,
    /// Ranges of structures that are copied unchanged even if they are on a stack; may overlap.
    spared: Vec<AddrRange>,
    /// Ranges with crash reports; may overlap.
    reports: Vec<AddrRange>,
    /// Ranges that a redacted copy must omit; may overlap.
    private: Vec<AddrRange>,
    /// Whether more was read than could be recorded.
    overflowed: bool,
}

/// Results of the heap walks of a dump, so that the heaps need not be walked again when the dump is opened with other module files.
#[derive(Clone, Debug, Default)]
pub struct Surveys(Vec<Option<Survey>>);

impl Surveys {
    /// Returns the surveys of a dump whose [reads](Reads::of) were recorded. They remain valid after the dump is closed.
    pub fn of(dump: &Dump) -> Surveys {
        Surveys(dump.runtimes().into_iter().flatten().map(|runtime| runtime.heap().ok()?.surveyed()).collect())
    }

    /// Gives the surveys to `dump`, which is the same dump, opened again.
    pub fn give_to(&self, dump: &Dump) {
        for (runtime, survey) in dump.runtimes().into_iter().flatten().zip(&self.0) {
            if let (Ok(heap), Some(survey)) = (runtime.heap(), survey) {
                heap.survey_like(survey);
            }
        }
    }
}

impl Reads {
    /// Runs every reader on `dump`, which must have been opened with [`Options::record`](crate::session::OpenOptions::record). `before`: surveys of
    /// the same dump that was opened with other module files.
    pub fn of(dump: &Dump, before: &Surveys) -> Reads {
        readers::read_everything(dump, before);
        let Some(recorder) = dump.memory().recorder() else { return Reads::default() };
        Reads {
            read: recorder.read(),
            scanned: union(recorder.scanned(), 0),
            texts: recorder.texts(),
            spared: recorder.spared(),
            reports: recorder.reports(),
            private: recorder.private(),
            overflowed: recorder.overflowed(),
        }
    }

    /// Merges two recordings, one made with and one made without module files.
    #[must_use]
    pub fn and(self, other: Reads) -> Reads {
        let both = |a: Vec<AddrRange>, b: Vec<AddrRange>| union(a.into_iter().chain(b).collect(), 0);
        let texts = self.texts.into_iter().chain(other.texts).collect();
        let spared = self.spared.into_iter().chain(other.spared).collect();
        let reports = self.reports.into_iter().chain(other.reports).collect();
        let private = self.private.into_iter().chain(other.private).collect();
        Reads {
            spared,
            reports,
            private,
            read: both(self.read, other.read),
            scanned: both(self.scanned, other.scanned),
            texts,
            overflowed: self.overflowed || other.overflowed,
        }
    }
}

/// A planned copy of a dump.
#[derive(Debug)]
pub struct Trim<'d> {
    dump: &'d Dump,
    reads: Reads,
    redact: Option<Contents>,
    layout: Layout,
}

/// Returns all memory that is captured in the dump itself.
fn captured(memory: &Memory) -> Vec<AddrRange> {
    union(memory.in_dump(AddrRange::new(Addr::NULL, Addr(u64::MAX))).collect(), 0)
}

impl<'d> Trim<'d> {
    /// Plans a copy of `dump` with the memory that was read.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn new(dump: &'d Dump, reads: Reads, redact: Option<Contents>) -> Result<Trim<'d>, WriteError> {
        Trim::of(dump, reads, redact, captured(dump.memory()))
    }

    /// Plans a copy that also has the memory supplied by module files.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn with_modules(dump: &'d Dump, reads: Reads, redact: Option<Contents>) -> Result<Trim<'d>, WriteError> {
        Trim::of(dump, reads, redact, dump.memory().known(AddrRange::new(Addr::NULL, Addr(u64::MAX))))
    }

    /// Returns the number of bytes in the copy that are not in the dump.
    pub fn module_bytes(&self) -> u64 {
        let kept: Vec<AddrRange> = self.layout.ranges.iter().map(|r| r.range()).collect();
        bytes(&subtract(&union(kept, 0), &captured(self.dump.memory())))
    }

    fn of(dump: &'d Dump, reads: Reads, redact: Option<Contents>, captured: Vec<AddrRange>) -> Result<Trim<'d>, WriteError> {
        let format = Ranges::of(dump.file().facts.container);
        let mut gap = format.entry_bytes;
        let wanted: Vec<AddrRange> = reads.read.iter().chain(&reads.scanned).chain(&reads.texts).copied().collect();
        let mut ranges = intersect(&union(wanted.clone(), gap), &captured);
        while ranges.len() > format.most && gap < 1 << 16 {
            gap = gap.saturating_mul(2);
            ranges = intersect(&union(wanted.clone(), gap), &captured);
        }
        // In a genuine dump, ranges do not overlap, so the copy has no more bytes than the dump and the module files.
        let supplied = bytes(&captured).saturating_sub(bytes(&self::captured(dump.memory())));
        if reads.overflowed || bytes(&ranges).saturating_sub(supplied) > dump.memory().dump_bytes() {
            return Err(WriteError::Overlapping("its ranges of memory"));
        }
        let addresses = Addresses::of(dump);
        let is_address = |value: u64| addresses.contains(value);
        let layout = lay_out(dump.file(), &ranges, redact.is_some().then_some(&is_address))?;
        Ok(Trim { dump, reads, redact, layout })
    }

    /// Size of the new file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.layout.file_bytes
    }

    /// Number of memory ranges.
    pub fn ranges(&self) -> u64 {
        crate::base::len64(self.layout.ranges.len())
    }

    /// Writes the copy. With redaction, returns the numbers of overwritten items.
    ///
    /// # Errors
    /// Write errors.
    pub fn write(&self, mut out: impl Write) -> io::Result<Option<RedactionModel>> {
        out.write_all(&self.layout.head)?;
        let mut sink = Sink::new(out, &self.layout.ranges);
        let mut redacted = None;
        if let Some(contents) = &self.redact {
            redacted = Some(Redaction::new(self.dump, contents, &self.reads).write(&mut sink)?);
        } else {
            for range in &self.layout.ranges {
                sink.copy(self.dump.memory(), range.range())?;
            }
        }
        sink.finish()?.flush()?;
        Ok(redacted)
    }

    /// Returns the bytes in the dump and in the copy, by kind of memory.
    pub fn parts(&self) -> Vec<TrimPart> {
        let dump = self.dump;
        let kept: Vec<AddrRange> = self.layout.ranges.iter().map(|r| r.range()).collect();
        let mut left = (captured(dump.memory()), union(kept, 0));
        let before = dump.file().facts.file_bytes.saturating_sub(dump.file().facts.captured_bytes);
        let head = self.layout.file_bytes.saturating_sub(bytes(&left.1));
        let mut parts = vec![TrimPart { kind: TrimKind::Headers, bytes: before, kept_bytes: head }];
        for (kind, of) in places(dump) {
            let (captured, kept) = (intersect(&left.0, &of), intersect(&left.1, &of));
            parts.push(TrimPart { kind, bytes: bytes(&captured), kept_bytes: bytes(&kept) });
            left = (subtract(&left.0, &of), subtract(&left.1, &of));
        }
        parts.push(TrimPart { kind: TrimKind::Runtime, bytes: bytes(&left.0), kept_bytes: bytes(&left.1) });
        parts
    }
}

/// Returns the ranges by kind of memory. If ranges of several kinds overlap, the first kind applies.
fn places(dump: &Dump) -> [(TrimKind, Vec<AddrRange>); 3] {
    let mut heap = Vec::new();
    for runtime in dump.runtimes().into_iter().flatten() {
        let segments = runtime.gc().map(|gc| gc.segments().data).unwrap_or_default();
        heap.extend(segments.iter().map(|s| AddrRange::new(s.start, s.reserved)));
    }
    let dump = dump.file();
    let index = ThreadStacks::new(dump);
    let stacks = dump.threads.iter().filter_map(|t| t.stack.or_else(|| index.around(t.stack_pointer?)));
    let images = dump.modules.iter().map(|m| m.range());
    [(TrimKind::Heap, union(heap, 0)), (TrimKind::Stacks, union(stacks.collect(), 0)), (TrimKind::Images, union(images.collect(), 0))]
}

/// Ranges of mapped or captured memory. Values in these ranges are treated as addresses.
struct Addresses(Vec<AddrRange>);

impl Addresses {
    fn of(dump: &Dump) -> Addresses {
        let mut all = captured(dump.memory());
        all.extend(dump.file().regions.iter().map(|r| r.range));
        all.extend(dump.file().modules.iter().map(|m| m.range()));
        Addresses(union(all, 0))
    }

    fn contains(&self, value: u64) -> bool {
        let i = self.0.partition_point(|r| r.end.0 <= value);
        self.0.get(i).is_some_and(|r| r.start.0 <= value)
    }
}
