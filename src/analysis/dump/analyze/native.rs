//! Much native memory compared with the heap.
//!
//! Rule: native memory has at least 64 times `bytes`, and at least as many bytes as the GC has committed. Native memory does not belong to the GC,
//! files, stacks, code or the runtime's loader; examples are buffers of native libraries and memory that `malloc` keeps.
//!
//! Source: the map of the address space, as `memory` shows it. Dumps without the heap do not list native memory.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{counted, in_units, listed, percent};
use crate::analysis::{MallocModel, MemoryKind, MemoryListing, MemoryReport, Problem, ProblemId, ProblemSeverity};
use crate::base::{len64, share, thousands, total};
use crate::model::{MallocHeapKind, MallocUse};

/// Fewest bytes, as a multiple of the threshold.
const LARGE: u64 = 64;
/// Kinds of memory that the title names besides native memory.
const KINDS: [MemoryKind; 4] = [MemoryKind::Stack, MemoryKind::Module, MemoryKind::LoaderHeap, MemoryKind::File];
/// Fewest bytes of such a kind for the title to name it.
const NAMED: u64 = 1 << 20;
/// The title names a part if it has at least this share of the whole.
const PART: f64 = 0.1;
/// Block sizes that the title names.
const SIZES: usize = 2;

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    // Without the GC's lists, the GC heap is counted as unexplained memory.
    answers.runtime.gc().map_err(|e| Skip::because(e.to_string()))?;
    let report = answers.memory()?;
    let native = bytes_of(report, &NATIVE);
    let heap = bytes_of(report, &[MemoryKind::GcHeap, MemoryKind::GcFree]);
    if native < least.bytes.saturating_mul(LARGE) || native < heap {
        let heapless = || answers.heap().is_ok_and(|heap| heap.no_heap().is_some());
        if report.listing == MemoryListing::Captured && heapless() {
            return Err(Skip::because("the dump lists only memory that it captured"));
        }
        return Ok(Vec::new());
    }
    let mut parts: Vec<String> = Vec::new();
    if let Some(malloc) = answers.native_memory().ok().and_then(|report| report.malloc.as_ref()) {
        parts.extend(of_malloc(malloc, native));
    }
    let whole = answers.native_memory().unwrap_or(report);
    let anonymous = bytes_of(report, &[MemoryKind::Anonymous, MemoryKind::Unknown]);
    if share(anonymous, native).unwrap_or(0.0) >= PART {
        let largest = report.unexplained.first().filter(|r| r.accessible);
        let largest = largest.map(|r| format!(", the largest of {} at {}", in_units(r.bytes), r.start)).unwrap_or_default();
        let zero = zeros(whole, MemoryKind::Anonymous, anonymous).map(|text| format!(", {text}")).unwrap_or_default();
        parts.push(format!("{} in other mappings{largest}{zero}", in_units(anonymous)));
    }
    let others = KINDS.into_iter().map(|kind| (kind, bytes_of(report, &[kind]))).filter(|(_, bytes)| *bytes >= NAMED);
    let others: Vec<String> = others
        .map(|(kind, bytes)| {
            let zero = zeros(whole, kind, bytes).map(|text| format!(" ({text})")).unwrap_or_default();
            format!("{kind} {}{zero}", in_units(bytes))
        })
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; besides {}", others.join(", ")) };
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    let title = format!("{} of native memory in addition to {} of GC heap{parts}{others}", in_units(native), in_units(heap));
    Ok(vec![Problem {
        bytes: Some(native),
        share: share(native, report.totals.accessible_bytes),
        ..answers.finding(ProblemId::NativeMemory, ProblemSeverity::Warning, title, &["memory"])
    }])
}

/// The kinds that are native memory.
pub(in crate::analysis) const NATIVE: [MemoryKind; 3] = [MemoryKind::Malloc, MemoryKind::Anonymous, MemoryKind::Unknown];

pub(in crate::analysis) fn bytes_of(report: &MemoryReport, kinds: &[MemoryKind]) -> u64 {
    total(report.kinds.iter().filter(|k| kinds.contains(&k.kind)).map(|k| k.accessible_bytes))
}

/// Describes the memory of a kind that contains only zeros, if it is much of the `bytes` of this kind.
fn zeros(report: &MemoryReport, kind: MemoryKind, bytes: u64) -> Option<String> {
    let zero = total(report.kinds.iter().filter(|k| k.kind == kind).filter_map(|k| k.zero_bytes));
    (share(zero, bytes).unwrap_or(0.0) >= PART).then(|| format!("{} of it zeros, mostly never written", in_units(zero)))
}

/// Describes the memory of `malloc`: its location, its free bytes, and the sizes of blocks that take most of it.
fn of_malloc(malloc: &MallocModel, native: u64) -> Option<String> {
    let bytes = total(malloc.heaps.iter().map(|heap| heap.bytes));
    (share(bytes, native).unwrap_or(0.0) >= PART).then_some(())?;
    let of = |kind: MallocHeapKind| malloc.heaps.iter().filter(move |heap| heap.kind == kind);
    let sum = |kind: MallocHeapKind| total(of(kind).map(|heap| heap.bytes));
    let arenas = len64(of(MallocHeapKind::Arena).count());
    let blocks = total(of(MallocHeapKind::Mapped).map(|heap| heap.ranges));
    let places = [
        (sum(MallocHeapKind::Brk), "the brk heap".to_owned()),
        (sum(MallocHeapKind::Arena), counted(arenas, "arena")),
        (sum(MallocHeapKind::Mapped), format!("{} mapped one by one", counted(blocks, "large block"))),
    ];
    let places = listed(places.into_iter().filter(|(bytes, _)| *bytes > 0).map(|(bytes, what)| format!("{} in {what}", in_units(bytes))));
    let parts =
        malloc.heaps.iter().map(|heap| heap.parts).reduce(|a, b| a.zip(b).map(|(a, b): (MallocUse, MallocUse)| a.with(b))).flatten();
    let free = parts.map(|p| p.free.bytes.saturating_add(p.left_bytes)).filter(|n| share(*n, bytes).unwrap_or(0.0) >= PART);
    let free = free.map(|n| format!("; {} of it free ({})", in_units(n), percent(share(n, bytes).unwrap_or(0.0)))).unwrap_or_default();
    let sizes = malloc.sizes.iter().filter(|s| s.count > 1 && share(s.bytes, bytes).unwrap_or(0.0) >= PART).take(SIZES);
    let sizes = listed(sizes.map(|s| format!("{} × {} ({})", thousands(s.count), counted(s.size, "byte"), in_units(s.bytes))));
    let sizes = if sizes.is_empty() { String::new() } else { format!("; most blocks: {sizes}") };
    Some(format!("malloc has {} ({places}){free}{sizes}", in_units(bytes)))
}
