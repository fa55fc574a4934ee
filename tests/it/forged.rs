//! Dumps that map the same bytes of their file to many addresses: reads are bounded by the length of the file.

use crate::common::{number, walker};
use crate::support::{Spec, Target};
use gcdump::Dump;
use gcdump::analysis::{RootsQuery, roots};
use gcdump::internals::base::{Addr, AddrRange, NoteKind, Silent};
use gcdump::internals::dump::{self, Bytes, CapturedRange, DumpFile, OpenOptions, Register};
use gcdump::internals::session::roots::RootOptions;
use gcdump::model::{CoverageKind, RootKind};

fn open(target: &Target) -> DumpFile {
    dump::open_bytes(Bytes::Owned(target.to_elf_core()), "forged.dmp".as_ref(), &OpenOptions::default()).unwrap()
}

fn whole(dump: &DumpFile) -> u64 {
    dump.bytes.len() as u64
}

/// Maps the whole file `times` times, from `at` on. Returns the end.
fn repeat(dump: &mut DumpFile, at: u64, times: u64) -> u64 {
    let len = whole(dump);
    dump.ranges.extend((0..times).map(|i| CapturedRange { start: Addr(at + i * len), len, offset: 0 }));
    at + times * len
}

#[test]
fn a_segment_with_more_bytes_than_the_file_is_not_walked() {
    for shape in crate::common::shapes() {
        let mut target = Spec::standard(shape).build();
        // No object follows the last nonempty segment.
        let segments = target.expected()["segments"].as_array().unwrap().clone();
        let full = segments.iter().filter(|s| s["allocated_bytes"] != 0);
        let last = full.max_by_key(|s| number(&s["start"])).unwrap();
        let (address, reserved) = (number(&last["address"]), number(&last["reserved"]));
        let end = reserved + 2 * whole(&open(&target));
        for field in ["Allocated", "Committed", "Reserved"] {
            let old = number(&last[field.to_lowercase()]);
            let p = shape.ptr;
            let at = (0..0x100 / p).map(|i| address + i * p).find(|at| target.memory.word(*at) == Some(old)).unwrap();
            target.memory.p(at, end);
        }
        let mut dump = open(&target);
        repeat(&mut dump, reserved, 2);
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        let runtime = process.runtime().unwrap();
        let heap = walker(&runtime);
        let walked = heap.visit(&Silent, |_, _| true, |_| std::ops::ControlFlow::Continue(()));
        let why = |address: u64| {
            let (_, walk) = walked.iter().find(|(_, w)| w.segment == Addr(address)).unwrap();
            (walk.stopped_because.clone(), walk.objects)
        };
        assert_eq!(why(address), (Some("the segments have more bytes than the dump".into()), 0), "{shape:?}");
        let others: Vec<_> = walked.iter().filter(|(_, w)| w.segment != Addr(address)).collect();
        assert!(others.iter().all(|(_, w)| w.stopped_because.is_none()) && others.iter().any(|(_, w)| w.objects > 2), "{shape:?}");
    }
}

#[test]
fn stacks_with_more_bytes_than_the_file_are_not_all_scanned() {
    for shape in crate::common::shapes() {
        let target = Spec::standard(shape).build();
        let mut dump = open(&target);
        let free = dump.ranges.iter().map(|r| r.start.0 + r.len).max().unwrap().next_multiple_of(0x1000);
        let end = repeat(&mut dump, free, 2);
        let (count, len) = (dump.threads.len(), whole(&dump));
        // All threads share a stack almost as long as the file.
        for thread in &mut dump.threads {
            thread.registers = vec![Register { name: "r0", value: 0 }];
            thread.stack_pointer = Some(Addr(free + 0x1000));
            thread.stack = Some(AddrRange::new(Addr(free), Addr(end).min(Addr(free + len))));
        }
        assert!(count > 2, "{shape:?}");
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        let runtime = process.runtime().unwrap();
        let query = RootsQuery { options: RootOptions { kinds: vec![RootKind::Stack], ..RootOptions::default() }, ..RootsQuery::default() };
        let roots = roots(&runtime.heap().unwrap(), &query).unwrap();
        let notes: Vec<_> = roots.notes.iter().collect();
        let reported = notes.iter().find(|n| n.kind == NoteKind::Invalid && n.message.contains("more bytes than the dump"));
        assert_eq!(reported.and_then(|n| n.address), Some(Addr(free + 0x1000)), "{shape:?}: {notes:?}");
        let covered = roots.coverage.iter().find(|c| c.kind == RootKind::Stack).unwrap();
        assert_eq!(covered.coverage, CoverageKind::Partial, "{shape:?}");
    }
}
