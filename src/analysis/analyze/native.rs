//! Native memory beside a small heap.
//!
//! Rule: memory that is neither the GC's, nor of files, stacks, code or the runtime's loader, has at least 64 times `bytes` and more than the GC
//! has committed. Native libraries, buffers and what `malloc` keeps are such memory.
//!
//! Source: the map of the address space, as `memory` shows it. Dumps without the heap do not list it.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::in_units;
use crate::base::total;
use crate::contract::own_program;
use crate::model::{Container, MemoryKind, MemoryListing, MemoryRangeModel, Problem, ProblemId, ProblemSeverity};

/// Fewest bytes, as a multiple of the threshold.
const LARGE: u64 = 64;
/// Kinds named in the title besides, and fewest bytes of one.
const KINDS: [MemoryKind; 4] = [MemoryKind::Stack, MemoryKind::Module, MemoryKind::LoaderHeap, MemoryKind::File];
const NAMED: u64 = 1 << 20;
/// Greatest distance of `malloc`'s first heap from the end of the program: kernels choose it at random.
const BRK: u64 = 1 << 30;

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    // Without the GC's lists, its heap is memory that nothing explains.
    answers.runtime.gc().map_err(|e| Skip(e.to_string()))?;
    let report = answers.memory()?;
    let of = |kinds: &[MemoryKind]| total(report.kinds.iter().filter(|k| kinds.contains(&k.kind)).map(|k| k.accessible_bytes));
    let native = of(&[MemoryKind::Anonymous, MemoryKind::Unknown]);
    let heap = of(&[MemoryKind::GcHeap, MemoryKind::GcFree]);
    if native < least.bytes.saturating_mul(LARGE) || native < heap {
        let heapless = || answers.heap().is_ok_and(|heap| heap.no_heap().is_some());
        if report.listing == MemoryListing::Captured && heapless() {
            return Err(Skip("the dump lists only memory that it captured".into()));
        }
        return Ok(Vec::new());
    }
    let largest = report.unexplained.first().filter(|r| r.accessible);
    let largest = largest.map(|r| format!("; the largest range has {} at {}{}", in_units(r.bytes), r.start, brk(answers, r)));
    let others = KINDS.iter().map(|kind| (kind, of(&[*kind]))).filter(|(_, bytes)| *bytes >= NAMED);
    let others: Vec<String> = others.map(|(kind, bytes)| format!("{kind} {}", in_units(bytes))).collect();
    let others = if others.is_empty() { String::new() } else { format!("; besides {}", others.join(", ")) };
    let title =
        format!("{} of native memory beside {} of GC heap{}{others}", in_units(native), in_units(heap), largest.unwrap_or_default());
    let all = report.totals.accessible_bytes;
    Ok(vec![Problem {
        bytes: Some(native),
        share: crate::base::share(native, all),
        ..answers.finding(ProblemId::NativeMemory, ProblemSeverity::Warning, title, &["memory"])
    }])
}

/// A word for the range that the kernel grows for `malloc` (`brk`): the first memory after the program's image.
fn brk(answers: &Answers<'_>, range: &MemoryRangeModel) -> &'static str {
    let file = answers.runtime.file();
    let program = own_program(file).filter(|_| file.facts.container == Container::ElfCore);
    let Some(end) = program.map(|m| m.base.plus(m.size)) else { return "" };
    let between = file.modules.iter().any(|m| m.base >= end && m.base < range.start);
    let near = end <= range.start && range.start < end.plus(BRK);
    if near && !between { " (the brk heap of malloc)" } else { "" }
}
