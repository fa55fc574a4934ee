//! Determines the kind of a dump, and whether it was taken without the heap.

use super::Runtime;
use crate::base::missed::tried;
use crate::base::{NoteKind, Notes, Os, thousands, total};
use crate::contract::Description;
use crate::dump::{DumpFile, Trimmed};
use crate::memory::{Memory, is_by_createdump};
use crate::model::{DumpKind, DumpWriter, SegmentModel};

/// Flags of a minidump (`MINIDUMP_TYPE`, minidumpapiset.h) that determine its kind.
const WITH_PRIVATE_READ_WRITE: u64 = 0x200;
const FILTER_TRIAGE: u64 = 0x10_0000;

/// The parts of the heap that were found.
pub(crate) struct HeapEvidence<'s> {
    /// Whether the GC could be read.
    pub(crate) gc: bool,
    pub(crate) segments: &'s [SegmentModel],
    /// Whether `segments` has all segments of the process.
    pub(crate) whole: bool,
}

impl HeapEvidence<'_> {
    /// Bytes of the segments that the dump has, and bytes that the process had allocated in them.
    fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&SegmentModel) -> u64| total(self.segments.iter().map(of));
        (sum(|s| s.captured_bytes), sum(|s| s.allocated_bytes))
    }
}

/// A note if the dump was taken without the heap. The note comes first in every answer about the heap, and explains why data is missing. `rest`
/// has the notes of reading `segments`.
pub(super) fn no_heap(runtime: &Runtime, segments: &[SegmentModel], rest: &Notes) -> Notes {
    let found = HeapEvidence { gc: true, segments, whole: rest.complete() };
    let (captured, allocated) = found.bytes();
    // A failed read shows that the process had segments, even if none was found.
    let lost = || rest.iter().any(|n| n.kind == NoteKind::Missing && n.address.is_some());
    let known = if segments.is_empty() { lost() } else { allocated > 0 || !found.whole };
    let mut notes = Notes::new();
    if known
        && captured.saturating_mul(2) <= allocated
        && let (kind @ (DumpKind::Mini | DumpKind::Triage), ..) =
            tried(|| kind(runtime.file(), runtime.memory(), Some(runtime.description()), &found))
    {
        let what = format!("this is a {kind} dump, which has no heap: take a heap or full dump to see objects (docs/getting-dumps.md)");
        notes.add(NoteKind::NoHeap, None, what);
    }
    notes
}

/// Returns the kind of the dump, the evidence for it, and the program that wrote the dump.
pub(crate) fn kind(
    file: &DumpFile,
    memory: &Memory,
    runtime: Option<&Description>,
    found: &HeapEvidence<'_>,
) -> (DumpKind, String, Option<DumpWriter>) {
    let facts = &file.facts;
    let (captured, allocated) = found.bytes();
    let heap_there = captured > 0 && captured.saturating_mul(10) >= allocated.saturating_mul(9);
    let trimmed = match facts.trimmed {
        None => "",
        Some(Trimmed { redacted: false, .. }) => "; trimmed by gcdump",
        Some(Trimmed { redacted: true, .. }) => "; trimmed by gcdump, strings and arrays overwritten",
    };
    let cut = facts.truncated_bytes > 0;
    let cut_off = match (&facts.damage, cut) {
        (Some(_), _) => "; the compressed data is damaged",
        (None, true) => "; cut off",
        (None, false) => "",
    };
    let say = |kind, why: &str, writer| (kind, format!("{why}{trimmed}{cut_off}"), writer);
    if let Some(snapshot) = &file.snapshot {
        let tool = snapshot.tool.as_deref().map_or_else(String::new, |tool| format!(" by {tool}"));
        return (DumpKind::Snapshot, format!("heap snapshot (.gcdump){tool}, {} nodes", thousands(u64::from(snapshot.nodes))), None);
    }
    if let Some(flags) = facts.minidump_flags {
        let has = |flag: u64| flags & flag != 0;
        let why = format!("minidump flags {flags:#x}");
        let kind = if facts.states_all_memory() {
            DumpKind::Full
        } else if has(FILTER_TRIAGE) {
            DumpKind::Triage
        } else if has(WITH_PRIVATE_READ_WRITE) || heap_there {
            DumpKind::Heap
        } else {
            DumpKind::Mini
        };
        return say(kind, &why, Some(DumpWriter::Windows).filter(|_| facts.os == Os::Windows));
    }
    if is_by_createdump(file, memory) {
        // createdump does not record the requested type.
        let image = runtime.and_then(|r| r.site.image.as_ref());
        let code_there = image.is_some_and(|i| memory.captured(i.range).saturating_mul(10) >= i.range.len().saturating_mul(9));
        let from_file = runtime.is_some_and(|r| r.site.filled.bytes > 0);
        return match (heap_there, code_there && !from_file) {
            (true, true) => say(DumpKind::Full, "createdump; GC heap and code of the runtime captured", Some(DumpWriter::Createdump)),
            (true, false) => say(DumpKind::Heap, "createdump; GC heap captured, code of the runtime not", Some(DumpWriter::Createdump)),
            (false, _) if runtime.is_none() || !found.gc || cut => {
                say(DumpKind::Unknown, "createdump; no GC heap was found", Some(DumpWriter::Createdump))
            }
            (false, _) if found.whole => {
                say(DumpKind::Mini, "createdump; segment list captured, objects not", Some(DumpWriter::Createdump))
            }
            (false, _) => say(DumpKind::Triage, "createdump; neither objects nor the segment list captured", Some(DumpWriter::Createdump)),
        };
    }
    if facts.uncaptured_mappings > 0 {
        let why = format!("{} mappings without any captured byte, as kernels write them", facts.uncaptured_mappings);
        return say(DumpKind::KernelCore, &why, Some(DumpWriter::Kernel));
    }
    if cut {
        return say(DumpKind::Unknown, "ELF core without createdump's page: the part that identifies its writer may be missing", None);
    }
    say(DumpKind::Gcore, "ELF core without createdump's page, all mappings captured", Some(DumpWriter::Gdb))
}
