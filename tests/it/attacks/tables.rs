//! Real processes with replaced tables: small headers that all refer to the same memory.

use std::path::Path;

use super::make::{RW, fields};
use super::objects::{Heap, delegate_list};

/// Address of the new tables.
const TABLES: u64 = 0x1000_0000_0000;
/// Address of their contents.
const SHARED: u64 = 0x2000_0000_0000;
/// Bytes of a segment of a handle table, and those of its handles.
const SEGMENT: u64 = 0x1_0000;
const VALUES: u64 = 61_440;
/// Address of code that is in no section.
const CODE: u64 = 0x4000_0000_0000;

fn words(list: impl IntoIterator<Item = u64>) -> Vec<u8> {
    list.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Makes segments of a handle table with handles to `object`: of all types in the same blocks, or of one type each in separate bytes.
fn segments(mut heap: Heap, object: u64, count: u64, shared: bool) -> Vec<u8> {
    let table = (0..4).fold(heap.global("HandleTableMap"), |at, _| heap.word(at));
    heap.set(table + 56, TABLES, 8);
    heap.mapped(|core| {
        let values = words((0..VALUES / 8).map(|_| object));
        let mut at = core.append(&values);
        for i in 0..count {
            let mut header = vec![0; 2014];
            (0..120).for_each(|block| header[480 + usize::from(block)] = (block + 1) % 120);
            header[1920..1933].fill(if shared { 119 } else { 255 });
            header[1922] = 119;
            let next = if i + 1 < count { TABLES + (i + 1) * SEGMENT } else { 0 };
            header[1998..].copy_from_slice(&words([next, table]));
            let head = core.append(&header[480..]);
            core.map(TABLES + i * SEGMENT + 480, head, 2014 - 480, RW);
            if !shared && i > 0 {
                at = core.append(&values);
            }
            core.map(TABLES + i * SEGMENT + 4096, at, VALUES, RW);
        }
    })
}

/// 8000 segments of a handle table with the same handles.
pub fn handles(_: &Path, part: u64) -> Vec<u8> {
    let heap = Heap::of("net10-wks-inspect-heap");
    let object = heap.object("Lab.Program+Subscriber").0;
    segments(heap, object, 8000 / part, true)
}

/// A million handles to an object whose type has a long name.
pub fn names(_: &Path, part: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-inspect-heap");
    let object = heap.object("Lab.Program+Subscriber").0;
    heap.lengthen("Subscriber", 2000);
    segments(heap, object, 130 / part, false)
}

/// A finalization queue that consists of 8000 mappings of the same 64 KB.
pub fn queue(_: &Path, part: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-inspect-heap");
    let object = heap.object("Lab.Program+Subscriber").0;
    let (queue, count) = (heap.word(heap.global("GCHeapFinalizeQueue")), 8000 / part);
    (0..7).for_each(|i| heap.set(queue + 8 * i, if i == 0 { SHARED } else { SHARED + count * SEGMENT }, 8));
    heap.mapped(|core| {
        let at = core.append(&words((0..SEGMENT / 8).map(|_| object)));
        (0..count).for_each(|i| core.map(SHARED + i * SEGMENT, at, SEGMENT, RW));
    })
}

/// Moves the table of sync blocks to [`TABLES`] and sets its number of entries.
fn sync_table(heap: &mut Heap, entries: u64) {
    let cache = heap.word(heap.global("SyncBlockCache"));
    heap.set(heap.global("SyncTableEntries"), TABLES, 8);
    heap.set(cache + 108, entries + 1, 4);
}

/// A sync table that consists of 1024 mappings of the same 64 KB.
pub fn sync_blocks(_: &Path, _: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-inspect-heap");
    let object = heap.object("Lab.Program+Subscriber").0;
    sync_table(&mut heap, 0x3ff_fffe);
    heap.mapped(|core| {
        let at = core.append(&[0; 4096]);
        core.map(SHARED, at, 4096, RW);
        let at = core.append(&words([SHARED, object].into_iter().cycle().take(8192)));
        (0..1024).for_each(|i| core.map(TABLES + i * SEGMENT, at, SEGMENT, RW));
    })
}

/// A thousand sync blocks whose waiting threads are one list, longer than the cap.
pub fn waiters(_: &Path, part: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-inspect-heap");
    let object = heap.object("Lab.Program+Subscriber").0;
    let count = 1000 / part;
    sync_table(&mut heap, count);
    heap.mapped(|core| {
        let (list, blocks, links) = (SHARED, SHARED + 0x100_0000, 65_700);
        let at = core.append(&words((1..=links).map(|i| if i < links { list + 8 * i } else { 0 })));
        core.map(list, at, 8 * links, RW);
        let at = core.append(&words((0..count + 40).map(|_| list + 32)));
        core.map(blocks, at, 8 * (count + 40), RW);
        let at = core.append(&words([0, 0].into_iter().chain((0..count).flat_map(|i| [blocks + 8 * i, object]))));
        core.map(TABLES, at, 16 * (count + 1), RW);
    })
}

/// Makes the code map refer every address to a list of 8192 fragments.
fn code_map(heap: &mut Heap) -> Vec<u8> {
    heap.set(heap.global("ExecutionManagerCodeRangeMapAddress"), TABLES, 8);
    let chain = TABLES + 0x2000;
    let levels = (1..=4).flat_map(|level| (0..256).map(move |_| if level < 4 { TABLES + level * 2048 } else { chain }));
    let fragments = (1..=8192).flat_map(|i| [if i < 8192 { chain + 32 * i } else { 0 }, 1, 2, 0]);
    words(levels.chain(fragments))
}

/// Makes a delegate with a distinct method address.
fn delegate(heap: &Heap, like: u64, i: u64) -> Vec<u8> {
    words([heap.word(like), heap.word(like + 8), heap.word(like + 16), CODE + 8 * i, 0, 0, 0, 0])
}

/// A delegate of 30 000 parts, each with a distinct method.
pub fn parts(_: &Path, part: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-inspect-heap");
    let sections = code_map(&mut heap);
    let out = |heap: &Heap, start: u64| {
        let (event, list) = delegate_list(heap);
        let (like, count) = (heap.word(list + 16), 30_000 / part);
        let parts = start + 24 + 8 * count;
        let mut out = words([heap.word(list), count].into_iter().chain((0..count).map(|i| parts + 64 * i)).chain([0]));
        (0..count).for_each(|i| out.extend(delegate(heap, like, i)));
        out.extend(words((0..5).map(|i| heap.word(event + 8 * i)).chain([start, count, 0])));
        out
    };
    heap.with_mapped(out, |core| {
        let at = core.append(&sections);
        core.map(TABLES, at, sections.len() as u64, RW);
    })
}

/// A cancellation source with 30 000 callbacks, each with a distinct method.
pub fn callbacks(_: &Path, part: u64) -> Vec<u8> {
    let mut heap = Heap::of("net10-wks-pool-heap");
    let sections = code_map(&mut heap);
    let out = |heap: &Heap, list: u64| {
        let name = |nested: &str| format!("System.Threading.CancellationTokenSource{nested}");
        let ((_, source), (_, registrations)) = (heap.object(&name("")), heap.object(&name("+Registrations")));
        let (node, callback) = heap.object(&name("+CallbackNode"));
        let (count, like, nodes) = (30_000 / part, heap.word(node + 32), list + 64);
        let mut out = words([registrations, 0, nodes, 0, 0, 0, 0, 0]);
        for i in 0..count {
            let next = if i + 1 < count { nodes + 144 * (i + 1) } else { 0 };
            out.extend(words([callback, list, 0, next, nodes + 144 * i + 80, 0, 0, 0, 0, 0]));
            out.extend(delegate(heap, like, i));
        }
        out.extend(fields(&[(source, 8), (0, 16), (list, 8), (0, 16)]));
        out
    };
    heap.with_mapped(out, |core| {
        let at = core.append(&sections);
        core.map(TABLES, at, sections.len() as u64, RW);
    })
}

/// 2000 connection pools whose waiting requests are one list of 400 000.
pub fn pools(_: &Path, part: u64) -> Vec<u8> {
    Heap::of("net10-wks-http-heap").with(|heap, start| {
        let pool = heap.object("System.Net.Http.HttpConnectionPool").0;
        let request = heap.object("System.Net.Http.HttpRequestMessage").0;
        let mut own: Vec<u64> = (0..38).map(|i| heap.word(pool + 8 * i)).collect();
        let (table, count) = (heap.word(own[28]), 400_000);
        let bytes = (heap.word(table) & 0xffff) * count;
        let mut out = words([table, count].into_iter().chain((0..bytes / 8).map(|_| request)).chain([0]));
        own[28..31].copy_from_slice(&[start, 0, count]);
        (0..2000 / part).for_each(|_| out.extend(words(own.iter().copied())));
        out
    })
}
